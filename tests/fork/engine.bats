#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore with --engine=fork: containers become seeds, and others continue them.

load ../lib/helpers.bash
load seeds.bash
load counter.bash

counts_on() { # FROM [FILE]: it is beyond that, and moves
	wait_until eval '[ "$(count '"${2-}"')" -ge '"$1"' ]'
	[ "$(count "${2-}")" -lt "$(($1 + 100000))" ] || fail "it is no counter: $(count "${2-}")"
	moves "${2-}"
}

# What a process may do, each of its threads; what it ignores and catches.
rights() { # PID
	local status
	for status in /proc/"$1"/task/*/status; do
		grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters|Threads|SigIgn|SigCgt):' "$status"
	done
	cat "/proc/$1/limits" "/proc/$1/oom_score_adj"
}

@test "fork: --stats: a line of JSON for each container that continues a seed; not with criu" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	cfg 'del(.linux.cgroupsPath)' # each has its own
	rt_bg restore --engine=fork --image-path "$IMG" --stats --detach -n 2 --bundle "$BUNDLE" "$CHILD"
	assert_eq "$(wc -l <"$ERR")" 2
	jq -es --arg id "$CHILD" 'map(.id) == [$id + "-1", $id + "-2"] and all(.memory == "files" and .pages > 0 and .bytes == .pages * 4096 and
		.pagesBefore.files == .pages and .pagesBefore.tcp == 0 and .bytesBefore == .bytes and .us.container > 0 and .us.memory > 0)' "$ERR"
	rt delete --force "$CHILD-1"
	rt_bg restore --engine=fork --image-path "$IMG" --detach --bundle "$BUNDLE" "$CHILD-1"
	assert_eq "$(cat "$ERR")" ""
	run ! rt restore --stats --image-path "$IMG" --detach --bundle "$BUNDLE" "$CHILD-3"
	assert_has "$output" "--stats goes with --engine=fork"
}

@test "fork: the parent runs on, and a child counts on from where it was" {
	start_counter
	seed "$ID"
	at=$(count)
	moves # the parent
	assert_eq "$(status_of)" running
	[ ! -e "$IMG/pages.new" ]
	rt delete --force "$ID"
	begin_anew
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	grow "$CHILD"
	assert_eq "$(status_of "$CHILD")" running
	came_back
	assert_has "$(cat "/proc/$(pid_of "$CHILD")/cgroup")" "/$CHILD"
	[ "$at" -gt 20 ]
}

@test "fork: what comes out is a container: exec, ps, events, pause, resume, kill, delete" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	begin_anew
	grow "$ID" --pid-file "$PWD/pid"
	assert_eq "$(cat pid)" "$(pid_of)"
	came_back
	run -0 rt exec "$ID" /bin/echo in there
	assert_eq "$output" "in there"
	assert_has "$(rt ps --format json "$ID")" "$(pid_of)"
	rt events --stats "$ID" | jq -e '.data.pids.current > 0'
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	at=$(count)
	sleep 0.2
	assert_eq "$(count)" "$at"
	rt resume "$ID"
	moves
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
}

@test "fork: it is as any process of that bundle: rights, limits, descriptors, nothing of ours in memory" {
	cfg '.process.oomScoreAdj = 77 | .process.rlimits = [{type: "RLIMIT_NOFILE", soft: 333, hard: 444}]'
	start_counter
	rights "$(pid_of)" >before
	seed "$ID"
	rt delete --force "$ID"
	grow "$ID"
	moves
	rights "$(pid_of)" >after
	diff before after
	# What is open: three of the caller's, and perhaps the counter's own.
	for fd in "/proc/$(pid_of)"/fd/*; do
		[ "$(basename "$fd")" -le 3 ] || fail "open: $(ls -l "$fd")"
	done
	assert_hasnt "$(cat "/proc/$(pid_of)/maps")" rwxp
	assert_hasnt "$(cat "/proc/$(pid_of)/maps")" lean
	assert_eq "$(readlink "/proc/$(pid_of)/exe")" /bin/counter
	# Whoever is in there with the same rights may look at it, as at any other.
	assert_eq "$(rt exec "$ID" /bin/readlink /proc/1/exe)" /bin/counter
}

FILTER='{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}'

@test "fork: another user with a filter, with and without no-new-privileges" {
	chmod 777 "$BUNDLE/rootfs"
	for nnp in false true; do
		cfg --argjson f "$FILTER" --argjson n $nnp '.process.user = {uid: 1000, gid: 1001, additionalGids: [7, 8]} | .process.capabilities = {}
			| .process.noNewPrivileges = $n | .linux.seccomp = $f'
		rm -f "$N"
		start_counter
		rights "$(pid_of)" >before
		assert_match "$(cat before)" 'Seccomp_filters:.1'
		seed "$ID"
		rt delete --force "$ID"
		begin_anew
		grow "$ID"
		came_back
		rights "$(pid_of)" >after
		diff before after
		run rt exec "$ID" /bin/mkdir /tmp/x
		assert_has "$output" "not implemented"
		rt delete --force "$ID"
	done
}

@test "fork: what a seed may not be is refused before anything is made: more rights than config.json's" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	cfg '.process.capabilities = {}'
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "CAP_"
	cfg '.process.user = {uid: 1000, gid: 1000}'
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "is user 0"
	assert_has "$output" "process.user"
	assert_eq "$(rt list -q)" ""
}

@test "fork: python with threads" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import threading, time, os
counts = [0, 0, 0]
def work(i):
    while True:
        counts[i] += 1
        time.sleep(0.005)
'"$THREE_THREADS" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
	start_counter
	assert_match "$(grep Threads "/proc/$(pid_of)/status")" '4$'
	seed "$ID"
	moves
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back # the least of the three
	assert_match "$(grep Threads "/proc/$(pid_of)/status")" '4$'
}

@test "fork: keep-caps, locked memory and a root of its own come back; a parent-death signal does not end the first process with who makes it" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	mkdir -p "$BUNDLE/rootfs/jail"
	cfg --arg p 'import ctypes, os, signal, time
libc = ctypes.CDLL(None)
jailed = os.fork()
if jailed == 0:
    os.chroot("/jail")
    signal.pause()
libc.prctl(1, 9, 0, 0, 0) # PR_SET_PDEATHSIG, SIGKILL
libc.prctl(8, 1, 0, 0, 0) # PR_SET_KEEPCAPS
block = ctypes.create_string_buffer(65536)
libc.mlock(block, 65536)
i = 0
while True:
    i += 1
    locked = [l for l in open("/proc/self/status") if l.startswith("VmLck")][0].split()[1]
    try: root = os.readlink("/proc/%d/root" % jailed)
    except OSError: continue # nobody may look at the others yet
    text = "%d %d %s" % (libc.prctl(7, 0, 0, 0, 0), int(locked) >= 64, root)
    with open("/seen.new", "w") as f: f.write(text)
    os.rename("/seen.new", "/seen")
    with open("/n", "w") as f: print(i, file=f)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]
		| (.process.capabilities.bounding, .process.capabilities.permitted, .process.capabilities.effective) += ["CAP_SYS_CHROOT"]'
	start_counter
	assert_eq "$(cat "$BUNDLE/rootfs/seen")" "1 1 /jail"
	seed "$ID"
	rt delete --force "$ID"
	begin_anew
	rm "$BUNDLE/rootfs/seen"
	: >>"$BUNDLE/rootfs/seen.new" # if it was just writing
	grow "$ID"
	came_back
	assert_eq "$(cat "$BUNDLE/rootfs/seen")" "1 1 /jail"
	# What config.json does not let it lock, it does not get.
	rt delete --force "$ID"
	: >>"$BUNDLE/rootfs/seen.new"
	cfg '.process.rlimits = [{type: "RLIMIT_MEMLOCK", soft: 4096, hard: 4096}]'
	run ! rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "it had locked memory: RLIMIT_MEMLOCK"
	assert_eq "$(rt list -q)" ""
}

@test "fork: each thread has the rights it had, and the filter: ambient capabilities, a bounding set that the program made smaller" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	chmod 777 "$BUNDLE/rootfs"
	cfg --argjson f "$FILTER" --arg p 'import ctypes, threading, time
libc = ctypes.CDLL(None)
def drop():
    libc.prctl(24, 13, 0, 0, 0) # PR_CAPBSET_DROP, CAP_NET_RAW
def work():
    drop()
    while True:
        time.sleep(0.01)
drop()
for i in range(2):
    threading.Thread(target=work).start()
i = 0
while True:
    i += 1
    with open("/n", "w") as f:
        print(i, file=f)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"] | .linux.seccomp = $f
		| .process.user = {uid: 1000, gid: 1000} | ["CAP_SETPCAP", "CAP_CHOWN"] as $few
		| .process.capabilities = {bounding: ($few + ["CAP_NET_RAW"]), permitted: $few, effective: $few, inheritable: $few, ambient: $few}'
	for nnp in false true; do
		cfg --argjson n $nnp '.process.noNewPrivileges = $n'
		rm -f "$N"
		start_counter
		rights "$(pid_of)" >before
		assert_eq "$(grep -c '^Seccomp:.2' before)" 3
		assert_eq "$(grep '^CapBnd' before | sort -u)" "$(printf 'CapBnd:\t0000000000000101')"
		assert_eq "$(grep '^CapAmb' before | sort -u)" "$(printf 'CapAmb:\t0000000000000101')"
		seed "$ID"
		rt delete --force "$ID"
		begin_anew
		grow "$ID"
		came_back
		rights "$(pid_of)" >after
		diff before after
		rt delete --force "$ID"
	done
}

@test "fork: neither the keys nor the CPUs of the caller's session are the container's; the I/O priority is config.json's" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import ctypes, os, time
libc = ctypes.CDLL(None)
i = 0
while True:
    i += 1
    name = ctypes.create_string_buffer(256)
    if libc.syscall(250, 6, -3, name, 256) < 0: name.value = b"none" # KEYCTL_DESCRIBE, of the session
    with open("/seen.new", "w") as f: f.write("%s %d" % (name.value.decode(), len(os.sched_getaffinity(0))))
    os.rename("/seen.new", "/seen")
    with open("/n", "w") as f: print(i, file=f)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]
		| .process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 6}'
	cat >caller.py <<-'END'
		import ctypes, os, sys
		if ctypes.CDLL(None).syscall(250, 1, b"the-callers") < 0: sys.exit("the kernel has no keyrings")
		os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
		os.execv(sys.argv[1], sys.argv[1:])
	END
	python3 caller.py /bin/true 2>/dev/null || skip "the kernel has no keyrings"
	start_counter
	before=$(cat "$BUNDLE/rootfs/seen")
	assert_has "$before" "_ses.$ID "
	seed "$ID"
	rt delete --force "$ID"
	begin_anew
	rm "$BUNDLE/rootfs/seen"
	: >>"$BUNDLE/rootfs/seen.new" # if it was just writing
	python3 caller.py "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&- ||
		fail "$(cat out)"
	came_back
	assert_eq "$(cat "$BUNDLE/rootfs/seen")" "$before"
	assert_eq "$(ionice -p "$(pid_of)")" "best-effort: prio 6"
}

@test "fork: a standard file that is the container's own is opened again, where it was; a FIFO in its place keeps nobody" {
	printf 'one\ntwo\n' >"$BUNDLE/rootfs/lines"
	sh_cfg 'exec </lines >/dev/null; read a; i=0; while [ ! -e /go ]; do i=$((i+1)); echo $i >/n; usleep 10000; done; read b; echo $a $b >/got'
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
	touch "$BUNDLE/rootfs/go"
	wait_for_status stopped "$ID"
	assert_eq "$(cat "$BUNDLE/rootfs/got")" "one two"
	rt delete "$ID"
	rm "$BUNDLE/rootfs/lines" "$BUNDLE/rootfs/go"
	mkfifo "$BUNDLE/rootfs/lines"
	# Whatever comes of it: it comes.
	code=0
	timeout -s KILL 20 "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >fifo.out 2>&1 3>&- || code=$?
	if [ "$code" = 137 ]; then
		kill -9 $(pgrep -f -- "--bundle $BUNDLE $ID") # the newborn that waits
		fail "a FIFO keeps the birth waiting"
	fi
	rt delete --force "$ID"
}

# goes_along [HOW]: what counts is made a seed, by seed or another command, and so does its child.
goes_along() {
	start_counter
	"${1:-seed}" "$ID"
	moves # the parent
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
	moves
	rt delete --force "$ID"
	rm -rf "$IMG" "$N"
}

# Where no kernel tells what is registered.
seed_without_telling() {
	strace -qq -o calls -e trace=membarrier -e inject=membarrier:error=EINVAL "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$1" </dev/null 3>&-
	assert_has "$(cat calls)" "INJECTED"
}

@test "fork: what a program has registered for with membarrier(2) its child has, too; who may not is not asked" {
	cfg '.process.args += ["barrier"]'
	goes_along
	! command -v strace >/dev/null || goes_along seed_without_telling
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO"}]}'
	goes_along
	cfg '.linux.seccomp.syscalls = [{names: ["membarrier"], action: "SCMP_ACT_KILL_PROCESS"}] | .process.args |= .[:2]'
	goes_along
}

# With what a capture has the program do itself, and not the program.
@test "fork: a filter that allows none of the calls that a capture makes" {
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{action: "SCMP_ACT_KILL_PROCESS", names:
		["mmap", "munmap", "rt_sigpending", "sigaltstack", "getitimer", "clone", "wait4", "brk"]}]}'
	cat >alone.c <<-'EOF'
		#define CALL(nr, a, b, c, d) ({ long r_; register long d_ __asm__("r10") = (long)(d); \
			__asm__ volatile("syscall" : "=a"(r_) : "0"((long)(nr)), "D"(a), "S"(b), "d"(c), "r"(d_) : "rcx", "r11", "memory"); r_; })
		void _start(void) {
			const long pause[2] = {0, 10000000};
			for (unsigned long n = 1;; n++) {
				char text[24];
				int at = 23;
				text[at] = '\n';
				for (unsigned long v = n; v; v /= 10)
					text[--at] = (char)('0' + v % 10);
				long fd = CALL(2, "/n", 0101, 0666, 0);
				CALL(18, fd, text + at, 24 - at, 0);
				CALL(3, fd, 0, 0, 0);
				CALL(35, pause, 0, 0, 0);
			}
		}
	EOF
	cc -O1 -static -nostdlib -fno-stack-protector -fno-pie -no-pie -o "$BUNDLE/rootfs/bin/counter" alone.c
	start_counter
	seed "$ID"
	moves # the parent
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
	assert_match "$(cat "/proc/$(pid_of)/status")" 'Seccomp_filters:.1'
}

@test "fork: a shell with children and a pipeline, whose ids and ends are as they were" {
	sh_cfg 'exec >/dev/null; (while :; do echo x; usleep 10000; done | (i=0; while read l; do i=$((i+1)); echo $i >/n; done)) &
		echo $! >/child; wait $!; echo $? >/waited; exit 9'
	start_counter
	tree() { rt exec "$ID" /bin/ps -o pid,ppid,comm | grep ' sh$'; }
	# Not with one that is about to execute usleep.
	wait_until eval '[ "$(tree | tee before | wc -l)" = 4 ]'
	seed "$ID"
	moves
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
	wait_until eval 'tree >after; diff before after'
	# They are the shell's children: it waits for them.
	rt exec "$ID" /bin/sh -c 'kill -9 $(cat /child)'
	wait_for_status stopped "$ID"
	assert_eq "$(cat "$BUNDLE/rootfs/waited")" 137
}

@test "fork: in the foreground it is waited for, and deleted at its end; its output is the caller's" {
	sh_cfg 'trap "echo bye; exit 7" TERM; while :; do usleep 20000; done'
	start
	wait_until grep -q -E 'SigCgt:.*[4-7c-f]...$' "/proc/$(pid_of)/status" # TERM
	seed "$ID" --stop
	run rt state "$ID"
	assert_has "$output" "does not exist"
	rt restore --engine fork --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >fg.out 2>fg.err &
	front=$!
	wait_until eval '[ "$(status_of 2>/dev/null)" = running ]'
	wait_until eval 'rt kill "$ID" TERM; ! kill -0 '"$front"
	code=0
	wait "$front" || code=$?
	assert_eq "$code" 7
	assert_eq "$(cat fg.out)" bye
	run rt state "$ID"
	assert_has "$output" "does not exist"
}

@test "fork: --stop ends the container with the seed: it never counts beyond" {
	start_counter
	seed "$ID" --stop
	at=$(count)
	run rt state "$ID"
	assert_has "$output" "does not exist"
	sleep 0.2
	assert_eq "$(count)" "$at"
	grow "$ID"
	counts_on "$at"
}

@test "fork: two children of one seed at once, beside their parent" {
	start_counter
	seed "$ID"
	for i in 1 2; do
		new_id CHILD
		rm -rf "bundle$i"
		cp -a "$BUNDLE" "bundle$i"
		echo 1 >"bundle$i/rootfs/n"
		cfg -b "bundle$i" --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
		rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "bundle$i" "$CHILD"
	done
	moves
	for i in 1 2; do
		wait_until eval '[ "$(count bundle'$i'/rootfs/n)" -gt 1 ]'
		counts_on 20 "bundle$i/rootfs/n"
	done
}

@test "fork: what cannot be carried is named, all of it, and the container is left alone" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import os, socket, time, mmap
s = socket.socket(); s.bind(("127.0.0.1", 0))
os.mkfifo("/fifo"); f = os.open("/fifo", os.O_RDWR)
g = open("/gone", "w+"); os.unlink("/gone"); g.truncate(65 << 20)
i = 0
while True:
    i += 1
    with open("/n", "w") as n: print(i, file=n, flush=True)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p]'
	start
	wait_until eval '[ "$(count)" -gt 5 ]'
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" socket
	assert_has "$output" /fifo
	assert_has "$output" "larger than what is carried of those (/gone (deleted))"
	assert_has "$output" "3 of the container's resources"
	assert_has "$output" "--engine=criu"
	assert_eq "$(ls -A "$IMG")" ""
	assert_eq "$(status_of)" running
	assert_match "$(cat "/proc/$(pid_of)/status")" 'TracerPid:.0'
	wait_until eval '[ "$(count || echo 0)" -gt 50 ]'
}

@test "fork: queues and names that are in its namespaces are named, and the container is left alone" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import ctypes, os, socket, time
c = ctypes.CDLL(None, use_errno=True)
for r in c.semget(7, 1, 0o1600), c.msgget(7, 0o1600), c.msgget(8, 0o1600), c.shmget(7, 4096, 0o1600), c.mq_open(b"/queue", 0o102, 0o600, None):
    assert r >= 0, os.strerror(ctypes.get_errno())
os.close(r) # the queue stays
assert not c.setdomainname(b"changed", 7)
socket.sethostname("changed")
i = 0
while True:
    i += 1
    with open("/n", "w") as n: print(i, file=n, flush=True)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p] | .hostname = "began" | .domainname = "began"
		| .process.capabilities |= map_values(. + ["CAP_SYS_ADMIN"])'
	start
	wait_until eval '[ "$(count)" -gt 5 ]'
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "message queues of System V: 2"
	assert_has "$output" "sets of semaphores of System V: 1"
	assert_has "$output" "shared memory of System V: 1"
	assert_has "$output" "a POSIX message queue (/queue)"
	assert_has "$output" "a host name that it changed (changed)"
	assert_has "$output" "a domain name that it changed (changed)"
	assert_has "$output" "6 of the container's resources"
	moves
}

@test "fork: refused, with the reason: processes of exec, a paused container, foreign options" {
	start_counter
	rt exec --detach "$ID" /bin/sleep 300 </dev/null >/dev/null 2>&1
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "(sleep): a parent outside of the container"
	assert_has "$output" "leave it out by --without-exec"
	rt exec "$ID" /bin/sh -c 'kill $(pidof sleep)'
	wait_until eval '! rt exec "$ID" /bin/pidof sleep'
	rt pause "$ID"
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "paused"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	for o in --pre-dump --lazy-pages --tcp-established --work-path=w --file-locks; do
		run rt checkpoint --engine fork --image-path "$IMG" $o "$ID"
		assert_eq "$status" 1
		assert_has "$output" "${o%%=*} goes with --engine=criu"
	done
	run rt checkpoint --engine fork --stop --leave-running "$ID"
	assert_has "$output" "contradicts"
	run rt checkpoint --engine nonsense "$ID"
	[ "$status" -ne 0 ]
	moves
	wait_until seed "$ID"
}

@test "fork: --without-exec: what exec sent in stands still while the seed is made, runs on, and is in no child" {
	sh_cfg 'exec >/dev/null; i=0; while :; do i=$((i + 1)); echo $i >/n; usleep 10000; done'
	start_counter
	# It and its child; one that has ended is nobody's concern.
	rt exec --detach "$ID" /bin/sh -c 'sleep 301 & i=0; while :; do i=$((i + 1)); echo $i >/m; usleep 10000; done' </dev/null >/dev/null 2>&1
	wait_until eval '[ "$(count "$R/m")" -gt 5 ]'
	seed "$ID" --without-exec
	assert_hasnt "$(rt seed inspect "$IMG" | jq -c '[.threads[].name]')" '"sleep"'
	moves
	moves "$R/m"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	grow "$CHILD"
	assert_hasnt "$(rt exec "$CHILD" /bin/ps -o args)" "sleep 301"
	# --stop ends the container, whoever is in it.
	seed "$ID" --stop --without-exec
	run ! rt state "$ID"
	run ! rt checkpoint --without-exec --image-path "$IMG.2" "$ID"
	assert_has "$output" "--without-exec goes with --engine=fork"
}

@test "fork: a process that exec sends in while all is held is noticed, and the seed refused" {
	command -v strace >/dev/null || skip "strace is not installed"
	start_counter
	for left_out in "" --without-exec; do
		if [ -n "$left_out" ]; then # so one that was there before stands still
			rt exec --detach --pid-file "$PWD/early" "$ID" /bin/sleep 301 </dev/null >/dev/null 2>&1
		fi
		rm -f calls
		# shellcheck disable=SC2086 # no word, or one
		timeout 60 strace -o calls -e trace=ptrace -e inject=ptrace:signal=STOP:when=10 "$LEAN_RUNTIME" --root "$ROOT" \
			checkpoint --engine fork --image-path "$IMG" $left_out "$ID" </dev/null >out 2>&1 3>&- &
		wait_until eval 'grep -q "stopped by SIGSTOP" calls'
		assert_hasnt "$(cat "/proc/$(pid_of)/status")" "TracerPid:	0"
		[ -z "$left_out" ] || assert_hasnt "$(cat "/proc/$(cat early)/status")" "TracerPid:	0"
		rt exec --detach "$ID" /bin/sleep 300 </dev/null >/dev/null 2>&1
		kill -CONT "$(pgrep -f "^$LEAN_RUNTIME --root $ROOT checkpoint")"
		status=0
		wait $! || status=$?
		assert_eq "$status" 1
		assert_has "$(cat out)" "(sleep): a parent outside of the container"
		assert_hasnt "$(cat out)" "process $(cat early 2>/dev/null || echo none) "
		assert_eq "$(ls -A "$IMG")" ""
		moves
		[ -z "$left_out" ] || assert_has "$(cat "/proc/$(cat early)/status")" "TracerPid:	0"
		rt exec "$ID" /bin/sh -c 'kill $(pidof sleep)'
		wait_until eval '! rt exec "$ID" /bin/pidof sleep'
	done
	seed "$ID"
}

@test "fork: a damaged seed, another root, a taken id: refused, and nothing is left" {
	start_counter
	seed "$ID"
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "exists"
	moves # the one that has the id
	rt delete --force "$ID"
	cp -a "$IMG" img2
	printf x | dd of=img2/descriptor bs=1 seek=900 conv=notrunc status=none
	run rt restore --engine fork --detach --image-path img2 --bundle "$BUNDLE" "$ID"
	assert_eq "$status" 1
	cp -a "$IMG" img3
	truncate -s 8192 img3/pages
	run rt restore --engine fork --detach --image-path img3 --bundle "$BUNDLE" "$ID"
	assert_eq "$status" 1
	run rt restore --engine fork --detach --image-path "$PWD" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "checkpoint --engine=fork"
	rm "$BUNDLE/rootfs/bin/counter"
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "/bin/counter"
	cp "$program" "$BUNDLE/rootfs/bin/other"
	ln -s other "$BUNDLE/rootfs/bin/counter"
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "/bin/counter"
	rm "$BUNDLE/rootfs/bin/counter"
	cp "$BUNDLE/rootfs/bin/busybox" "$BUNDLE/rootfs/bin/counter"
	run rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "is not the file"
	assert_eq "$(rt list -q)" ""
}

@test "fork: killed at any of its system calls, checkpoint leaves the container as it was" {
	command -v strace >/dev/null || skip "strace is not installed"
	start_counter
	points 37 checkpoint --engine fork --image-path "$IMG" "$ID" >points.list
	[ "$(wc -l <points.list)" -gt 10 ] || fail "there is little to kill: $(cat points.list)"
	while read -r call n <&4; do
		killed_at "$call" "$n" checkpoint --engine fork --image-path "$IMG" "$ID"
		moves
	done 4<points.list
	often_killed
	assert_eq "$(status_of)" running
	wait_until seed "$ID"
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
}

# Of what a killed one leaves, nothing may come to be in the children of a later seed.
@test "fork: a dead twin of a killed checkpoint is in no seed" {
	command -v strace >/dev/null || skip "strace is not installed"
	start_counter
	traced -e inject=ftruncate:signal=KILL:when=1 checkpoint --engine fork --image-path "$IMG" "$ID" || true
	wait_until eval '[ -n "$(cat "/proc/$(pid_of)/task/$(pid_of)/children")" ]' # it was there
	seed "$ID"
	moves
	rt delete --force "$ID"
	begin_anew
	grow "$ID"
	came_back
	assert_eq "$(cat "/proc/$(pid_of)/task/$(pid_of)/children")" ""
}

@test "fork: a file that takes no more is an error, at once, and an earlier seed stays" {
	start_counter
	seed "$ID"
	cp -a "$IMG" img2
	run bash -c 'ulimit -f 4; exec "$@"' - "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "write the seed's pages: file too large"
	diff -r "$IMG" img2
	moves
	assert_eq "$(cat "/proc/$(pid_of)/task/$(pid_of)/children")" ""
}

@test "fork: at its limit of processes a container is no seed, and goes on" {
	cfg '.linux.resources.pids.limit = 1'
	start_counter
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "limit of processes"
	moves
	rt update --pids-limit 2 "$ID"
	seed "$ID"
	moves
}

@test "fork: a process that does not stop is an error, and the others go on" {
	sh_cfg 'exec >/dev/null; sleep 600 & i=0; while :; do i=$((i+1)); echo $i >/n; usleep 20000; done'
	start
	wait_until eval '[ "$(count)" -gt 5 ]'
	own=/sys/fs/cgroup/freezer$(sed -n 's/^[0-9]*:freezer://p' "/proc/$(pid_of)/cgroup")
	[ -d "$own" ] && [ "$own" != /sys/fs/cgroup/freezer ] || skip "no freezer of cgroup v1"
	# Beside it: one below would be refused as the container's own.
	frozen=$own-frozen
	mkdir "$frozen"
	child=$(cut -d' ' -f1 "/proc/$(pid_of)/task/$(pid_of)/children")
	echo "$child" >"$frozen/cgroup.procs"
	echo FROZEN >"$frozen/freezer.state"
	run timeout 60 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	echo THAWED >"$frozen/freezer.state"
	assert_eq "$status" 1
	assert_has "$output" "does not stop"
	moves
	echo "$child" >"$own/cgroup.procs"
	rmdir "$frozen"
	wait_until seed "$ID"
}

@test "fork: at its limit of memory a container loses the seed, and not its life" {
	command -v strace >/dev/null || skip "strace is not installed"
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import time
size = 24 << 20
b, i = bytearray(size), 0
while True:
    i += 1
    for at in range(0, size, 4096):
        b[at] = i & 255
    with open("/n", "w") as n: print(i, file=n)
    time.sleep(0.01)
' '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]
		| .linux.resources.memory = {limit: 50331648, swap: 50331648}'
	start
	wait_until eval '[ "$(count)" -gt 5 ]'
	# All of its memory is written anew before the seed is whole.
	run timeout 60 strace -o /dev/null -e inject=ftruncate:delay_enter=2s:when=1 \
		"$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "was killed"
	assert_has "$output" "memory"
	assert_eq "$(status_of)" running
	moves
	assert_eq "$(ls -A "$IMG")" ""
}

# For want of memory the kernel has to find the twin each time, also while the twin ends. Where it does not, these twenty
# cost a container of one process its life every other time.
outlives() { # PROCESSES
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg n "$1" --arg p 'import os, sys
n = int(sys.argv[1])
size = (24 << 20) // n
b, i = bytearray(size), 0
first = all(os.fork() for _ in range(n - 1))
while True:
    i += 1
    for at in range(0, size, 4096):
        b[at] = i & 255
    if first:
        with open("/n", "w") as f: print(i, file=f)
' '.process.args = ["/usr/bin/python3", "-c", $p, $n] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]
		| .linux.resources.memory = {limit: 67108864, swap: 67108864}'
	start
	wait_until eval '[ "$(count)" -gt 5 ]'
	limit=$(($(rt events --stats "$ID" | jq .data.memory.usage.usage) + (6 << 20)))
	rt update --memory "$limit" "$ID"
	rt update --memory-swap "$limit" "$ID"
	processes=$(rt ps -f json "$ID")
	assert_eq "$(jq length <<<"$processes")" "$1"
	lost=0
	for _ in {1..20}; do
		rm -rf "$IMG"
		if ! timeout 60 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID" 2>err; then
			assert_has "$(cat err)" "was killed"
			lost=$((lost + 1))
		fi
		assert_eq "$(status_of)" running
		assert_eq "$(rt ps -f json "$ID")" "$processes"
		moves
	done
	[ "$lost" -gt 0 ] || fail "there was memory enough for two"
}

@test "fork: close to its limit of memory a container outlives its frozen copies" {
	outlives 1
}

@test "fork: close to its limit of memory, each of a container's processes does" {
	outlives 4
}

# A shell with some megabytes and four children.
fills() {
	sh_cfg 'exec >/dev/null; for x in 1 2 3 4; do sleep 300 & done; x=$(head -c 8388608 /dev/zero | tr "\0" x); i=0; while :; do i=$((i + 1)); echo $i >/n; usleep 20000; done'
}

# It has so many KiB left below its limit.
nearly_full() { # KIB
	fills
	cfg '.linux.resources.memory = {limit: 134217728, swap: 134217728}'
	start
	wait_until eval '[ "$(count)" -gt 30 ]'
	limit_to "$1"
}

limit_to() { # KIB
	local limit=$(($(rt events --stats "$ID" | jq .data.memory.usage.usage) + ($1 << 10)))
	rt update --memory-swap 134217728 --memory "$limit" "$ID"
	rt update --memory-swap "$limit" "$ID"
}

@test "fork: a container that has not the memory for its frozen copies is refused, and lives" {
	nearly_full 1800
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "left below its limit of memory, and a seed may take"
	assert_has "$output" "raise the limit (update --memory), or that of a cgroup above"
	assert_eq "$(ls -A "$IMG")" ""
	moves
	rt update --memory-swap 134217728 --memory 134217728 "$ID"
	seed "$ID"
	moves
}

@test "fork: so it is if somebody sets that limit when it was looked at, before it is held" {
	command -v strace >/dev/null || skip "strace is not installed"
	fills
	cfg 'del(.linux.resources.memory)'
	start
	wait_until eval '[ "$(count)" -gt 30 ]'
	local at=/sys/fs/cgroup/memory/$ID limit=memory.limit_in_bytes used=memory.usage_in_bytes
	! cgroup_v2 || { at=/sys/fs/cgroup/$ID limit=memory.max used=memory.current; }
	late_begin
	echo $(($(cat "$at/$used") + (1800 << 10))) >"$at/$limit"
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "left below its limit of memory, and a seed may take"
	moves
}

@test "fork: where the kernel might end a process in place of its frozen copy, there has to be memory for both" {
	cfg '.process.oomScoreAdj = 1000'
	nearly_full 6144
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "left below its limit of memory, and a seed may take"
	assert_has "$output" "process.oomScoreAdj is high"
	moves
	# If nobody writes meanwhile, nothing is there twice.
	rt checkpoint --engine fork --stop --image-path "$IMG" "$ID"
	begin_anew
	grow "$ID"
	came_back
	moves
}

@test "fork: killed at any of its system calls, restore leaves what delete --force removes" {
	command -v strace >/dev/null || skip "strace is not installed"
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	points 11 restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" >points.list
	[ "$(wc -l <points.list)" -gt 10 ] || fail "there is little to kill: $(cat points.list)"
	rt delete --force "$ID"
	while read -r call n <&4; do
		killed_at "$call" "$n" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
		rt delete --force "$ID"
		assert_eq "$(rt list -q)" ""
	done 4<points.list
	often_killed
}

@test "fork: delete --force ends a process that hangs in the open of a file, when its runtime was killed" {
	command -v strace >/dev/null || skip "strace is not installed"
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	strace -f -o hangs -P /bin/counter -e inject=openat2:signal=STOP:when=1 \
		"$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >hangs.out 2>&1 3>&- &
	tracer=$!
	wait_until grep -q 'stopped by SIGSTOP' hangs
	remember "$(awk '/stopped by SIGSTOP/ { print $1; exit }' hangs)"
	pkill -KILL -P "$tracer"
	run timeout -s KILL 30 "$LEAN_RUNTIME" --root "$ROOT" delete --force "$ID"
	signal_remembered KILL
	wait "$tracer" || true
	assert_eq "$status: $output" "0: "
	assert_eq "$(list_ids)" ""
}

@test "fork: fifty generations, each a child of the one before" {
	start_counter
	for _ in $(seq 50); do
		at=$(count)
		seed "$ID" --stop
		grow "$ID"
		counts_on "$at"
	done
	rt delete --force "$ID"
	assert_nothing_left
}

# The call that a thread waits in, by its number; only its owner may see that.
calls_of() { # PID
	local task
	for task in "/proc/$1/task/"*; do
		cut -d ' ' -f 1 "$task/syscall"
	done | sort -n | paste -s -d ' '
}

@test "fork: what sleeps, polls or waits for a futex does so in the child of a second seed, too" {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg p 'import ctypes, threading
libc = ctypes.CDLL(None)
def begin(*call):
    def work():
        libc.syscall(*call)
        open("/ended", "w").write(str(call[0]))
    threading.Thread(target=work).start()
time = (ctypes.c_long * 2)(600, 0)
word = ctypes.c_int(0)
begin(35, time, None)
begin(230, 1, 0, time, None)
begin(7, None, 0, 600000)
begin(202, ctypes.byref(word), 0, 0, time)
' '.process.args = ["/usr/bin/python3", "-c", $p]'
	start
	wait_until eval '[[ $(calls_of "$(pid_of)") = *"7 35 202"*" 230" ]]'
	seed "$ID"
	wait_until eval '[[ $(calls_of "$(pid_of)") = *"219 219 219 219" ]]' # restart_syscall: nobody sees any more what it was
	seed "$ID"
	rt delete --force "$ID"
	grow "$ID"
	# Whoever let it go has interrupted some of them once more.
	wait_until eval '[[ "$(calls_of "$(pid_of)") " =~ ^((7|35|202|219|230)\ ){5}$ ]]'
	[ ! -e "$R/ended" ] || fail "call $(cat "$R/ended") ended"
}

@test "seed: inspect shows what a directory holds" {
	start_counter
	seed "$ID"
	rt seed inspect "$IMG" >shown
	jq -e '(.processes | length == 1) and .processes[0].pid == 1 and (.vmas | length > 3)' shown
	jq -e '[.. | strings | select(. == "/bin/counter")] | length > 0' shown
	run ! rt seed inspect "$PWD/none"
	assert_has "$output" "$PWD/none"
}

@test "count: so many containers continue one seed, and each has its own name and cgroup" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	cfg 'del(.linux.cgroupsPath)' # each gets one of its own
	grow "$ID" --count 3
	assert_eq "$(list_ids | sort | tr '\n' ' ')" "$ID-1 $ID-2 $ID-3 "
	for name in "$ID-1" "$ID-2" "$ID-3"; do
		assert_eq "$(status_of "$name")" running
		assert_has "$(cat "/proc/$(pid_of "$name")/cgroup")" "/$name"
		run -0 rt exec "$name" /bin/echo in there
		rt delete --force "$name"
	done
}

@test "count: one child leaves nothing open in who bears the next" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	cfg 'del(.linux.cgroupsPath)'
	(ulimit -Sn 64 && grow "$ID" --count 20)
	assert_eq "$(list_ids | wc -l)" 20
	assert_eq "$(ls "/proc/$(pid_of "$ID-20")/fd")" "$(ls "/proc/$(pid_of "$ID-1")/fd")"
}

@test "count: all or none; and what does not go with it" {
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	cfg 'del(.linux.cgroupsPath)' # each gets one of its own
	rt_bg run --detach --bundle "$BUNDLE" "$ID-2"
	run ! grow "$ID" --count 3
	assert_has "$output" "$ID-2"
	assert_eq "$(list_ids)" "$ID-2"
	assert_eq "$(status_of "$ID-2")" running
	run ! rt restore --engine fork --image-path "$IMG" --bundle "$BUNDLE" --count 2 "$ID"
	assert_has "$output" "--count goes with --detach"
	run ! grow "$ID" --count 2 --pid-file pid
	assert_has "$output" "--count does not go with --pid-file"
	for n in 0 -1 10001; do
		run ! grow "$ID" --count=$n
		assert_has "$output" "--count: 1 to"
	done
}

@test "fork: a program that ends as soon as it continues has its own exit status" {
	cfg '.process.args = ["/bin/sh", "-c", "echo ready; read -r line; exit 7"]'
	mkfifo input
	sleep 100 >input 3>&- &
	holder=$!
	rt run --detach --bundle "$BUNDLE" "$ID" <input >said 2>&1 3>&-
	wait_until grep -q ready said
	seed "$ID"
	kill "$holder"
	rt delete --force "$ID"
	for _ in $(seq 30); do
		run -7 rt restore --engine fork --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	done
}

@test "fork: a file of proc(5) of another process than the first is refused by name, and of the first one it goes along" {
	cfg '.process.args = ["/bin/sh", "-c", "exec >/dev/null 5</proc/self/status 6</proc/uptime; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done"]'
	start
	seed "$ID"
	rt delete --force "$ID"
	grow "$ID"
	moves
	assert_eq "$(readlink "/proc/$(pid_of)/fd/5")" /proc/1/status
	rt delete --force "$ID"
	cfg '.process.args[2] |= sub("i=0"; "(exec sleep 1000 7</proc/self/stat) & i=0")'
	start
	rm -rf "$IMG"
	run -1 seed "$ID"
	assert_has "$output" "(sleep): descriptor 7: a file of proc(5), of another process than the first, or of a thread (/proc/2/stat)"
	[ ! -e "$IMG/descriptor" ]
	moves
}
