#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What only a host with one cgroup v2 tree, every controller in it and systemd can show.

load ../lib/helpers.bash

CG=/sys/fs/cgroup

setup() {
	cgroup_v2 || skip "not a cgroup v2 host"
	common_setup
}
teardown() { common_teardown; }

value() { # FILE [ID]
	cat "$CG/${2:-$ID}/$1"
}

# A cgroup mount that the container may write to.
writable_cgroup() {
	cfg '(.mounts[] | select(.type == "cgroup") | .options) |= map(select(. != "ro"))'
}

has_controllers() { # DIR CONTROLLER...
	local dir=$1 c
	shift
	for c in "$@"; do
		grep -qw "$c" "$dir/cgroup.controllers" || fail "$c is not in $dir: $(cat "$dir/cgroup.controllers")"
	done
}

@test "v2: controllers come down from the root to a nested cgroup, and stay for others" {
	cfg --arg p "/$TAG-a/b/$ID" '.linux.cgroupsPath = $p | .linux.resources.cpu.cpus = "0"
		| .linux.resources.blockIO.weight = 100 | .linux.resources.memory.limit = 67108864'
	# No weights without a scheduler or cost model for them: that is one clear error.
	run rt run -b "$BUNDLE" "$ID"
	[ "$status" = 0 ] || { assert_one_error && assert_has "$output" "blockIO.weight"; }
	[ ! -e "$CG/$TAG-a/b/$ID" ]
	cfg 'del(.linux.resources.blockIO)'
	rt_sleeper
	has_controllers "$CG/$TAG-a/b/$ID" cpu memory pids io cpuset
	has_controllers "$CG/$TAG-a" cpu memory pids io cpuset
	assert_eq "$(value cpuset.cpus "$TAG-a/b/$ID")" 0
	rt delete --force "$ID"
	[ ! -e "$CG/$TAG-a/b/$ID" ]
	# What is above it may be others' by now: it stays.
	rmdir "$CG/$TAG-a/b" "$CG/$TAG-a"
}

@test "v2: the process is born in its cgroup" {
	command -v strace >/dev/null || skip "no strace"
	run -0 strace -f -e trace=clone3,openat,write -o trace "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	grep -q 'clone3.*CLONE_INTO_CGROUP.*cgroup=[0-9]' trace || fail "$(grep clone3 trace)"
	run ! grep -q 'cgroup\.procs' trace
}

@test "v2: the container's view begins at its own cgroup, read-only" {
	sh_cfg 'cat /proc/self/cgroup; ls -d /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/system.slice; cat /sys/fs/cgroup/cgroup.procs;
		grep " /sys/fs/cgroup " /proc/self/mountinfo; mkdir /sys/fs/cgroup/x'
	cfg '.linux.resources.memory.limit = 67108864'
	run rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "0::/"
	assert_match "$output" "/sys/fs/cgroup/system.slice: No such file"
	assert_match "$output" $'\n1\n'
	assert_match "$output" "/ /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 "
	assert_match "$output" "mkdir: can't create directory '/sys/fs/cgroup/x': Read-only"
	# The host's mount keeps the options that a new mount could take from it.
	assert_match "$(grep ' /sys/fs/cgroup ' /proc/self/mountinfo)" "nsdelegate,memory_recursiveprot"
}

@test "v2: without a cgroup namespace the host's tree is seen, with the host's options" {
	without_ns cgroup
	sh_cfg 'cat /proc/self/cgroup; ls -d /sys/fs/cgroup/system.slice; mkdir /sys/fs/cgroup/x'
	run rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "0::/$ID"
	assert_has "$output" "
/sys/fs/cgroup/system.slice"
	assert_has "$output" "Read-only"
	assert_match "$(grep ' /sys/fs/cgroup ' /proc/self/mountinfo)" "nsdelegate,memory_recursiveprot"
}

