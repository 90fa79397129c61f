#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The neighbours of lean-bench start: what isn't there or doesn't work here is in the result, and is no sample.

load ../lib/bench

@test "each of the default is a row: measured, tried in vain, or not installed" {
	mkdir programs
	printf '#!/bin/sh\necho "no container here" >&2\nexit 1\n' >programs/systemd-nspawn
	chmod +x programs/systemd-nspawn
	for p in unshare mount umount cc rm cp git as ld; do ln -s "$(command -v $p)" programs/$p; done
	ln -s "$(command -v crun)" programs/
	bench_fails env PATH="$PWD/programs" "$(python3 -c "import sys; print(sys.executable)")" "$BENCH" start --runs 1 --gap-ms 1 --config default \
		--no-inprocess --no-counts --output out.json
	assert_rows 10 'map(select(.runtime == "crun" and .wall_us.min > 0)) | length == 2'
	assert_rows 10 'map(select(.runtime == "systemd-nspawn")) | length == 1 and .[0].failed == 1 and
		(.[0].error | contains("no container here")) and (.[0] | has("wall_us") | not)'
	assert_rows 10 'map(select(.skipped == "not installed") | .runtime) == ["runc", "youki", "bwrap", "lxc-execute"]'
	grep -q 'lxc-execute .*not installed' out.txt
}

@test "a neighbour that is there starts and leaves nothing" {
	local with=(--runtime bwrap)
	for name in systemd-nspawn lxc-execute; do
		! command -v $name >/dev/null || with+=(--runtime "$name")
	done
	neighbour_traces >before
	bench start --runs 1 --gap-ms 1 --config default --no-inprocess --no-counts "${with[@]}"
	assert_rows 2 'all(.failed == 0 and .wall_us.min > 0)'
	neighbour_traces | diff before -
}

# What they make outside of the directory of lean-bench.
neighbour_traces() {
	find /run/lxc /run/systemd/nspawn 2>/dev/null || true
	find /sys/fs/cgroup -type d \( -name 'lean-bench-lxc-*' -o -name payload -o -name supervisor \) 2>/dev/null || true
}
