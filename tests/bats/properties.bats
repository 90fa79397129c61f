#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Properties of config.json that no other file here is about, one test each.

load ../lib/helpers

setup() {
	common_setup
	needs_root
	lean_only "properties of newer versions of the specification"
}
teardown() { common_teardown; }

# ran SCRIPT FILTER...: what the container of that config prints.
ran() {
	local script=$1
	shift
	cfg "$@"
	sh_cfg "$script"
	run -0 rt run -b "$BUNDLE" "$ID"
}

# refused PLACE FILTER...: config.json is refused, and the error names PLACE.
refused() {
	local place=$1
	shift
	cp "$BUNDLE/config.json" saved.json
	cfg "$@"
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "$place"
	mv saved.json "$BUNDLE/config.json"
}

v1_file() {
	cgroup_file "$1" "$2" "$2"
}

# --- process --------------------------------------------------------------------------------------

@test "process.scheduler: SCHED_FIFO, SCHED_RR with priority, in a cgroup with realtime" {
	cgroup_v2 && skip "cgroup v1 gives realtime"
	[ -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ] || skip "the kernel lacks RT_GROUP_SCHED"
	cfg '.linux.resources.cpu = {realtimeRuntime: 10000, realtimePeriod: 1000000}'
	ran 'cut -d" " -f40,41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_FIFO", priority: 10}'
	assert_eq "$output" "10 1"
	ran 'cut -d" " -f40,41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_RR", priority: 20}'
	assert_eq "$output" "20 2"
	refused process.scheduler.priority '.process.scheduler = {policy: "SCHED_RR", priority: 200}'
	refused process.scheduler.priority '.process.scheduler = {policy: "SCHED_OTHER", priority: 1}'
	cfg '.linux.resources.cpu = null | .process.scheduler.priority = 20'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "realtimeRuntime"
}

@test "process.scheduler: SCHED_OTHER, SCHED_BATCH and SCHED_IDLE with nice" {
	ran 'cut -d" " -f19,41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_OTHER", nice: 5}'
	assert_eq "$output" "5 0"
	ran 'cut -d" " -f19,41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_BATCH", nice: -4}'
	assert_eq "$output" "-4 3"
	ran 'cut -d" " -f41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_IDLE"}'
	assert_eq "$output" 5
	refused process.scheduler.nice '.process.scheduler = {policy: "SCHED_OTHER", nice: 20}'
	refused process.scheduler.policy '.process.scheduler = {policy: "SCHED_NONE"}'
	refused SCHED_ISO '.process.scheduler = {policy: "SCHED_ISO"}'
}

