#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs and the states that they are in, ways for their memory to come, and ways for it to get there: each with each.
# The parent runs on, and changes its memory all the while. What each step makes of a child's memory, the first one after
# the seed also, is compared with what it made of the parent's, which was never moved. Each cell is a line.
#
# RDMA is by libraries that pretend to be an adapter (tests/forkd/fake_rdma.c), below lean-forkd's own. By adapters, of
# soft-RoCE, in two virtual machines: `tests/module/pair SUITE build/module containers rdma`, of `make check-module`.

load ../lib/helpers.bash
load seeds.bash
WITH_RDMA=1
PATIENCE=10m # a busy machine, and children that wait for a copy that is held
load hosts.bash

STRATEGIES='ondemand cache prefetch prefetch:1 eager'

# --- transports: how a child is made, by the strategy, and whether its memory came by that way ------------------------

by_files() {
	rt_bg restore --engine fork --image-path "$PWD/img" "${HOW[@]}" --detach --bundle "$THERE" "$CHILD"
}
came_by_files() { :; } # there is no other way

by_same_host() {
	rt_bg restore --remote "file:$TICKET" --forkd "$PWD/a" --fetch="$1" "${HOW[@]}" --detach --bundle "$THERE" "$CHILD"
}
came_by_same_host() { :; } # the daemon that has the seed counts nothing here

# A daemon for each strategy, so that nothing is there before. `cache` is what the first child of `ondemand` leaves.
daemon_for() { # TRANSPORT STRATEGY
	local name=$1-${2/cache/ondemand}
	echo "${name/:/-}" # socat's sign
}
by_daemon() { # TRANSPORT STRATEGY OPTION...
	local name
	name=$(daemon_for "$1" "$2")
	[ -S "$name" ] || daemon "$B" "$name" --metrics "$PWD/$name.metrics" "${@:3}"
	rt_bg restore --remote "file:$TICKET" --forkd "$PWD/$name" --fetch="$2" "${HOW[@]}" --detach --bundle "$THERE" "$CHILD"
}
of() { # METRIC TRANSPORT STRATEGY
	metric "$1" "$(daemon_for "$2" "$3")"
}

by_other_host() { by_daemon tcp "$1" --rdma off; }
came_by_other_host() {
	[ "$(of fetched_bytes_total tcp "$1")" -ge "$LEAST" ] && [ "$(of rdma_read_bytes_total tcp "$1")" = 0 ]
}

# Who requires it never asks for pages by TCP: what comes by that is the descriptor.
by_rdma() { by_daemon rdma "$1" --rdma "${RDMA-require}"; }
came_by_rdma() {
	local read fetched
	read=$(of rdma_read_bytes_total rdma "$1") fetched=$(of fetched_bytes_total rdma "$1")
	if [ "${RDMA-require}" = require ]; then
		[ "$read" -ge "$LEAST" ]
		[ "$fetched" -lt 100000 ]
	else
		[ $((read + fetched)) -ge "$LEAST" ]
	fi
}

# each_cell COMMAND...: COMMAND... TRANSPORT STRATEGY
each_cell() {
	local strategy transport
	ip -n "$A" link set lo up # its daemon fetches from itself
	"$@" files all
	for strategy in $STRATEGIES; do
		for transport in same_host other_host ${WITH_RDMA:+rdma}; do
			"$@" "$transport" "$strategy"
		done
	done
	[ -n "$WITH_RDMA" ] || echo "# matrix: lean-forkd is built without RDMA: no cells of it" >&3
}

# Its memory tells nobody by which way it came; the daemons count that.
came() { # TRANSPORT STRATEGY
	"came_by_$1" "$2" || fail "$*: its memory came by another way: $(grep -h . ./*.log)
$(socat -u "UNIX-CONNECT:$PWD/$(daemon_for "${1/other_host/tcp}" "$2").metrics" - | grep -E '^lean_forkd_(rdma|fetched)')"
}

# --- programs that say themselves what is wrong with their memory, one child after the other -------------------------

program_counter() {
	cfg '.process.args = ["/bin/counter", "/n"]'
	LEAST=4096 # it has little memory, and touches less
}
same_counter() {
	came_there
}

# glibc's arenas, one a thread: what is freed and given back to the kernel (malloc_trim) is zeros when it comes again.
program_arenas() {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	LEAST=1000000
	cfg --arg p 'import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.calloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.malloc.argtypes = [ctypes.c_size_t]
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.malloc_trim.argtypes = [ctypes.c_size_t]
counts = [0, 0, 0]
def work(i):
    while True:
        sizes = [100 + (counts[i] * 7919 + k * 6007) % 60000 for k in range(100)]
        used = [libc.malloc(n) for n in sizes]
        for at, n in zip(used, sizes):
            ctypes.memset(at, 0x5a, n)
        for at in used:
            libc.free(at)
        libc.malloc_trim(0)
        clean = [libc.calloc(1, n) for n in sizes]
        for at, n in zip(clean, sizes):
            if ctypes.string_at(at, n).count(0) != n:
                open("/bad", "w").write("%d of %d" % (n, i))
        for at in clean:
            libc.free(at)
        counts[i] += 1
        time.sleep(0.002)
'"$THREE_THREADS" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
}
same_arenas() {
	local at
	came_there
	at=$(count "$THERE/rootfs/n")
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt '"$((at + 20))"' ]'
}

