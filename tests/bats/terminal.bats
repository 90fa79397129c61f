#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# process.terminal: by console socket (as managers do) and on the caller's own terminal.

load ../lib/helpers.bash

setup() {
	common_setup
	cfg '.process.terminal = true'
	SOCK=$BATS_TEST_TMPDIR/c.sock
}
teardown() {
	signal_remembered TERM
	common_teardown
}

receive() {
	"$LR_LIB/recv-console" "$SOCK" "$BATS_TEST_TMPDIR/console" "$@" </dev/null 2>recv.err 3>&- &
	RECV=$!
	remember "$RECV"
	wait_until test -S "$SOCK"
}

# Waits for the end of the terminal; $GOT: all it showed. Not in a subshell, which could not wait.
received() {
	wait "$RECV" || fail "$(cat recv.err)"
	GOT=$(tr -d '\r' <console)
}

on_pty() {
	"$LR_LIB/on-pty" "$@" 3>&-
}

@test "terminal: the master arrives over the console socket" {
	sh_cfg 'test -t 0 && test -t 1 && test -t 2 && tty; echo >/dev/tty from tty; stat -c %t:%T /dev/console'
	receive
	rt_bg create --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	rt start "$ID"
	received
	assert_match "$GOT" '/dev/(pts/0|console)'
	assert_has "$GOT" "from tty"
	assert_match "$GOT" '88:0'
	assert_eq "$(cat "$OUT" "$ERR")" ""
}

# ends RUNTIME...: how lines end on a terminal, and where the output is a pipe; run and exec.
ends() {
	"$LR_LIB/on-pty" -- "$@" run -b "$BUNDLE" "$ID" </dev/null 3>&- | od -An -c
	"$LR_LIB/on-pty" -- sh -c '"$@" | cat >piped' sh "$@" run -b "$BUNDLE" "$ID" </dev/null 3>&-
	od -An -c <piped
	cfg '.process.terminal = false'
	"$@" run -d -b "$BUNDLE.sleep" "$ID" </dev/null >out 2>&1 3>&-
	"$LR_LIB/on-pty" -- "$@" exec -t "$ID" printf 'd\ne\n' </dev/null 3>&- | od -An -c
	"$LR_LIB/on-pty" -- sh -c '"$@" | cat >piped' sh "$@" exec -t "$ID" printf 'd\ne\n' </dev/null 3>&-
	od -An -c <piped
	"$@" delete --force "$ID"
}

@test "terminal: in the foreground lines end as runc's do: for the caller's terminal with a return, in a pipe without" {
	is_lean || skip "stand-in runtime: is what this one is compared with"
	make_bundle "$BUNDLE.sleep"
	cfg -b "$BUNDLE.sleep" '.process.args = ["sleep", "100"]'
	sh_cfg 'printf "a\nb\r\nc\n"'
	local expected='   a  \r  \n   b  \r  \r  \n   c  \r  \n
   a  \n   b  \r  \n   c  \n
   d  \r  \n   e  \r  \n
   d  \n   e  \n'
	run -0 ends "$LEAN_RUNTIME" --root "$ROOT"
	assert_eq "$output" "$expected"
	cfg '.process.terminal = true'
	[[ $(peers) == *runc* ]] || return 0
	local n
	# runc sets the terminal when its program may have written already: the usual ending is one of a few.
	for n in {1..8}; do
		run -0 ends runc --root "$BATS_TEST_TMPDIR/runc-root"
		[ "$output" != "$expected" ] || break
	done
	assert_eq "$output" "$expected"
}

@test "terminal: input, interrupt and size through the master" {
	sh_cfg 'trap "echo interrupted; exit 4" INT; stty size; echo ready; while :; do sleep 0.05; done'
	receive --size 33x111 --wait ready --send '\x03'
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	received
	assert_has "$GOT" "33 111"
	assert_has "$GOT" interrupted
}

@test "terminal: consoleSize" {
	cfg '.process.consoleSize = {"height": 21, "width": 77}'
	sh_cfg 'stty size'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	received
	assert_has "$GOT" "21 77"
}

@test "terminal: belongs to the container's user" {
	cfg '.process.user = {"uid": 1000, "gid": 1000} | .process.capabilities = {}'
	sh_cfg 'stat -c %u $(tty); echo fine >/dev/stdout && echo fine >$(tty)'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	received
	assert_match "$GOT" $'1000\nfine\nfine'
}

