#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# linux.resources and update, as far as the controllers mounted here go (v1, or v2 in one tree).

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

value() { # CONTROLLER V1 V2 [ID]
	cat "$(cgroup_file "$@")"
}

@test "cgroups: init is in its cgroup of every controller when create returns" {
	rt_create
	local pid c
	pid=$(pid_of)
	while IFS=: read -r _ c path; do
		[ -n "$c" ] || [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || continue
		case $c in name=*) continue ;; esac
		assert_eq "$c $path" "$c $(cgroup_of)"
	done <"/proc/$pid/cgroup"
}

@test "cgroups: memory limit, reservation, swap" {
	cfg '.linux.resources.memory = {"limit": 67108864, "reservation": 33554432}'
	rt_sleeper
	assert_eq "$(value memory memory.limit_in_bytes memory.max)" 67108864
	assert_eq "$(value memory memory.soft_limit_in_bytes memory.low)" 33554432
}

@test "cgroups: the memory limit holds, and the kill is seen as one" {
	cfg '.linux.resources.memory = {"limit": 33554432, "swap": 33554432}'
	# The shell is to live, and tell: the kernel kills the other one, and nobody else asks for memory until that has ended.
	sh_cfg '(echo 1000 >/proc/self/oom_score_adj; exec dd if=/dev/zero of=/dev/null bs=100M count=1); echo $?'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	assert_match "$(cat "$OUT" "$ERR")" "137|Killed"
}

