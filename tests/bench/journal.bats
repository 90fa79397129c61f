#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# results.Journal: a long benchmark that was stopped goes on with what it has, and only with what is the same.

load ../lib/bench

JOURNAL=$BATS_TEST_DIRNAME/journal.py

journal() {
	run --separate-stderr python3 "$JOURNAL" "$@"
}

# begin_and_kill STEPS WAIT [OPTION...]: ended by SIGKILL in that step.
begin_and_kill() {
	local pid steps=$1 wait=$2
	shift 2
	python3 "$JOURNAL" "$steps" out.json --wait "$wait" "$@" >first.txt 2>/dev/null 3>&- &
	pid=$!
	wait_until grep -q "^step $wait$" first.txt
	kill -KILL "$pid"
	wait "$pid" || true
}

@test "killed between two steps: the rest is measured, and nothing twice" {
	begin_and_kill 4 3
	[ "$(wc -l <out.json.partial)" = 3 ]
	journal 4 out.json
	[ "$status" = 0 ]
	[ "$output" = $'step 3\nstep 4\n["step 1", "step 2", "step 3", "step 4"]' ]
	jq -e '.results | length == 4' out.json
	[ ! -e out.json.partial ]
}

@test "killed inside of a line: that step is measured again" {
	begin_and_kill 4 4
	truncate -s -5 out.json.partial
	journal 4 out.json
	[ "$status" = 0 ]
	[ "$output" = $'step 3\nstep 4\n["step 1", "step 2", "step 3", "step 4"]' ]
}

@test "killed inside of the first line, or before it: it begins anew" {
	begin_and_kill 2 1
	truncate -s 20 out.json.partial
	journal 2 out.json
	[ "$status" = 0 ]
	[ "${lines[0]}" = "step 1" ]
	: >out.json.partial
	journal 2 out.json
	[ "$status" = 0 ]
	[ "${lines[0]}" = "step 1" ]
}

@test "another machine, commit, program or command line is refused, and what is there stays" {
	local option
	begin_and_kill 3 2
	cp out.json.partial before
	for option in "--cpu another:machine" "--commit decaf:commit" "--program /bin/false:programs" "--mark x:command"; do
		# shellcheck disable=SC2086 # two words
		journal 3 out.json ${option%:*}
		[ "$status" = 1 ]
		[ -z "$output" ]
		[[ $stderr == "journal: out.json.partial was begun with another ${option#*:}: remove it"* ]]
		cmp out.json.partial before
	done
	journal 3 out.json
	[ "$status" = 0 ]
}

@test "a damaged line is one clear error, whichever it is" {
	local line
	begin_and_kill 3 3
	cp out.json.partial good
	for line in 'no json' '[1]' '{"step": 1, "rows": []}' '{"step": "x"}' '{"step": "x", "rows": [1]}' '{}' $'\377\376' \
		"$(printf '[%.0s' $(seq 100000))"; do
		sed 2d good >out.json.partial
		printf '%s\n' "$line" >>out.json.partial
		journal 3 out.json
		[ "$status" = 1 ]
		[[ $stderr == "journal: out.json.partial: line 3 is not what lean-bench writes: "* ]]
		[[ $stderr != *Traceback* ]]
	done
	for line in 'no json' '[1]' $'\377\376'; do
		{ printf '%s\n' "$line"; sed 1d good; } >out.json.partial
		journal 3 out.json
		[ "$status" = 1 ]
		[[ $stderr == "journal: out.json.partial: line 1 is not what lean-bench writes: "* ]]
	done
	printf 'a letter to somebody' >out.json.partial
	journal 3 out.json
	[ "$status" = 1 ]
	[ "$(cat out.json.partial)" = 'a letter to somebody' ]
}

@test "an --output that can't be written is told before anything is measured" {
	mkdir dir
	journal 2 dir
	[ "$status" = 1 ]
	[ "$stderr" = "journal: --output dir: is a directory" ]
	[ -z "$output" ]
	[ ! -e dir.partial ]
	journal 2 none/out.json
	[ "$status" = 1 ]
	[ "$stderr" = "journal: --output none/out.json: there is no directory none" ]
	journal 2 /proc/out.json
	[ "$status" = 1 ]
	[ -z "$output" ]
	[[ $stderr == "journal: --output /proc/out.json: can't write to /proc: "* ]]
	mkdir out.json.partial
	journal 2 out.json
	[ "$status" = 1 ]
	[ "$stderr" = "journal: out.json.partial: Is a directory" ]
	run --separate-stderr "$BENCH" floor --runs 1 --output dir
	[ "$status" = 1 ]
	[ "$stderr" = "lean-bench: --output dir: is a directory" ]
}