@test "v2: a user namespace, with and without a cgroup namespace" {
	cfg '.linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}] | .linux.gidMappings = .linux.uidMappings'
	chown 100000:100000 "$BUNDLE/rootfs"
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE" # by whoever is mapped
	sh_cfg 'cat /proc/self/cgroup; grep " /sys/fs/cgroup " /proc/self/mountinfo'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "0::/"
	assert_match "$output" " /sys/fs/cgroup ro,.* cgroup2 "
	without_ns cgroup
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "0::/$ID"
	assert_match "$output" " /sys/fs/cgroup ro,.* cgroup2 "
}

@test "v2: memory, swap, cpu, pids as they were asked for" {
	cfg '.linux.resources.memory = {"limit": 67108864, "swap": 100663296, "reservation": 33554432}
		| .linux.resources.cpu = {"shares": 1024, "quota": 50000, "period": 200000, "burst": 10000, "cpus": "0-1", "mems": "0"}
		| .linux.resources.pids.limit = 50'
	rt_sleeper
	assert_eq "$(value memory.max)" 67108864
	assert_eq "$(value memory.swap.max)" 33554432
	assert_eq "$(value memory.low)" 33554432
	assert_eq "$(value cpu.weight)" 39
	assert_eq "$(value cpu.max)" "50000 200000"
	assert_eq "$(value cpu.max.burst)" 10000
	assert_eq "$(value cpuset.cpus)" 0-1
	assert_eq "$(value cpuset.mems)" 0
	assert_eq "$(value pids.max)" 50
}

@test "v2: io.max, hugepages, unified" {
	local dev
	dev=$(lsblk -dn -o MAJ:MIN /dev/vda | tr -d ' ')
	cfg --argjson a "${dev%:*}" --argjson i "${dev#*:}" '
		.linux.resources.blockIO = {"throttleReadBpsDevice": [{"major": $a, "minor": $i, "rate": 1048576}],
			"throttleWriteIOPSDevice": [{"major": $a, "minor": $i, "rate": 100}]}
		| .linux.resources.hugepageLimits = [{"pageSize": "2MB", "limit": 4194304}]
		| .linux.resources.unified = {"memory.high": "50000000", "pids.max": "60", "cgroup.max.descendants": "7"}'
	rt_sleeper
	assert_eq "$(value io.max)" "$dev rbps=1048576 wbps=max riops=max wiops=100"
	assert_eq "$(value hugetlb.2MB.max)" 4194304
	assert_eq "$(value memory.high)" 49999872
	assert_eq "$(value pids.max)" 60
	assert_eq "$(value cgroup.max.descendants)" 7
	rt delete --force "$ID"
	cfg '.linux.resources.unified = {"memory.nonsense": "1"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "memory.nonsense"
	assert_nothing_left
	cfg '.linux.resources.unified = {"../memory.max": "1"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
}

@test "v2: what it has no setting for is a warning where the specification says so, else an error" {
	cfg '.linux.resources.memory = {"limit": 67108864, "swappiness": 10, "disableOOMKiller": true, "kernel": 5000000}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "hello"
	cfg '.linux.resources.cpu.realtimeRuntime = 1000'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "realtime"
	[ "$status" -ne 0 ]
}

@test "v2: no pids at all: nobody is born there, one moves in" {
	cfg '.linux.resources.unified = {"pids.max": "0"} | .process.args = ["echo", "hello"]'
	run rt run -b "$BUNDLE" "$ID"
	[ "$status" = 0 ] || assert_one_error
	assert_nothing_left
}

@test "v2: devices are denied and allowed by program" {
	with_caps CAP_MKNOD
	cfg '.linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]'
	sh_cfg 'mknod /tmp/kmsg c 1 11; mknod /tmp/mem c 1 1; mknod /tmp/vda b 254 0
		: >/tmp/kmsg && echo kmsg-w; cat /tmp/kmsg; head -c 1 /tmp/mem; head -c 1 /tmp/vda; head -c 1 /dev/zero | od -c; sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q 0000001 "$OUT"
	assert_has "$(cat "$OUT")" kmsg-w
	assert_match "$(cat "$ERR")" "/tmp/kmsg'?: Operation not permitted"
	assert_match "$(cat "$ERR")" "/tmp/mem'?: Operation not permitted"
	assert_match "$(cat "$ERR")" "/tmp/vda'?: Operation not permitted"
	# exec'd processes, and others' updates
	run ! rt exec "$ID" head -c 1 /tmp/vda
	rt update -r - "$ID" <<<'{"pids": {"limit": 44}, "devices": [{"allow": true, "access": "rwm"}]}'
	run ! rt exec "$ID" head -c 1 /tmp/vda
	run -0 rt exec "$ID" sh -c ': >/tmp/kmsg'
}

