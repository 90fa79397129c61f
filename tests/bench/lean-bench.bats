#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench itself: that it measures what it says and leaves nothing. No figure is held against another.

load ../lib/bench

@test "each benchmark gives the rows of each runtime, none failed" {
	bench exec --runs 2 --runtime lean-runtime --runtime lean --runtime crun
	assert_rows 18 'all(.failed == 0 and .runs == 2 and .wall_us.min > 0 and .wall_us.min <= .wall_us.p99)'
	bench start --runs 2 --gap-ms 1 --touch-mb 1 --config default --runtime lean-runtime --runtime floor
	assert_rows 16 'all(.failed == 0)'
	assert_rows 4 'map(select(.mode == "isolated" or .mode == "back-to-back")) | all(.syscalls > 10)'
	bench scale --seconds 1 --processes 1,2 --runtime lean-runtime
	assert_rows 10 'all(.failed == 0 and .per_second > 0)'
	bench floor --runs 3
	assert_rows 30 'map(select(.skipped | not)) | all(.min_us > 0)'
}

@test "a runtime that fails fast is no fast runtime" {
	printf '#!/bin/sh\nexit 0\n' >quick
	chmod +x quick
	run ! "$BENCH" start --runs 1 --no-inprocess --config default --runtime lean-runtime --runtime "quick=$PWD/quick" --output out.json
	jq -e '.results | map(select(.runtime == "quick")) | length == 1 and .[0].failed == 1 and (.[0] | has("wall_us") | not)' out.json
}
