#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `pool`: what the lean profile keeps ready, from nothing to nothing.

load ../lib/helpers.bash

setup() {
	unset LEAN_RUNTIME_PROFILE
	common_setup
	lean_only "has no pools"
	cgroupfs_only "a slot has one of the runtime's"
	cfg 'del(.linux.cgroupsPath)'
}
teardown() {
	rt pool drain || true
	common_teardown
}

@test "pool: nothing there, nothing to drain" {
	run -0 rt pool status
	assert_has "$output" FREE
	run -0 rt pool drain
}

@test "pool: warm, used and given back, drained" {
	run -0 rt --lean pool warm --bundle "$BUNDLE" --count 2
	run -0 rt pool status --format json
	assert_eq "$(jq '.slots[0].free' <<<"$output")" 2
	run -0 rt --lean run -b "$BUNDLE" "$ID"
	assert_has "$output" hello
	run -0 rt pool status --format json
	assert_eq "$(jq '.slots[0].used' <<<"$output")" 0
	run -0 rt pool drain
	run -0 rt pool status --format json
	assert_eq "$(jq '[.slots[]?] | length' <<<"$output")" 0
}

@test "pool: a slot that nobody has, as after a loss of power, is taken away by the next one made and by drain" {
	local home slot way
	for way in make drain; do
		run -0 rt --lean run -b "$BUNDLE" "$ID"
		home=$(echo "$ROOT"/.lean/m*)
		slot=$(basename "$home"/slot/*)
		umount -l "$home/slot/$slot"
		rm "$home/free/$slot"
		: >"$home/slot/no-such-kind.0"
		if [ "$way" = make ]; then
			run -0 rt --lean run -b "$BUNDLE" "$ID"
			assert_eq "$(cd "$home/slot" && echo *)" "$slot"
			assert_eq "$(cd "$home/free" && echo *)" "$slot"
		else
			run -0 rt pool drain
			assert_eq "$output" ""
			run ! test -e "$home"
		fi
	done
}

# faults SYSCALLS:FAULT CHECK VERB...: that fault at the first of these calls of each process, then at
# the second, and so on; and CHECK after each.
faults() {
	local n
	command -v strace >/dev/null || skip "strace is not installed"
	for n in $(seq 25); do
		run timeout -k 2 20 strace -f -o trace -e "trace=${1%%:*}" -e "inject=$1:when=$n" "$LEAN_RUNTIME" --root "$ROOT" "${@:3}" </dev/null
		[ "$status" != 124 ] || fail "${*:3} hangs at the ${n}th"
		[ "$status" != 0 ] || grep -q INJECTED trace || break
		$2 "$n"
	done
	[ "$n" -gt 1 ] || fail "nothing was tried"
}

# What is left does not keep the next ones from working.
works() {
	run -0 timeout -k 2 20 "$LEAN_RUNTIME" --root "$ROOT" --lean run -b "$BUNDLE" "$ID-$1"
	assert_has "$output" hello
}

drains() {
	run -0 timeout -k 2 20 "$LEAN_RUNTIME" --root "$ROOT" pool drain
	assert_eq "$1: $output $(ls -A "$ROOT" 2>/dev/null)" "$1:  "
}

@test "pool: a write that fails while a slot is made is an error, and nobody waits for ever" {
	faults write:error=EIO works --lean pool warm --bundle "$BUNDLE"
	drains "at last"
}

@test "pool: drain takes away a home whose maker was killed at any of its directories and files" {
	faults mkdir,mkdirat,mount:signal=KILL drains --lean pool warm --bundle "$BUNDLE"
	faults openat:signal=KILL drains --lean pool warm --bundle "$BUNDLE"
}

@test "pool: a home that was made halfway is drained where there is no room to make it whole" {
	command -v strace >/dev/null || skip "strace is not installed"
	run ! strace -f -o trace -e trace=mkdirat -e inject=mkdirat:signal=KILL:when=3 "$LEAN_RUNTIME" --root "$ROOT" --lean pool warm --bundle "$BUNDLE"
	assert_eq "$(ls -A "$ROOT")" .lean
	run -0 strace -f -o trace -e trace=mkdirat -e inject=mkdirat:error=ENOSPC "$LEAN_RUNTIME" --root "$ROOT" pool drain
	assert_has "$(cat trace)" INJECTED
	assert_eq "$(ls -A "$ROOT")" ""
}

@test "pool: a drain killed at any file is ended by the next" {
	warm_and_kill() {
		drains "$1"
		rt --lean pool warm --bundle "$BUNDLE"
	}
	rt --lean pool warm --bundle "$BUNDLE"
	faults renameat,rename,unlinkat,umount2:signal=KILL warm_and_kill pool drain
}

# A drain that was killed may have unmounted the home only, while somebody waited for the lock.
@test "pool: nothing is pinned beneath a home" {
	command -v strace >/dev/null || skip "strace is not installed"
	mkdir "$ROOT"
	strace -o trace -e trace=flock -e inject=flock:signal=STOP:when=2 "$LEAN_RUNTIME" --root "$ROOT" --lean pool warm \
		--bundle "$BUNDLE" </dev/null >said 2>&1 3>&- &
	local slow=$! status=0
	wait_until grep -q 'stopped by SIGSTOP' trace
	umount -l "$ROOT"/.lean/m*
	kill -CONT "$(pgrep -P "$slow")"
	wait "$slow" || status=$?
	assert_eq "$status" 0
	drains "at last"
}
