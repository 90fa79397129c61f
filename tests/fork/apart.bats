#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint with --engine=fork: what one thread has, and others have not; and what a program does after it was
# looked at, and before it is held.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_program apart
	mkdir -p "$R/own"
	cfg '.process.capabilities |= map_values(. + ["CAP_SYS_ADMIN", "CAP_SETPCAP"]) | .hostname = "began"'
}
teardown() {
	common_teardown
}

# program KIND [late]
program() {
	kind=$1
	rt delete --force "$ID" || true
	rm -rf "$IMG" "$R/go" "$R/done" "$R/ready" "$R/err"
	cfg --arg a "$*" '.process.args = ["/bin/apart"] + ($a | split(" "))'
	start
}

# It has done what it was told to.
done_so() {
	wait_until test -e "$R/done"
	[ ! -e "$R/err" ] || fail "$kind: $(cat "$R/err")"
}

# seed_meanwhile [STRACE-OPTION...]: when it was looked at, and the first of its threads is about to be held, the
# program does what it waits for. What is said is in said.
seed_meanwhile() {
	rm -f calls
	timeout 60 strace -o calls "$@" -e inject=ptrace:signal=STOP:when=1 "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null >said 2>&1 3>&- &
	wait_until eval 'grep -q "stopped by SIGSTOP" calls'
	touch "$R/go"
	done_so
	kill -CONT "$(pgrep -f "^$LEAN_RUNTIME --root $ROOT checkpoint")"
	wait $!
}

# seed_and_then KIND: it does so as soon as it has a frozen copy, and is not held any more.
seed_and_then() {
	program "$1"
	wait_until test -e "$R/ready"
	seed "$ID"
	done_so
	moves
}

# is_refused KIND WHY
is_refused() {
	program "$1"
	done_so
	run -1 seed "$ID"
	assert_has "$output" "$2"
	assert_eq "$(ls -A "$IMG")" ""
	moves
}

# is_refused_late KIND WHY
is_refused_late() {
	program "$1" late
	code=0
	seed_meanwhile -e trace=ptrace || code=$?
	assert_eq "$code" 1
	assert_has "$(cat said)" "$2"
	assert_eq "$(ls -A "$IMG")" ""
	moves
}

@test "apart: a thread that alone has a filter, or strict mode, is refused by name" {
	is_refused filter "(apart): a thread with filters of seccomp(2): 1 that its bundle does not have"
	is_refused strict "(apart): a thread with strict mode of seccomp(2)"
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mknod"], action: "SCMP_ACT_ERRNO"}]}'
	is_refused filter "(apart): a thread with filters of seccomp(2): 1 that its bundle does not have"
	# One that all of them have.
	program none
	done_so
	seed "$ID"
}

@test "apart: a thread that may not read the processor's clock (PR_SET_TSC) is refused by name" {
	is_refused clock "may not read the processor's clock (PR_SET_TSC)"
}

@test "apart: a thread that has another personality(2) than its process is refused by name" {
	is_refused personality "has a personality(2) of its own"
}

@test "apart: a process in a domain of Landlock is refused by name" {
	program domain
	wait_until test -e "$R/done"
	[ ! -e "$R/err" ] || skip "the kernel lacks Landlock"
	is_refused domain "(apart): a domain of Landlock (landlock_restrict_self(2))"
	# By whoever ignores SIGCHLD, too: of a child nothing is told then.
	run -1 env --ignore-signal=CHLD "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "a domain of Landlock"
	cfg '.process.noNewPrivileges = true | .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
	is_refused domain "(apart): a domain of Landlock (landlock_restrict_self(2))"
	# Who is in none, also where no call may be made that tells.
	program none
	seed "$ID"
	cfg '.linux.seccomp.syscalls = [{names: ["landlock_create_ruleset", "landlock_restrict_self"], action: "SCMP_ACT_KILL_PROCESS"}]'
	program none
	seed "$ID"
}

@test "apart: who has all the descriptors that it may have is in no domain for that" {
	local limits
	for limits in 5:5 0:1000; do
		program none
		wait_until test -e "$R/done"
		prlimit --pid "$(pid_of)" --nofile=$limits
		seed "$ID"
	done
}

@test "apart: memory that is withheld from forks since it was looked at is known the next time" {
	command -v strace >/dev/null || skip "strace is not installed"
	program withhold late
	seed_meanwhile -e trace=ptrace
	[ -e "$IMG/descriptor" ]
	moves
}