@test "process.scheduler: SCHED_DEADLINE with runtime, deadline and period" {
	cfg '.process.scheduler = {policy: "SCHED_DEADLINE", runtime: 1000000, deadline: 20000000, period: 30000000}
		| .process.args = ["cut", "-d ", "-f41", "/proc/self/stat"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 6
	refused process.scheduler '.process.scheduler = {policy: "SCHED_OTHER", runtime: 1000000}'
	refused process.scheduler '.process.scheduler = {policy: "SCHED_DEADLINE", runtime: 5, deadline: 4, period: 3}'
}

@test "process.scheduler: flags" {
	# Reset on fork: the child of the shell is an ordinary process again.
	ran 'cut -d" " -f41 /proc/$$/stat; cut -d" " -f41 /proc/self/stat' '.process.scheduler = {policy: "SCHED_BATCH", flags: ["SCHED_FLAG_RESET_ON_FORK"]}'
	assert_eq "$output" $'3\n3'
	ran 'cut -d" " -f19 /proc/$$/stat; cut -d" " -f19 /proc/self/stat; true' '.process.scheduler = {policy: "SCHED_OTHER", nice: -7, flags: ["SCHED_FLAG_RESET_ON_FORK"]}'
	assert_eq "$output" $'-7\n0'
	refused "process.scheduler.flags[0]" '.process.scheduler = {policy: "SCHED_OTHER", flags: ["SCHED_FLAG_NONE"]}'
	# Known to the specification, not to every kernel: taken, or refused by name.
	for f in RECLAIM DL_OVERRUN KEEP_POLICY KEEP_PARAMS UTIL_CLAMP_MIN UTIL_CLAMP_MAX; do
		cfg --arg f "SCHED_FLAG_$f" '.process.scheduler = {policy: "SCHED_OTHER", flags: [$f]} | .process.args = ["true"]'
		run rt run -b "$BUNDLE" "$ID"
		[ "$status" = 0 ] || assert_has "$output" process.scheduler
	done
}

@test "process.ioPriority: the three classes" {
	ran 'ionice -p $$' '.process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 3}'
	assert_eq "$output" "best-effort: prio 3"
	ran 'ionice -p $$' '.process.ioPriority = {class: "IOPRIO_CLASS_RT", priority: 7}'
	assert_eq "$output" "realtime: prio 7"
	ran 'ionice -p $$' '.process.ioPriority = {class: "IOPRIO_CLASS_IDLE", priority: 0}'
	assert_has "$output" "idle"
	refused process.ioPriority.class '.process.ioPriority = {class: "IOPRIO_CLASS_X", priority: 0}'
	refused process.ioPriority.priority '.process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 8}'
}

@test "process.execCPUAffinity: initial before the cgroup is joined, final after" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU only"
	cfg '.process.execCPUAffinity = {initial: "0", final: "1"}'
	rt_sleeper
	run -0 rt exec "$ID" grep Cpus_allowed_list /proc/self/status
	assert_match "$output" '1$'
	assert_match "$(grep Cpus_allowed_list "/proc/$(pid_of)/status")" "0-$(($(nproc) - 1))\$"
	echo '{"cwd": "/", "args": ["grep", "Cpus_allowed_list", "/proc/self/status"], "execCPUAffinity": {"initial": "0"}}' >p.json
	run -0 rt exec -p p.json "$ID"
	assert_match "$output" '0$'
	echo '{"cwd": "/", "args": ["true"], "execCPUAffinity": {"final": "4000"}}' >p.json
	run -255 rt exec -p p.json "$ID"
	assert_has "$output" process.execCPUAffinity.final
	command -v strace >/dev/null || return 0
	run -0 strace -f -s 8 -e trace=sched_setaffinity,openat -o trace "$LEAN_RUNTIME" --root "$ROOT" exec "$ID" true
	# By the beginning of a call; where another process comes in between, its end has a line of its own.
	assert_eq "$(grep -v resumed trace | grep -E 'sched_setaffinity|(tasks|cgroup.procs)".*WRONLY' | sed 's/.*sched_setaffinity.*\[\([01]\)\].*/cpu \1/; s/.*\(tasks\|procs\).*/join/' | uniq)" \
		$'cpu 0\njoin\ncpu 1'
}

@test "process.execCPUAffinity: what is no list of CPUs" {
	refused process.execCPUAffinity.initial '.process.execCPUAffinity = {initial: "a"}'
	refused process.execCPUAffinity.final '.process.execCPUAffinity = {final: "3-1"}'
}

@test "process.user.umask, process.user.username, process.commandLine: the last two are for others" {
	ran umask '.process.user.umask = 63 | .process.user.username = "somebody" | .process.commandLine = "cmd"'
	assert_eq "$output" 0077
	refused process.user.umask '.process.user.umask = 65535'
}

@test "process.apparmorProfile, process.selinuxLabel, linux.mountLabel: not without the module" {
	if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ]; then
		refused process.apparmorProfile '.process.apparmorProfile = "some-profile"'
		ran 'echo fine' '.process.apparmorProfile = "unconfined"'
		assert_eq "$output" fine
	fi
	if [ ! -d /sys/fs/selinux ]; then
		refused process.selinuxLabel '.process.selinuxLabel = "system_u:system_r:container_t:s0"'
		refused linux.mountLabel '.linux.mountLabel = "system_u:object_r:container_file_t:s0"'
		assert_has "$output" "SELinux is not enabled"
	fi
}

# --- linux ------------------------------------------------------------------------------------------

