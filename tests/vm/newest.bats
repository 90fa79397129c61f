#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What only the newest kernels can do, and that the runtime does as well when they are kept from it.

load ../lib/helpers.bash

setup() {
	[[ $(uname -r) =~ ^([0-9]+)\. && ${BASH_REMATCH[1]} -ge 7 ]] || skip "before Linux 7.0 a mount namespace begins as a copy"
	common_setup
}
teardown() { common_teardown; }

# A container that writes to one volume, may not write to another, and sees a file of the host's.
volumes() {
	mkdir -p v/rw v/ro v/proc
	echo of the host >v/file
	sh_cfg 'cat /file; echo x >/rw/x && cat /rw/x; touch /ro/x 2>&1; touch /proc/sys/kernel/hostname 2>&1; id -u; pwd
		grep -c "/tmp .*size=64k" /proc/self/mountinfo; grep -c "/rw .*nosuid" /proc/self/mountinfo'
	cfg --arg d "$PWD/v" '.mounts += [
		{destination: "/rw", source: ($d + "/rw"), type: "bind", options: ["rbind"]},
		{destination: "/ro", source: ($d + "/ro"), type: "bind", options: ["rbind", "ro"]},
		{destination: "/rw", type: "none", options: ["remount", "bind", "nosuid"]},
		{destination: "/tmp", type: "tmpfs", source: "tmpfs"},
		{destination: "/tmp", type: "none", options: ["remount", "size=64k"]},
		{destination: "/file", source: ($d + "/file"), type: "bind", options: ["bind", "ro"]}]'
}

expected="of the host
x
touch: /ro/x: Read-only file system
touch: /proc/sys/kernel/hostname: Read-only file system
0
/
1
1"

# bats test_tags=ci
@test "newest: the host's mounts are neither copied nor left" {
	volumes
	run -0 strace -f -o trace "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_eq "$output" "$expected"
	grep -q ' clone3\?(.*CLONE_NEWPID' trace || fail "no clone is seen"
	run ! grep -E ' clone3?\(.*CLONE_NEWNS|pivot_root|umount2' trace
	grep -q 'setns(.*CLONE_NEWNS' trace || fail "$(grep -E 'setns|open_tree' trace)"
}

# bats test_tags=ci
@test "newest: a filter that denies the new call, or older ones that it takes the place of" {
	[ -x "${LR_DENY-}" ] || skip "no launcher of tests/denied"
	local call error
	volumes
	for call in open_tree_namespace open_tree fsopen move_mount mount_setattr fsopen,move_mount,mount_setattr openat2 clone3; do
		for error in ENOSYS EPERM; do
			run -0 "$LR_DENY" $error $call "$LEAN_RUNTIME" --root "$ROOT" --debug --log log run -b "$BUNDLE" "$ID"
			assert_eq "$call $error: $output" "$call $error: $expected"
			case $call in
			openat2 | clone3) grep -q 'alone in its mount namespace' log ;;
			*) run ! grep 'alone in its mount namespace' log ;;
			esac
			rm log
		done
	done
}
