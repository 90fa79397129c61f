#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --engine=fork where its caller lacks something: the container runs on as it was, and nothing is left out
# without a word.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	chmod 755 "$BATS_TEST_TMPDIR"
	chmod 777 "$R"
}
teardown() {
	common_teardown
}

COUNT='exec >/dev/null; i=0; while :; do i=$((i + 1)); echo $i >/n; busybox usleep 20000; done'

@test "short: of descriptors, and no frozen copy of the container is left in it" {
	local n pid dead
	cfg --arg s "for i in 1 2 3; do busybox sleep 1000 >/dev/null & done; $COUNT" '.process.args = ["/bin/sh", "-c", $s]'
	start
	for n in {16..60}; do
		! (ulimit -n "$n" && seed "$ID" >"said.$n" 2>&1) || break
	done
	[ "$n" -lt 60 ] || fail "$(cat said.59)"
	grep -q "too many open files" said.*
	moves
	dead=$(ps -o stat=,comm= --ppid "$(pid_of)" | grep '^Z.*sh' || true) # what it executes has another name
	for pid in $(ps -o pid= --ppid "$(pid_of)"); do
		dead+=$(ps -o stat=,comm= --ppid "$pid" | grep '^Z' || true)
	done
	assert_eq "$dead" ""
}

@test "short: a /proc of processes alone hides no queue of System V" {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cfg '.process.args = ["/usr/bin/python3", "-c", "import ctypes, time\nctypes.CDLL(None).msgget(0, 0o1600)\nopen(\"/n\", \"w\").write(\"1\\n\")\nwhile 1: time.sleep(1)"]'
	start
	run ! seed "$ID"
	assert_has "$output" "message queues of System V: 1"
	run ! unshare --mount sh -c 'mount -t proc -o subset=pid proc /proc && exec "$@"' sh "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "/proc/sysvipc"
	[ ! -e "$IMG/descriptor" ]
}

@test "short: whoever ignores SIGCHLD makes a seed of a program that has changed its root, too" {
	mkdir -p "$R/deep/dev"
	cp -a "$R/bin" "$R/deep/bin"
	N=$R/deep/n
	cfg --arg s "$COUNT" '.process.args = ["/bin/busybox", "chroot", "/deep", "/bin/sh", "-c", $s]
		| .process.capabilities |= map_values(. + ["CAP_SYS_CHROOT"])'
	start
	if command -v strace >/dev/null; then
		run -1 strace -o calls -e inject=clone:error=ENOMEM "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
		assert_has "$output" "the root of its mount namespace can't be looked at: cannot allocate memory"
	fi
	env --ignore-signal=CHLD "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	moves
}