@test "linux.memoryPolicy: every mode, nodes and flags" {
	[ -e /proc/self/numa_maps ] || skip "the kernel lacks NUMA"
	local m
	for m in 'MPOL_DEFAULT::default' 'MPOL_LOCAL::local' 'MPOL_PREFERRED:0:prefer:0' 'MPOL_PREFERRED_MANY:0:prefer \(many\):0' \
		'MPOL_BIND:0:bind:0' 'MPOL_INTERLEAVE:0:interleave:0' 'MPOL_WEIGHTED_INTERLEAVE:0:weighted interleave:0'; do
		ran 'head -n 1 /proc/self/numa_maps' --arg m "${m%%:*}" --arg n "$(cut -d: -f2 <<<"$m")" \
			'.linux.memoryPolicy = ({mode: $m} + if $n == "" then {} else {nodes: $n} end)'
		assert_match "$output" " $(cut -d: -f3- <<<"$m") "
	done
	ran 'head -n 1 /proc/self/numa_maps' '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_STATIC_NODES"]}'
	assert_has "$output" "bind=static:0"
	ran 'head -n 1 /proc/self/numa_maps' '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_RELATIVE_NODES"]}'
	assert_has "$output" "bind=relative:0"
	ran 'head -n 1 /proc/self/numa_maps' '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_NUMA_BALANCING"]}'
	assert_has "$output" "bind"
	ran true '.linux.memoryPolicy = {mode: "MPOL_PREFERRED", nodes: ""}'
	refused linux.memoryPolicy.mode '.linux.memoryPolicy = {mode: "MPOL_X"}'
	refused "linux.memoryPolicy.flags[0]" '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0", flags: ["MPOL_F_X"]}'
	refused linux.memoryPolicy '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "63"}'
	refused linux.memoryPolicy.nodes '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "x"}'
}

@test "linux.memoryPolicy: where the kernel lacks NUMA, one error, and one birth" {
	lean_only "one of its own"
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.linux.memoryPolicy = {mode: "MPOL_BIND", nodes: "0"}'
	local verb
	for verb in run create; do
		run timeout 60 strace -f -q -o calls -e trace=set_mempolicy -e inject=set_mempolicy:error=ENOSYS \
			"$LEAN_RUNTIME" --root "$ROOT" $verb -b "$BUNDLE" "$ID" </dev/null
		assert_one_error
		assert_has "$output" "linux.memoryPolicy"
		assert_has "$output" "CONFIG_NUMA"
		# Who is born once more, in another way, would ask for it again.
		assert_eq "$(grep -c 'set_mempolicy(.*ENOSYS' calls)" 1
		run ! rt state "$ID"
	done
}

@test "linux.memoryPolicy: exec has it too" {
	[ -e /proc/self/numa_maps ] || skip "the kernel lacks NUMA"
	cfg '.linux.memoryPolicy = {mode: "MPOL_INTERLEAVE", nodes: "0"}'
	rt_sleeper
	run -0 rt exec "$ID" head -n 1 /proc/self/numa_maps
	assert_has "$output" "interleave:0"
}

@test "linux.netDevices: moved with its addresses, renamed, and up as it was" {
	cfg '.linux.netDevices = {lrv0: {name: "eth7"}} | .process.args = ["ip", "addr"]'
	run -0 unshare -n bash -c 'ip link add lrv0 type veth peer name lrv1 && ip addr add 10.9.8.7/24 dev lrv0 &&
		ip link set lrv0 up mtu 1400 && "$@" && ip -br link' bash "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_match "$output" 'eth7@.*mtu 1400'
	assert_has "$output" "inet 10.9.8.7/24"
	# the other end is still here, and the device went with the container
	assert_hasnt "$output" "lrv0@"
	cfg '.linux.netDevices = {lrv9: {}}'
	run unshare -n "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" linux.netDevices.lrv9
	without_ns network
	run unshare -n "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" linux.netDevices
}

@test "linux.timeOffsets: nanoseconds, both clocks, limits" {
	ran 'cat /proc/self/timens_offsets' '.linux.namespaces += [{type: "time"}] | .linux.timeOffsets = {monotonic: {secs: 7, nanosecs: 5}, boottime: {secs: 1000}}'
	assert_match "$output" 'monotonic +7 +5'
	assert_match "$output" 'boottime +1000 +0'
	refused linux.timeOffsets.monotonic.nanosecs '.linux.timeOffsets.monotonic.nanosecs = 1000000000'
	refused linux.timeOffsets '.linux.timeOffsets = {boottime: {secs: -999999999}}'
	refused linux.timeOffsets '.linux.namespaces |= map(select(.type != "time"))'
}

@test "linux.personality: LINUX, LINUX32, and no flags" {
	ran 'uname -m' '.linux.personality = {domain: "LINUX"}'
	assert_eq "$output" "$(uname -m)"
	refused linux.personality.domain '.linux.personality = {domain: "BSD"}'
	refused linux.personality.flags '.linux.personality = {domain: "LINUX", flags: ["X"]}'
}

