#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --remote --background: the ticket first, and memory after that. Hosts are network namespaces here.

load ../lib/helpers.bash
load seeds.bash
load hosts.bash

# A seed whose memory takes its time: each megabyte of it, so many ms. What copies it is in $copying.
slow_seed() { # MS
	command -v strace >/dev/null || skip "strace is not installed"
	rm -f "$TICKET" strace.out
	(umask 077 && exec strace -f -o strace.out -e trace=pwrite64,setsid,fcntl -e inject=pwrite64:delay_enter="$1"000 \
		"$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --background --forkd "$PWD/a" "$ID" </dev/null >"$TICKET" 2>slow.err 3>&-) &
	slow=$!
	waits_long_until grep -q lean-seed: "$TICKET"
	id=$(cut -d: -f4 "$TICKET")
	waits_long_until grep -q setsid strace.out
	copying=$(awk '/setsid/ { print $1; exit }' strace.out)
}

missing() {
	ask a inspect "$id" | sed 's/.*missing=//'
}

# Children that run, or are held, of the container's first process: its twin, and one that outlives its use.
processes() {
	local child
	for child in $(cat "/proc/$(pid_of)/task/"*/children); do
		grep -q '^State:.*Z' "/proc/$child/status" || echo "$child"
	done
}

@test "background: a child begins before the memory of its seed is copied, and has all of it" {
	python 48
	start
	other_host
	slow_seed 100
	[ "$(missing)" -gt 0 ] || fail "nothing was missing: $(ask a list)"
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.state == "filling" and .missingBytes > 0'
	grow
	[ "$(missing)" -gt 0 ] || fail "nothing was missing: $(ask a list)"
	came_there
	wait "$slow"
	assert_eq "$(missing)" 0
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.state == "held"'
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	moves
	assert_eq "$(cat "/proc/$(pid_of)/task/"*/children)" ""
}

@test "background: the command ends with the ticket, and what stays keeps nothing of it" {
	python 48
	start
	exec 9>lock # as of flock(1)
	slow_seed 1000 # it is killed before
	exec 9>&-
	wait_until eval '[ -z "$(find /proc/'"$copying"'/fd -lname "'"$PWD"'/slow.err")" ]'
	assert_eq "$(find "/proc/$copying/fd" -lname "$TICKET" -o -lname "$PWD/slow.err" -o -lname "$PWD/lock" -o -lname "*/$ID")" ""
	assert_eq "$(readlink "/proc/$copying/cwd")" /
	# Others may change the container meanwhile.
	timeout 60 "$LEAN_RUNTIME" --root "$ROOT" pause "$ID"
	timeout 60 "$LEAN_RUNTIME" --root "$ROOT" resume "$ID"
	# The next seed waits for this one, and can be told not to.
	run timeout -s TERM 2 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --forkd "$PWD/a" "$ID"
	assert_eq "$status $output" "124 "
	[ "$(missing)" -gt 0 ] || fail "it was copied before"
	timeout 60 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --forkd "$PWD/a" "$ID" </dev/null >next 2>next.err 3>&- &
	next=$!
	sleep 0.5
	[ ! -s next ] && [ "$(missing)" -gt 0 ] || fail "it did not wait: $(cat next next.err)"
	kill -9 "$copying"
	wait "$next" || fail "$(cat next.err)"
	wait_until eval '[ "$(processes)" = "" ]'
	moves
	seed --background
	wait_until eval '[ "$(missing)" = 0 ]'
	moves
}

# Pages in a pipe are as pages that somebody reads, and has not read for a while.
@test "background: who reads a page for long is waited for, and the seed is whole" {
	python 48
	start
	slow_seed 100
	pages=$(find "/proc/$copying/fd" -lname '/memfd:pages*')
	python3 -c '
import os, sys, time
r, w = os.pipe()
assert os.splice(os.open(sys.argv[1], os.O_RDONLY), w, 4096) == 4096
open("reads", "w")
while not os.path.exists("enough"):
    time.sleep(0.05)' "$pages" 3>&- &
	reading=$!
	wait_until test -e reads
	waits_long_until grep -q "F_ADD_SEALS.* EBUSY" strace.out
	touch enough
	wait "$reading"
	wait "$slow"
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.state == "held"'
	moves
}

@test "background: who copies is killed, or its twin, or its container deleted: the seed is damaged, and its child ends without zeros" {
	python 48
	start
	other_host
	for how in kill twin delete; do
		slow_seed 150
		grow
		[ "$(missing)" -gt 0 ] || fail "it was copied before"
		case $how in
		kill) kill -9 "$copying" ;;
		twin) kill -9 "$(processes)" ;;
		delete) rt delete --force "$ID" ;;
		esac
		wait_until eval 'ask a inspect "$id" | grep -q damaged'
		wait_for_status stopped "$CHILD"
		wait "$slow" || true
		nothing_bad
		rt delete "$CHILD"
		[ $how = delete ] || moves
	done
	assert_eq "$(rt list -q)" ""
}

@test "background: who can't be told the ticket: no seed is left, and the container goes on" {
	start
	run bash -c 'exec "$@" >/dev/full' - "$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --background --forkd "$PWD/a" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "no space left"
	run -0 ask a list
	assert_hasnt "$output" held
	moves
	assert_eq "$(processes)" ""
}

@test "background: what it does not go with is refused" {
	start
	run ! rt checkpoint --background --engine=fork --image-path x "$ID"
	assert_has "$output" "--background goes with --remote"
	run ! rt checkpoint --background --stop --remote --forkd "$PWD/a" "$ID"
	assert_has "$output" "--background contradicts --stop"
	run ! rt checkpoint --background --remote --forkd "$PWD/none" "$ID"
	assert_has "$output" "connect to lean-forkd at $PWD/none"
	moves
}
