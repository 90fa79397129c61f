#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A container that continues a seed has what config.json gives to any: the fast way is held to the slow way's defences.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_program hostile
	cfg '.process.args = ["/bin/hostile", "reads", "/n"]'
}
teardown() {
	common_teardown
}

goes_round() {
	: >"$R/n"
	wait_until eval '[ -s "$R/n" ]'
}

# Everything that /proc tells of the container's first process, but what differs from one moment to the next: figures of
# use, numbers of namespaces and mounts, what it happens to have open.
all_of() { # ID
	local p fd f
	p=/proc/$(pid_of "$1")
	grep -vE '^(State|Pid|Tgid|Ngid|PPid|NStgid|NSpid|NSpgid|NSsid|FDSize|Vm|Rss|HugetlbPages|SigQ|SigPnd|ShdPnd|.*ctxt_switches|Mems_allowed:)' $p/status
	grep -E '^NS' $p/status | sed -E 's/\t[0-9]+\t/\tN\t/'
	for f in limits attr/current cgroup oom_adj oom_score_adj loginuid sessionid personality timerslack_ns coredump_filter \
		setgroups uid_map gid_map projid_map environ cmdline comm timens_offsets; do
		echo "== $f"
		tr '\0' '\n' <"$p/$f" 2>/dev/null || echo none
		echo
	done
	echo "== sched"
	grep -E '^(policy|prio|uclamp)' $p/sched
	echo "== mounts"
	sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/ (shared|master):[0-9]+//g; s/inode[^ ]*//' $p/mountinfo
	echo "== namespaces"
	for f in "$p"/ns/*; do
		[ "$(readlink "$f")" = "$(readlink "/proc/self/ns/${f##*/}")" ] && echo "${f##*/}: the host's" || echo "${f##*/}: its own"
	done
	echo "== links"
	readlink $p/exe $p/cwd $p/root
	echo "== descriptors"
	for fd in "$p"/fd/*; do
		[ "${fd##*/}" = 4 ] || echo "${fd##*/} $(readlink "$fd")" "$(grep -E '^flags' "$p/fdinfo/${fd##*/}")"
	done
	echo "== priorities"
	ps -o ni=,pri=,cls=,tty=,pgid= -p "${p#/proc/}" | awk '{ print $1, $2, $3, $4 }'
	ionice -p "${p#/proc/}"
	rt exec "$1" /bin/sh -c 'cat /proc/keys' 2>/dev/null | awk '{ print $2, $4, $5, $8, $9 }' | grep -v "^$" | wc -l
	grep -c "" "$p/maps" >/dev/null
	awk '{ print $2 }' "$p/maps" | grep -c wx || true
}

compare() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
	all_of "$ID" >usual
	rt_bg checkpoint --engine fork --image-path "$PWD/img" "$ID"
	rt delete --force "$ID"
	rt_bg restore --engine fork --detach --image-path "$PWD/img" --bundle "$BUNDLE" "$ID"
	goes_round
	wait_until eval '! grep -q lean "/proc/$(pid_of)/maps"'
	all_of "$ID" >continued
	[ "$(wc -l <usual)" -gt 80 ] || fail "little was compared: $(cat usual)"
	diff -u usual continued || fail "they differ"
	rt delete --force "$ID"
}

@test "fork: a container that continues a seed is in everything what one that is run is" {
	compare
	for nnp in true false; do
		chmod 666 "$R/n" "$R/out"
		chmod 777 "$R"
		cfg --argjson n $nnp '.process.user = {uid: 1000, gid: 1001, additionalGids: [7, 8]} | .process.noNewPrivileges = $n
			| .process.capabilities |= {bounding: ["CAP_KILL", "CAP_NET_RAW"], permitted: [], effective: [], inheritable: [], ambient: []}
			| .process.oomScoreAdj = 33 | .process.rlimits = [{type: "RLIMIT_NOFILE", soft: 70, hard: 80}, {type: "RLIMIT_CORE", soft: 0, hard: 0}]
			| .process.ioPriority = {class: "IOPRIO_CLASS_IDLE", priority: 0} | .process.scheduler = {policy: "SCHED_BATCH", nice: 5}
			| .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}'
		compare
	done
}

@test "fork: nor in a user namespace, where its ids are others outside" {
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings | .process.oomScoreAdj = 33
		| .process.rlimits = [{type: "RLIMIT_NOFILE", soft: 70, hard: 80}]'
	chmod 755 "$BATS_TEST_TMPDIR"
	: >"$R/n" # by nobody whom the container does not know
	chown -R 100000:100000 "$R"
	compare
}

@test "fork: nor has it other limits than who calls, where config.json names none" {
	cfg '.process.rlimits = []'
	ulimit -Sn 50
	ulimit -c 0
	compare
}