@test "linux.intelRdt: one clear error where the CPU has none" {
	[ ! -d /sys/fs/resctrl ] || skip "this CPU has it: see the unit tests of rdt"
	for f in '{closID: "group"}' '{schemata: ["L3:0=f"]}' '{l3CacheSchema: "L3:0=f"}' '{memBwSchema: "MB:0=50"}' '{enableMonitoring: true}'; do
		refused linux.intelRdt ".linux.intelRdt = $f"
		assert_has "$output" resctrl
	done
}

@test "linux.rootfsPropagation: every value, and none that is none" {
	local p want
	# Of a private mount nothing is said; a slave of a private one is private.
	for p in shared:shared: rshared:shared: 'slave:(-|master:)' 'rslave:(-|master:)' private:- rprivate:- unbindable:unbindable runbindable:unbindable; do
		want=${p#*:} p=${p%%:*}
		ran 'awk "\$5 == \"/\" {print \$7}" /proc/self/mountinfo' --arg p "$p" '.linux.rootfsPropagation = $p'
		assert_match "$output" "^$want"
	done
	refused linux.rootfsPropagation '.linux.rootfsPropagation = "sideways"'
}

@test "linux.seccomp.flags: taken, unknown ones refused" {
	command -v strace >/dev/null || skip "strace is not installed"
	for f in TSYNC LOG SPEC_ALLOW; do
		ran 'grep ^Seccomp: /proc/self/status' --arg f "SECCOMP_FILTER_FLAG_$f" \
			'.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", flags: [$f], syscalls: [{names: ["kexec_load"], action: "SCMP_ACT_ERRNO"}]}'
		assert_match "$output" '2$'
		run -0 strace -f -e trace=seccomp -o calls "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
		assert_has "$(cat calls)" "SECCOMP_FILTER_FLAG_$f"
	done
	refused linux.seccomp.flags '.linux.seccomp.flags = ["SECCOMP_FILTER_FLAG_X"]'
}

@test "linux.seccomp: errnoRet, defaultErrnoRet, and every action" {
	lean_changes rootfs
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	local a
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 28}]}'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "No space left"
	cfg '.linux.seccomp.syscalls[0].errnoRet = 5000'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" errnoRet
	for a in SCMP_ACT_KILL:159 SCMP_ACT_KILL_THREAD:159 SCMP_ACT_KILL_PROCESS:159 SCMP_ACT_TRAP:159 SCMP_ACT_LOG:0 SCMP_ACT_ALLOW:0 SCMP_ACT_TRACE:1; do
		cfg --arg a "${a%:*}" '.linux.seccomp.syscalls[0] = {names: ["mkdir", "mkdirat"], action: $a}'
		run rt run -b "$BUNDLE" "$ID"
		assert_eq "$a $status" "$a ${a#*:}"
		rm -rf "$BUNDLE/rootfs/tmp/x"
	done
	cfg '.linux.seccomp.syscalls[0].action = "SCMP_ACT_X"'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" SCMP_ACT_X
}

@test "linux.devices: block, character, unbuffered, fifo; the mode and the owner" {
	ran 'stat -c "%F %t:%T %a %u:%g" /dev/blk /dev/chr /dev/unb /dev/ff' \
		'.linux.devices = [{path: "/dev/blk", type: "b", major: 7, minor: 200, fileMode: 416, uid: 3, gid: 4},
		{path: "/dev/chr", type: "c", major: 1, minor: 3}, {path: "/dev/unb", type: "u", major: 1, minor: 5}, {path: "/dev/ff", type: "p"}]'
	assert_match "$output" 'block special file 7:c8 640 3:4
character special file 1:3 .*
character special file 1:5 .*
fifo .*'
	refused "linux.devices[0]" '.linux.devices = [{path: "/dev/x", type: "z"}]'
}

# --- linux.resources --------------------------------------------------------------------------------

