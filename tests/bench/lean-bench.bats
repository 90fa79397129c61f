#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench itself: that it measures what it says and leaves nothing. No figure is held against another.

load ../lib/bench

@test "each benchmark gives the rows of each runtime, none failed" {
	bench exec --runs 2 --runtime lean-runtime --runtime lean --runtime crun
	assert_rows 24 'map(.mode) | unique == ["create", "create+start", "delete", "exec", "kill", "run", "start", "state"]'
	assert_rows 24 'map(select(.runtime == "crun") | {(.mode): .wall_us.min}) | add | ."create+start" + 1 >= .create + .start'
	assert_rows 24 'all(.failed == 0 and .runs == 2 and .wall_us.min > 0 and .wall_us.min <= .wall_us.p50 and (.wall_us | has("p99") | not))'
	bench start --runs 2 --gap-ms 1 --touch-mb 1 --config default --runtime lean-runtime --runtime floor
	assert_rows 16 'all(.failed == 0)'
	assert_rows 4 'map(select(.mode == "isolated" or .mode == "back-to-back")) | all(.syscalls > 10)'
	bench scale --seconds 1 --processes 1,2 --no-inprocess --runtime lean-runtime
	assert_rows 2 'all(.failed == 0 and .per_second > 0)'
	bench floor --runs 3
	assert_rows 30 'map(select(.skipped | not)) | all(.min_us > 0 and .p50_us >= .min_us and (has("p99_us") | not))'
}

@test "a runtime that fails fast is no fast runtime" {
	printf '#!/bin/sh\nexit 0\n' >quick
	chmod +x quick
	run ! "$BENCH" start --runs 1 --no-inprocess --config default --runtime lean-runtime --runtime "quick=$PWD/quick" --output out.json
	jq -e '.results | map(select(.runtime == "quick")) | length == 1 and .[0].failed == 1 and (.[0] | has("wall_us") | not)' out.json
}

# program FILE COMMANDS: the real one, but for what these commands do before.
program() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$2" "${LEAN_RUNTIME:-$(dirname "$BENCH")/../build/src/cli/lean-runtime}" >"$1"
	chmod +x "$1"
}

@test "a runtime is started with the same environment, whoever starts lean-bench" {
	program asked 'tr "\\0" "\\n" </proc/$$/environ >>"'"$PWD"'/environment"'
	LEAN_RUNTIME_PROFILE=lean GODEBUG=x GLIBC_TUNABLES=y LD_LIBRARY_PATH=z LEAN_BENCH_NAMESPACE=1 \
		bench exec --runs 1 --runtime "asked=$PWD/asked"
	grep -q ^PATH= environment
	grep -q ^LANG=C.UTF-8 environment
	run ! grep -E '^(LEAN_RUNTIME_PROFILE|GODEBUG|GLIBC_TUNABLES|LD_LIBRARY_PATH)=' environment
	jq -e '.environment.LANG == "C.UTF-8" and (.environment | has("GODEBUG") | not)' out.json
}

@test "the digest of the library is in the result, and what is no program's name is refused" {
	bench start --runs 1 --gap-ms 1 --touch-mb 0 --config default --runtime floor
	local library
	library=$(ls "$(dirname "$BENCH")"/../build{-lib,}/src/liblean/liblean.a 2>/dev/null | head -n 1)
	jq -e --arg digest "$(sha256sum "$library" | cut -d' ' -f1)" '.programs["liblean.a"] == $digest' out.json
	run --separate-stderr "$BENCH" exec --runtime lean-runtime=/bin/true --runtime lean-runtime=/bin/false
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: --runtime lean-runtime: there are two of that name"* ]]
	run --separate-stderr "$BENCH" exec --runtime ../x=/bin/true
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: --runtime '../x': a name is of letters"* ]]
	mkdir a,b
	TMPDIR=$PWD/a,b run --separate-stderr "$BENCH" exec --runtime lean-runtime
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: TMPDIR $PWD/a,b: "* ]]
}

@test "a runtime that hangs is killed and has failed, and the others are measured" {
	program hangs 'case "$*" in *" run "*|*" create "*) exec sleep 1000 ;; esac'
	run "$BENCH" exec --runs 1 --timeout 1 --runtime lean-runtime --runtime "hangs=$PWD/hangs" --output out.json
	[ "$status" = 1 ]
	assert_rows 16 'map(select(.runtime == "hangs" and .mode == "create")) | .[0].failed == 1 and (.[0].error | startswith("create: status 265"))'
	assert_rows 16 'map(select(.runtime == "lean-runtime")) | all(.failed == 0 and .runs == 1)'
	run "$BENCH" scale --seconds 1 --processes 1 --timeout 1 --no-inprocess --runtime lean-runtime --runtime "hangs=$PWD/hangs" --output out.json
	[ "$status" = 1 ]
	assert_rows 2 'map(select(.runtime == "hangs")) | .[0].failed == 1 and (.[0] | has("per_second") | not)'
	assert_rows 2 'map(select(.runtime == "lean-runtime")) | .[0].failed == 0 and .[0].per_second > 0'
}

