#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# process.terminal: by console socket (as managers do) and on the caller's own terminal.

load ../lib/helpers.bash

setup() {
	common_setup
	cfg '.process.terminal = true'
	SOCK=$BATS_TEST_TMPDIR/c.sock
	RECV=
}
teardown() {
	[ -z "$RECV" ] || kill "$RECV" 2>/dev/null || true
	common_teardown
}

receive() {
	"$LR_LIB/recv-console" "$SOCK" "$BATS_TEST_TMPDIR/console" "$@" </dev/null 2>recv.err 3>&- &
	RECV=$!
	wait_until test -S "$SOCK"
}

received() {
	wait "$RECV" || fail "$(cat recv.err)"
	RECV=
	tr -d '\r' <console
}

on_pty() {
	LR_TEST_TAG=$TAG "$LR_LIB/on-pty" "$@" 3>&-
}

@test "terminal: the master arrives over the console socket" {
	sh_cfg 'test -t 0 && test -t 1 && test -t 2 && tty; echo >/dev/tty from tty; stat -c %t:%T /dev/console'
	receive
	rt_bg create --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	rt start "$ID"
	local got
	got=$(received)
	assert_match "$got" '/dev/(pts/0|console)'
	assert_has "$got" "from tty"
	assert_match "$got" '88:0'
	assert_eq "$(cat "$OUT" "$ERR")" ""
}

@test "terminal: input, interrupt and size through the master" {
	sh_cfg 'trap "echo interrupted; exit 4" INT; stty size; echo ready; while :; do sleep 0.05; done'
	receive --size 33x111 --wait ready --send '\x03'
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	local got
	got=$(received)
	assert_has "$got" interrupted
}

@test "terminal: consoleSize" {
	cfg '.process.consoleSize = {"height": 21, "width": 77}'
	sh_cfg 'stty size'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	assert_has "$(received)" "21 77"
}

@test "terminal: belongs to the container's user" {
	cfg '.process.user = {"uid": 1000, "gid": 1000} | .process.capabilities = {}'
	sh_cfg 'stat -c %u $(tty); echo fine >/dev/stdout && echo fine >$(tty)'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	local got
	got=$(received)
	assert_match "$got" $'1000\nfine\nfine'
}

@test "terminal: the session and the foreground group are the container's" {
	sh_cfg 'cut -d" " -f1,5,6,8 /proc/self/stat >/tmp/s; ps -o pid,sid 2>/dev/null | head -n 3; echo $$ $(cut -d" " -f6 /proc/$$/stat)'
	receive
	rt_bg run -d --console-socket "$SOCK" -b "$BUNDLE" "$ID"
	assert_has "$(received)" "1 1"
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
	RECV=
}

@test "terminal: a console socket that nobody listens on" {
	run rt run -d --console-socket "$BATS_TEST_TMPDIR/none.sock" -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" none.sock
	run ! rt state "$ID"
}

@test "terminal: in the foreground: output, input, exit code" {
	sh_cfg 'echo ready; read x; echo "got <$x>"; exit 6'
	run -6 on_pty --step 'ready=>hello\n' -- "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_has "$output" "got <hello>"
}

@test "terminal: in the foreground: size and its changes" {
	sh_cfg 'trap "stty size" WINCH; stty size; while :; do sleep 0.05; done'
	run on_pty --size 30x100 --step '30 100=>resize 44x132' --step '44 132=>\x03' --timeout 20 -- "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
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
	run -0 on_pty -- "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_eq "$(tr -d '\r' <<<"$output" | grep -c '^line ')" 20000
	assert_has "$(tail -n 1 <<<"$output")" "line 19999"
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