@test "apart: a thread that may not ask what the processor is (ARCH_SET_CPUID) is refused by name" {
	grep -q -w cpuid_fault /proc/cpuinfo || skip "the processor lets everybody ask what it is (CPUID)"
	is_refused cpuid "may not ask what the processor is (ARCH_SET_CPUID)"
}

@test "apart: a thread that loads a filter when it was looked at, before it is held, is refused" {
	command -v strace >/dev/null || skip "strace is not installed"
	is_refused_late filter "(apart): a thread with filters of seccomp(2): 1 that its bundle does not have"
}

@test "apart: one that goes to another namespace then, and stays there, is refused, also if it gives up all rights" {
	command -v strace >/dev/null || skip "strace is not installed"
	is_refused_late net "(apart): a thread with a net namespace of its own"
	is_refused_late gives-up "(apart): a thread with a net namespace of its own"
}

@test "apart: nor does a process that may do nothing become a seed when it goes to a user namespace of its own then" {
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.capabilities = {}'
	is_refused_late user "(apart): a user namespace of its own"
	assert_has "$(cat said)" "(apart): a net namespace of its own"
}

@test "apart: the namespaces of threads that may not leave them are looked at once, and who stays becomes a seed" {
	command -v strace >/dev/null || skip "strace is not installed"
	program none late
	seed_meanwhile -e trace=ptrace,readlink,readlinkat
	# Of its process and of the other thread, when they run and when they are held.
	assert_eq "$(grep -c '/ns/net"' calls)" 4
	cfg '.process.capabilities |= map_values(. - ["CAP_SYS_ADMIN"])'
	program none late
	seed_meanwhile -e trace=ptrace,readlink,readlinkat
	# When they are held only whether it is in another user namespace.
	assert_eq "$(grep -c '/ns/net"' calls)" 2
	assert_eq "$(grep -c '/ns/user"' calls)" 3
}

@test "apart: a mount that is there when it is held is refused, also if it is gone when the container runs on" {
	command -v strace >/dev/null || skip "strace is not installed"
	cfg 'del(.linux.maskedPaths, .linux.readonlyPaths, .linux.seccomp)'
	is_refused_late flash "a mount that config.json does not have (tmpfs on /own)"
}

@test "apart: what it does when it is not held any more is not in the way of its seed" {
	cfg 'del(.linux.maskedPaths, .linux.readonlyPaths, .linux.seccomp)'
	seed_and_then mounts-then
	grep -q " /own " "/proc/$(pid_of)/mountinfo"
	seed_and_then leaves-then
	[ "$(readlink "/proc/$(pid_of)/ns/user")" != "$(readlink /proc/self/ns/user)" ]
}

@test "apart: a process of several threads that is not the first ends with its container, by --stop" {
	cfg '.process.args = ["/bin/sh", "-c", "exec >/dev/null; /bin/apart none & while :; do sleep 1; done"]'
	rm -f "$N"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N"
	timeout 60 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" --stop "$ID" </dev/null 3>&-
	assert_eq "$(rt list -q)" ""
}

@test "apart: memory that is sealed then is refused" {
	command -v strace >/dev/null || skip "strace is not installed"
	program seal
	wait_until test -e "$R/done"
	[ ! -e "$R/err" ] || skip "no mseal(2) here: $(cat "$R/err")"
	run -1 seed "$ID"
	assert_has "$output" "sealed memory at"
	is_refused_late seal "sealed memory at"
}

@test "apart: queues that are made then, and a name that is changed, are refused" {
	command -v strace >/dev/null || skip "strace is not installed"
	is_refused_late queue "message queues of System V: 1"
	is_refused_late posix "a POSIX message queue (/queue)"
	is_refused_late name "a host name that it changed (changed)"
}

@test "apart: a file that is put in the place of a mapped one then is not what a child has mapped" {
	command -v strace >/dev/null || skip "strace is not installed"
	is_refused_late link "a file that is in none of the container's mounts, and is mapped, at "
}

@test "apart: a queue in a namespace that it goes to then is refused, and to go to one is not" {
	command -v strace >/dev/null || skip "strace is not installed"
	is_refused_late ipc "message queues of System V: 1"
	program empty late
	seed_meanwhile -e trace=ptrace
}