cell() { # PROGRAM TRANSPORT STRATEGY
	new_id CHILD
	cfg -b "$THERE" --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	rm -f "$THERE/rootfs/bad"
	echo 1 >"$THERE/rootfs/n"
	"by_$2" "$3" || fail "$*: no child"
	echo "# $*"
	"same_$1"
	came "$2" "$3"
	nothing_bad
	rt delete --force "$CHILD" || true
	echo "# matrix: $1, $3, $2: the same" >&3
}

matrix() { # PROGRAM
	HOW=()
	"program_$1"
	start
	seed
	rt_bg checkpoint --engine fork --image-path "$PWD/img" "$ID"
	other_host
	each_cell cell "$1"
	moves # the parent
}

@test "matrix: a counter" {
	matrix counter
}

@test "matrix: glibc's arenas, with calloc after malloc_trim" {
	matrix arenas
}

# --- churn: a program that changes its memory in each way, step by step, and is in some state meanwhile; all children
# run at once ------------------------------------------------------------------------------------------------------

# With a bundle of the same for each child, in which it is told to look whether the state is what it was, and to end.
churn() { # [STATE]
	HOW=() BORN=() LEAST=1000000 STATE=${1-steps}
	cp --remove-destination "$build/tests/fork/fork-churn" "$BUNDLE/rootfs/bin/churn" # no applet's name: that would be a link
	cfg --arg s "${1-}" '.process.args = ["/bin/churn"] + if $s == "" then [] else [$s] end'
	"${CONFIG:-:}"
	cp -a "$BUNDLE" fresh
	: >fresh/rootfs/go
	: >fresh/rootfs/out
	echo 1 >fresh/rootfs/n
}

starts() { # OPTION...
	rt_bg run --detach "$@" --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 20 ]' || fail "$(cat "$BUNDLE/rootfs/result")"
}

becomes_seeds() {
	seed
	rt_bg checkpoint --engine fork --image-path "$PWD/img" "$ID"
}

next_child() {
	new_id CHILD
	THERE=$PWD/$CHILD
	cp -a fresh "$THERE"
	cfg -b "$THERE" --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
}

born() { # TRANSPORT STRATEGY
	next_child
	[ "$STATE" != terminal ] || { manager "$CHILD" --timeout 3600 && HOW=(--console-socket "$CHILD.sock"); }
	"by_$1" "$2" || fail "$STATE, $*: no child" || return 1
	BORN+=("$1 $2 $CHILD")
}

has_done() { # STEP
	[ "$(tail -n 2 "$BUNDLE/rootfs/out" | head -n 1 | cut -d" " -f1)" -ge "$1" ]
}

# What it says of ninety steps, ten of each way, and of the state. Of the first one it may be its parent that has said it.
judged() { # TRANSPORT STRATEGY CHILD
	local did=$BUNDLE/rootfs/out said=$PWD/$3/rootfs/out
	waits_long_until test -s "$PWD/$3/rootfs/result" || fail "$STATE, $*: it never came to its end"
	assert_eq "$STATE, $*: $(cat "$PWD/$3/rootfs/result")" "$STATE, $*: ok"
	[ "$(head -n 1 "$said" | cut -d' ' -f1)" -gt 20 ] || fail "$STATE, $*: it began again"
	[ "$(wc -l <"$said")" -ge 89 ] || fail "$STATE, $*: it says too little"
	waits_long_until has_done "$(tail -n 1 "$said" | cut -d' ' -f1)"
	awk 'NR == FNR { did[$1] = $2; next } did[$1] != $2 { print; bad = 1 } END { exit bad }' "$did" "$said" ||
		fail "$STATE, $*: its memory is another than that of its parent"
	came "$1" "$2"
	rt delete --force "$3"
	echo "# matrix: $STATE, $2, $1: the same" >&3
}

# The parent is asked last, which has changed its memory all the while.
all_judged() {
	local cell
	for cell in "${BORN[@]}"; do
		# shellcheck disable=SC2086 # three words
		judged $cell
	done
	: >"$BUNDLE/rootfs/go"
	waits_long_until test -s "$BUNDLE/rootfs/result"
	assert_eq "the parent: $(cat "$BUNDLE/rootfs/result")" "the parent: ok"
}

in_state() { # [STATE]
	churn "$@"
	starts
	becomes_seeds
	each_cell born
	all_judged
}

@test "matrix: a program that changes its memory in each way, compared with its parent step by step" {
	in_state
}

@test "matrix: computing, in registers alone" {
	in_state computing
}

@test "matrix: blocked in system calls: a pipe, a futex, epoll, sleep" {
	in_state blocked
}

