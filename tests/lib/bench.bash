# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bench.bash: for the tests of lean-bench. A test begins in a directory of its own; $BENCH is the program.

bats_require_minimum_version 1.5.0

BENCH=$(realpath "$BATS_TEST_DIRNAME/../../bench/lean-bench")

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
	# In the name of each container and control group that it makes.
	export LEAN_BENCH_TAG=${LEAN_BENCH_TAG:-t$$x$BATS_TEST_NUMBER}
}

# What it measured with is gone: its directory, its processes, their mounts (it mounts in a namespace of its own, which
# lasts as long as a process in it), and control groups.
teardown() {
	local left
	left=$(ls -d "$BATS_TEST_TMPDIR"/lean-bench-* 2>/dev/null) || true
	[ -z "$left" ] || { echo "left behind: $left" >&2; return 1; }
	for _ in $(seq 100); do
		left=$(left_running)
		[ -n "$left" ] || return 0
		sleep 0.1
	done
	echo "left behind: $left" >&2
	return 1
}

# Processes that have mounts or words of this test's directory, and control groups with its tag.
left_running() {
	grep -ls -- "$BATS_TEST_TMPDIR" /proc/[0-9]*/mountinfo || true
	grep -lsaF -f <(echo "$BATS_TEST_TMPDIR/lean-bench-") /proc/[0-9]*/cmdline || true # its own hasn't the word
	find /sys/fs/cgroup -type d -name "*${LEAN_BENCH_TAG}*" 2>/dev/null || true
}

# wait_until COMMAND...: until it succeeds; what takes a minute will not come.
wait_until() {
	for _ in $(seq 1200); do
		! "$@" || return 0
		sleep 0.05
	done
	echo "never: $*" >&2
	return 1
}

# bench SUBCOMMAND...: its result is out.json; it has to succeed.
bench() {
	"$BENCH" "$@" --output out.json </dev/null >out.txt 2>err.txt || {
		tail -n 20 out.txt err.txt >&2
		return 1
	}
}

# assert_rows N FILTER: out.json has at least N rows, and the jq FILTER of the rows is true.
assert_rows() {
	jq -e --argjson n "$1" "(.results | length >= \$n) and (.results | $2)" out.json >/dev/null || {
		echo "not at least $1 rows with $2:" >&2
		jq -c '.results[]' out.json >&2
		return 1
	}
}

# bench_fails COMMAND...: it has to fail; its output is in out.txt and err.txt.
bench_fails() {
	if "$@" </dev/null >out.txt 2>err.txt; then
		echo "succeeded: $*" >&2
		return 1
	fi
}
