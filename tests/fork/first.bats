#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --engine=fork: a container whose first process has left the namespaces or the root that config.json gave it
# is refused by name; its child would have them back.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	mkdir -p "$R"/{own,jail}
	printf '#!/bin/sh\nexec >/dev/null; i=0\nwhile sleep 0.02; do i=$((i + 1)); echo $i >/n; [ ! -e /go ] || . /go; done\n' >"$R/bin/count"
	chmod 755 "$R/bin/count" "$BATS_TEST_TMPDIR"
	chmod 777 "$R"
	HOLDER=
}
teardown() {
	[ -z "$HOLDER" ] || kill "$HOLDER" 2>/dev/null || true
	umount -l mounted 2>/dev/null || true
	common_teardown
}

# It may go where it likes.
privileged() {
	cfg --argjson caps "$("$LEAN_RUNTIME" features | jq .linux.capabilities)" '.process.capabilities = ({bounding: $caps, effective: $caps, permitted: $caps})
		| del(.linux.maskedPaths, .linux.readonlyPaths, .linux.seccomp) | .process.noNewPrivileges = false
		| .linux.resources.devices = [{allow: true, access: "rwm"}]'
}

# Its first process does SCRIPT, and counts.
begin() { # SCRIPT
	cfg --arg s "{ $1; } 2>/err || exit 1; exec /bin/count" '.process.args = ["/bin/sh", "-c", $s]'
	rm -f "$R"/{go,err} "$N"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N" || fail "it says: $(cat "$R/err")"
}

refused() { # LINE...
	local line
	rm -rf "$IMG"
	run -1 seed "$ID"
	for line; do
		assert_has "$output" "): $line"
	done
	assert_has "$output" "cannot carry $# of the container's resources"
	[ ! -e "$IMG/descriptor" ]
	moves
	rt delete --force "$ID"
}

carried() {
	seed "$ID"
	moves
	rt delete --force "$ID"
	grow "$ID"
	moves
	rt delete --force "$ID"
}

@test "first: a mount namespace that it goes to between the look and the hold is looked at as well" {
	command -v strace >/dev/null || skip "strace is not installed"
	privileged
	begin true
	local what=0
	# The first of the calls by which it is held waits: all has been looked at.
	LR_TEST_TAG=$TAG timeout 60 strace -f -o calls -e trace=ptrace -e inject=ptrace:delay_enter=1000000:when=1 "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null >late 2>&1 3>&- &
	local late=$!
	wait_until grep -q ptrace calls
	echo 'rm /go; exec busybox unshare -m sh -c "mount -t tmpfs own /own && exec /bin/count"' >"$R/go.new"
	mv "$R/go.new" "$R/go"
	wait "$late" || what=$?
	[ ! -e "$R/go" ] || fail "it has not gone"
	assert_eq "$what" 1
	assert_has "$(cat late)" "a mount that config.json does not have (tmpfs on /own)"
	moves
}