@test "v2: all devices but one" {
	with_caps CAP_MKNOD
	cfg '.linux.resources.devices = [{"allow": true, "access": "rwm"}, {"allow": false, "type": "b", "major": 254, "minor": 16, "access": "r"}]'
	sh_cfg 'mknod /tmp/vda b 254 0; mknod /tmp/vdb b 254 16; head -c 1 /tmp/vda | wc -c; head -c 1 /tmp/vdb'
	run rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" 1
	assert_match "$output" "vdb'?: Operation not permitted"
}

@test "v2: pause stops sub-cgroups too; kill and delete reach into a paused one" {
	writable_cgroup
	sh_cfg 'mkdir /sys/fs/cgroup/sub; sh -c "echo 0 >/sys/fs/cgroup/sub/cgroup.procs; while :; do echo x >>/tmp/ticks; sleep 0.1; done" & sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -s "$BUNDLE/rootfs/tmp/ticks"
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	assert_match "$(value cgroup.events)" "frozen 1"
	assert_match "$(value cgroup.events "$ID/sub")" "frozen 1"
	local before
	before=$(wc -l <"$BUNDLE/rootfs/tmp/ticks")
	sleep 0.5
	assert_eq "$(wc -l <"$BUNDLE/rootfs/tmp/ticks")" "$before"
	run rt exec "$ID" true
	assert_one_error
	rt resume "$ID"
	assert_eq "$(status_of)" running
	rt pause "$ID"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	[ ! -e "$CG/$ID" ]
}

@test "v2: sub-cgroups with processes go with the container" {
	writable_cgroup
	without_ns pid
	sh_cfg 'mkdir -p /sys/fs/cgroup/a/b/c /sys/fs/cgroup/d; sh -c "echo 0 >/sys/fs/cgroup/a/b/c/cgroup.procs; exec sleep 301" & sleep 1; touch /tmp/ready; exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -e "$BUNDLE/rootfs/tmp/ready"
	assert_eq "$(rt ps -f json "$ID" | jq length)" 2
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	assert_nothing_left
}

@test "v2: exec into a cgroup that has passed its controllers on follows init" {
	writable_cgroup
	cfg '.linux.resources.memory.limit = 67108864'
	sh_cfg 'cd /sys/fs/cgroup; mkdir init other; echo 1 >init/cgroup.procs && echo +memory +pids >cgroup.subtree_control && touch /tmp/ready; exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -e "$BUNDLE/rootfs/tmp/ready"
	run -0 rt exec "$ID" cat /proc/self/cgroup
	assert_eq "$output" "0::/init"
	run -0 rt exec --cgroup other "$ID" cat /proc/self/cgroup
	assert_eq "$output" "0::/other"
	run rt exec --cgroup nowhere "$ID" true
	assert_one_error
	run -0 rt exec --tty=false "$ID" cat /sys/fs/cgroup/memory.max
	assert_eq "$output" 67108864
	rt delete --force "$ID"
	assert_nothing_left
}

@test "v2: exec goes into the container's cgroup when init has left for a leaf and controllers stay" {
	writable_cgroup
	sh_cfg 'mkdir /sys/fs/cgroup/init && echo 1 >/sys/fs/cgroup/init/cgroup.procs && touch /tmp/ready; exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -e "$BUNDLE/rootfs/tmp/ready"
	run -0 rt exec "$ID" cat /proc/self/cgroup
	assert_eq "$output" "0::/"
}

