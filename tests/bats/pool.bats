#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `pool`: what the lean profile keeps ready, from nothing to nothing.

load ../lib/helpers.bash

setup() {
	unset LEAN_RUNTIME_PROFILE
	common_setup
	lean_only "has no pools"
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
