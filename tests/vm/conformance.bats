#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Properties of config.json that need what only this machine's kernel has: RDMA, weights of block I/O, huge
# pages, classes and priorities of network traffic, AppArmor. Rows of docs/spec-conformance.md name them.

load ../lib/helpers.bash

CG=/sys/fs/cgroup

setup() {
	cgroup_v2 || skip "not a cgroup v2 host"
	common_setup
}
teardown() { common_teardown; }

@test "linux.resources.rdma: handles and objects, on soft-RoCE" {
	# It stays until the machine goes: Linux 6.12 oopses when a device goes that a removed cgroup had limits for.
	modprobe rdma_rxe
	ip link add lean-dummy type dummy
	ip link set lean-dummy up
	rdma link add "$TAG-x" type rxe netdev lean-dummy
	cfg --arg d "$TAG-x" '.linux.resources.rdma = {($d): {hcaHandles: 3, hcaObjects: 10000}}'
	rt_sleeper
	assert_has "$(cat "$CG/$ID/rdma.max")" "$TAG-x hca_handle=3 hca_object=10000"
	rt delete --force "$ID"
	cfg --arg d "$TAG-x" '.linux.resources.rdma = {($d): {hcaObjects: 5}}'
	rt_sleeper
	assert_has "$(cat "$CG/$ID/rdma.max")" "$TAG-x hca_handle=max hca_object=5"
	rt delete --force "$ID"
	cfg '.linux.resources.rdma = {"nosuch0": {hcaHandles: 3}}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" nosuch0
	assert_has "$output" linux.resources.rdma
}

@test "linux.resources.blockIO: weights, by the bfq scheduler" {
	local before dev
	modprobe bfq
	before=$(sed 's/.*\[\(.*\)\].*/\1/' /sys/block/vda/queue/scheduler)
	echo bfq >/sys/block/vda/queue/scheduler
	dev=$(cat /sys/block/vda/dev)
	cfg --argjson a "${dev%:*}" --argjson i "${dev#*:}" '.linux.resources.blockIO = {weight: 300,
		weightDevice: [{major: $a, minor: $i, weight: 500}]}'
	rt_sleeper
	assert_eq "$(cat "$CG/$ID/io.bfq.weight")" "default 300
$dev 500"
	rt delete --force "$ID"
	echo "$before" >/sys/block/vda/queue/scheduler
}

@test "linux.resources.blockIO: the four throttles on v2" {
	local dev
	dev=$(cat /sys/block/vda/dev)
	cfg --argjson a "${dev%:*}" --argjson b "${dev#*:}" 'def d($r): [{major: $a, minor: $b, rate: $r}];
		.linux.resources.blockIO = {throttleReadBpsDevice: d(1000000), throttleWriteBpsDevice: d(2000000),
			throttleReadIOPSDevice: d(300), throttleWriteIOPSDevice: d(400)}'
	rt_sleeper
	assert_eq "$(cat "$CG/$ID/io.max")" "$dev rbps=1000000 wbps=2000000 riops=300 wiops=400"
}

@test "linux.resources: cpu.idle, pids.limit 0 and -1, memory.checkBeforeUpdate on v2" {
	cfg '.linux.resources = {cpu: {idle: 1}, pids: {limit: -1}, memory: {limit: 67108864, checkBeforeUpdate: true}}'
	rt_sleeper
	assert_eq "$(cat "$CG/$ID/cpu.idle") $(cat "$CG/$ID/pids.max") $(cat "$CG/$ID/memory.max")" "1 max 67108864"
	run rt update -r - "$ID" <<<'{"memory": {"limit": 4096, "checkBeforeUpdate": true}}'
	assert_one_error
	rt delete --force "$ID"
	cfg '.linux.resources = {pids: {limit: 0}} | .process.args = ["sh", "-c", "(true) && echo forked"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "can't fork"
	assert_hasnt "$output" forked
}

@test "linux.resources.hugepageLimits: use and reservations" {
	cfg '.linux.resources.hugepageLimits = [{"pageSize": "2MB", "limit": 4194304}]'
	rt_sleeper
	assert_eq "$(cat "$CG/$ID/hugetlb.2MB.max") $(cat "$CG/$ID/hugetlb.2MB.rsvd.max")" "4194304 4194304"
}

