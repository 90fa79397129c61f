#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean_seed_here, and checkpoint --when-ready: programs say where their children go on.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	SAID=$BUNDLE/rootfs/out
	CHILD=$PWD/child # the bundle of a child
	here=$BATS_TEST_DIRNAME/../..
	needs_program here
}
teardown() {
	common_teardown
}

does() { # WORD...: fork-here's
	cfg --argjson w "$(printf '%s\n' "$@" | jq -R . | jq -c -s .)" '.process.args = ["/bin/here", "/out"] + $w'
}

start() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
}

seed() { # [OPTION...]
	rt_bg checkpoint --engine fork --image-path "$IMG" "$@" "$ID"
}

said() { # LINE [FILE]: it is the last one, sooner or later
	wait_until eval '[ "$(tail -n 1 "'"${2:-$SAID}"'" 2>/dev/null)" = "'"$1"'" ]' || fail "'$1' is not in: $(cat "${2:-$SAID}")"
}

waits() { # in the call: futex(2), or restart_syscall(2) if somebody has held it meanwhile
	wait_until eval 'cut -d " " -f 1 "/proc/$(pid_of)/syscall" | grep -q -x -E "202|219"'
}

# A child of the seed with a root of its own; its lines are in $CHILD/rootfs/out.
grow() {
	rm -rf "$CHILD"
	cp -a "$BUNDLE" "$CHILD"
	rm -f "$CHILD/rootfs/out"
	new_id KID
	cfg -b "$CHILD" --arg id "$KID" '.linux.cgroupsPath = "/" + $id'
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$CHILD" "$KID"
}

from_child() { # LINE
	said "$1" "$CHILD/rootfs/out"
}

lines() { # [FILE]
	tr '\n' ';' <"${1:-$SAID}"
}

@test "here: a seed is made when the program is there; 0 in the parent, 1 in children" {
	does until /go call -1 stay
	start
	seed --when-ready=1m &
	checkpoint=$!
	sleep 0.3
	kill -0 $checkpoint || fail "it did not wait"
	[ ! -e "$IMG/descriptor" ]
	touch "$BUNDLE/rootfs/go"
	wait $checkpoint
	said "parent 0"
	grow
	from_child "child 1"
	rt delete --force "$KID"
	grow
	from_child "child 1"
	assert_eq "$(lines)" "parent 0;"
	assert_eq "$(lines "$CHILD/rootfs/out")" "child 1;"
}

@test "here: without --when-ready a seed of one that waits does the same, and the call may be repeated" {
	does call -1 call -1 stay
	start
	waits
	seed
	said "parent 0"
	grow
	from_child "child 1"
	seed --when-ready=1m
	wait_until eval '[ "$(lines)" = "parent 0;parent 0;" ]'
	# Of the second one.
	grow
	from_child "child 1"
	assert_eq "$(lines "$CHILD/rootfs/out")" "child 1;"
}

@test "here: a child's child knows that it is one; a child is not its parent's seed" {
	does call -1 call -1 stay
	start
	seed --when-ready=1m
	said "parent 0"
	grow
	from_child "child 1"
	ID=$KID BUNDLE=$CHILD SAID=$CHILD/rootfs/out CHILD=$PWD/grandchild
	seed --when-ready=1m
	wait_until eval '[ "$(lines)" = "child 1;parent 1;" ]'
	grow
	from_child "child 2"
}

@test "here: a child of a seed that was made before the call, or behind it, learns it by its next one" {
	does mark until /go call 300 call 0 call 0 until /on call 0 call 0 stay
	start
	said "generation 0"
	seed
	touch "$BUNDLE/rootfs/go"
	wait_until eval '[ "$(lines)" = "generation 0;ETIMEDOUT 0;ETIMEDOUT 0;ETIMEDOUT 0;" ]'
	grow
	wait_until eval '[ "$(lines "$CHILD/rootfs/out")" = "child 1;ETIMEDOUT 1;ETIMEDOUT 1;" ]'
	rt delete --force "$KID"
	seed # between two calls
	touch "$BUNDLE/rootfs/on"
	wait_until eval '[ "$(lines | tr ";" "\n" | grep -c ETIMEDOUT)" = 5 ]'
	grow
	wait_until eval '[ "$(lines "$CHILD/rootfs/out")" = "child 1;ETIMEDOUT 1;" ]'
}

@test "here: a child of a seed from before the first call is a program that was just started" {
	does until /go call 300 stay
	start
	wait_until eval '[ "$(cat /proc/$(pid_of)/comm)" = here ]'
	seed
	touch "$BUNDLE/rootfs/go"
	grow
	said "ETIMEDOUT 0"
	from_child "ETIMEDOUT 0"
}

