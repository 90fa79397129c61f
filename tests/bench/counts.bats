#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What does not depend on the machine's mood is held by bench/counts.json: system calls, instructions, memory of each verb.

load ../lib/bench

setup_file() {
	local status=0
	"$BATS_TEST_DIRNAME/../../bench/lean-bench" counts --check --runs 12 --output "$BATS_FILE_TMPDIR/counted.json" \
		${LEAN_RUNTIME:+--runtime "lean-runtime=$LEAN_RUNTIME"} >"$BATS_FILE_TMPDIR/said" 2>"$BATS_FILE_TMPDIR/errors" || status=$?
	echo "$status" >"$BATS_FILE_TMPDIR/status"
}

# counts OPTION...: of one configuration and once, of the program under test.
counts() {
	run --separate-stderr "$BENCH" counts --runs 1 ${LEAN_RUNTIME:+--runtime "lean-runtime=$LEAN_RUNTIME"} "$@"
}

@test "no verb makes more system calls or takes more memory than bench/counts.json has" {
	case $(cat "$BATS_FILE_TMPDIR/status") in
	0) sed -n 's/^less than the table/# &/p' "$BATS_FILE_TMPDIR/said" >&3 ;; # the table may come down
	3) grep -q 'has no counts of a machine like this: ' "$BATS_FILE_TMPDIR/said" && skip "no counts of a machine like this" ;;
	*) cat "$BATS_FILE_TMPDIR/said" "$BATS_FILE_TMPDIR/errors" >&2; false ;;
	esac
}

@test "each verb of each configuration is counted" {
	jq -e '.results | length == 21 and all(.failed == 0 and .syscalls > 10 and .max_rss_kb > 100)' "$BATS_FILE_TMPDIR/counted.json"
	# What can't be counted says why.
	jq -e '.results | all(.instructions_user > 1000 or (.note | startswith("no instructions: perf")))' "$BATS_FILE_TMPDIR/counted.json"
}

@test "more than the table fails and says what to do; less is told; another machine has a status of its own" {
	# One run may have a call that another repeats.
	jq '{tolerance: {syscalls: {more: 8}, instructions_user: {part: 0.5}, max_rss_kb: {part: 0.5}}, machines: {}}' -n >table.json
	counts --config default --table table.json --check
	[ "$status" = 3 ]
	[[ $output == *"table.json has no counts of a machine like this: "* ]]
	counts --table table.json --update
	[ "$status" = 0 ]
	jq -e '.machines | length == 1 and (.[].counts | length == 21)' table.json
	jq '.machines[].counts["default state"].syscalls += 20' table.json >more.json
	counts --config default --table more.json --check
	[ "$status" = 0 ]
	[[ $output == *"less than the table: default state: syscalls "* ]]
	jq '.machines[].counts["default state"] |= (.syscalls -= 20 | .max_rss_kb = 1) | del(.machines[].counts["default kill"])' \
		table.json >less.json
	counts --config default --table less.json --check
	[ "$status" = 1 ]
	[[ $output == *"more than the table: default state: syscalls "*"counts --update, and the reason in the commit"* ]]
	[[ $output == *"more than the table: default state: max_rss_kb 1 -> "* ]]
	[[ $output == *"default kill: not in the table"* ]]
}

@test "a program that makes more calls is found" {
	printf '#!/bin/sh\nexec "%s" "$@"\n' "${LEAN_RUNTIME:-$(dirname "$BENCH")/../build/src/cli/lean-runtime}" >slow
	chmod +x slow
	"$BENCH" counts --runs 1 --config default --output slow.json --runtime "lean-runtime=$PWD/slow"
	jq -s -e '.[0].results as $a | .[1].results as $b | [range(7) | $b[.].syscalls > $a[.].syscalls + 5] | all' \
		"$BATS_FILE_TMPDIR/counted.json" slow.json
}

@test "a damaged table, and options that make no sense, are one clear error" {
	echo '{"machines": {}}' >table.json
	counts --table table.json --check
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: table.json: not a table of counts"* ]]
	echo '{' >table.json
	counts --table table.json --check
	[[ $stderr == "lean-bench: table.json: "* && ${#stderr_lines[@]} = 1 ]]
	counts --check --update
	[ "$stderr" = "lean-bench: --check and --update exclude each other" ]
	counts --update --config lean
	[ "$stderr" = "lean-bench: --update is of all configurations" ]
	run --separate-stderr "$BENCH" counts --runtime crun
	[ "$status" = 1 ]
}

@test "a runtime that fails isn't counted" {
	printf '#!/bin/sh\nexit 0\n' >quick
	chmod +x quick
	run --separate-stderr "$BENCH" counts --runs 1 --config default --runtime "lean-runtime=$PWD/quick" --output out.json
	[ "$status" = 1 ]
	[[ $stderr == *"run: status 0"* ]]
	[ ! -e out.json ]
}