# Network classes are cgroup v1's only: a hierarchy of theirs beside the unified one, in a mount namespace.
# Debian's kernel has no net_prio: priorities are shown by a unit test.
@test "linux.resources.network: class, of cgroup v1 beside v2" {
	modprobe cls_cgroup
	cfg '.linux.resources.network = {classID: 1048577} | .process.args = ["/bin/sleep", "300"]'
	export -f rt_bg rt
	export ROOT BUNDLE ID TAG
	run -0 unshare --mount bash -euc '
		mount -t tmpfs none /sys/fs/cgroup
		mkdir /sys/fs/cgroup/unified /sys/fs/cgroup/net_cls
		mount -t cgroup2 none /sys/fs/cgroup/unified
		mount -t cgroup -o net_cls none /sys/fs/cgroup/net_cls
		rt_bg run -d -b "$BUNDLE" "$ID"
		cat /sys/fs/cgroup/net_cls/$ID/net_cls.classid
		rt delete --force "$ID"
		[ ! -e /sys/fs/cgroup/net_cls/$ID ]'
	assert_eq "$output" 1048577
	# A hierarchy goes with its last mount, unless a cgroup of it is still being freed; the tests after this
	# one are about a host without it.
	while grep -q net_cls: /proc/self/cgroup; do
		sleep 0.5
		unshare --mount sh -c 'mount -t cgroup -o net_cls none /mnt && umount /mnt'
	done
}

# The container sees its own cgroup as the root, and lives below it, so that it can pass controllers on.
@test "annotation run.oci.delegate-cgroup: limits above, processes below, exec too, also in a user namespace" {
	local userns
	for userns in no yes; do
		cfg '.annotations["run.oci.delegate-cgroup"] = "payload" | .linux.resources.pids.limit = 50'
		[ $userns = no ] || cfg '.linux.namespaces += [{"type": "user"}] | .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}]
			| .linux.gidMappings = .linux.uidMappings'
		cfg '(.mounts[] | select(.type == "cgroup") | .options) |= map(select(. != "ro"))'
		chown 100000:100000 "$BUNDLE/rootfs"
		chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
		sh_cfg 'grep ^0:: /proc/self/cgroup; exec sleep 300'
		rt_bg run -d -b "$BUNDLE" "$ID"
		wait_until grep -q . "$OUT"
		assert_eq "$(cat "$OUT")" 0::/payload
		assert_eq "$(cat "$CG/$ID/pids.max") $(cat "$CG/$ID/cgroup.procs")" "50 "
		assert_eq "$(cat "$CG/$ID/payload/cgroup.procs")" "$(pid_of)"
		run -0 rt exec "$ID" grep ^0:: /proc/self/cgroup
		assert_eq "$output" 0::/payload
		run -0 rt exec "$ID" sh -c 'mkdir /sys/fs/cgroup/payload/own && echo 1 >/sys/fs/cgroup/payload/own/cgroup.procs && grep ^0:: /proc/1/cgroup'
		assert_eq "$output" 0::/payload/own
		rt delete --force "$ID"
		[ ! -e "$CG/$ID" ]
	done
	local bad
	for bad in .. a/../../b /absolute ""; do
		cfg --arg b "$bad" '.annotations["run.oci.delegate-cgroup"] = $b'
		run rt run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" run.oci.delegate-cgroup
	done
}

@test "process.apparmorProfile: the program has it, exec too, and --apparmor another" {
	grep -q apparmor /sys/kernel/security/lsm
	local p
	for p in "$TAG-a" "$TAG-b"; do
		echo "profile $p flags=(attach_disconnected,mediate_deleted) { file, capability, network, signal, mount, deny /tmp/secret w, }" >profile
		apparmor_parser -r profile
	done
	cfg --arg p "$TAG-a" '.process.apparmorProfile = $p'
	sh_cfg 'cat /proc/self/attr/apparmor/current; echo x >/tmp/secret; echo y >/tmp/other && exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -e "$BUNDLE/rootfs/tmp/other"
	assert_eq "$(head -n 1 "$OUT")" "$TAG-a (enforce)"
	[ ! -e "$BUNDLE/rootfs/tmp/secret" ]
	run -0 rt exec "$ID" cat /proc/self/attr/apparmor/current
	assert_eq "$output" "$TAG-a (enforce)"
	run -0 rt exec --apparmor "$TAG-b" "$ID" cat /proc/self/attr/apparmor/current
	assert_eq "$output" "$TAG-b (enforce)"
	run rt exec --apparmor "$TAG-none" "$ID" true
	assert_one_error
	assert_has "$output" "$TAG-none"
	rt delete --force "$ID"
	for p in "$TAG-a" "$TAG-b"; do
		echo -n "$p" >/sys/kernel/security/apparmor/.remove
	done
}
