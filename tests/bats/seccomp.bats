#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# linux.seccomp: actions, arguments, architectures, errors, notify.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

seccomp() {
	cfg --argjson s "$1" '.linux.seccomp = $s'
}

# What busybox (and a Go runtime before it) cannot do without.
ENOUGH=$(printf '"%s",' accept access arch_prctl brk capget capset chdir clock_gettime clone clone3 close close_range dup dup2 dup3 \
	execve execveat exit exit_group faccessat faccessat2 fchdir fcntl fork fstat fstatfs futex getcwd getdents64 getegid geteuid getgid \
	getpid getppid getpgrp getrandom getuid ioctl lseek lstat madvise mmap mprotect mremap munmap nanosleep newfstatat open openat openat2 \
	pipe pipe2 poll ppoll prctl pread64 prlimit64 read readlink readlinkat recvfrom recvmsg rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_yield sendmsg sendto seccomp select set_robust_list \
	set_tid_address setgid setgroups setsid setuid setresuid setresgid sigaltstack socket stat statfs statx sysinfo tgkill uname vfork wait4 waitid write writev umask getgroups getxattr lgetxattr epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 gettid)

@test "seccomp: errno" {
	lean_changes rootfs
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
		"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}, {"names": ["unlink", "unlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}'
	sh_cfg 'mkdir /tmp/x; touch /tmp/y; rm /tmp/y; grep "Seccomp:" /proc/self/status'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "Operation not permitted"
	assert_has "$output" "No space left on device"
	assert_match "$output" 'Seccomp:.2'
}

@test "seccomp: kill" {
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_KILL_PROCESS"}]}'
	sh_cfg 'mkdir /tmp/x; echo $?'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" 159
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	run -159 rt run -b "$BUNDLE" "$ID"
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_KILL"}]}'
	run -159 rt run -b "$BUNDLE" "$ID"
}

@test "seccomp: arguments" {
	# kill(2)'s second argument: 10 (USR1) is refused, others are not
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28,
		"args": [{"index": 1, "value": 10, "op": "SCMP_CMP_EQ"}]}]}'
	sh_cfg 'trap "echo got it" HUP; kill -HUP $$; kill -USR1 $$; echo alive'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "got it"
	assert_has "$output" "No space left"
	assert_has "$output" alive
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28,
		"args": [{"index": 1, "value": 10, "op": "SCMP_CMP_GE"}]}]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "got it"
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28,
		"args": [{"index": 1, "value": 1, "op": "SCMP_CMP_LE"}]}]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" "got it"
	assert_has "$output" alive
}

@test "seccomp: masked arguments: what a mask hides of the value is not compared" {
	local value
	sh_cfg 'trap "echo got it" HUP; kill -HUP $$; kill -USR1 $$; echo alive'
	# 0x10a & 0xff is USR1, as 10 is; without the mask, no argument would ever be 0x10a
	for value in 10 266; do
		seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28,
			"args": [{"index": 1, "value": 255, "valueTwo": '$value', "op": "SCMP_CMP_MASKED_EQ"}]}]}'
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_has "$output" "got it"
		assert_has "$output" "No space left"
		assert_has "$output" alive
	done
}

@test "seccomp: two conditions: both must hold" {
	# HUP to others: not to ourselves, and no other signal.
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28,
		"args": [{"index": 0, "value": 1, "op": "SCMP_CMP_NE"}, {"index": 1, "value": 1, "op": "SCMP_CMP_EQ"}]}]}'
	sh_cfg 'trap "echo got it" HUP; kill -HUP $$; sleep 60 & kill -HUP $! || echo refused; kill -KILL $! && echo killed'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "got it"
	assert_has "$output" "No space left"
	assert_has "$output" refused
	assert_has "$output" killed
}

@test "seccomp: every way into a container has the filter" {
	lean_only "liblean, the cache"
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}'
	local refused="can't create directory '/tmp/x': No space left on device"
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	local n
	for n in first cached; do
		run ! rt run -b "$BUNDLE" "$ID"
		assert_has "$output" "$refused"
	done
	run ! rt --lean run -b "$BUNDLE" "$ID"
	rt pool drain
	assert_has "$output" "$refused"
	rt run -d -b "$BUNDLE" "$ID" >detached 2>&1 </dev/null
	wait_for_status stopped "$ID"
	assert_has "$(cat detached)" "$refused"
	rt delete "$ID"
	rt create -b "$BUNDLE" "$ID" >created 2>&1 </dev/null
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_has "$(cat created)" "$refused"
	rt delete "$ID"

	sh_cfg 'exec sleep 1000'
	rt run -d -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
	run ! rt exec "$ID" mkdir /tmp/x
	assert_has "$output" "$refused"
	jq '.process | .args = ["mkdir", "/tmp/x"]' "$BUNDLE/config.json" >process.json
	run ! rt exec --process process.json "$ID"
	assert_has "$output" "$refused"
	rt delete --force "$ID"
}