@test "terminal: the session and the foreground group are the container's" {
	sh_cfg 'echo "ids: $(cut -d" " -f1,5,6,8 /proc/$$/stat)"'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	received
	assert_has "$GOT" "ids: 1 1 1 1"
}

@test "terminal: detached without a console socket is refused" {
	run rt run -d -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_match "$output" "console|terminal|tty"
	run rt create -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	run ! rt state "$ID"
}

@test "terminal: a console socket without a terminal is refused" {
	cfg '.process.terminal = false'
	receive
	run rt run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	kill "$RECV"
	wait "$RECV" || true
}

@test "terminal: a console socket that nobody listens on" {
	run rt run -d --console-socket "$BATS_TEST_TMPDIR/none.sock" -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" none.sock
	run ! rt state "$ID"
}

@test "terminal: in the foreground: output, input, exit code" {
	sh_cfg 'echo ready; read x; echo "got <$x>"; exit 6'
	run -6 on_pty --step 'ready=>hello\n' -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_has "$output" "got <hello>"
}

@test "terminal: in the foreground: size and its changes" {
	sh_cfg 'trap "stty size" WINCH; stty size; while :; do sleep 0.05; done'
	run on_pty --size 30x100 --step '30 100=>resize 44x132' --step '44 132=>\x03' --timeout 20 -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_has "$output" "44 132"
	[ "$status" -ne 124 ]
}

@test "terminal: in the foreground: keys like ^C and ^Z go to the container, raw mode is undone" {
	sh_cfg 'trap "echo INT" INT; trap "echo TSTP" TSTP; echo ready; n=0; while [ $n -lt 60 ]; do sleep 0.05; n=$((n + 1)); done; exit 3'
	run -3 on_pty --step 'ready=>\x03' --step 'INT=>\x1a' --step 'TSTP=>x' --step 'after:=>y' --timeout 20 -- \
		sh -c '"$@"; rc=$?; stty -a | grep -q -e " -icanon" && echo RAW; echo after:; exit $rc' sh "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" RAW
}

@test "terminal: in the foreground: a lot of output arrives whole" {
	sh_cfg 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i + 1)); done'
	run -0 on_pty -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_eq "$(tr -d '\r' <<<"$output" | grep -c '^line ')" 20000
	assert_has "$(tail -n 1 <<<"$output")" "line 19999"
}