@test "linux.devices: in a user namespace: what the host lacks is made, and the host's are bound nosuid and noexec" {
	lean_changes rootfs
	local p ours
	for_peers
	chown -R 100000:100000 "$BUNDLE/rootfs"
	chmod o+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings | .linux.devices = [
		{path: "/dev/mine", type: "c", major: 1, minor: 3, fileMode: 416, uid: 0, gid: 8},
		{path: "/dev/sub/none", type: "c", major: 241, minor: 33, fileMode: 420, uid: 7, gid: 0}]
		| .linux.resources.devices = [{allow: true, access: "rwm"}]'
	sh_cfg 'stat -c "%a %u:%g %t:%T %F" /dev/mine /dev/sub/none; echo x >/dev/mine && echo wrote
		awk "\$5 ~ \"^/dev/(mine|sub/none|zero)\\$\" {print \$5, \$6}" /proc/self/mountinfo | sort; ls /dev/mqueue; pwd'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" '640 0:8 1:3 character special file
644 7:0 f1:21 character special file
wrote
/dev/mine rw,relatime
/dev/sub/none rw,relatime
/dev/zero rw,nosuid,noexec,relatime
/'
	ours=$output
	for p in $(peers crun); do
		run -0 peer_run "$p"
		assert_eq "$output" "$ours"
	done
}

@test "linux.resources.cpu: burst and idle" {
	cgroup_v2 && skip "v1 files"
	cfg '.linux.resources.cpu = {quota: 20000, period: 50000, burst: 10000}'
	rt_sleeper
	assert_eq "$(cat "$(v1_file cpu cpu.cfs_burst_us)")" 10000
	run -0 rt update --cpu-burst 5000 "$ID"
	assert_eq "$(cat "$(v1_file cpu cpu.cfs_burst_us)")" 5000
	run -0 rt update --cpu-burst 0 --cpu-idle 1 "$ID"
	assert_eq "$(cat "$(v1_file cpu cpu.cfs_burst_us)" "$(v1_file cpu cpu.idle)")" $'0\n1'
	rt delete --force "$ID"
	cfg '.linux.resources.cpu = {idle: 1}'
	rt_sleeper
	assert_eq "$(cat "$(v1_file cpu cpu.idle)")" 1
	rt delete --force "$ID"
	refused linux.resources.cpu '.linux.resources.cpu = {quota: 20000, period: 50000, burst: 30000}'
}

@test "linux.resources.cpu: realtimeRuntime and realtimePeriod" {
	cgroup_v2 && skip "v1 only"
	[ -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ] || skip "the kernel lacks RT_GROUP_SCHED"
	cfg '.linux.resources.cpu = {realtimeRuntime: 9000, realtimePeriod: 500000}'
	rt_sleeper
	assert_eq "$(cat "$(v1_file cpu cpu.rt_runtime_us)" "$(v1_file cpu cpu.rt_period_us)")" $'9000\n500000'
	run -0 rt update --cpu-rt-runtime 8000 --cpu-rt-period 400000 "$ID"
	assert_eq "$(cat "$(v1_file cpu cpu.rt_runtime_us)" "$(v1_file cpu cpu.rt_period_us)")" $'8000\n400000'
}

@test "linux.resources.memory: swappiness, kernelTCP, useHierarchy, kernel" {
	cgroup_v2 && skip "v1 only"
	cfg '.linux.resources.memory = {limit: 67108864, swappiness: 30, kernelTCP: 8388608, useHierarchy: true, kernel: 16777216}'
	rt_sleeper
	assert_eq "$(cat "$(v1_file memory memory.swappiness)" "$(v1_file memory memory.kmem.tcp.limit_in_bytes)" "$(v1_file memory memory.use_hierarchy)")" \
		$'30\n8388608\n1'
	rt delete --force "$ID"
	refused linux.resources.memory.swappiness '.linux.resources.memory = {swappiness: 201}'
}

@test "linux.resources.memory.checkBeforeUpdate: a limit below what is in use is refused" {
	cfg '.linux.resources.memory = {limit: 67108864, checkBeforeUpdate: true}'
	rt_sleeper
	run rt update -r - "$ID" <<<'{"memory": {"limit": 8192, "checkBeforeUpdate": true}}'
	assert_one_error
	assert_has "$output" linux.resources.memory.limit
	assert_has "$output" "in use"
	assert_eq "$(cat "$(cgroup_file memory memory.limit_in_bytes memory.max)")" 67108864
	assert_eq "$(status_of)" running
}