# crun looks for it all the same, and wants an absolute path.
@test "seccomp: a listener that no rule notifies is ignored, as runc has it" {
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	for_peers
	local path
	for path in /no/such.sock relative.sock; do
		seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "'"$path"'", "listenerMetadata": "m",
			"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}'
		run ! rt run -b "$BUNDLE" "$ID"
		assert_has "$output" "No space left on device"
		if [[ $(peers runc) ]]; then
			run ! peer_run runc
			assert_has "$output" "No space left on device"
		fi
		if [[ $(peers crun) ]]; then
			run ! peer_run crun
			assert_has "$output" "$path"
			assert_hasnt "$output" "No space left on device"
		fi
	done
}

@test "seccomp: a default of errno with a list of what is allowed" {
	seccomp '{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
		"syscalls": [{"names": ['"${ENOUGH%,}"'], "action": "SCMP_ACT_ALLOW"}]}'
	sh_cfg 'echo fine; mkdir /tmp/x'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" fine
	assert_has "$output" "Function not implemented"
}

@test "seccomp: with noNewPrivileges and without capabilities" {
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}'
	cfg '.process.noNewPrivileges = true | .process.user = {"uid": 1000, "gid": 1000} | .process.capabilities = {}'
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "Operation not permitted"
}

@test "seccomp: unknown calls are left out, unknown actions and architectures are errors" {
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["no_such_call", "mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}'
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "Operation not permitted"
	seccomp '{"defaultAction": "SCMP_ACT_NONSENSE"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" SCMP_ACT_NONSENSE
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_NONSENSE"]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" SCMP_ARCH_NONSENSE
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["kill"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 9, "value": 1, "op": "SCMP_CMP_EQ"}]}]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
}

@test "seccomp: a filter the size of Docker's, twice (the second from a cache, if there is one)" {
	local n
	cfg '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
		"syscalls": [{"names": ["acct","add_key","bpf","clock_adjtime","clock_settime","create_module","delete_module","finit_module","get_kernel_syms",
		"get_mempolicy","init_module","ioperm","iopl","kcmp","kexec_file_load","kexec_load","keyctl","lookup_dcookie","mbind","move_pages","nfsservctl",
		"perf_event_open","pivot_root","process_vm_readv","process_vm_writev","ptrace","query_module","quotactl","reboot","request_key","set_mempolicy",
		"setns","settimeofday","stime","swapon","swapoff","sysfs","_sysctl","umount","uselib","userfaultfd","ustat","vm86","vm86old","mkdir","mkdirat"],
		"action": "SCMP_ACT_ERRNO"}]}
		| .process.args = ["mkdir", "/tmp/x"]'
	for n in 1 2; do
		run ! rt run -b "$BUNDLE" "$ID"
		assert_has "$output" "Operation not permitted"
	done
}

# An agent that lets no call through: there is no space left. With an argument it answers none, and makes the file `asked`.
start_agent() {
	cat >agent.py <<-'END'
		import array, json, os, socket, sys, time
		s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		s.bind("agent.sock")
		s.listen(1)
		s.settimeout(20)
		c, _ = s.accept()
		fds = array.array("i")
		data, anc, _, _ = c.recvmsg(1 << 20, socket.CMSG_SPACE(64))
		for l, t, p in anc:
		    fds.frombytes(p[: len(p) - len(p) % 4])
		state = json.loads(data)
		json.dump({"state": state, "fds": len(fds), "link": os.readlink("/proc/self/fd/%d" % fds[0])}, open("agent.tmp", "w"))
		os.rename("agent.tmp", "agent.json")
		# Answer every call with "no space left": struct seccomp_notif is 80 bytes, _resp 24.
		import fcntl, struct
		while True:
		    buf = bytearray(80)
		    try:
		        fcntl.ioctl(fds[0], 0xC0502100, buf)
		        if len(sys.argv) > 1:
		            open("asked", "w").close()
		            time.sleep(300)
		        nid = struct.unpack_from("Q", buf)[0]
		        fcntl.ioctl(fds[0], 0xC0182101, struct.pack("QqiI", nid, 0, -28, 0))
		    except OSError:
		        break
	END
	rm -f agent.sock asked
	python3 agent.py "$@" </dev/null >agent.log 2>&1 3>&- &
	AGENT=$!
	remember "$AGENT"
	wait_until test -S agent.sock
}

end_agent() {
	signal_remembered TERM "$AGENT" # it may have ended by itself
	wait "$AGENT" || true
}

@test "seccomp: notify sends the descriptor and the state to the listener" {
	start_agent
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "'"$BATS_TEST_TMPDIR"'/agent.sock", "listenerMetadata": "meta data",
		"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}]}'
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	run timeout 20 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	end_agent
	assert_has "$output" "No space left"
	jq -e --arg id "$ID" '.fds == 1 and .state.state.id == $id and .state.metadata == "meta data" and .state.pid > 0
		and .state.fds == ["seccompFd"] and (.link | contains("seccomp"))' agent.json
}

@test "seccomp: startContainer hooks are under a filter that notifies, too" {
	start_agent
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "'"$BATS_TEST_TMPDIR"'/agent.sock",
		"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_NOTIFY"}]}'
	cfg '.hooks.startContainer = [{path: "/bin/mkdir", args: ["mkdir", "/tmp/x"]}]'
	run timeout 20 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	end_agent
	assert_has "$output" "startContainer"
	assert_has "$output" "No space left"
}