@test "here: two threads in the call are both told; a fork's calls are its own" {
	does both -1 fork -1 stay
	start
	seed --when-ready=1m
	said "parent parent"
	seed --when-ready=1m # in the fork
	said "parent 0"
	grow
	from_child "child 1"
	rt delete --force "$KID"
	rt delete --force "$ID"
	rm "$SAID"
	start
	seed --when-ready=1m
	grow
	from_child "child child"
}

@test "here: --stop ends the parent in the call, and its child goes on" {
	does call -1 stay
	start
	seed --when-ready=1m --stop
	[ ! -e "$SAID" ] || fail "the parent went on: $(lines)"
	run ! rt state "$ID"
	grow
	from_child "child 1"
}

@test "here: a signal that is handled ends the call, also with SA_RESTART, and a seed can be made all the same" {
	does catch call -1 again -1 stay
	start
	said catches
	waits
	rt kill "$ID" USR1
	said "EINTR 0"
	# A storm of them, while it is made.
	pid=$(pid_of)
	while kill -USR1 "$pid" 2>/dev/null && [ ! -e stop ]; do :; done 3>&- &
	storm=$!
	code=0
	seed --when-ready=1m || code=$?
	touch stop
	wait $storm || true
	assert_eq "$code" 0
	said "parent 0"
	grow
	from_child "child 1"
}

@test "here: what was stopped and continued, or looked at by a tracer, waits on" {
	does call -1 stay
	start
	waits
	pid=$(pid_of)
	kill -STOP "$pid"
	wait_until grep -q '^State:.T' "/proc/$pid/status"
	kill -CONT "$pid"
	timeout 0.3 strace -p "$pid" -o trace >/dev/null 2>&1 3>&- || true
	[ -s trace ]
	rt pause "$ID"
	run ! rt checkpoint --engine fork --image-path "$IMG" --when-ready=1m "$ID"
	assert_has "$output" paused
	rt resume "$ID"
	[ ! -e "$SAID" ] || fail "it went on: $(lines)"
	seed --when-ready=1m
	said "parent 0"
}

@test "here: a seed that fails is none: the program waits for the next one" {
	does call -1 stay
	start
	waits
	mkdir full
	mount -t tmpfs -o size=8k,mode=700 tmpfs full
	run ! rt checkpoint --engine fork --image-path "$PWD/full" --when-ready "$ID"
	umount full
	assert_has "$output" "no space left"
	cfg '.process.apparmorProfile = "x"' # config.json refuses it
	run ! rt checkpoint --engine fork --image-path "$IMG" --when-ready=1m "$ID"
	assert_has "$output" "a label of a security module"
	cfg 'del(.process.apparmorProfile)'
	waits
	[ ! -e "$SAID" ] || fail "it went on: $(lines)"
	seed --when-ready=1m
	said "parent 0"
	grow
	from_child "child 1"
}

@test "here: whoever makes the seed is killed at any point: the program waits, or has its seed" {
	does call -1 stay
	start
	waits
	for n in $(seq 1 61 4000); do
		code=$(timeout 60 strace -qq -o /dev/null -e inject=all:signal=KILL:when="$n" "$LEAN_RUNTIME" --root "$ROOT" \
			checkpoint --engine fork --image-path "$IMG" --when-ready=1m "$ID" </dev/null >/dev/null 2>&1 3>&-; echo $?) 2>/dev/null
		[ "$(status_of)" = running ] || fail "killed at call $n: it is $(status_of)"
		[ "$code" != 0 ] || break
		# It is killed behind its work, perhaps.
		[ ! -e "$SAID" ] || { [ -e "$IMG/descriptor" ] && break; fail "killed at call $n: there is no seed, and $(lines)"; }
	done
	[ "$n" -gt 100 ] || fail "it was killed $n times alone"
	[ -e "$SAID" ] || seed --when-ready=1m
	said "parent 0"
	grow
	from_child "child 1"
}

@test "when-ready: it gives up in time, the program is unharmed, and may have the seed later" {
	does until /go call -1 stay
	start
	run -1 rt checkpoint --engine fork --image-path "$IMG" --when-ready=200ms "$ID"
	assert_has "$output" "no process of it waits in lean_seed_here"
	assert_eq "$(status_of)" running
	touch "$BUNDLE/rootfs/go"
	seed --when-ready
	said "parent 0"
}

