#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# linux.namespaces: each kind new, absent, and joined by path; id maps; time offsets.

load ../lib/helpers.bash

setup() {
	common_setup
	HOLDER=
}
teardown() {
	signal_remembered KILL
	[ -z "$HOLDER" ] || wait "$HOLDER" 2>/dev/null || true
	common_teardown
}

KINDS='mount:mnt pid:pid network:net ipc:ipc uts:uts cgroup:cgroup'

# A process that holds new namespaces: hold --net --ipc ...
hold() {
	unshare "$@" sh -c 'echo up >holder; exec sleep 300' </dev/null >/dev/null 2>&1 3>&- &
	HOLDER=$!
	wait_until test -s holder
	# With --fork, the one inside.
	INSIDE=$(pgrep -P "$HOLDER" || echo "$HOLDER")
	remember "$HOLDER" "$INSIDE"
}

# bats test_tags=ci
@test "namespaces: each kind is new" {
	local pair ns
	cfg '.linux.namespaces = [{"type":"mount"},{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"cgroup"}]'
	sh_cfg 'for n in mnt pid net ipc uts cgroup user; do readlink /proc/self/ns/$n; done'
	run -0 rt run -b "$BUNDLE" "$ID"
	for ns in mnt pid net ipc uts cgroup; do
		assert_match "$output" "$ns:\\["
		assert_hasnt "$output" "$(readlink /proc/self/ns/$ns)"
	done
	assert_has "$output" "$(readlink /proc/self/ns/user)"
}

@test "namespaces: what is not listed is the caller's" {
	local pair ns kind
	for pair in network:net ipc:ipc uts:uts cgroup:cgroup pid:pid; do
		kind=${pair%:*} ns=${pair#*:}
		cfg --arg t "$kind" '.linux.namespaces = ([{"type":"mount"},{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"cgroup"}]
			| map(select(.type != $t))) | if $t == "uts" then del(.hostname) else . end'
		cfg --arg n "$ns" '.process.args = ["readlink", "/proc/self/ns/" + $n]'
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_eq "$output" "$(readlink /proc/self/ns/$ns)"
	done
}

@test "namespaces: joined by path, each kind" {
	hold --net --ipc --uts --cgroup
	local pair ns kind
	for pair in network:net ipc:ipc uts:uts cgroup:cgroup; do
		kind=${pair%:*} ns=${pair#*:}
		cfg --arg t "$kind" --arg p "/proc/$INSIDE/ns/$ns" '.linux.namespaces = ([{"type":"mount"},{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"cgroup"}]
			| map(if .type == $t then .path = $p else . end)) | del(.hostname)'
		cfg --arg n "$ns" '.process.args = ["readlink", "/proc/self/ns/" + $n]'
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_eq "$output" "$(readlink "/proc/$INSIDE/ns/$ns")"
	done
}

@test "namespaces: a joined pid namespace" {
	hold --pid --fork --mount-proc
	cfg --arg p "/proc/$INSIDE/ns/pid" '.linux.namespaces |= map(if .type == "pid" then .path = $p else . end)'
	sh_cfg 'readlink /proc/self/ns/pid; cat /proc/1/comm; echo $$'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "$(readlink "/proc/$INSIDE/ns/pid")"
	assert_eq "${lines[1]}" sleep
	[ "${lines[2]}" -gt 1 ]
}

@test "namespaces: two containers share net, ipc, uts and pid" {
	rt_sleeper
	local first=$ID p
	p=$(pid_of)
	new_id
	cfg --arg c "$(cgroups_path "$ID")" --arg p "/proc/$p/ns/" '.linux.cgroupsPath = $c
		| .linux.namespaces |= map(if .type == "network" then .path = $p + "net" elif .type == "ipc" then .path = $p + "ipc"
		elif .type == "uts" then .path = $p + "uts" elif .type == "pid" then .path = $p + "pid" else . end) | del(.hostname)'
	sh_cfg 'for n in net ipc uts pid; do readlink /proc/self/ns/$n; done; tr "\0" " " </proc/1/cmdline'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(head -n 4 <<<"$output")" "$(for n in net ipc uts pid; do readlink /proc/$p/ns/$n; done)"
	assert_has "$output" "/bin/sleep 300"
	assert_eq "$(status_of "$first")" running
}

@test "namespaces: a path that is none" {
	cfg --arg p "$BATS_TEST_TMPDIR" '.linux.namespaces |= map(if .type == "network" then .path = $p + "/none" else . end)'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "$BATS_TEST_TMPDIR/none"
	run ! rt state "$ID"
	: >plain
	cfg --arg p "$BATS_TEST_TMPDIR" '.linux.namespaces |= map(if .type == "network" then .path = $p + "/plain" else . end)'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" "$BATS_TEST_TMPDIR/plain"
}

@test "namespaces: a path of another kind" {
	cfg '.linux.namespaces |= map(if .type == "network" then .path = "/proc/self/ns/ipc" else . end)'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
}

