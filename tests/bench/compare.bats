#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench compare: two programs, or two commits, and a verdict that can be relied on.

load ../lib/bench

REAL=${LEAN_RUNTIME:-$(realpath "$BATS_TEST_DIRNAME/../..")/build/src/cli/lean-runtime}

# program FILE COMMANDS: one that is like the real one but for what these commands do before.
program() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$2" "$REAL" >"$1"
	chmod +x "$1"
}

compare() {
	run --separate-stderr "$BENCH" compare --gap-ms 1 --cache "$PWD/cache" --output out.json "$@"
}

@test "the statistics say what they should of samples that are known" {
	python3 "$BATS_TEST_DIRNAME/check-stats.py"
}

@test "each verb of each configuration has a verdict; nothing is slower than itself beyond the bar" {
	program same ':'
	compare same same --runs 3 --bar 1000
	[ "$status" = 0 ] || { echo "$output" "$stderr" >&2; return 1; }
	assert_rows 48 'all(.failed == 0 and .runs >= 3 and .wall_us.min > 0)'
	assert_rows 48 'map(select(.runtime == "new")) | length == 24 and all(.verdict and .ratio_low <= .ratio_high and .confidence > 0.997)'
	jq -e '.compared.old.program == .compared.new.program and (.compared.old.program | endswith("/same"))' out.json
}

@test "what fails is no sample, and gets no verdict" {
	program same ':'
	program broken 'case "$*" in *state*) exit 3 ;; esac'
	compare same broken --runs 2 --only run,state --config default
	[ "$status" = 1 ]
	# What came before it in each life did not fail.
	assert_rows 6 'map(select(.mode == "run, isolated")) | length == 2 and all(.failed == 0)'
	assert_rows 6 'map(select(.mode == "state")) | any(.failed > 0) and all(has("verdict") | not) and any(.error | tostring | startswith("state: status 3"))'
	printf '#!/bin/sh\nexit 0\n' >quick
	chmod +x quick
	compare same quick --runs 2 --only run --config docker
	[ "$status" = 1 ]
	assert_rows 4 'map(select(.runtime == "new")) | all(.failed == .runs and (has("wall_us") | not))'
}

# A repository whose programs are scripts, with this lean-bench: it builds as ours does, in no time.
repository() {
	mkdir repo
	cp -r "$(dirname "$BENCH")" repo/bench
	cd repo || return
	git init -q .
	git config user.name tester
	git config user.email tester@example.org
	printf 'build/build.ninja:\n\tmkdir -p build/src/cli\n\tcp build.ninja build/\n' >Makefile
	printf 'rule copy\n  command = cp $in $out\nbuild src/cli/lean-runtime: copy ../program\ndefault src/cli/lean-runtime\n' >build.ninja
	program program ': one'
	git add .
	git commit -q -m one
	program program ': two'
	git commit -q -a -m two
	BENCH=$PWD/bench/lean-bench
}

@test "git revisions are built once, in a tree that is gone afterwards" {
	repository
	printf '#!/bin/sh\ntouch %s/hooked\n' "$PWD" >.git/hooks/post-checkout
	chmod +x .git/hooks/post-checkout
	echo 'a change that is not committed' >>program
	compare HEAD~1 HEAD --runs 2 --only state --config default --bar 1000
	[ "$status" = 0 ] || { echo "$output" "$stderr" >&2; return 1; }
	[[ $stderr == *"building HEAD~1"*"building HEAD "* ]]
	jq -e --arg old "$(git rev-parse HEAD~1)" --arg new "$(git rev-parse HEAD)" '.compared.old.commit == $old and .compared.new.commit == $new' out.json
	jq -e '.programs.old != .programs.new' out.json
	[ "$(git worktree list | wc -l)" = 1 ]
	[ -z "$(ls -d cache/making-* 2>/dev/null)" ]
	[ ! -e hooked ]
	grep -q ': two' cache/lean-runtime-"$(git rev-parse HEAD)"-*
	[ "$(tail -n 1 program)" = 'a change that is not committed' ]
	# What is built is kept, but for who asks for another program.
	compare HEAD~1 HEAD --runs 2 --only state --config default --bar 1000
	[ "$status" = 0 ]
	[[ $stderr != *building* ]]
	mkdir -p cache/making-by-one-who-was-killed/tree
	CFLAGS=-DANOTHER compare HEAD~1 HEAD --runs 2 --only state --config default --bar 1000
	[ "$status" = 0 ]
	[[ $stderr == *"building HEAD~1"*"building HEAD "* ]]
	[ ! -e cache/making-by-one-who-was-killed ]
	compare HEAD nothing
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: nothing: neither a program nor a git revision" ]
}

@test "a revision that can't be built says where its log is" {
	repository
	echo 'rule' >build.ninja
	git commit -q -a -m broken
	compare HEAD~1 HEAD --runs 2 --only state
	[ "$status" = 1 ]
	[[ ${stderr_lines[-1]} == *"ninja failed (1): see $PWD/cache/lean-runtime-"*.log ]]
	[ -s "${stderr_lines[-1]##*see }" ]
	[ "$(git worktree list | wc -l)" = 1 ]
}

@test "options that make no sense are one clear error" {
	program same ':'
	compare same same --only run,nothing
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: --only nothing: not of run, create"* ]]
	compare same same --bar 0.5
	[[ $stderr == "lean-bench: --bar is at least 1"* ]]
	compare same same --config nothing
	[ "$stderr" = "lean-bench: nothing: no such configuration" ]
	compare same same --runtime crun
	[[ $stderr == "lean-bench: compare takes no --runtime"* ]]
	echo text >text
	compare same text
	[ "$stderr" = "lean-bench: text: is no program" ]
	compare --output=x -- same --upload-pack=touch
	[ "$status" = 1 ]
	[[ $stderr == "lean-bench: --upload-pack=touch: neither a program nor a git revision" ]]
}