@test "v2: statistics" {
	cfg '.linux.resources.memory = {"limit": 67108864, "swap": 67108864} | .linux.resources.pids.limit = 50'
	sh_cfg 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until sh -c "awk '/usage_usec/ {exit !(\$2 > 1000)}' $CG/$ID/cpu.stat"
	anon_is_told() {
		rt events --stats "$ID" >stats && jq -e '.data.memory.raw.anon > 0' stats
	}
	wait_until anon_is_told # The kernel gathers memory.stat every two seconds.
	jq -e '.type == "stats" and .id != ""' stats
	jq -e '.data.cpu.usage.total > 1000000 and (.data.cpu.usage.kernel + .data.cpu.usage.user) > 0' stats
	jq -e '.data.memory.usage.usage > 0 and .data.memory.usage.limit == 67108864' stats
	jq -e '.data.memory.usage.max > 0' stats
	jq -e '.data.memory.swap.limit == 67108864' stats
	jq -e '.data.pids.current >= 1 and .data.pids.limit == 50' stats
	jq -e '.data.cpu.psi.some.total >= 0 and .data.memory.psi.full.total >= 0 and .data.blkio.psi.some.total >= 0' stats
}

@test "v2: statistics and limits count what sub-cgroups use" {
	writable_cgroup
	cfg '.linux.resources.memory = {"limit": 33554432, "swap": 33554432}'
	sh_cfg 'cd /sys/fs/cgroup; mkdir a; echo 1 >a/cgroup.procs; echo +memory >cgroup.subtree_control
		head -c 100000000 /dev/zero | { echo 1000 >/proc/self/oom_score_adj; exec tail >/dev/null; }; echo "status $?"; exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q status "$OUT"
	assert_has "$(cat "$OUT")" "status 137"
	run -0 rt events --stats "$ID"
	assert_match "$(value memory.events)" "oom_kill [1-9]"
}

@test "v2: out of memory is told as an event, and the end of the stream comes with the container's" {
	cfg '.linux.resources.memory = {"limit": 33554432, "swap": 33554432}'
	sh_cfg 'while [ ! -e /tmp/go ]; do sleep 0.1; done; head -c 100000000 /dev/zero | { echo 1000 >/proc/self/oom_score_adj; exec tail >/dev/null; }; echo done; sleep 1'
	rt_bg run -d -b "$BUNDLE" "$ID"
	timeout 60 "$LEAN_RUNTIME" --root "$ROOT" events --interval 100s "$ID" >events 3>&- &
	local watcher=$!
	sleep 1
	touch "$BUNDLE/rootfs/tmp/go"
	wait "$watcher"
	assert_eq "$(jq -r 'select(.type == "oom") | .id' events | head -n 1)" "$ID"
}

@test "v2: update of everything, there and back" {
	local dev
	dev=$(lsblk -dn -o MAJ:MIN /dev/vda | tr -d ' ')
	cfg '.linux.resources.memory.limit = 67108864'
	rt_sleeper
	rt update --memory 134217728 --memory-swap 268435456 --memory-reservation 1048576 --cpu-quota 20000 --cpu-period 50000 \
		--cpu-share 2 --cpuset-cpus 1 --cpuset-mems 0 --pids-limit 77 --cpu-burst 5000 "$ID"
	assert_eq "$(value memory.max) $(value memory.swap.max) $(value memory.low)" "134217728 134217728 1048576"
	assert_eq "$(value cpu.max) $(value cpu.weight) $(value cpu.max.burst)" "20000 50000 1 5000"
	assert_eq "$(value cpuset.cpus) $(value pids.max)" "1 77"
	rt update --cpu-quota 30000 "$ID"
	assert_eq "$(value cpu.max)" "30000 50000"
	rt update --cpu-period 60000 "$ID"
	assert_eq "$(value cpu.max)" "30000 60000"
	rt update --memory-swap 201326592 "$ID"
	assert_eq "$(value memory.max) $(value memory.swap.max)" "134217728 67108864"
	rt update --cpu-idle 1 "$ID"
	assert_eq "$(value cpu.idle)" 1
	rt update --cpu-idle 0 --cpu-share 1024 "$ID"
	assert_eq "$(value cpu.idle) $(value cpu.weight)" "0 39"
	rt update --memory -1 --memory-swap -1 --cpu-quota -1 --pids-limit -1 "$ID"
	assert_eq "$(value memory.max) $(value memory.swap.max) $(value pids.max) $(value cpu.max)" "max max max max 60000"
	rt update -r - "$ID" <<<"{\"blockIO\": {\"throttleReadBpsDevice\": [{\"major\": ${dev%:*}, \"minor\": ${dev#*:}, \"rate\": 65536}]}, \"unified\": {\"memory.high\": \"max\"}}"
	assert_eq "$(value io.max)" "$dev rbps=65536 wbps=max riops=max wiops=max"
	rt update -r - "$ID" <<<"{\"blockIO\": {\"throttleReadBpsDevice\": [{\"major\": ${dev%:*}, \"minor\": ${dev#*:}, \"rate\": 0}]}}"
	assert_eq "$(value io.max)" ""
	# less than is used, with the check asked for
	run rt update -r - "$ID" <<<'{"memory": {"limit": 4096, "checkBeforeUpdate": true}}'
	assert_one_error
	assert_has "$output" "in use"
	assert_eq "$(status_of)" running
}

