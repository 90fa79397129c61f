# SPDX-License-Identifier: Apache-2.0
# What the tests of seeds share.

# The end of a Python program: work(0) to work(2) go on for ever, and the least of their `counts` is in /n.
export THREE_THREADS='for i in range(3):
    threading.Thread(target=work, args=(i,)).start()
while True:
    with open("/n", "w") as f:
        print(min(counts), file=f)
    time.sleep(0.01)
'

# While a shell's `echo` goes to a file, the shell has its standard output at another number, and a seed of that instant
# wants the test's own file. So shells that write all the time begin with `exec >/dev/null`.
seeds_setup() {
	common_setup
	needs_root
	lean_only "an engine of its own"
	export LEAN_RUNTIME_PROFILE=none # its containers' roots are nobody's bundle
	IMG=$BATS_TEST_TMPDIR/img
	R=$BUNDLE/rootfs
	N=$R/n
}

needs_seedtool() {
	SEEDTOOL=$(dirname "$LEAN_RUNTIME")/../../tests/fork/seedtool
	[ -x "$SEEDTOOL" ] || skip "seedtool is not built" # not x86-64
}

# The container has it as /bin/NAME; where it was built is in program.
needs_program() { # NAME: fork-NAME of the build
	program=$(dirname "$LEAN_RUNTIME")/../../tests/fork/fork-$1
	[ -x "$program" ] || skip "fork-$1 is not built" # not x86-64
	cp "$program" "$R/bin/$1"
}

# Where it is built: beside the library, if the program is of another libc.
needs_forkd() { # [PROGRAM of the build]
	local build
	build=$(realpath "$(dirname "${1-$LEAN_RUNTIME}")/../..")
	forkd=$build/src/forkd/lean-forkd
	[ -x "$forkd" ] || forkd=$build-lib/src/forkd/lean-forkd
	[ -x "$forkd" ] || skip "lean-forkd is not built" # no OpenSSL
}

count() { # [FILE]; it is empty for an instant when a shell writes it
	local c
	for _ in $(seq 200); do
		c=$(cat "${1:-$N}" 2>/dev/null) && [ -n "$c" ] && break
		sleep 0.01
	done
	echo "${c:-0}"
}

moves() { # [FILE]
	local first
	first=$(count "${1-}")
	wait_until eval '[ "$(count '"${1-}"')" -gt '"$first"' ]'
}

# Its program writes to /n when it is ready, and to /err what is wrong.
start() {
	rm -f "$N"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N" || fail "it says: $(cat "$R/err")"
}

# Its program is counter.c.
start_counter() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 20 ]'
}

# By files; tests with daemons have theirs (hosts.bash).
seed() { # ID [OPTION...]
	local id=$1
	shift
	rt_bg checkpoint --engine fork --image-path "$IMG" "$@" "$id"
}

# The container is no seed, by these and nothing else, and goes on.
refused() { # LINE...
	local line
	rm -rf "$IMG"
	run -1 seed "$ID"
	for line; do
		assert_has "$output" "): $line"
	done
	assert_has "$output" "cannot carry $# of the container's resources"
	[ ! -e "$IMG/descriptor" ]
	moves
}

grow() { # ID [OPTION...]
	local id=$1
	shift
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$@" "$id"
}

# Where a text is among the seed's.
text_at() { # TEXT
	python3 -c 'import struct, sys
d, at = open(sys.argv[1], "rb").read(), 64
while True:
    kind, _, stride, _, n = struct.unpack_from("<IIIIQ", d, at)
    at += 24
    if kind == 2: break
    at += (stride * n + 7) & ~7
print(d[at:at + n].index(b"\0" + sys.argv[2].encode() + b"\0") + 1)' "$IMG/descriptor" "$1"
}

# A program that began again would say less at first than what it had reached.
came_back() {
	wait_until eval '[ "$(count)" -gt 1 ]'
	[ "$(count)" -ge 20 ] || fail "it began again: $(count)"
	moves
}

# The other ends of console sockets.

# manager NAME [OPTION...]: the other end of the socket NAME.sock; what the terminal shows is in NAME.shown.
manager() {
	local name=$1
	shift
	mkfifo "$name.keys"
	"$LR_LIB/recv-console" "$name.sock" "$name.shown" --keys "$name.keys" --timeout 60 "$@" </dev/null 2>"$name.err" 3>&- &
	remember $!
	wait_until test -S "$name.sock"
}

keys() { # NAME TEXT
	printf %b "$2" >"$1.keys"
}

shows() { # NAME TEXT [TIMES]
	wait_until eval '[ "$(tr -d "\r" <'"$1"'.shown | grep -cE "'"$2"'")" -ge '"${3-1}"' ]' ||
		fail "$1 shows: $(cat "$1.shown" "$1.err")"
}

managers_end() {
	signal_remembered TERM
}

# Every STEPth system call of the runtime's own process, as NAME ORDINAL: strace counts each call by itself.
points() { # STEP VERB ARGUMENT...
	local step=$1
	shift
	traced -o calls "$@" || return 1
	awk -F '(' -v step="$step" '/^[a-z]/ { n[$1]++; if (++all % step == 0) print $1, n[$1] }' calls
}

traced() { # OPTION OPTION VERB ARGUMENT...
	timeout 60 strace "$1" "$2" "$LEAN_RUNTIME" --root "$ROOT" "${@:3}" </dev/null >/dev/null 2>&1 3>&-
}

# The runtime is killed as it makes a call of points.list. Not each of them is made again: how often it waits depends on the
# machine.
kills=0
killed_at() { # CALL WHICH VERB ARGUMENT...
	local code=0
	traced -e "inject=$1:signal=KILL:when=$2" "${@:3}" || code=$?
	[ "$code" != 137 ] || kills=$((kills + 1))
}
often_killed() {
	[ "$kills" -ge 10 ] || fail "it was killed at $kills of $(wc -l <points.list) calls"
}

# A checkpoint that waits between the look and the hold, before the first of the calls by which it holds. It
# ends in late_end, which has its status in $what; what it says is in said. (To stop it by a signal would be after that call,
# and whoever gets a signal then, as a shell from its child, stands still.)
late_begin() {
	timeout 60 strace -o calls -e trace=ptrace -e inject=ptrace:delay_enter=2000000:when=1 "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null >said 2>&1 3>&- &
	late=$!
	wait_until grep -q ptrace calls || fail "$(cat said)"
	hold_tracer "$late"
}
late_end() {
	what=0
	[ "$(wc -l <calls)" -le 1 ] || fail "it was held before that was done"
	let_tracer_go
	wait "$late" || what=$?
}