@test "cgroups: a container starts in 6 MiB" {
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized program needs more"
	cfg '.linux.resources.memory = {"limit": 6291456}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

@test "cgroups: a container starts in 1 MiB" {
	lean_only "needs more"
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized program needs more"
	cfg '.linux.resources.memory = {"limit": 1048576}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

# big_tmpcopyup LIMIT: 40 MiB of the image are copied into memory while the container is made.
big_tmpcopyup() {
	mkdir -p "$BUNDLE/rootfs/big"
	head -c 41943040 /dev/zero >"$BUNDLE/rootfs/big/file"
	cfg '.mounts += [{destination: "/big", type: "tmpfs", source: "tmpfs", options: ["tmpcopyup"]}]'
	cfg --argjson n "$1" '.linux.resources.memory = {"limit": $n, "swap": $n}'
}

@test "cgroups: what a container's start puts into memory counts for its limit" {
	big_tmpcopyup 8388608
	run ! rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" hello
	# Systemd removes a cgroup that is empty, with what it has counted, and may be faster than the runtime.
	by_systemd || assert_match "$output" "reached its memory limit|out of memory before the program could start"
	big_tmpcopyup 134217728
	rt_sleeper
	[ "$(value memory memory.usage_in_bytes memory.current)" -gt 41943040 ]
}

@test "cgroups: pids limit" {
	cfg '.linux.resources.pids.limit = 5'
	sh_cfg 'for i in 1 2 3 4 5 6 7; do sleep 1 & done; wait'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" "can't fork|Resource temporarily unavailable"
	cfg '.linux.resources.pids.limit = -1'
	rt_sleeper
	assert_eq "$(value pids pids.max pids.max)" max
}

@test "cgroups: cpu shares, quota, period, cpuset" {
	cfg '.linux.resources.cpu = {"shares": 512, "quota": 50000, "period": 100000, "cpus": "0", "mems": "0"}'
	rt_sleeper
	if cgroup_v2; then
		assert_eq "$(value cpu x cpu.max)" "50000 100000"
		assert_eq "$(value cpu x cpuset.cpus)" 0
	else
		assert_eq "$(value cpu cpu.shares)" 512
		assert_eq "$(value cpu cpu.cfs_quota_us)" 50000
		assert_eq "$(value cpu cpu.cfs_period_us)" 100000
		assert_eq "$(value cpuset cpuset.cpus)" 0
		assert_eq "$(value cpuset cpuset.mems)" 0
	fi
	run -0 rt exec "$ID" grep Cpus_allowed_list /proc/self/status
	assert_match "$output" ':.0$'
}

@test "cgroups: cpuset without values still works" {
	rt_sleeper
	cgroup_v2 || [ -n "$(value cpuset cpuset.cpus)" ]
}

@test "cgroups: blkio weight and throttle" {
	cgroup_v2 && skip "v1 only"
	[ -e /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device ] || skip "this kernel has no blkio throttling"
	local dev
	dev=$(lsblk -dn -o MAJ:MIN 2>/dev/null | head -n 1 | tr -d ' ')
	[ -n "$dev" ] || skip "no block device"
	cfg --argjson a "${dev%:*}" --argjson i "${dev#*:}" '.linux.resources.blockIO.throttleReadBpsDevice = [{"major": $a, "minor": $i, "rate": 1048576}]'
	rt_sleeper
	assert_eq "$(value blkio blkio.throttle.read_bps_device)" "$dev 1048576"
}

@test "cgroups: memory swappiness and the oom killer switch" {
	cgroup_v2 && skip "v1 only"
	cfg '.linux.resources.memory = {"limit": 67108864, "disableOOMKiller": true}'
	rt_sleeper
	assert_match "$(value memory memory.oom_control)" 'oom_kill_disable 1'
}

@test "cgroups: a default path of its own without cgroupsPath" {
	lean_changes cgroup
	cfg 'del(.linux.cgroupsPath) | .process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	assert_has "$(cat "/proc/$(pid_of)/cgroup")" "$ID"
	rt delete --force "$ID"
	assert_nothing_left
}

@test "cgroups: a nested cgroupsPath, and only its leaf is removed when others use the parent" {
	cgroupfs_only "a path is the name of a unit"
	local top=/sys/fs/cgroup/pids
	cgroup_v2 && top=/sys/fs/cgroup
	[ -e "$top/cgroup.procs" ] || skip "no pids controller"
	mkdir -p "$top/$TAG-parent/keep"
	cfg --arg p "/$TAG-parent/$ID" '.linux.cgroupsPath = $p'
	rt_sleeper
	[ -d "$top/$TAG-parent/$ID" ]
	rt delete --force "$ID"
	[ ! -d "$top/$TAG-parent/$ID" ]
	[ -d "$top/$TAG-parent/keep" ]
	remove_empty_cgroups
}

# at_once VERB N [ARGS...]: N containers in one cgroup, started together. Their ids: $ids; who made it:
# $won; how: $BATS_TEST_TMPDIR/ID.rc and .err.
at_once() {
	local verb=$1 n=$2 id pids=() _
	shift 2
	ids=() won=()
	for _ in $(seq "$n"); do
		new_id id
		ids+=("$id")
		(
			local rc=0
			rt "$verb" "$@" -b "$BUNDLE" "$id" </dev/null >"$BATS_TEST_TMPDIR/$id.out" 2>"$BATS_TEST_TMPDIR/$id.err" || rc=$?
			echo "$rc" >"$BATS_TEST_TMPDIR/$id.rc"
		) &
		pids+=($!)
	done
	wait "${pids[@]}"
	for id in "${ids[@]}"; do
		[ "$(cat "$BATS_TEST_TMPDIR/$id.rc")" != 0 ] || won+=("$id")
	done
}

# one_of_many VERB STATUS WHERE [ARGS...]: one makes it, the others are refused and leave it alone.
one_of_many() {
	local verb=$1 expected=$2 where=$3 ids won id
	shift 3
	at_once "$verb" 4 "$@"
	assert_eq "$where: ${#won[@]}" "$where: 1"
	for id in "${ids[@]}"; do
		[ "$id" != "${won[0]}" ] || continue
		by_systemd || assert_has "$(cat "$BATS_TEST_TMPDIR/$id.err")" "exists and has processes"
		assert_match "$(cat "$BATS_TEST_TMPDIR/$id.err")" 'exists.* \(at linux.cgroupsPath\)'
		rt delete --force "$id" || true
	done
	assert_eq "$(status_of "${won[0]}")" "$expected"
	rt delete --force "${won[0]}"
}

@test "cgroups: one of several that start at once with one cgroupsPath gets it" {
	lean_only "others share it"
	lean_changes cgroup
	local round made
	cfg '.process.args = ["/bin/sleep", "300"]'
	for round in $(seq 15); do
		one_of_many run running "run, round $round" -d
		one_of_many create created "create, round $round"
		# Left by somebody: who takes it does not make it.
		made=$(cgroup_file devices "" "" "$TAG-1")
		mkdir -p "$made"
		one_of_many run running "left, round $round" -d
	done
}

@test "cgroups: a claim lasts until its holder is gone or his process is there" {
	lean_only "claims are ours"
	cgroupfs_only "a unit can't be there twice"
	lean_changes cgroup
	local dir file
	dir=$(cgroup_file devices "" "" "$ID")
	file=$(cgroup_file devices devices.allow cgroup.kill)
	mkdir -p "$dir"
	[ -e "$file" ] || skip "this kernel has no $file"
	# Who starts a container has a lock, which others see.
	exec {lock}>"$file"
	flock -n "$lock"
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "exists and has processes"
	[ -d "$dir" ]
	exec {lock}>&-
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	# Once his process is there, nobody has it any more: neither the runtime nor that process.
	cfg --arg s "exec 9>$file && flock -n 9" '.hooks.createRuntime = [{"path": "/bin/sh", "args": ["sh", "-c", $s]}]'
	rt_create
}

@test "cgroups: .. in cgroupsPath does not lead out" {
	cgroupfs_only "it is the name of a unit"
	cfg --arg p "/../../../$ID" '.linux.cgroupsPath = $p'
	run rt run -b "$BUNDLE" "$ID"
	if [ "$status" = 0 ]; then
		! is_lean || fail "it was taken"
	else
		assert_one_error
		assert_has "$output" ".."
	fi
	[ ! -e "/$ID" ]
}

@test "cgroups: sub-cgroups that the container made are removed with it" {
	rt_sleeper
	mkdir -p "$(cgroup_file pids a/b a/b)" "$(cgroup_file memory c c)"
	rt delete --force "$ID"
	assert_eq "$(left_cgroups)" ""
}

# frozen_below VERB...: so it ends a container that has put one of its processes into a cgroup of a cgroup of its
# own, and both to sleep.
BELOW=b
frozen_below() {
	local dir file=cgroup.freeze on=1 pid
	rt_sleeper
	dir=$(dirname "$(cgroup_file freezer freezer.state "$file")")
	if ! cgroup_v2; then
		file=freezer.state
		on=FROZEN
	fi
	rt_bg exec --detach --pid-file "$PWD/pid" "$ID" /bin/sleep 300
	pid=$(cat pid)
	mkdir -p "$dir/a/$BELOW"
	echo "$pid" >"$dir/a/$BELOW/cgroup.procs"
	echo "$on" >"$dir/a/$BELOW/$file"
	echo "$on" >"$dir/a/$file"
	run -0 rt "$@"
	wait_until eval "! kill -0 $pid"
	rt delete --force "$ID"
	assert_nothing_left
}

@test "cgroups: who is frozen below its container's cgroup dies with it" {
	lean_changes cgroup
	frozen_below delete --force "$ID"
	frozen_below kill --all "$ID" KILL
	# However deep that is: more than descriptors can be open.
	BELOW=$(printf 'b/%.0s' {1..1100}) frozen_below delete --force "$ID"
	# Without a pid namespace, nobody but us ends the others.
	cfg '.linux.namespaces |= map(select(.type != "pid"))'
	frozen_below delete --force "$ID"
}

@test "cgroups: a hierarchy without controllers that may not be written to is left out, by create as well" {
	[ -d /sys/fs/cgroup/systemd ] || skip "no hierarchy without controllers here"
	local verb
	cfg '.process.args = ["cat", "/proc/self/cgroup"]'
	for verb in create run; do
		# shellcheck disable=SC2016 # for the shell in there
		unshare -m --propagation private sh -c 'd=/sys/fs/cgroup/systemd
			mount --bind $d $d && mount -o remount,bind,ro $d && exec "$@"' \
			sh "$LEAN_RUNTIME" --root "$ROOT" "$verb" -b "$BUNDLE" "$ID" </dev/null >out 2>err 3>&- || fail "$verb: $(cat err)"
		[ "$verb" = run ] || rt start "$ID"
		wait_until grep -q name=systemd: out
		assert_has "$(cat out)" ":pids:/$ID"
		assert_hasnt "$(grep name=systemd: out)" "$ID"
		rt delete --force "$ID"
	done
}

@test "cgroups: a limit that cannot be is one clear error" {
	cfg '.linux.resources.cpu = {"cpus": "4096"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "cpuset.cpus|cpus"
	assert_nothing_left
	cfg '.linux.resources.cpu = {"period": 5, "quota": 5}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_nothing_left
}

@test "cgroups: hugepages, rdma, network: what the machine lacks is named" {
	[ ! -d /sys/fs/cgroup/hugetlb ] && ! grep -qws hugetlb /sys/fs/cgroup/cgroup.controllers || skip "hugetlb is mounted here"
	cfg '.linux.resources.hugepageLimits = [{"pageSize": "2MB", "limit": 4194304}]'
	run rt run -b "$BUNDLE" "$ID"
	is_lean || skip "stand-in runtime: ignores it"
	assert_one_error
	assert_match "$output" "hugetlb|hugepage"
}

@test "update: by options" {
	cfg '.linux.resources.memory.limit = 67108864'
	rt_sleeper
	run -0 rt update --memory 134217728 --pids-limit 77 --cpu-share 300 "$ID"
	assert_eq "$output" ""
	assert_eq "$(value memory memory.limit_in_bytes memory.max)" 134217728
	assert_eq "$(value pids pids.max pids.max)" 77
	cgroup_v2 || assert_eq "$(value cpu cpu.shares)" 300
	run -0 rt update --cpu-period 100000 --cpu-quota 20000 "$ID"
	cgroup_v2 || assert_eq "$(value cpu cpu.cfs_quota_us)" 20000
	# what was not named stays
	assert_eq "$(value pids pids.max pids.max)" 77
	run -0 rt update --memory 64M "$ID"
	assert_eq "$(value memory memory.limit_in_bytes memory.max)" 67108864
	run -0 rt update --cpuset-cpus 0 "$ID"
	cgroup_v2 || assert_eq "$(value cpuset cpuset.cpus)" 0
}

@test "update: by JSON, from a file and from standard input" {
	rt_sleeper
	echo '{"memory": {"limit": 100663296}, "pids": {"limit": 33}}' >r.json
	rt update -r r.json "$ID"
	assert_eq "$(value memory memory.limit_in_bytes memory.max)" 100663296
	assert_eq "$(value pids pids.max pids.max)" 33
	rt update --resources=- "$ID" <<<'{"pids": {"limit": 44}}'
	assert_eq "$(value pids pids.max pids.max)" 44
	rt update --resources - "$ID" <<<'{"pids": {"limit": 45}}'
	assert_eq "$(value pids pids.max pids.max)" 45
	run rt update -r - "$ID" <<<'{"pids": '
	assert_one_error
	assert_eq "$(value pids pids.max pids.max)" 45
}

@test "update: devices stay as they are" {
	cfg '.linux.devices = [{"path": "/dev/mine", "type": "c", "major": 1, "minor": 11}]
		| .linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]'
	rt_sleeper
	run -0 rt exec "$ID" sh -c ': >/dev/mine'
	local before
	before=$(cat "/sys/fs/cgroup/devices/$ID/devices.list" 2>/dev/null || true)
	rt update --pids-limit 50 "$ID"
	rt update -r - "$ID" <<<'{"pids": {"limit": 44}}'
	run -0 rt exec "$ID" sh -c ': >/dev/mine'
	assert_eq "$(cat "/sys/fs/cgroup/devices/$ID/devices.list" 2>/dev/null || true)" "$before"
}

@test "update: of an unknown and of a stopped container" {
	run rt update --pids-limit 5 "$ID"
	assert_one_error
	assert_has "$output" "does not exist"
	run rt update --pids-limit nonsense "$ID"
	[ "$status" -ne 0 ]
}

@test "update: a paused container stays paused" {
	rt_sleeper
	rt pause "$ID"
	rt update --pids-limit 50 "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	assert_eq "$(status_of)" running
}