@test "a full disk: what was measured before is kept, and it goes on when there is room" {
	mkdir small
	mount -t tmpfs -o size=64k tmpfs small
	# 800 rows are about 50 kB: one step has room, a second has not.
	journal 2 small/out.json --rows 800
	[ "$status" = 1 ]
	[ "${lines[1]}" = "step 2" ]
	[[ $stderr == *"journal: small/out.json.partial: No space left on device; what was measured before is kept" ]]
	[[ $stderr != *Traceback* ]]
	mount -o remount,size=128k small
	# Now there is room for the step, but not for the result beside it.
	journal 2 small/out.json --rows 800
	[ "$status" = 1 ]
	[ "${lines[0]}" = "step 2" ]
	[[ $stderr == *"journal: small/out.json: No space left on device" ]]
	[ "$(ls small)" = out.json.partial ]
	mount -o remount,size=10m small
	journal 2 small/out.json --rows 800
	[ "$status" = 0 ]
	[[ $output != *"step 1"$'\n'* ]]
	[ "$(ls small)" = out.json ]
	umount small
}

@test "two at once with one file: the second is refused" {
	local pid
	python3 "$JOURNAL" 2 out.json --wait 1 >first.txt 2>/dev/null 3>&- &
	pid=$!
	wait_until grep -q "^step 1$" first.txt
	journal 2 out.json
	kill -KILL "$pid"
	wait "$pid" || true
	[ "$status" = 1 ]
	[ "$stderr" = "journal: out.json.partial: another lean-bench writes it" ]
}

@test "a journal that is a link, or another user's, is one clear error, and stays as it is" {
	echo mine >victim
	ln -s victim out.json.partial
	journal 2 out.json
	[ "$status" = 1 ]
	[ "$stderr" = "journal: out.json.partial: is a link" ]
	rm out.json.partial
	ln victim out.json.partial
	journal 2 out.json
	[ "$status" = 1 ]
	[[ $stderr == "journal: out.json.partial: is not a file of yours alone: remove it"* ]]
	[ "$(cat victim)" = mine ]
	rm out.json.partial
	begin_and_kill 2 2
	chown 1000 out.json.partial
	journal 2 out.json
	[ "$status" = 1 ]
	[ -z "$output" ]
	[[ $stderr == "journal: out.json.partial: is not a file of yours alone: remove it"* ]]
	rm out.json.partial
	mkfifo out.json.partial
	journal 2 out.json
	[ "$status" = 1 ]
	[[ $stderr == "journal: out.json.partial: "* ]]
}

@test "a command that keeps no steps leaves those of another" {
	begin_and_kill 2 2
	bench floor --runs 1
	[ -s out.json.partial ]
}

@test "stopped by SIGTERM half-way, nothing is left behind" {
	local pid
	"$BENCH" start --runs 10000 --no-counts --config default --runtime lean-runtime --runtime lean >out.txt 2>&1 3>&- &
	pid=$!
	wait_until eval 'find . -path "./lean-bench-*/bundle-default-lean-run-*" -type d | grep -q .'
	kill -TERM "$pid"
	wait "$pid" || true
	grep -q '^lean-bench: stopped' out.txt
	# teardown looks for what is left
}

# container_runs: one of this test's, which its control groups have the tag of.
container_runs() {
	find /sys/fs/cgroup -type d -name "*$LEAN_BENCH_TAG*" -exec cat {}/cgroup.procs \; 2>/dev/null | grep -q .
}

@test "stopped within a life, no container and no control group is left" {
	local command pid
	# The program: there is no revision to build.
	local program=${LEAN_RUNTIME:-$(dirname "$BENCH")/../build/src/cli/lean-runtime}
	for command in "TERM exec --runs 10000 --config docker --runtime lean-runtime" \
		"HUP counts --runs 10000 --config docker --runtime lean-runtime" \
		"INT compare $program $program --runs 10000 --only state --config docker"; do
		# shellcheck disable=SC2086 # words
		"$BENCH" ${command#* } >out.txt 2>&1 3>&- &
		pid=$!
		wait_until container_runs
		kill -"${command%% *}" "$pid"
		wait "$pid" || true
		grep -q '^lean-bench: stopped' out.txt
		wait_until eval '[ -z "$(left_running)" ]'
	done
}
