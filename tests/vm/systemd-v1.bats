#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The systemd cgroup manager on a hybrid host, with v1's controllers and systemd's own v2 tree beside them.

load ../lib/helpers.bash

CG=/sys/fs/cgroup

setup() {
	! cgroup_v2 || skip "a cgroup v2 host"
	[ -d /run/systemd/system ] || skip "systemd does not run here"
	common_setup
	UNIT=lr-$ID.scope
	cfg --arg p "system.slice:lr:$ID" '.linux.cgroupsPath = $p'
}

teardown() {
	[ -n "${TAG-}" ] || return 0 # it was left out
	local rc=0
	common_teardown || rc=1
	wait_until sh -c "[ -z \"\$(systemctl list-units --all --plain --no-legend '*$TAG*')\" ]" || rc=1
	return "$rc"
}

sd() { rt --systemd-cgroup "$@"; }
prop() { systemctl show "$UNIT" -P "$1"; }

sleeper() {
	cfg '.process.args = ["/bin/sleep", "300"]'
	OUT=$BATS_TEST_TMPDIR/out
	ERR=$BATS_TEST_TMPDIR/err
	sd run -d -b "$BUNDLE" "$ID" </dev/null >"$OUT" 2>"$ERR" || fail "$(cat "$ERR")"
}

@test "systemd, v1: the process is in the unit in every hierarchy, and nothing is left of it" {
	sleeper
	run -1 grep -v "/system.slice/$UNIT\$" "/proc/$(pid_of)/cgroup"
	assert_eq "$output" ""
	run -0 rt exec "$ID" echo hi
	assert_eq "$output" hi
	rt pause "$ID"
	rt resume "$ID"
	rt delete --force "$ID"
	assert_eq "$(left_cgroups)" ""
}

@test "systemd, v1: limits, updates and daemon-reload" {
	cfg '.linux.resources.cpu = {"shares": 512, "quota": 25000, "period": 50000} | .linux.resources.pids.limit = 30'
	sleeper
	assert_eq "$(prop CPUShares) $(prop CPUQuotaPerSecUSec) $(prop TasksMax)" "512 500ms 30"
	rt update --cpu-share 256 --cpu-quota 10000 --pids-limit 40 "$ID"
	systemctl daemon-reload
	assert_eq "$(prop CPUShares) $(prop CPUQuotaPerSecUSec) $(prop TasksMax)" "256 200ms 40"
	assert_eq "$(cat "$CG/cpu,cpuacct/system.slice/$UNIT/cpu.shares")" 256
	assert_eq "$(cat "$CG/cpu,cpuacct/system.slice/$UNIT/cpu.cfs_quota_us")" 10000
	assert_eq "$(cat "$CG/pids/system.slice/$UNIT/pids.max")" 40
}

@test "systemd, v1: daemon-reload allows no more devices than before" {
	with_caps CAP_MKNOD
	cfg '.linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]'
	sleeper
	local before
	before=$(sort "$CG/devices/system.slice/$UNIT/devices.list")
	rt exec "$ID" sh -c 'mknod /tmp/kmsg c 1 11; mknod /tmp/vda b 254 0'
	systemctl daemon-reload
	assert_eq "$(sort "$CG/devices/system.slice/$UNIT/devices.list")" "$before"
	run -0 rt exec "$ID" sh -c ': >/tmp/kmsg'
	run ! rt exec "$ID" head -c 1 /tmp/vda
	assert_has "$output" "Operation not permitted"
}

@test "systemd, v1: a sub-cgroup" {
	cfg '.annotations["run.oci.systemd.subgroup"] = "container"'
	sleeper
	run -1 grep -v "/system.slice/$UNIT/container\$" "/proc/$(pid_of)/cgroup"
	assert_eq "$output" ""
	rt delete --force "$ID"
	assert_eq "$(left_cgroups)" ""
}

@test "systemd, v1: the runtime is killed" {
	cfg '.hooks.createRuntime = [{"path": "/bin/sh", "args": ["sh", "-c", "kill -9 $PPID"]}]'
	run sd run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	rt delete --force "$ID"
	assert_eq "$(left_cgroups)" ""
}