@test "v2: an update with a limit whose controller was not on turns it on" {
	mkdir "$CG/$TAG-p"
	cfg --arg p "/$TAG-p/$ID" '.linux.cgroupsPath = $p'
	rt_sleeper
	local c
	for c in $(cat "$CG/$TAG-p/cgroup.subtree_control"); do
		case $c in hugetlb | cpuset) echo "-$c" >"$CG/$TAG-p/cgroup.subtree_control" ;; esac
	done
	[ ! -e "$CG/$TAG-p/$ID/cpuset.cpus" ]
	rt update --cpuset-cpus 0 "$ID"
	assert_eq "$(value cpuset.cpus "$TAG-p/$ID")" 0
	rt delete --force "$ID"
	rmdir "$CG/$TAG-p"
}

@test "v2: a parent with processes cannot pass controllers on: one clear error, and nothing is left" {
	mkdir "$CG/$TAG-busy"
	sleep 300 3>&- &
	local sleeper=$!
	echo $sleeper >"$CG/$TAG-busy/cgroup.procs"
	cfg --arg p "/$TAG-busy/$ID" '.linux.cgroupsPath = $p | .linux.resources.memory.limit = 67108864'
	run rt run -b "$BUNDLE" "$ID"
	kill $sleeper
	wait $sleeper || true
	assert_one_error
	assert_has "$output" "memory"
	assert_has "$output" "$TAG-busy"
	[ ! -e "$CG/$TAG-busy/$ID" ]
	# Without limits that need them it runs.
	rmdir "$CG/$TAG-busy"
}

@test "v2: a cgroup of that name: refused with processes, reused without, frozen or not" {
	rt_sleeper
	local first=$ID
	new_id
	cfg --arg p "/$first" '.linux.cgroupsPath = $p'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "processes"
	assert_eq "$(status_of "$first")" running
	rt delete --force "$first"
	mkdir "$CG/$first"
	echo 1 >"$CG/$first/cgroup.freeze"
	cfg '.process.args = ["echo", "hello"]'
	run -0 timeout 20 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_nothing_left
}

@test "v2: below a threaded cgroup" {
	mkdir "$CG/$TAG-t"
	mkdir "$CG/$TAG-t/x"
	echo threaded >"$CG/$TAG-t/x/cgroup.type"
	cfg --arg p "/$TAG-t/x/$ID" '.linux.cgroupsPath = $p | .linux.resources = {"memory": {"limit": 67108864}}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	[ ! -e "$CG/$TAG-t/x/$ID" ]
	rmdir "$CG/$TAG-t/x" "$CG/$TAG-t"
}

@test "v2: a relative path is beside the caller's own cgroup" {
	local own
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	cfg --arg p "$ID" '.linux.cgroupsPath = $p | .process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	assert_eq "$(sed -n 's/^0:://p' "/proc/$(pid_of)/cgroup")" "$(dirname "$own" | sed 's,^/$,,')/$ID"
}