@test "when-ready: the end of the container ends it, and nothing is locked meanwhile" {
	does until /go call -1 stay
	start
	rt checkpoint --engine fork --image-path "$IMG" --when-ready "$ID" </dev/null >err 2>&1 3>&- &
	checkpoint=$!
	sleep 0.2
	rt pause "$ID"
	rt resume "$ID"
	timeout 20 "$LEAN_RUNTIME" --root "$ROOT" delete --force "$ID"
	code=0
	wait $checkpoint || code=$?
	assert_eq "$code" 1
	assert_has "$(cat err)" "has ended before it was ready"
}

@test "when-ready: is for the engine fork, takes a time, and is no other verb's" {
	does call -1
	start
	run -1 rt checkpoint --image-path "$IMG" --when-ready "$ID"
	assert_has "$output" "--when-ready goes with --engine=fork"
	run -1 rt checkpoint --engine fork --image-path "$IMG" --when-ready=soon "$ID"
	assert_has "$output" "--when-ready=soon is no time"
	run ! rt restore --engine fork --image-path "$IMG" --when-ready "$ID"
}

@test "here: by another user, without capabilities, with a filter that allows what most do" {
	chmod 777 "$BUNDLE/rootfs"
	does call -1 stay
	# Of what Docker's filter allows, what this program needs.
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = true
		| .linux.seccomp = {defaultAction: "SCMP_ACT_ERRNO", architectures: ["SCMP_ARCH_X86_64"], syscalls: [{action: "SCMP_ACT_ALLOW", names:
		["arch_prctl", "brk", "capset", "clock_gettime", "clone", "close", "execve", "execveat", "exit", "exit_group", "fcntl", "fstat", "ftruncate", "futex",
		"getpid", "getrandom", "memfd_create", "mmap", "mprotect", "munmap", "open", "openat", "pause", "prctl", "prlimit64", "read", "readlink", "readlinkat",
		"restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "set_robust_list", "set_tid_address", "write", "writev"]}]}'
	start
	seed --when-ready=1m
	said "parent 0"
	grow
	from_child "child 1"
}

@test "here: where memory can't be had, the call says which error" {
	does call -1 stay
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["memfd_create"], action: "SCMP_ACT_ERRNO", errnoRet: 38}]}'
	start
	said "Function not implemented 0"
}

@test "here: what pretends to be such a page harms nobody" {
	for how in short magic sealed huge; do
		rm -f "$SAID"
		does spoil $how until /go call -1 stay
		start
		said spoilt
		if [ $how = short ] || [ $how = magic ]; then
			run -1 timeout 60 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" --when-ready=100ms "$ID"
			assert_has "$output" "no process of it waits"
		else # it says that it waits
			seed --when-ready=1m
		fi
		touch "$BUNDLE/rootfs/go"
		waits
		seed
		said "parent 0"
		rm "$BUNDLE/rootfs/go"
		rt delete --force "$ID"
		grow
		from_child "child 1"
		rt delete --force "$KID"
	done
	# Its mapping could be made writable, a child's could not.
	rm -rf "$IMG"
	rm -f "$SAID"
	does spoil later stay
	start
	said spoilt
	run -1 rt checkpoint --engine fork --image-path "$IMG" --when-ready=1m "$ID"
	assert_has "$output" "that is sealed (F_SEAL_FUTURE_WRITE), and may become writable"
	[ ! -e "$IMG/descriptor" ] || fail "there is a seed"
	assert_eq "$(rt state "$ID" | jq -r .status)" running
}

@test "when-ready: no page keeps anybody waiting longer than was asked for: of another name, or under a lease" {
	for how in named leased; do
		rm -f "$SAID" "$BUNDLE/rootfs/go"
		does spoil $how until /go call -1 stay
		start
		said spoilt
		run -1 timeout 20 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" --when-ready=200ms "$ID"
		assert_has "$output" "no process of it waits"
		assert_eq "$(status_of)" running
		rt delete --force "$ID"
	done
}

@test "here: a lease that a program does not give back, on such a page or a file in a tmpfs, is an error at once" {
	for how in "spoil leased" "lease /dev/shm/f" "lease /f"; do
		rm -f "$SAID"
		# shellcheck disable=SC2086 # words
		does $how stay
		start
		wait_until [ -s "$SAID" ]
		run -1 timeout 30 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID"
		assert_has "$output" "a program has a lease on it"
		assert_eq "$(status_of)" running
		rt delete --force "$ID"
	done
}

@test "here: outside of a container no seed is ever made, and the call says so" {
	[ "$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" ] || skip "this is no host, but a container"
	timeout 60 "$BUNDLE/rootfs/bin/here" "$PWD/outside" call -1
	assert_eq "$(lines outside)" "EOPNOTSUPP 0;"
	timeout 60 unshare --pid --fork --mount-proc "$BUNDLE/rootfs/bin/here" "$PWD/inside" call 10
	assert_eq "$(lines inside)" "ETIMEDOUT 0;"
}

# --- Python -----------------------------------------------------------------------------------

# The module, the library and what else it takes in the root file system.
python_root() {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cp -r "$here/contrib/python/src/lean" "$(echo "$BUNDLE"/rootfs/usr/lib/python3.*)/lean"
	cc -O1 -shared -fPIC -I"$here/include" -I"$here" -o "$BUNDLE/rootfs/lib/liblean-seed.so.0" "$here/src/liblean/here.c"
	cp "$here/examples/warm-server.py" "$BUNDLE/rootfs/warm-server.py"
	cfg '.process.env += ["PYTHONDONTWRITEBYTECODE=1", "LEAN_LIBRARY=/lib/liblean-seed.so.0"]'
}

ask() { # SOCKET MEMBER
	/usr/bin/python3 -c '
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(sys.argv[1])
s.sendall(b"{\"text\": \"return zyzzyva the object\"}\n")
print(json.loads(s.makefile().readline())[sys.argv[2]])' "$@"
}

@test "here: a Python server is warm once; parent and children answer, and draw different numbers" {
	python_root
	cfg '.process.args = ["/usr/bin/python3", "/warm-server.py", "/socket"]'
	start
	seed --when-ready=1m
	grow
	one=$CHILD/rootfs/socket first=$KID
	CHILD=$PWD/child2
	grow
	two=$CHILD/rootfs/socket
	parent=$BUNDLE/rootfs/socket
	wait_until eval '[ -S "$parent" ] && [ -S "$one" ] && [ -S "$two" ]'
	assert_eq "$(ask "$parent" generation) $(ask "$one" generation) $(ask "$two" generation)" "0 1 1"
	assert_eq "$(ask "$one" words)" "$(ask "$parent" words)"
	assert_has "$(ask "$one" words)" object
	assert_hasnt "$(ask "$one" words)" zyzzyva
	# Made before the seed, and not again.
	assert_eq "$(ask "$one" model)" "$(ask "$parent" model)"
	assert_eq "$(ask "$two" model)" "$(ask "$parent" model)"
	for what in random ssl secret; do
		different=$(for s in "$parent" "$one" "$two"; do ask "$s" $what; done | sort -u | wc -l)
		assert_eq "$what: $different" "$what: 3"
	done
	assert_eq "$(status_of)$(status_of "$first")$(status_of "$KID")" runningrunningrunning
}

@test "here: what OpenSSL and Python draw in children who do not care is the same (so that the test above means something)" {
	python_root
	cfg --arg p 'import ctypes, random, ssl
random.random(); ssl.RAND_bytes(1)
ctypes.CDLL("/lib/liblean-seed.so.0").lean_seed_here(-1)
open("/out", "w").write("%r %s\n" % (random.random(), ssl.RAND_bytes(16).hex()))
import time; time.sleep(1000)' '.process.args = ["/usr/bin/python3", "-c", $p]'
	start
	seed --when-ready=1m
	grow
	wait_until eval '[ -s "$SAID" ] && [ -s "$CHILD/rootfs/out" ]'
	assert_eq "$(cat "$SAID")" "$(cat "$CHILD/rootfs/out")"
}

@test "here: Python: functions are called, KeyboardInterrupt ends the call, TimeoutError comes, threads go on" {
	python_root
	cfg --arg p 'import lean, signal, sys, threading, time
def say(text):
    with open("/out", "a") as f: f.write(text + "\n")
counted = 0
def count():
    global counted
    while True:
        counted += 1
        time.sleep(0.001)
threading.Thread(target=count, daemon=True).start()
lean.register_at_seed(after_in_child=lambda: say("for a child"), after_in_parent=lambda: say("for the parent"))
try: lean.seed_here(timeout=0.05)
except TimeoutError: say("late")
try: lean.seed_here()
except KeyboardInterrupt: say("interrupted")
say(str(lean.seed_here()))
before = counted
while counted < before + 10: time.sleep(0.001)
say("counts")
time.sleep(1000)' '.process.args = ["/usr/bin/python3", "-c", $p]'
	start
	said late
	sleep 0.5 # to the next call: a signal before or behind it would end the program
	rt kill "$ID" INT
	said interrupted
	seed --when-ready=1m
	wait_until eval '[ "$(lines)" = "late;interrupted;for the parent;0;counts;" ]'
	grow
	wait_until eval '[ "$(lines "$CHILD/rootfs/out")" = "for a child;1;counts;" ]'
}

@test "python: the module by itself" {
	PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -s "$here/contrib/python/tests"
}
