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
