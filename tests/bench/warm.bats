#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench warm: that containers are resumed, answer, and are paused, or else the row is failed. The base is this
# machine's Python. No figure is held against another.

load ../lib/bench

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BATS_TEST_DIRNAME/../lib/mkpython" base
	tar -C base -cf base.tar .
	"$BATS_TEST_DIRNAME/../rootfs/mkimage" layout base.tar
	rm -rf base base.tar
}

# warm OPTION...: with the roots of the first test.
warm() {
	"$BENCH" warm --cache "$BATS_FILE_TMPDIR/cache" --base "oci:$BATS_FILE_TMPDIR/layout" --function helloworld \
		--seconds 0.4 --slice 0.2 "$@" --output out.json </dev/null >out.txt 2>err.txt
}

# No server runs on, and no control group is left.
nothing_left() {
	! pgrep -f /function/server.py || return 1
	! find /sys/fs/cgroup -type d -path '*/lean-bench/warm-*' | grep . || return 1
}

# wrap NAME SCRIPT: a runtime that is lean-runtime but for what the script does with a verb.
wrap() {
	printf '#!/bin/bash\nfor verb; do case $verb in create|start|resume|pause|delete) break ;; esac; done\n%s\nexec %s "$@"\n' \
		"$2" "$(dirname "$(dirname "$BENCH")")/build/src/cli/lean-runtime" >"$1"
	chmod +x "$1"
}

@test "every row answers, and says what each part took" {
	warm --containers 1,3 --runtime lean-runtime --runtime lean --runtime crun
	assert_rows 10 'map(.mode) | unique == ["helloworld, 1", "helloworld, 3"]'
	assert_rows 10 'map(.runtime) | unique == ["crun", "freezer", "lean", "lean-runtime", "liblean"]'
	assert_rows 10 'all(.failed == 0 and .runs > 1 and .per_second > 0)'
	assert_rows 10 'all(.resume_us.min > 0 and .request_us.min > 0 and .pause_us.min > 0)'
	assert_rows 10 'map(select(.runtime == "lean-runtime" or .runtime == "crun")) | all(.syscalls > 10)'
	assert_rows 10 'map(select(.mode == "helloworld, 1" and .runtime == "lean-runtime")) | .[0].ratio_p50 == 1'
	assert_rows 10 'map(select(.runtime == "freezer")) | all(.ratio_floor_p50 == 1)'
	nothing_left
}

@test "each part is where it is spent, and a turn holds many rounds of the slowest" {
	wrap slow '[ "$verb" != resume ] || sleep 0.2'
	warm --containers 1 --samples --no-counts --no-inprocess --no-freezer --runtime lean-runtime --runtime slow="$PWD/slow"
	assert_rows 2 'map(select(.runtime == "slow")) | .[0].resume_us.min >= 200000 and .[0].wall_us.min >= 200000'
	assert_rows 2 'all(.turn_seconds >= 2)'
	assert_rows 2 'all(.samples_us == ([.samples_resume_us, .samples_request_us, .samples_pause_us] | transpose | map(add * 1000 | round / 1000)))'
	assert_rows 2 'all((.samples_us | min) - .wall_us.min | fabs < 0.1)'
}

@test "ratios are of rows that didn't fail, and what wasn't measured is tried again" {
	python3 "$BATS_TEST_DIRNAME/check-steps.py" "$(dirname "$BENCH")"
}

@test "a runtime that doesn't do it is failed, not fast" {
	wrap lazy '[ "$verb" != pause ] || exit 0'
	wrap broken '[ "$verb" != resume ] || { echo "no resume today" >&2; exit 3; }'
	wrap absent '[ "$verb" != create ] || { echo "no container today" >&2; exit 4; }'
	bench_fails warm --containers 2 --no-counts --runtime lean-runtime --runtime lazy="$PWD/lazy" \
		--runtime broken="$PWD/broken" --runtime absent="$PWD/absent"
	assert_rows 6 'map(select(.failed > 0) | .runtime) == ["lazy", "broken", "absent"]'
	assert_rows 6 'all((.failed > 0) != has("wall_us"))'
	assert_rows 6 'map(.error // "" | select(contains("is not paused"))) | length == 1'
	assert_rows 6 'map(.error // "" | select(startswith("resume: status 3") and endswith("no resume today"))) | length == 1'
	assert_rows 6 'map(.error // "" | select(startswith("create: status 4") and endswith("no container today"))) | length == 1'
	nothing_left
}

@test "a wrong answer is a failure" {
	warm --containers 1 --no-counts --no-inprocess --runtime lean-runtime
	local top
	top=$(echo "$BATS_FILE_TMPDIR"/cache/functions/helloworld-*/rootfs/function)
	cp -a "$top" right
	rm -r "$top/__pycache__" # it is not looked at again whether it is of the same handler
	echo 'handle = lambda text: {"text": "Hello, word!"}' >>"$top/handler.py"
	bench_fails warm --containers 1 --no-counts --no-inprocess --runtime lean-runtime
	echo 'def setup(): raise ValueError("no setup today")' >>"$top/handler.py"
	cp out.json wrong.json
	bench_fails warm --containers 1 --no-counts --no-inprocess --runtime lean-runtime
	rm -r "$top"
	mv right "$top"
	assert_rows 2 'all(.failed == 1)'
	assert_rows 2 '.[0].error | endswith("no setup today")'
	cp wrong.json out.json
	assert_rows 2 '.[0].error | contains("a wrong answer") and contains("Hello, word!")'
	nothing_left
}

@test "a function and a runtime that aren't there are rows" {
	mkdir programs
	for p in unshare mount umount cc rm cp git as ld strace skopeo umoci chroot env du chmod; do ln -s "$(command -v $p)" programs/; done
	ln -s "$(python3 -c 'import sys; print(sys.executable)')" programs/python3
	env PIP_NO_INDEX=1 PIP_FIND_LINKS= PATH="$PWD/programs" "$BENCH" warm --cache "$BATS_FILE_TMPDIR/cache" \
		--base "oci:$BATS_FILE_TMPDIR/layout" --function pyaes --function helloworld --containers 1 --seconds 0.2 --slice 0.2 \
		--output out.json </dev/null >out.txt 2>err.txt
	assert_rows 8 'map(select(.skipped == "not installed") | .runtime) == ["crun", "runc", "youki"]'
	assert_rows 8 'map(select(.function == "pyaes")) | length == 1 and (.[0].skipped | startswith("packages"))'
	assert_rows 8 'map(select(.function == "helloworld")) | length == 4 and all(.failed == 0)'
}

@test "stopped half-way, nothing is left" {
	local signal pid
	for signal in INT TERM; do
		"$BENCH" warm --cache "$BATS_FILE_TMPDIR/cache" --base "oci:$BATS_FILE_TMPDIR/layout" --function helloworld \
			--containers 3 --seconds 1000 --runtime lean-runtime --runtime crun </dev/null >out.txt 2>err.txt 3>&- &
		pid=$!
		for ((i = 0; i < 600; i++)); do
			[ "$(pgrep -c -f '^/usr/bin/python3.* /function/server.py')" -lt 9 ] || break
			sleep 0.1
		done
		[ "$signal" != TERM ] || sleep 1.5 # by then it measures
		kill -"$signal" "$pid"
		! wait "$pid" || false
		grep -q stopped err.txt
		nothing_left
	done
}