@test "linux.resources.blockIO: the four throttles" {
	cgroup_v2 && skip "v1 files"
	[ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ] || skip "the kernel lacks BLK_DEV_THROTTLING"
	local dev
	dev=$(lsblk -dno MAJ:MIN 2>/dev/null | head -n 1 | tr -d ' ')
	[ -n "$dev" ] || skip "no block device"
	cfg --argjson a "${dev%:*}" --argjson b "${dev#*:}" 'def d($r): [{major: $a, minor: $b, rate: $r}];
		.linux.resources.blockIO = {throttleReadBpsDevice: d(1000000), throttleWriteBpsDevice: d(2000000),
			throttleReadIOPSDevice: d(300), throttleWriteIOPSDevice: d(400)}'
	rt_sleeper
	assert_eq "$(cd "/sys/fs/cgroup/blkio/$ID" && cat blkio.throttle.{read,write}_{bps,iops}_device)" \
		"$dev 1000000
$dev 300
$dev 2000000
$dev 400"
}

@test "linux.resources.blockIO: weights, where the scheduler has them, are set or named" {
	cgroup_v2 && skip "v1 files"
	local f
	for f in '{weight: 300}' '{leafWeight: 300}' '{weightDevice: [{major: 8, minor: 0, weight: 500}]}' '{weightDevice: [{major: 8, minor: 0, leafWeight: 500}]}'; do
		cfg ".linux.resources.blockIO = $f"
		run rt run -b "$BUNDLE" "$ID"
		if [ "$status" = 0 ]; then
			rt_create
			assert_match "$(cat "/sys/fs/cgroup/blkio/$ID"/blkio.*weight*)" '[35]00'
			rt delete --force "$ID"
		else
			assert_one_error
			assert_has "$output" linux.resources.blockIO
		fi
	done
	refused linux.resources.blockIO.weight '.linux.resources.blockIO = {weight: 5}'
}

@test "linux.resources: what this host's cgroups lack is refused by name, with what to do" {
	cgroup_v2 && skip "a v1 or hybrid host"
	[ -d /sys/fs/cgroup/hugetlb ] || refused "linux.resources.hugepageLimits[0]" '.linux.resources.hugepageLimits = [{pageSize: "2MB", limit: 4194304}]'
	if [ ! -d /sys/fs/cgroup/net_cls ]; then
		refused linux.resources.network.classID '.linux.resources.network = {classID: 1048577}'
		refused linux.resources.network.priorities '.linux.resources.network = {priorities: [{name: "lo", priority: 5}]}'
	fi
	[ -d /sys/fs/cgroup/rdma ] || refused 'linux.resources.rdma' '.linux.resources.rdma = {mlx5_1: {hcaHandles: 3, hcaObjects: 10000}}'
	refused linux.resources.unified '.linux.resources.unified = {"memory.high": "10000000"}'
	assert_has "$output" "cgroup v2"
}

@test "linux.resources.pids.limit: 0 is a real limit, -1 is none, and before version 1.3 so is 0" {
	ran 'cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max' '.linux.resources.pids = {limit: -1}
		| if any(.mounts[]; .type == "cgroup") then . else .mounts += [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup"}] end'
	assert_eq "$output" max
	cfg '.linux.resources.pids = {limit: 0} | .process.args = ["sh", "-c", "(true) && echo forked"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" forked
	assert_match "$output" "fork|Resource temporarily unavailable"
	cfg '.ociVersion = "1.2.1"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" forked
}

# --- mounts -----------------------------------------------------------------------------------------

mnt() {
	cfg --argjson m "$1" '.mounts += [$m]'
}

@test "mounts: options idmap=, ridmap and idmap of the container's own mapping" {
	mkdir src
	touch src/f
	chown 300005:300006 src/f
	mnt '{"destination": "/mnt/i", "type": "bind", "source": "'"$PWD"'/src", "options": ["bind", "idmap=uids=300000-0-100;gids=300000-0-100"]}'
	mnt '{"destination": "/mnt/r", "type": "bind", "source": "'"$PWD"'/src", "options": ["rbind", "ridmap"],
		"uidMappings": [{"containerID": 300000, "hostID": 0, "size": 100}], "gidMappings": [{"containerID": 300000, "hostID": 0, "size": 100}]}'
	cfg '.process.args = ["stat", "-c", "%u:%g", "/mnt/i/f", "/mnt/r/f"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'5:6\n5:6'
	cfg '.mounts |= .[:-2]'
	chown 4:5 src/f
	chown -R 100000:100000 "$BUNDLE/rootfs"
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings'
	mnt '{"destination": "/mnt/i", "type": "bind", "source": "'"$PWD"'/src", "options": ["bind", "idmap"]}'
	cfg '.process.args = ["stat", "-c", "%u:%g", "/mnt/i/f"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 4:5
}