@test "terminal: a read-only /dev has its console, devices and links" {
	local p
	for_peers
	cfg '(.mounts[] | select(.destination == "/dev")).options += ["ro"]'
	sh_cfg 'tty; stat -c %t:%T /dev/console; touch /dev/x; awk "\$5 == \"/dev\" {print \$6}" /proc/self/mountinfo; ls -1 /dev/null /dev/full /dev/ptmx /dev/stdin'
	run -0 on_pty -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	output=${output//$'\r'/}
	assert_match "$output" $'/dev/(pts/0|console)\n88:0\ntouch: .*Read-only file system\nro,nosuid'
	assert_has "$output" $'/dev/full\n/dev/null\n/dev/ptmx\n/dev/stdin'
	local ours=$output n
	for p in $(peers runc crun); do
		# crun 1.8, one time in forty on a busy machine, writes an empty error between the lines.
		for n in {1..8}; do
			run -0 on_pty -- "$LR_LIB/peer" --terminal "$p" "$BUNDLE" "$ID"
			output=$(grep -v strictatime <<<"${output//$'\r'/}")
			[ "$output" != "$ours" ] || break
		done
		assert_eq "$p: $output" "$p: $ours"
	done
}

@test "terminal: in the foreground: by script(1)" {
	command -v script >/dev/null || skip "script is not installed (bsdutils)"
	sh_cfg 'tty; exit 9'
	run -9 script -qec "$LEAN_RUNTIME --root $ROOT run -b $BUNDLE $ID" /dev/null </dev/null
	assert_match "$output" '/dev/(pts/0|console)'
}

@test "terminal: the caller's standard input is at its end: the container goes on" {
	sh_cfg 'echo ready; sleep 0.3; echo still here'
	run timeout 20 script -qec "$LEAN_RUNTIME --root $ROOT run -b $BUNDLE $ID" /dev/null </dev/null
	assert_has "$output" "still here"
}

# --- no byte lost, no hang, no busy loop ---------------------------------------------------------

# 10 MB and a bit, as the program writes it: no \r is added, but by the caller's own terminal. The pause: what the session's leader
# wrote last may still be on its way when its exit hangs up the terminal, and is flushed by the kernel.
NUMBERS=1500000
write_much() {
	sh_cfg "stty -opost; seq 1 $NUMBERS; sleep 0.3; exit 7"
}

assert_all_numbers() {
	assert_eq "$(wc -c <"$1")" "$(seq 1 $NUMBERS | wc -c)"
	cmp "$1" <(seq 1 $NUMBERS)
}

@test "terminal: 10 MB into a slow terminal arrive whole" {
	write_much
	local rc=0
	on_pty --slow --timeout $((patience * 20)) -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" >out || rc=$?
	assert_eq "$rc" 7
	tr -d '\r' <out >lines
	assert_all_numbers lines
}

@test "terminal: 10 MB into a slow pipe arrive whole" {
	write_much
	mkfifo pipe
	python3 -c 'import sys, time
while True:
    chunk = sys.stdin.buffer.read1(3000)
    if not chunk: break
    sys.stdout.buffer.write(chunk)
    time.sleep(0.0003)' <pipe >out 3>&- &
	local reader=$! rc=0
	timeout $((patience * 20)) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >pipe 3>&- || rc=$?
	wait "$reader"
	assert_eq "$rc" 7
	assert_all_numbers out
}

@test "terminal: 10 MB over the console socket arrive whole" {
	write_much
	receive --timeout $((patience * 20))
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	wait "$RECV" || fail "$(cat recv.err)"
	assert_all_numbers console
}

@test "terminal: exec -t: 10 MB into a slow terminal arrive whole" {
	cfg '.process.terminal = false'
	rt_sleeper
	local rc=0
	on_pty --slow --timeout $((patience * 20)) -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" exec -t "$ID" \
		sh -c "stty -opost; seq 1 $NUMBERS; sleep 0.3; exit 7" >out || rc=$?
	assert_eq "$rc" 7
	tr -d '\r' <out >lines
	assert_all_numbers lines
}

@test "terminal: a megabyte of input goes through whole, and its end is seen" {
	lean_changes rootfs
	sh_cfg 'stty -echo; echo ready >/tmp/ready; cat | md5sum; sleep 0.2'
	mkfifo in
	{
		wait_until test -e "$BUNDLE/rootfs/tmp/ready"
		seq 1 150000
	} >in 3>&- &
	local writer=$!
	run -0 timeout $((patience * 20)) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" <in 3>&-
	wait "$writer"
	assert_has "$output" "$(seq 1 150000 | md5sum | cut -d' ' -f1)"
}

@test "terminal: the end of input in the middle of a line" {
	lean_changes rootfs
	sh_cfg 'stty -echo; echo ready >/tmp/ready; cat; echo "<end>"; sleep 0.2'
	mkfifo in
	{
		wait_until test -e "$BUNDLE/rootfs/tmp/ready"
		printf 'a line\nand a half'
	} >in 3>&- &
	local writer=$!
	run -0 timeout 30 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" <in 3>&-
	wait "$writer"
	assert_has "$(tr -d '\r' <<<"$output")" $'a line\nand a half<end>'
}

# Ticks of processor time that a process has used.
ticks() {
	awk '{print $14 + $15}' "/proc/$1/stat"
}

@test "terminal: a reader that stops costs no processor time" {
	cfg '.process.args = ["yes", "0123456789012345678901234567890123456789"]'
	mkfifo pipe
	python3 -c 'import time; held = open("pipe"); time.sleep(60)' 3>&- &
	local reader=$!
	"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >pipe 3>&- &
	local runtime=$!
	wait_for_status running "$ID"
	sleep 0.5
	local before after
	before=$(ticks "$runtime")
	sleep 1
	after=$(ticks "$runtime")
	kill "$reader" # the reader is gone: the terminal is hung up, and the container ends
	wait "$reader" || true
	local rc=0
	wait "$runtime" || rc=$?
	[ "$rc" = 1 ] || [ "$rc" = 129 ] || fail "exit $rc"
	[ $((after - before)) -le 3 ] || fail "$((after - before)) ticks in a second"
}

@test "terminal: in the foreground: it has its size before the program runs" {
	sh_cfg 'stty size'
	local i
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		run -0 on_pty --size 31x91 -- "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
		assert_has "$output" "31 91"
	done
}