@test "seccomp: notify without a listener is an error" {
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/no/such.sock", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" /no/such.sock
	cfg 'del(.linux.seccomp.listenerPath)'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
}

@test "seccomp: calls newer than the profile get ENOSYS, not EPERM" {
	# 9999 is beyond every table; a libc that tries it must be able to fall back.
	command -v gcc >/dev/null || skip "needs a C compiler"
	printf '#include <errno.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(void) { syscall(600); printf("%%d\\n", errno); return 0; }\n' >t.c
	gcc -static -o "$BUNDLE/rootfs/bin/newcall" t.c
	seccomp '{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], "syscalls": [{"names": ['"${ENOUGH%,}"'], "action": "SCMP_ACT_ALLOW"}]}'
	cfg '.process.args = ["newcall"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 38
}

# The runtime, for at most 20 seconds. By a file: a process of it that never ends would keep a pipe open, and the test waiting.
in_time() {
	local s=0
	timeout -k 2 20 "$LEAN_RUNTIME" --root "$ROOT" "$@" </dev/null >said 2>&1 3>&- || s=$?
	cat said
	return $s
}

# What init died of is told as long as nobody has waited for it: an init system may be faster than `start`.
create_and_start() {
	# shellcheck disable=SC2016 # expanded there
	"$LR_LIB/keeps-zombies" sh -c '"$1" --root "$2" create -b "$3" "$4" </dev/null >/dev/null &&
		exec timeout -k 2 20 "$1" --root "$2" start "$4" </dev/null' sh "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID" 2>&1
}

# With runc each of these hangs, and with crun the container dies by a signal without a word.
@test "seccomp: a profile that refuses execve, and all that ends a process and tells why, is one error" {
	lean_only "spins, or says nothing"
	local action nnp log=$BATS_TEST_TMPDIR/log
	for action in SCMP_ACT_ERRNO SCMP_ACT_KILL_PROCESS; do
		seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "'$action'",
			"names": ["execve", "execveat", "exit", "exit_group", "write", "sendto", "sendmsg", "kill", "tgkill"]}]}'
		for nnp in true false; do
			cfg --argjson n $nnp '.process.noNewPrivileges = $n'
			run in_time run -d -b "$BUNDLE" "$ID"
			assert_one_error
			assert_has "$output" "linux.seccomp must allow execve"
			run in_time run -b "$BUNDLE" "$ID"
			assert_one_error
			assert_has "$output" "linux.seccomp must allow execve"
			assert_nothing_left
			run create_and_start
			assert_one_error
			assert_has "$output" "linux.seccomp must allow execve"
			wait_for_status stopped "$ID"
			rt delete "$ID"
		done
	done
}

@test "seccomp: the same in exec" {
	lean_only "spins, or says nothing"
	local other first=$ID
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
	rt_sleeper
	new_id other
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO",
		"names": ["execve", "execveat", "exit", "exit_group", "write", "sendto", "sendmsg", "kill", "tgkill"]}]}'
	cfg --arg p "$(cgroups_path "$other")" '.linux.cgroupsPath = $p'
	rt_create "$other"
	cp "$ROOT/$other/seccomp" "$ROOT/$first/seccomp"
	for detach in "" --detach; do
		# shellcheck disable=SC2086 # none, if empty
		run in_time exec $detach "$first" true
		assert_one_error
		assert_has "$output" "linux.seccomp must allow execve"
	done
}

@test "seccomp: a startContainer hook that can neither be executed nor end is one error" {
	lean_only "spins, or says nothing"
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO", "names": ["execve", "execveat", "exit", "exit_group", "kill", "tgkill"]}]}'
	cfg '.hooks.startContainer = [{path: "/bin/true"}]'
	run timeout -k 2 20 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "startContainer"
}

# Its calls wait for an agent, and fail when that is gone: this is how it stays in this state while its runtime is killed.
@test "seccomp: what can neither execute its program nor end does not run on when its runtime was told to end, or was killed" {
	lean_only "spins, or says nothing"
	local verb signal runtime
	seccomp '{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "'"$BATS_TEST_TMPDIR"'/agent.sock",
		"syscalls": [{"action": "SCMP_ACT_NOTIFY", "names": ["execve", "execveat", "exit", "exit_group"]},
			{"action": "SCMP_ACT_ERRNO", "names": ["kill", "tgkill"]}]}'
	for verb in run start; do
		for signal in TERM KILL; do
			start_agent silent
			if [ $verb = run ]; then
				set -- run -b "$BUNDLE" "$ID"
			else
				rt_create
				set -- start "$ID"
			fi
			"$LEAN_RUNTIME" --root "$ROOT" "$@" </dev/null >said 2>&1 3>&- &
			runtime=$!
			wait_until test -e asked
			kill -$signal $runtime
			end_agent
			wait_until eval "! kill -0 $runtime 2>/dev/null"
			wait $runtime || true
			[ $verb$signal = runTERM ] || wait_for_status stopped "$ID"
			rt delete --force "$ID"
			assert_nothing_left
		done
	done
}