@test "v2: kill --all ends what forks" {
	without_ns pid
	sh_cfg 'trap "" TERM; for i in 1 2 3; do sh -c "while :; do sleep 0.05; done" & done; wait'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until sh -c "[ \$(wc -l <$CG/$ID/cgroup.procs) -ge 4 ]"
	rt kill --all "$ID" KILL
	wait_for_status stopped "$ID"
	wait_until sh -c "grep -q 'populated 0' $CG/$ID/cgroup.events"
}

@test "v2: exec begins on CPUs that are none of the cgroup's, and joins that then" {
	[ "$(nproc)" -gt 1 ] || skip "one CPU only"
	cfg '.linux.resources.cpu.cpus = "1"'
	rt_sleeper
	echo '{"cwd": "/", "args": ["grep", "Cpus_allowed_list", "/proc/self/status"], "execCPUAffinity": {"initial": "0", "final": "1"}}' >p.json
	run -0 rt exec -p p.json "$ID"
	assert_match "$output" '1$'
}

@test "v2: a seed of a container whose cgroup is killed as one takes memory for two" {
	lean_only "an engine of its own"
	sh_cfg 'exec >/dev/null; x=$(head -c 8388608 /dev/zero | tr "\0" x); while :; do i=$((i + 1)); echo $i >/n; sleep 0.1; done'
	cfg '.root.readonly = false | .linux.resources = {memory: {limit: 134217728, swap: 134217728}, unified: {"memory.oom.group": "1"}}'
	rt_bg run --detach -b "$BUNDLE" "$ID"
	wait_until eval '[ "$(cat "$BUNDLE/rootfs/n" 2>/dev/null)" -gt 3 ]'
	rt update --memory "$(($(value memory.current) + (6 << 20)))" "$ID"
	run ! rt checkpoint --engine fork --image-path "$PWD/img" "$ID"
	assert_has "$output" "left below its limit of memory, and a seed may take"
	assert_has "$output" "memory.oom.group of its cgroup is 1"
	assert_eq "$(status_of)" running
	echo 0 >"$CG/$ID/memory.oom.group"
	run -0 rt checkpoint --engine fork --image-path "$PWD/img" "$ID"
	assert_eq "$(status_of)" running
}

@test "v2: a service manager as init: its cgroups, exec, pause, delete" {
	[ -x /usr/lib/systemd/systemd ] || skip "no systemd"
	local root=$BATS_TEST_TMPDIR/merged
	mkdir -p "$BATS_TEST_TMPDIR"/{upper,work} "$root"
	mount -t overlay -o "lowerdir=/,upperdir=$BATS_TEST_TMPDIR/upper,workdir=$BATS_TEST_TMPDIR/work" overlay "$root"
	ln -sf /usr/lib/systemd/system/basic.target "$root/etc/systemd/system/default.target"
	rm -f "$root/etc/fstab"
	writable_cgroup
	cfg --arg r "$root" '.root.path = $r | .process.args = ["/usr/lib/systemd/systemd"] | .process.env += ["container=lean"]
		| .process.capabilities |= with_entries(.value = ["CAP_SYS_ADMIN", "CAP_KILL", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER",
			"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_MKNOD", "CAP_NET_ADMIN", "CAP_SYS_CHROOT", "CAP_DAC_READ_SEARCH"])
		| .process.noNewPrivileges = false | .linux.resources.memory.limit = 536870912
		| .mounts += [{"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]}]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	local _
	for _ in $(seq 60); do
		[ -d "$CG/$ID/init.scope" ] && [ -d "$CG/$ID/system.slice" ] && break
		sleep 0.5
	done
	ls "$CG/$ID"
	run -0 rt exec "$ID" cat /proc/self/cgroup
	assert_match "$output" "^0::/(init.scope)?$"
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	rt update --memory 400000000 "$ID"
	rt delete --force "$ID"
	umount "$root"
	assert_nothing_left
}
