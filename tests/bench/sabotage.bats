#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench where something goes wrong: it ends with one clear line, leaves nothing, and counts nothing that didn't happen.

load ../lib/bench

REAL=${LEAN_RUNTIME:-$(dirname "$BENCH")/../build/src/cli/lean-runtime}

# program FILE COMMANDS: the real runtime, but for what these commands do before.
program() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$2" "$REAL" >"$1"
	chmod +x "$1"
}

# one_line TEXT: standard error ends with one line of lean-bench's, with this text, and no traceback.
one_line() {
	[[ $stderr != *Traceback* ]] || { echo "$stderr" >&2; return 1; }
	[[ ${stderr_lines[-1]} == "lean-bench: "*"$1"* ]] || { echo "$stderr" >&2; return 1; }
}

# in_the_background SUBCOMMAND...: its pid is $pid; signals are as in a shell in the foreground.
in_the_background() {
	"$BENCH" "$@" >out.txt 2>err.txt 3>&- &
	pid=$!
}

runner_is_there() {
	runner=$(pgrep -P "$pid" -x runner)
}

@test "a runtime that hangs at --version, or says nonsense there, costs no result" {
	local name
	program hangs 'case "$*" in *--version*) exec sleep 1000 ;; esac'
	program babbles 'case "$*" in *--version*) printf "\\377\\376\\n"; exit 0 ;; esac'
	for name in hangs babbles; do
		bench exec --runs 1 --runtime "$name=$PWD/$name"
		assert_rows 8 'all(.failed == 0)'
	done
	jq -e '.versions.babbles | length == 2' out.json
}

@test "what a runtime that was killed has started ends with it" {
	program forks 'case "$*" in *" run "*) sleep 7654; exit 0 ;; esac'
	run ! "$BENCH" start --runs 1 --no-inprocess --no-counts --timeout 1 --config default --runtime "forks=$PWD/forks"
	[ -z "$(pgrep -f '^sleep 7654')" ]
}

@test "a runtime that hangs under strace or perf alone isn't counted, and the rest is measured" {
	program hangs 'case "$(tr "\\0" " " </proc/$PPID/cmdline) $*" in strace*" run "* | perf*" run "*) sleep 7653; exit 0 ;; esac'
	bench start --runs 1 --no-inprocess --timeout 2 --config default --runtime "hangs=$PWD/hangs"
	assert_rows 2 'map(select(.mode == "isolated")) | .[0].failed == 0 and .[0].syscalls == null and .[0].instructions_user == null'
	[ -z "$(pgrep -f '^sleep 7653')" ]
}

@test "the process that takes the times is killed: one clear line, and nothing is left" {
	local pid runner
	in_the_background exec --runs 100000 --runtime lean-runtime
	wait_until runner_is_there
	kill -KILL "$runner"
	wait "$pid" && return 1
	tail -n 1 err.txt | grep '^lean-bench: runner, which times the commands, ended early: signal 9: was there enough memory'
}

@test "stopped while it takes away what it made: it goes on with that" {
	local pid
	mkdir slow
	printf '#!/bin/sh\n: >"%s/removing"\nsleep 1\nexec %s "$@"\n' "$PWD" "$(command -v rm)" >slow/rm
	chmod +x slow/rm
	PATH=$PWD/slow:$PATH in_the_background floor --runs 1
	wait_until test -e removing
	kill -TERM "$pid"
	wait "$pid" || true
	run ! grep Traceback err.txt
	# teardown looks for what is left
}

@test "what one that was killed has left, containers too, goes with the next one, and only that" {
	local killed pid
	unset LEAN_BENCH_TAG
	mkdir lean-bench-mine lean-bench-alive
	echo '{"tags": ["none"]}' >lean-bench-alive/owner
	exec 8<lean-bench-alive
	flock 8
	in_the_background exec --runs 100000 --config docker --runtime lean-runtime
	wait_until eval 'killed=$(jq -r ".tags[0]" lean-bench-*/owner 2>/dev/null | grep -v none)'
	wait_until eval 'find /sys/fs/cgroup -type d -name "*$killed*" -exec cat {}/cgroup.procs \; 2>/dev/null | grep -q .'
	kill -KILL "$pid"
	wait "$pid" || true
	run --separate-stderr "$BENCH" floor --runs 1
	[ "$status" = 0 ]
	[[ $stderr == *"lean-bench: removing $PWD/lean-bench-"*" and its containers, which a lean-bench that was killed has left"* ]]
	[ -z "$(find /sys/fs/cgroup -type d -name "*$killed*")" ]
	[ "$(echo lean-bench-*)" = "lean-bench-alive lean-bench-mine" ]
	exec 8<&-
	rm -r lean-bench-alive lean-bench-mine
	LEAN_BENCH_TAG=t$$x$BATS_TEST_NUMBER
}

