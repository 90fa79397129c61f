#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs, ways for their memory to come, and ways for it to get there: each with each. The parent runs on, and
# what a child has done is compared with what the parent did, which was never moved. Each cell is a line.

load ../lib/helpers.bash
load seeds.bash
load hosts.bash

STRATEGIES='ondemand cache prefetch prefetch:1 eager'

# Transports: how a child is made, by the strategy.
by_same_host() { rt_bg restore --remote "file:$TICKET" --forkd "$PWD/a" --fetch="$1" --detach --bundle "$THERE" "$CHILD"; }
by_other_host() { grow --fetch="$1"; }
by_files() { rt_bg restore --engine fork --image-path "$PWD/img" --detach --bundle "$THERE" "$CHILD"; }

program_counter() {
	cfg '.process.args = ["/bin/counter", "/n"]'
}
same_counter() {
	came_there
}

program_churn() {
	cp --remove-destination "$build/tests/fork/fork-churn" "$BUNDLE/rootfs/bin/churn" # no applet's name: that would be a link
	cfg '.process.args = ["/bin/churn"]'
}
# Each step of it says what its memory comes to.
same_churn() {
	local said=$THERE/rootfs/out did=$BUNDLE/rootfs/out last
	came_there
	wait_until eval '[ "$(wc -l <"$THERE/rootfs/out")" -ge 90 ]' # ten of each way
	rt delete --force "$CHILD"
	last=$(tail -n 1 "$said" | cut -d' ' -f1)
	[ "$(head -n 1 "$said" | cut -d' ' -f1)" -gt 20 ] || fail "it began again"
	wait_until eval '[ "$(tail -n 2 "$BUNDLE/rootfs/out" | head -n 1 | cut -d" " -f1)" -ge '"$last"' ]'
	awk 'NR == FNR { did[$1] = $2; next } did[$1] != $2 { print; bad = 1 } END { exit bad }' "$did" "$said" ||
		fail "its memory is another than that of its parent"
}

# glibc's arenas, one a thread: what is freed and given back to the kernel (malloc_trim) is zeros when it comes again.
program_arenas() {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
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

cell() { # PROGRAM STRATEGY TRANSPORT
	new_id CHILD
	cfg -b "$THERE" --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	rm -f "$THERE/rootfs/bad"
	: >"$THERE/rootfs/out"
	echo 1 >"$THERE/rootfs/n"
	"by_$3" "$2" || fail "$*: no child"
	"same_$1" || fail "$*"
	nothing_bad
	rt delete --force "$CHILD" || true
	echo "# matrix: $1, $2, $3: the same" >&3
}

matrix() { # PROGRAM
	local strategy
	"program_$1"
	ip -n "$A" link set lo up # its daemon fetches from itself
	start
	seed
	rt_bg checkpoint --engine fork --image-path "$PWD/img" "$ID"
	other_host
	cell "$1" all files
	for strategy in $STRATEGIES; do
		cell "$1" "$strategy" same_host
		cell "$1" "$strategy" other_host
	done
	moves # the parent
}

@test "matrix: a counter" {
	matrix counter
}

@test "matrix: glibc's arenas, with calloc after malloc_trim" {
	matrix arenas
}

@test "matrix: a program that changes its memory in each way, compared with its parent step by step" {
	matrix churn
}