@test "namespaces: the same kind twice, and an unknown kind" {
	cfg '.linux.namespaces += [{"type": "ipc"}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	cfg '.linux.namespaces |= .[:-1] | .linux.namespaces += [{"type": "nonsense"}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" nonsense
}

userns_cfg() {
	cfg '.linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 1000}, {"containerID": 1000, "hostID": 200000, "size": 1}]
		| .linux.gidMappings = [{"containerID": 0, "hostID": 100000, "size": 2000}]'
	chown -R 100000:100000 "$BUNDLE/rootfs"
	chmod 711 "$BATS_TEST_TMPDIR" "$BATS_TEST_DIRNAME" 2>/dev/null || true
	local d=$BATS_TEST_TMPDIR
	while [ "$d" != / ]; do
		chmod o+x "$d"
		d=$(dirname "$d")
	done
}

# bats test_tags=ci
@test "user namespace: id maps" {
	lean_changes rootfs
	userns_cfg
	sh_cfg 'cat /proc/self/uid_map /proc/self/gid_map; id -u; touch /made; stat -c %u:%g /made'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "${lines[0]}" '^ +0 +100000 +1000$'
	assert_match "${lines[1]}" '^ +1000 +200000 +1$'
	assert_match "${lines[2]}" '^ +0 +100000 +2000$'
	assert_eq "${lines[3]}" 0
	assert_eq "${lines[4]}" 0:0
	assert_eq "$(stat -c %u:%g "$BUNDLE/rootfs/made")" 100000:100000
}

@test "user namespace: another user, exec, groups" {
	userns_cfg
	cfg '.process.user = {"uid": 1000, "gid": 1000, "additionalGids": [1500]} | .process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	assert_match "$(grep Uid "/proc/$(pid_of)/status")" "200000.200000"
	run -0 rt exec "$ID" id -G
	assert_eq "$output" "1000 1500"
	run -0 rt exec -u 0:0 "$ID" sh -c 'id -u; readlink /proc/self/ns/user'
	assert_eq "$output" "0
$(readlink "/proc/$(pid_of)/ns/user")"
}

@test "user namespace: hidden from the host's root: capabilities count inside only" {
	lean_changes rootfs
	userns_cfg
	with_caps CAP_SYS_ADMIN CAP_NET_ADMIN CAP_MKNOD
	sh_cfg 'hostname inside && hostname; mknod /tmp/x c 1 3 2>&1'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '^inside'
	assert_has "$output" "Operation not permitted"
}

@test "user namespace: an id that is not mapped is refused" {
	userns_cfg
	cfg '.process.user = {"uid": 5000, "gid": 0}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_match "$output" "5000|uid"
}

@test "user namespace: without mappings, 0 is the caller, as with crun" {
	local p
	for_peers
	without_ns cgroup
	cfg '.linux.namespaces += [{"type": "user"}]
		| (.mounts[] | select(.destination == "/dev/pts")).options |= map(select(startswith("gid=") | not))'
	sh_cfg 'cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; id; stat -c %u:%g / /bin'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^ +0 +0 +1\n +0 +0 +1\nallow\nuid=0\\(root\\) gid=0\\(root\\).*\n0:0\n0:0$'
	local ours=$output
	for p in $(peers crun); do
		run -0 peer_run "$p"
		assert_eq "$output" "$ours"
	done
	# One kind alone: the other as above.
	cfg '.linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}]'
	chown -R 100000 "$BUNDLE/rootfs"
	sh_cfg 'cat /proc/self/uid_map /proc/self/gid_map'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^ +0 +100000 +65536\n +0 +0 +1$'
	for p in $(peers crun); do
		chmod go+x "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
		run -0 peer_run "$p"
		assert_match "$output" $'^ +0 +100000 +65536\n +0 +0 +1$'
	done
}

@test "user namespace: joined by path" {
	userns_cfg
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	local p
	p=$(pid_of)
	new_id
	cfg --arg c "$(cgroups_path "$ID")" --arg p "/proc/$p/ns/" '.linux.cgroupsPath = $c | del(.linux.uidMappings, .linux.gidMappings)
		| .linux.namespaces |= map(if .type == "user" then .path = $p + "user" else . end)'
	is_lean || cfg '.linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 1000}] | .linux.gidMappings = .linux.uidMappings'
	sh_cfg 'readlink /proc/self/ns/user; id -u'
	is_lean || skip "stand-in runtime: wants mappings or none by version"
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" "$(readlink "/proc/$p/ns/user")
0"
}

@test "user namespace: exec, with a network namespace that is another's" {
	userns_cfg
	hold --net
	cfg --arg p "/proc/$INSIDE/ns/net" '.process.args = ["/bin/sleep", "300"]
		| .linux.namespaces |= map(if .type == "network" then .path = $p else . end)'
	rt_bg run -d -b "$BUNDLE" "$ID"
	run -0 rt exec "$ID" sh -c "readlink /proc/self/ns/net; readlink /proc/self/ns/user"
	assert_eq "$output" "$(readlink "/proc/$INSIDE/ns/net")
$(readlink "/proc/$(pid_of)/ns/user")"
}

@test "time namespace: offsets" {
	lean_only "came with 1.2"
	cfg '.linux.namespaces += [{"type": "time"}] | .linux.timeOffsets = {"monotonic": {"secs": 7200, "nanosecs": 0}, "boottime": {"secs": 864000}}'
	sh_cfg 'cut -d. -f1 /proc/uptime; readlink /proc/self/ns/time'
	run -0 rt run -b "$BUNDLE" "$ID"
	local up
	up=$(cut -d. -f1 /proc/uptime)
	[ "${lines[0]}" -ge $((up + 863000)) ]
	assert_hasnt "$output" "$(readlink /proc/self/ns/time)"
	# as Docker 29.5 asks for it: without offsets
	cfg 'del(.linux.timeOffsets)'
	run -0 rt run -b "$BUNDLE" "$ID"
	[ "${lines[0]}" -lt $((up + 863000)) ]
}

@test "time namespace: exec joins it" {
	lean_only "came with 1.2"
	cfg '.linux.namespaces += [{"type": "time"}] | .linux.timeOffsets = {"boottime": {"secs": 864000}}'
	rt_sleeper
	run -0 rt exec "$ID" readlink /proc/self/ns/time
	assert_eq "$output" "$(readlink "/proc/$(pid_of)/ns/time")"
}

# What a container finds of its mounts, without the numbers and groups that each has of its own, and
# in no order: that is of when each was made, which for a cover is before it is put anywhere.
mounts_seen() {
	rm -f "$BATS_TEST_TMPDIR/log"
	run -0 rt --debug --log "$BATS_TEST_TMPDIR/log" run -b "$BUNDLE" "$ID" || return 1
	sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/ (shared|master):[0-9]+//' <<<"$output" | sort
}

# bats test_tags=ci
@test "mount namespace: made of the root alone, it is what a copy of the host's becomes" {
	local bare
	mkdir "$BATS_TEST_TMPDIR/volume"
	sh_cfg 'cat /proc/self/mountinfo; ls -l /proc/1/ns | wc -l; touch /proc/sys/kernel/hostname; umount /proc 2>&1; pwd'
	cfg '.mounts += [{destination: "/volume", source: "'"$BATS_TEST_TMPDIR"'/volume", type: "bind", options: ["rbind", "ro"]}]'
	bare=$(mounts_seen)
	[ -n "$bare" ]
	if ! grep -q 'alone in its mount namespace' "$BATS_TEST_TMPDIR/log"; then
		[[ $(uname -r) =~ ^([0-9]|1[0-9])\. && ${BASH_REMATCH[1]} -lt 7 ]] && skip "before Linux 7.0 a mount namespace begins as a copy"
		[ -d /sys/fs/cgroup/memory ] && skip "cgroup v1 files"
		fail "the host's mounts were copied: $(cat "$BATS_TEST_TMPDIR/log")"
	fi
	# Hooks that look at the host's files from in there take a copy.
	local hook
	for hook in prestart createRuntime createContainer; do
		cfg --arg h $hook '.hooks = {($h): [{path: "/bin/true"}]}'
		assert_eq "$bare" "$(mounts_seen)"
		run ! grep 'alone in its mount namespace' "$BATS_TEST_TMPDIR/log"
	done
}

@test "hostname and domainname" {
	sh_cfg 'hostname; cat /proc/sys/kernel/domainname'
	cfg '.hostname = "a-name"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" a-name
	is_lean || skip "stand-in runtime: domainname came with 1.2"
	cfg '.domainname = "example.test"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'a-name\nexample.test'
}

@test "hostname: not without a new uts namespace" {
	local before
	before=$(hostname)
	cfg '.hostname = "never"'
	without_ns uts
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_eq "$(hostname)" "$before"
}

@test "sysctl: namespaced ones" {
	cfg '.linux.sysctl = {"net.ipv4.ip_forward": "1", "kernel.shmmax": "123456", "net.ipv4.ip_local_port_range": "2000 3000"}'
	sh_cfg 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/shmmax; cat /proc/sys/net/ipv4/ip_local_port_range | tr "\t" " "'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'1\n123456\n2000 3000'
}

@test "sysctl: never the host's" {
	local before
	before=$(cat /proc/sys/kernel/panic /proc/sys/vm/swappiness)
	cfg '.linux.sysctl = {"kernel.panic": "77"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" kernel.panic
	cfg '.linux.sysctl = {"net.ipv4.ip_forward": "1"}'
	without_ns network
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" ip_forward
	assert_eq "$(cat /proc/sys/kernel/panic /proc/sys/vm/swappiness)" "$before"
}

@test "network: a new namespace has a loopback device that is up" {
	sh_cfg 'ip -o addr show lo; ls /sys/class/net 2>/dev/null'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" 127.0.0.1
}

@test "cgroup namespace: the container sees its own cgroup as the root" {
	cfg '.linux.namespaces |= (map(select(.type != "cgroup")) + [{"type": "cgroup"}]) | .process.args = ["cat", "/proc/self/cgroup"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" "$ID"
	assert_match "$output" 'pids:/$|pids:/[^a-z]|0::/$'
}