@test "what another user has put beside is not read, and stays" {
	mkdir lean-bench-theirs
	mkfifo lean-bench-theirs/owner # who opens it waits for ever
	chown -R 1000 lean-bench-theirs
	timeout -k 1 30 "$BENCH" floor --runs 1
	[ -p lean-bench-theirs/owner ]
	rm -r lean-bench-theirs
}

@test "a runtime that was replaced while it was measured: nothing of that counts" {
	cp "$REAL" mine
	mkdir hooks
	# The first container's state is asked for by the one, then there is another.
	program hooks/mine 'case "$*" in *" state "*) [ -e "'"$PWD"'/done" ] || { : >"'"$PWD"'/done"; echo "# another" >>"$0"; } ;; esac'
	run --separate-stderr "$BENCH" exec --runs 2 --runtime "mine=$PWD/hooks/mine" --output out.json
	[ "$status" = 1 ]
	one_line "$PWD/hooks/mine was replaced while mine was measured: nothing of it counts"
	[ ! -e out.json ]
}

@test "a runtime that hangs, or is killed, in restore has failed, and its time is none" {
	program hangs 'case "$*" in *" restore "*) sleep 7652; exit 0 ;; esac'
	run --separate-stderr "$BENCH" resume --runs 1 --mb 1 --way fork --timeout 1 --runtime "lean-runtime=$PWD/hangs" --output out.json
	[ "$status" = 1 ]
	assert_rows 1 '.[0].failed == 1 and (.[0] | has("wall_us") | not) and (.[0].error | startswith("restore: no end within"))'
	[ -z "$(pgrep -f '^sleep 7652')" ]
	program fails 'case "$*" in *" run "*) echo "no memory today" >&2; exit 3 ;; esac'
	run --separate-stderr "$BENCH" prepare --runs 1 --mb 1 --way fork --runtime "lean-runtime=$PWD/fails" --output out.json
	[ "$status" = 1 ]
	assert_rows 1 '.[0].failed == 1 and .[0].error == "run: status 3: no memory today"'
}

@test "a time by a clock that was set meanwhile is none" {
	python3 - "$(dirname "$BENCH")" <<-'END'
		import sys, time
		sys.path.insert(0, sys.argv[1])
		sys.dont_write_bytecode = True
		from leanbench import seedlings
		from leanbench.workspace import Failure
		before = seedlings.clock_offset()
		seedlings.check_clock(before)
		real = time.time_ns
		for seconds in (-1, 1):
		    time.time_ns = lambda by=seconds: real() + by * 10**9
		    try:
		        seedlings.check_clock(before)
		    except Failure as e:
		        assert "clock was set" in str(e)
		    else:
		        raise AssertionError(f"set by {seconds} s")
	END
}

@test "a full disk is named, wherever it was full" {
	run --separate-stderr bash -c '"$1" floor --runs 1 >/dev/full' - "$BENCH"
	[ "$status" = 1 ]
	one_line "standard output"
	mkdir small
	mount -t tmpfs -o size=32k tmpfs small
	echo '{"benchmark": "start", "schema": 1, "results": []}' >empty.json
	jq -n '{benchmark: "start", schema: 1, results: [range(900) | {runtime: "x\(.)", config: "default", mode: "m", wall_us: {p50: .}}]}' >many.json
	run --separate-stderr "$BENCH" report many.json --no-plots --output small
	ls small >left
	umount small
	[ "$status" = 1 ]
	one_line "small/report.html: No space left on device"
	[ ! -s left ]
}

@test "a sandbox that can't be made is one clear line" {
	mkdir programs
	printf '#!/bin/sh\nexit 32\n' >programs/mount
	chmod +x programs/mount
	PATH=$PWD/programs:$PATH run --separate-stderr "$BENCH" lifecycle --runs 1 --manager none
	[ "$status" = 1 ]
	one_line "the sandbox can't be made: mount "
}

@test "damaged facts in the cache are made again" {
	python3 - "$(dirname "$BENCH")" "$PWD" <<-'END'
		import json, os, sys, types
		sys.path.insert(0, sys.argv[1])
		sys.dont_write_bytecode = True
		from leanbench import images
		store = types.SimpleNamespace(chosen=sys.argv[2] + "/cache", _make=images.Images._make, _facts=images.Images._facts)
		layer, good = images.Images._data(store, "files-10")
		facts = layer.replace(".tar", ".json")
		for text in ("", "{", "[]", "\0"):
		    with open(facts, "w", encoding="utf-8") as f:
		        f.write(text)
		    assert images.Images._data(store, "files-10") == (layer, good), text
		os.unlink(layer)
		assert images.Images._data(store, "files-10") == (layer, good)
		assert os.path.getsize(layer)
	END
}