@test "nothing is divided by what failed, nor what failed by anything" {
	# Fails from the third life on.
	program broken 'case "$*" in *" state "*) echo >>"'"$PWD"'/lives"; [ "$(wc -l <"'"$PWD"'/lives")" -lt 3 ] || exit 3 ;; esac'
	run "$BENCH" exec --runs 4 --runtime "broken=$PWD/broken" --runtime lean-runtime --output out.json
	[ "$status" = 1 ]
	assert_rows 16 'map(select(.wall_us)) | length >= 14 and all(has("ratio_p50") | not)'
	rm lives
	run "$BENCH" exec --runs 4 --runtime lean-runtime --runtime "broken=$PWD/broken" --output out.json
	assert_rows 16 'map(select(.runtime == "broken")) | all(has("ratio_p50") | not) and all(.error or .what)'
	assert_rows 16 'map(select(.runtime == "lean-runtime")) | all(.ratio_p50 == 1)'
}

@test "numbers that make no sense are refused by their option's name, before anything is made" {
	local words
	while read -r words; do
		# shellcheck disable=SC2086 # words
		run --separate-stderr "$BENCH" $words
		[ "$status" = 2 ]
		[[ ${stderr_lines[-1]} == "lean-bench ${words%% *}: error: argument --"* ]] || { echo "$words: $stderr" >&2; return 1; }
	done <<-END
		floor --runs 0
		start --runs -1
		start --gap-ms -1
		start --host-mounts many
		start --timeout -1
		exec --runs 0
		steady --minutes 0
		ablation --runs 0
		stages --runs 1.5
		counts --runs 0
		compare a b --runs 1
		scale --processes 1,two
		scale --processes 0
		scale --seconds 0
		peak --processes 1,,2
		rpc --clients 65
		warm --containers 0
		warm --seconds nan
		warm --slice 0
		sysbench --patience 0
		lifecycle --runs 0
	END
}

@test "where nothing could be measured that is an error, and no empty table" {
	run --separate-stderr "$BENCH" exec --runtime floor
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: exec is of OCI runtimes, and there is none: "* ]]
	run --separate-stderr "$BENCH" warm --runtime floor --no-inprocess
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: warm is of OCI runtimes, and there is none: "* ]]
	run --separate-stderr "$BENCH" stages --runtime crun=/bin/true
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: stages are of lean-runtime and the floors" ]
}

@test "a program that is missing, or fails, is one clear error" {
	local python
	python=$(python3 -c "import sys; print(sys.executable)")
	mkdir programs
	run --separate-stderr env PATH="$PWD/programs" "$python" "$BENCH" floor
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: mount: not installed, or not in PATH" ]
	run --separate-stderr env PATH="$PWD/programs" "$python" "$BENCH" lifecycle
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: mount is not installed, or not in PATH: "* ]]
	for p in mount umount rm git; do ln -s "$(command -v $p)" programs/$p; done
	run --separate-stderr env PATH="$PWD/programs" "$python" "$BENCH" floor
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: cc: not installed, or not in PATH" ]
	run --separate-stderr env CC=/bin/false "$BENCH" floor
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: /bin/false "*": status 1" ]]
}

@test "a full disk at the end: there is a table, and one clear error" {
	mkdir small
	mount -t tmpfs -o size=4k tmpfs small
	run --separate-stderr "$BENCH" floor --runs 1 --output small/out.json
	ls small >left
	umount small
	[ "$status" = 1 ]
	[[ $output == *"clone"* ]]
	[[ $stderr == *"lean-bench: small/out.json: No space left on device" ]]
	[ ! -s left ]
}

@test "what is to stay can't be below /mnt where that is covered" {
	run --separate-stderr "$BENCH" counts --output /mnt/out.json
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: /mnt/out.json: choose a place outside of /mnt, which is covered meanwhile" ]
	run --separate-stderr "$BENCH" counts --check --table /mnt/table.json
	[ "$status" = 1 ]
	run --separate-stderr "$BENCH" start --host-mounts 100 --output /mnt/out.json
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: /mnt/out.json: choose a place outside of /mnt, which is covered meanwhile" ]
}

@test "two at once, and what a killed one left, are in nobody's way" {
	local pid
	unset LEAN_BENCH_TAG
	"$BENCH" exec --runs 4 --config docker --runtime lean-runtime --output other.json >other.txt 2>&1 3>&- &
	pid=$!
	bench exec --runs 4 --config docker --runtime lean-runtime
	wait "$pid"
	LEAN_BENCH_TAG=t$$x$BATS_TEST_NUMBER
}