@test "matrix: in a signal handler, on a stack of its own" {
	in_state handler
}

@test "matrix: with signals that are blocked and wait, for the process and for a thread" {
	in_state pending
}

@test "matrix: with a child of its own, which writes to memory that both share" {
	in_state family
}

@test "matrix: with files in a tmpfs, of which one is mapped" {
	in_state tmpfs
}

@test "matrix: with a terminal" {
	CONFIG=with_terminal
	with_terminal() { cfg '.process.terminal = true'; }
	churn terminal
	manager parent --timeout 3600 # a busy machine
	starts --console-socket parent.sock
	becomes_seeds
	each_cell born
	all_judged
}

@test "matrix: itself a child of a seed" {
	churn blocked
	STATE="second generation"
	starts
	rt_bg checkpoint --engine fork --image-path "$PWD/first" "$ID"
	rt delete --force "$ID"
	rt_bg restore --engine fork --image-path "$PWD/first" --detach --bundle "$BUNDLE" "$ID"
	moves
	becomes_seeds
	each_cell born
	all_judged
}

# Memory that comes later takes rights that nobody in there has: that is refused, and said.
born_or_refused() { # TRANSPORT STRATEGY
	case $2 in
	all | eager) born "$@" ;;
	*)
		run -1 born "$@"
		assert_has "$output" "memory that comes when it is touched does not come into a user namespace"
		echo "# matrix: $STATE, $2, $1: refused, as it has to be" >&3
		;;
	esac
}

@test "matrix: in a user namespace, and children in another one" {
	CONFIG=with_users
	with_users() {
		chmod 755 "$BATS_TEST_TMPDIR"
		chown -R 100000:100000 "$BUNDLE/rootfs"
		cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
			| .linux.gidMappings = .linux.uidMappings'
	}
	churn blocked
	STATE="user namespace"
	chown -R 300000:300000 fresh/rootfs
	cfg -b fresh '.linux.uidMappings[0].hostID = 300000 | .linux.gidMappings = .linux.uidMappings'
	starts
	becomes_seeds
	each_cell born_or_refused
	all_judged
}

# --- children that are made while the copy of `checkpoint --background` still runs ------------------------------------

# It is held when it has told the daemon of the memory that a child needs to be made, and is about to tell of more: that
# is its third message, behind the seed itself. Who copies is in $copying.
held_seed() {
	command -v strace >/dev/null || skip "strace is not installed"
	(umask 077 && exec strace -f -o strace.out -e trace=sendmsg,setsid -e inject=sendmsg:signal=STOP:when=3 \
		"$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --background --forkd "$PWD/a" "$ID" </dev/null >"$TICKET" 2>held.err 3>&-) &
	seeding=$!
	waits_long_until grep -q 'stopped by SIGSTOP' strace.out || fail "$(cat held.err strace.out)"
	id=$(cut -d: -f4 "$TICKET")
	copying=$(awk '/setsid/ { print $1; exit }' strace.out)
	note_process "$copying" >>daemons # whatever happens, it ends with the test
}

# Of what only its twin has, nothing is in the seed.
copy_runs() {
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.state == "filling" and .missingBytes >= 16777216' >/dev/null ||
		fail "$*: the copy runs no more: $(ask a list)"
}

begun() { # who brings all memory before: it has the file for it, and asks
	local pid
	for pid in $(pgrep -f -- " $CHILD\$"); do
		[ -z "$(find "/proc/$pid/fd" -lname '/memfd:pages*')" ] || return 0
	done
	return 1
}

# On a busy machine the copy is held for longer than who has it lets anybody wait (FILL_MS of forkd/serve.c).
eagerly() { # TRANSPORT
	local said
	BATS_TEST_TMPDIR=$THERE # others write there, too
	until said=$("by_$1" eager); do
		assert_has "$said" "the seed's host says: busy" || return 1
	done
}

# Files have no --background. `eager` has no child before all is there: it begins to ask for it.
born_meanwhile() { # TRANSPORT STRATEGY
	[ "$1" != files ] || return 0
	if [ "$2" = eager ]; then
		next_child
		eagerly "$1" 3>&- &
		EAGER+=("$!")
		BORN+=("$1 eager $CHILD")
		waits_long_until begun
	else
		born "$@"
	fi
	copy_runs "$@"
	[ "$1" != rdma ] || [ "$(of rdma_read_bytes_total rdma "$2")" = 0 ] || fail "$*: by RDMA, which waits for nobody"
}

@test "matrix: made while the memory of its seed is still copied (--background)" {
	churn large
	STATE="being copied" RDMA=auto EAGER=()
	starts
	: >"$BUNDLE/rootfs/hold"
	wait_until test -e "$BUNDLE/rootfs/held"
	held_seed
	rm "$BUNDLE/rootfs/hold" # the parent changes its memory from now on
	moves
	each_cell born_meanwhile
	kill -CONT "$copying"
	for pid in "${EAGER[@]}"; do
		wait "$pid"
	done
	wait "$seeding"
	all_judged
}