@test "mounts: options src-nofollow, dest-nofollow and copy-symlink" {
	mkdir src
	echo content >src/file
	ln -s file src/link
	mnt '{"destination": "/mnt/link", "type": "bind", "source": "'"$PWD"'/src/link", "options": ["bind", "copy-symlink"]}'
	cfg '.process.args = ["readlink", "/mnt/link"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" file
	cfg '.mounts |= .[:-1]'
	rm "$BUNDLE/rootfs/mnt/link"
	ln -s /etc/motd "$BUNDLE/rootfs/mnt/to-motd"
	mnt '{"destination": "/mnt/to-motd", "type": "bind", "source": "'"$PWD"'/src/file", "options": ["bind", "dest-nofollow"]}'
	cfg '.process.args = ["cat", "/etc/motd"]'
	run rt run -b "$BUNDLE" "$ID"
	# Onto the link itself: where the kernel cannot, it is an error; the target stays as it is.
	[ "$status" != 0 ] || assert_has "$output" "busybox test image"
	cfg '.mounts |= .[:-1]'
	mnt '{"destination": "/mnt/s", "type": "bind", "source": "'"$PWD"'/src/link", "options": ["bind", "src-nofollow"]}'
	cfg '.process.args = ["true"]'
	run rt run -b "$BUNDLE" "$ID"
	[ "$status" = 0 ] || assert_has "$output" "mounts["
}

@test "mounts: every recursive attribute, set and cleared" {
	mkdir -p src/below
	cat >rec.sh <<-'END'
		mount -t tmpfs tmpfs "$1/src" && mkdir "$1/src/below" && mount -t tmpfs -o "$2" tmpfs "$1/src/below" || exit 99
		exec "$LEAN_RUNTIME" --root "$1/root" run -b "$1/bundle" "$3"
	END
	local o
	for o in rro:rw:ro rrw:ro:rw rnosuid:suid:nosuid rsuid:nosuid: rnodev:dev:nodev rdev:nodev: rnoexec:exec:noexec rexec:noexec: \
		rnoatime:relatime:noatime ratime:noatime:relatime rrelatime:noatime:relatime rnorelatime:noatime:relatime \
		rstrictatime:noatime: rnostrictatime:noatime:relatime rnodiratime:diratime:nodiratime rdiratime:nodiratime: \
		rnosymfollow:rw:nosymfollow rsymfollow:nosymfollow:; do
		local option=${o%%:*} before want
		before=$(cut -d: -f2 <<<"$o") want=${o##*:}
		cfg '.mounts |= map(select(.destination != "/mnt/r"))'
		mnt '{"destination": "/mnt/r", "type": "bind", "source": "'"$PWD"'/src", "options": ["rbind", "'"$option"'"]}'
		cfg '.process.args = ["awk", "$5 == \"/mnt/r/below\" { print $6 }", "/proc/self/mountinfo"]'
		run -0 unshare -m bash rec.sh "$PWD" "$before" "$ID"
		if [ -n "$want" ]; then
			assert_match "$option ,$output," ",$want,"
		else
			assert_hasnt "$option ,$output," ",$before,"
		fi
	done
}

# --- the rest ---------------------------------------------------------------------------------------

@test "ociVersion: what is newer by the last number is taken, another major version is not" {
	ran 'echo fine' '.ociVersion = "1.3.99-dev+build"'
	assert_eq "$output" fine
	ran 'echo fine' '.ociVersion = "1.0.0"'
	refused ociVersion '.ociVersion = "2.0.0"'
	refused ociVersion '.ociVersion = "nonsense"'
	refused ociVersion 'del(.ociVersion)'
}

@test "root.readonly, root.path absolute and relative" {
	lean_changes rootfs
	cfg --arg p "$BUNDLE/rootfs" '.root.path = $p'
	ran 'touch /x && echo writable' '.root.readonly = false'
	assert_eq "$output" writable
	rm "$BUNDLE/rootfs/x"
	ran 'touch /x 2>/dev/null || echo closed' '.root.path = "./rootfs/" | .root.readonly = true'
	assert_eq "$output" closed
	refused root.path '.root.path = "no-such-dir"'
}
