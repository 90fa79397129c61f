#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What only matters where a system call is denied; run by tests/denied/run. LR_DENY is the launcher.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

# denied ERROR CALLS ARGUMENT...: the runtime under a filter.
denied() {
	timeout 60 "$LR_DENY" "$1" "$2" "${RT:-$LEAN_RUNTIME}" --root "$ROOT" "${@:3}" 3>&-
}

@test "without memfd_create the runtime's file can't be written through /proc/self/exe either" {
	local error before
	export LEAN_RUNTIME_SELF=copy
	cp "$LEAN_RUNTIME" victim
	RT=./victim
	before=$(sha256sum <victim)
	sh_cfg_attack
	# A file without a name can be written to when nobody executes it any more; and nobody will again.
	for error in ENOSYS EPERM; do
		denied $error memfd_create run -d -b "$BUNDLE" "$ID" </dev/null >"out.$error" 2>&1
		attacked "out.$error" denied $error memfd_create
		rt delete "$ID"
	done
	assert_eq "$(sha256sum <victim)" "$before"
}

@test "without memfd_create init runs from a file without a name" {
	export LEAN_RUNTIME_SELF=copy
	cfg '.process.args = ["/bin/sleep", "300"]'
	denied EPERM memfd_create create -b "$BUNDLE" "$ID" </dev/null >out 2>&1
	assert_eq "$(stat -Lc '%h %a' "/proc/$(pid_of)/exe")" "0 500"
	assert_eq "$(readlink "/proc/$(pid_of)/exe" | grep -c -v -F "$LEAN_RUNTIME")" 1
}

@test "without pidfd_getfd a seccomp agent is an error that says so" {
	cfg '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/no/such.sock",
		"syscalls": [{"names": ["mkdirat"], "action": "SCMP_ACT_NOTIFY"}]}'
	run denied ENOSYS pidfd_getfd run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" pidfd_getfd
}

@test "without mount_setattr an id-mapped mount is an error that says so" {
	mkdir src
	cfg --arg s "$PWD/src" '.mounts += [{"destination": "/mnt", "type": "bind", "source": $s, "options": ["bind"],
		"uidMappings": [{"containerID": 0, "hostID": 100000, "size": 10}], "gidMappings": [{"containerID": 0, "hostID": 100000, "size": 10}]}]'
	run denied ENOSYS mount_setattr run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "id-map"
}

@test "without move_mount, mounts add is an error that leaves the container as it was" {
	rt_sleeper
	mkdir src
	run denied ENOSYS open_tree,move_mount mounts add "$ID" - <<<'[{"destination": "/mnt/x", "type": "bind", "source": "'"$PWD"'/src", "options": ["bind"]}]'
	assert_one_error
	run -0 rt exec "$ID" grep -c /mnt/x /proc/mounts || true
	assert_eq "$output" 0
}
