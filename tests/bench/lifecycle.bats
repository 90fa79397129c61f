#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench lifecycle: managers started by it, every life checked, nothing left behind. No figure is held against another.

load ../lib/bench

# The name of its control groups: others may run it, too.
export LEAN_BENCH_TAG=${LR_SANDBOX_TAG:-lrs$$}-bench

# The few data files it needs are made here, once.
few() { # manager...
	local options=() name
	for name in "$@"; do options+=(--manager "$name"); done
	printf '%s\n' lifecycle --runs 1 --runtime lean-runtime --cache "$BATS_FILE_TMPDIR/cache" "${options[@]}"
}

# To TMPDIR, where an ordinary user has files.
others_get_in() {
	local dir=$TMPDIR
	while [ "$dir" != / ]; do
		[ -k "$dir" ] || chmod o+x "$dir"
		dir=$(dirname "$dir")
	done
}

# What a run is made of, seen from outside of its sandbox.
left() {
	find /sys/fs/cgroup -type d -name "$LEAN_BENCH_TAG" 2>/dev/null
	ls -d "$BATS_TEST_TMPDIR"/lean-bench-* 2>/dev/null
	grep -l -z "^TMPDIR=$BATS_TEST_TMPDIR/lean-bench-" /proc/[0-9]*/environ 2>/dev/null
	pgrep -a -f "[l]ean-bench lifecycle .*--cache $BATS_FILE_TMPDIR"
	losetup -l -n -O BACK-FILE 2>/dev/null | grep "$BATS_TEST_TMPDIR"
	return 0
}

assert_nothing_left() {
	local now
	now=$(left)
	[ -z "$now" ] || { echo "left behind: $now" >&2; return 1; }
}

wait_for() { # COMMAND: up to a minute
	local _
	for _ in $(seq 600); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	cat err.txt >&2
	return 1
}

@test "lifecycle: hello world by hand, by Docker as root and rootless, and by Podman" {
	mapfile -t args < <(few none docker podman docker-rootless)
	others_get_in
	bench "${args[@]}" --runtime crun --test hello
	assert_rows 40 'map(select(.skipped | not)) | length == 40 and all(.failed == 0 and .runs == 1 and .wall_us.min > 0 and .cgroups != null)'
	assert_rows 40 'map([.manager, .rootless]) | unique == [["docker", false], ["docker", true], ["none", false], ["podman", false]]'
	assert_rows 40 'map(.mode) | unique == ["boot", "create", "exec", "start", "whole"]'
	assert_rows 40 'map(select(.runtime == "lean-runtime")) | all(.ratio_p50 == 1 and .ratio_crun_p50 > 0)'
	assert_nothing_left
}

@test "lifecycle: what cannot be had is skipped with its reason" {
	mapfile -t args < <(few none docker)
	bench "${args[@]}" --test hello --storage shared
	assert_rows 5 'map(select(.skipped)) | length == 1 and .[0].manager == "docker" and (.[0].skipped | contains("no storage"))'
	chmod 700 .
	mapfile -t args < <(few docker-rootless)
	bench "${args[@]}" --test hello
	assert_rows 1 'length == 1 and (.[0].skipped | contains("other users may not enter"))'
}

@test "lifecycle: what is read, written, served and pinged is checked; the lean profile writes no root" {
	mapfile -t args < <(few none)
	bench "${args[@]}" --runtime lean --test sqlite-\*-150k --test files-\*-10 --test web --test ping --storage overlay --storage shared
	assert_rows 20 'map(select(.skipped | not)) | all(.failed == 0 and .wall_us.min > 0)'
	assert_rows 20 'map(select(.test == "web" or .test == "ping") | select(.mode == "response") | [.runtime, .storage, .test]) | length == 8'
	assert_rows 20 'map(select(.skipped) | [.runtime, .storage, .test]) | sort == [["all", "shared", "files-untar-10"], ["all", "shared", "sqlite-write-150k"], ["lean", "overlay", "files-untar-10"], ["lean", "overlay", "sqlite-write-150k"]]'
	# The same with other facts than those of the data: what the container sees is wrong then.
	sed -i 's/"shown": "[0-9]*/"shown": "77/; s/"shown_sha256": "..../"shown_sha256": "zzzz/; s/"rows": \[[0-9]*/"rows": [77/' "$BATS_FILE_TMPDIR"/cache/*.json
	run ! "$BENCH" "${args[@]}" --test sqlite-\*-150k --test files-\*-10 --output out.json
	assert_rows 4 'all(.failed == .runs and (has("wall_us") | not) and (.error | contains("wrong output")))'
	rm -r "$BATS_FILE_TMPDIR/cache"
}

@test "lifecycle: a runtime that fails fast is no fast runtime, by hand or with containerd" {
	printf '#!/bin/sh\nexit 0\n' >quick
	chmod +x quick
	mapfile -t args < <(few none containerd)
	run ! "$BENCH" "${args[@]}" --runtime "quick=$PWD/quick" --test hello --output out.json
	assert_rows 12 'map(select(.runtime == "quick")) | length == 2 and all(.failed == .runs and .runs > 0 and (has("wall_us") | not) and (.error | length > 5))'
	assert_rows 12 'map(select(.runtime == "lean-runtime")) | length == 10 and all(.failed == 0)'
}

@test "lifecycle: SIGINT leaves nothing, and it goes on where it was" {
	mapfile -t args < <(few none docker)
	"$BENCH" "${args[@]}" --test hello --output out.json </dev/null >out.txt 2>err.txt &
	local bench=$! status=0
	wait_for grep -q '"step": "none' out.json.partial
	wait_for eval 'find /sys/fs/cgroup -type d -path "*/$LEAN_BENCH_TAG/*" | grep -q .' # a container of Docker's
	kill -INT "$bench"
	wait "$bench" || status=$?
	[ "$status" = 1 ]
	assert_nothing_left
	[ ! -e out.json ]
	bench "${args[@]}" --test hello
	assert_rows 10 'all(.failed == 0) and (map(.manager) | unique == ["docker", "none"])'
	run ! grep -q 'none/overlay' err.txt # it wasn't measured again
	[ ! -e out.json.partial ]
}
