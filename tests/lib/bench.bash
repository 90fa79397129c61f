# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bench.bash: for the tests of lean-bench. A test begins in a directory of its own; $BENCH is the program.

bats_require_minimum_version 1.5.0

BENCH=$(realpath "$BATS_TEST_DIRNAME/../../bench/lean-bench")

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
}

# What it measured with is gone: its directory, and what was mounted below that.
teardown() {
	local left
	left=$(ls -d "$BATS_TEST_TMPDIR"/lean-bench-* 2>/dev/null) || true
	[ -z "$left" ] || { echo "left behind: $left" >&2; return 1; }
	! grep "$BATS_TEST_TMPDIR" /proc/self/mounts || { echo "mounts are left behind" >&2; return 1; }
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
