#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore of a container whose cgroup is a scope of systemd's.

load helpers.bash

setup() {
	[ -d /run/systemd/system ] || skip "systemd does not run here"
	checkpoint_setup
	UNIT=lr-$ID.scope
	cfg --arg p "system.slice:lr:$ID" '.linux.cgroupsPath = $p | .linux.resources.memory.limit = 67108864 | .linux.resources.pids.limit = 33'
}
teardown() {
	local rc=0
	show_logs
	common_teardown || rc=1
	[ -z "${UNIT-}" ] || [ "$(prop LoadState)" = not-found ] || fail "$UNIT is left" || rc=1
	# A failure has the host without them.
	[ -z "${had-}" ] || mount -o "remount,$had" /sys/fs/cgroup || rc=1
	return "$rc"
}

sd() {
	OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err
	rt --systemd-cgroup "$@" </dev/null >"$OUT" 2>"$ERR" || fail "$(cat "$ERR")"
}
prop() { systemctl show "$UNIT" -P "$1"; }

is_in_scope() {
	assert_eq "$(prop ActiveState) $(prop Slice) $(prop MemoryMax) $(prop TasksMax)" "active system.slice 67108864 33"
	assert_eq "$(sed -n 's/^0:://p' "/proc/$(pid_of)/cgroup")" "/system.slice/$UNIT"
}

@test "checkpoint: a scope goes with the container, and restore makes it again with its limits" {
	sd run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	is_in_scope
	checkpoint "$ID"
	at=$(count)
	assert_eq "$(prop LoadState)" not-found
	sd restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	counts_on "$at"
	is_in_scope
	rt exec "$ID" true </dev/null
	rt pause "$ID"
	rt resume "$ID"
	# And once more, from what was restored.
	IMG+=2
	checkpoint "$ID"
	at=$(count)
	sd restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	counts_on "$at"
	is_in_scope
	rt delete --force "$ID"
}

@test "checkpoint: a scope stays with a container that is left running" {
	sd run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	checkpoint "$ID" --leave-running
	is_in_scope
	counts_on "$(count)"
}

@test "checkpoint: from a scope into a cgroup of the runtime's own, and back" {
	sd run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	checkpoint "$ID"
	at=$(count)
	cfg --arg p "/$ID" '.linux.cgroupsPath = $p'
	restore "$ID"
	counts_on "$at"
	assert_eq "$(sed -n 's/^0:://p' "/proc/$(pid_of)/cgroup")" "/$ID"
	assert_eq "$(cat "/sys/fs/cgroup/$ID/memory.max")" 67108864
	IMG+=2
	checkpoint "$ID"
	at=$(count)
	cfg --arg p "system.slice:lr:$ID" '.linux.cgroupsPath = $p'
	sd restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	counts_on "$at"
	is_in_scope
}

# criu mounts cgroup v2 without them where it is shown none (its issue 3029).
@test "checkpoint and restore: the host's options of cgroup v2 stay" {
	options() { findmnt -rno FS-OPTIONS -t cgroup2 /sys/fs/cgroup; }
	had=$(options)
	assert_has "$had" nsdelegate
	sd run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	checkpoint "$ID"
	assert_eq "$(options)" "$had"
	sd restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_eq "$(options)" "$had"
	counts_on "$(count)"
}
