#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench prepare, resume, touch, peak and rpc: that containers become seeds and are continued, or else the row has failed. No figure
# is held against another.

load ../lib/bench

runtime=$(dirname "$(dirname "$BENCH")")/build/src/cli/lean-runtime

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "seeds are of x86-64"
}

seeds() { # COMMAND OPTION...
	"$BENCH" "$@" --output out.json </dev/null >out.txt 2>err.txt || {
		cat err.txt >&2
		jq -c '.results[] | select(.error) | [.runtime, .mode, .error]' out.json >&2
		return 1
	}
}

# wrap NAME SCRIPT: lean-runtime but for what the script does with a verb, which is $verb.
wrap() {
	printf '#!/bin/bash\nfor verb; do case $verb in checkpoint|restore) break ;; esac; done\n%s\nexec %s "$@"\n' "$2" "$runtime" >"$1"
	chmod +x "$1"
}

@test "prepare: the pause is the program's own, and a fork stands beside it" {
	seeds prepare --mb 1,2 --runs 2 --way fork --way forkd --way forkd-background
	assert_rows 6 'map(.mode) | unique == ["1 MB", "2 MB"]'
	assert_rows 6 'map(.runtime) | unique == ["fork", "forkd", "forkd-background"]'
	assert_rows 6 'all(.failed == 0 and .runs == 2 and .pause_us.min > 0 and .fork_us.min > 0 and .wall_us.min > 0)'
}

@test "resume and touch: every way there is, with the memory that the parent had" {
	seeds resume --mb 1 --runs 2 --criu /nowhere/criu
	assert_rows 11 'map(.runtime) | unique == ["criu", "fork", "forkd", "forkd-background", "forkd-prefetch", "module",
		"remote", "remote-module", "remote-module-rdma", "remote-prefetch", "remote-rdma"]'
	assert_rows 11 'map(select(.runtime == "criu")) | .[0].skipped == "criu is not installed"'
	# Those that take hardware are measured where it is, and else say what is missing.
	assert_rows 11 'map(select(.runtime | test("module|rdma"))) | length == 4 and all(.failed == 0 and (.runs == 2 or (.skipped | length > 20)))'
	assert_rows 11 'map(select(.runtime | test("criu|module|rdma") | not)) | all(.failed == 0 and .runs == 2 and .wall_us.min > 0)'
	seeds touch --mb 1 --runs 1 --way fork --way remote
	assert_rows 4 'map(.mode) | unique == ["read 1 MB", "write 1 MB"]'
	assert_rows 4 'all(.failed == 0 and .us_page > 0 and .mb_s > 0)'
}

@test "resume, touch and peak: what takes the kernel module or an RDMA device says so where there is none" {
	local command
	python3 "$BATS_TEST_DIRNAME/check-hardware.py" "$(dirname "$BENCH")"
	[ ! -e /dev/lean-seed ] || skip "the kernel module is loaded"
	[ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ] || skip "there is an RDMA device"
	for command in "resume --runs 1" "touch --runs 1" "peak --seconds 1 --processes 1"; do
		# shellcheck disable=SC2086 # words
		seeds $command --mb 1 --way fork --way module --way remote-module --way remote-rdma --way remote-module-rdma
		assert_rows 5 'map(select(.skipped)) | map(.runtime) == ["module", "remote-module", "remote-rdma", "remote-module-rdma"]'
		assert_rows 5 'map(select(.runtime | test("module"))) | all(.skipped | test("lean_seed is not loaded: there is no /dev/lean-seed"))'
		assert_rows 5 'map(select(.runtime == "remote-rdma")) | .[0].skipped | test("this host has no RDMA device")'
	done
	# Where there is nothing else to measure, it is one line, and a failure.
	run ! "$BENCH" resume --mb 1 --runs 1 --way module
	[[ ${lines[-1]} == "lean-bench: module: the kernel module lean_seed is not loaded: "* && ! $output =~ Traceback ]]
	# An address is lean-forkd's to refuse.
	seeds resume --mb 1 --runs 1 --way fork --way remote-rdma --rdma 127.0.0.1
	assert_rows 2 'map(select(.runtime == "remote-rdma")) | .[0].skipped | test("lean-forkd does not start: .*RDMA")'
}

# With libraries that pretend to have an adapter (tests/forkd/fake_rdma.c).
fake_adapter() {
	local build
	build=$(dirname "$(dirname "$BENCH")")/build-lib
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || build=${build%-lib}
	[ -e "$build/tests/forkd/librdmacm.so.1" ] || skip "lean-forkd is built without RDMA"
	mkdir fabric
	printf '#!/bin/sh
LD_LIBRARY_PATH=%s/tests/forkd FAKE_RDMA=%s exec %s/src/forkd/lean-forkd "$@"
' "$build" "$PWD/fabric" "$build" >forkd
	chmod +x forkd
}

@test "resume, touch and peak: memory by RDMA, which is counted" {
	fake_adapter
	seeds resume --mb 1 --runs 2 --way remote-rdma --rdma 127.0.0.1 --forkd ./forkd
	assert_rows 1 'all(.runtime == "remote-rdma" and .failed == 0 and .runs == 2 and .wall_us.min > 0)'
	seeds touch --mb 1 --runs 1 --way remote-rdma --rdma 127.0.0.1 --forkd ./forkd
	assert_rows 2 'all(.failed == 0 and .us_page > 0 and .mb_s > 0)'
	seeds peak --mb 1 --seconds 1 --processes 1 --way remote-rdma --rdma 127.0.0.1 --forkd ./forkd
	assert_rows 3 'map(select(.runtime == "remote-rdma")) | length == 1 and all(.failed == 0 and .per_second > 0)'
	# By TCP, it would be measured under a wrong name.
	sed -i 's/"\$@"/"${@\/--rdma=require\/--rdma=off}"/; s,^#!/bin/sh,#!/bin/bash,' forkd
	! seeds resume --mb 1 --runs 1 --way remote-rdma --rdma 127.0.0.1 --forkd ./forkd || return 1
	assert_rows 1 'all(.failed == 1 and (.error | test("memory came in another way: .*rdma_read_bytes_total has not grown")))'
}

# kept_function: the root of helloworld, on a base that is made of the host's Python; $of are the options that name both.
kept_function() {
	"$BATS_TEST_DIRNAME/../lib/mkpython" base
	tar -C base -cf base.tar .
	"$BATS_TEST_DIRNAME/../rootfs/mkimage" layout base.tar
	of="--function helloworld --base oci:$PWD/layout --cache $PWD/cache --way fork --way remote"
}

# wrong_function: it computes something else.
wrong_function() (
	cd cache/functions/helloworld-*/rootfs/function || exit
	rm -r __pycache__
	sed -i 's/Hello/Goodbye/' handler.py
	grep -q Goodbye handler.py
)

@test "prepare, resume and touch: a function, which gives its right answer in a child" {
	local of command
	kept_function
	of+=" --runs 2"
	# shellcheck disable=SC2086 # words
	for command in prepare resume touch; do
		seeds $command $of
		# Where it is continued makes no difference to prepare, so that has one row.
		assert_rows 1 'all(.function == "helloworld" and .mode == "helloworld" and .failed == 0 and .runs == 2 and .wall_us.min > 0)'
	done
	# shellcheck disable=SC2086
	seeds resume $of --mb 1
	assert_rows 4 'map(.mode) | unique == ["1 MB", "helloworld"]'
	wrong_function
	# shellcheck disable=SC2086
	! seeds touch $of || return 1
	assert_rows 2 'all(.failed == 1 and (.error | test("not what it was: [0-9]+ different")))'
}

@test "peak: children of a seed, and containers that are run, in turns" {
	seeds peak --seconds 1 --processes 1,2 --way fork --way remote
	assert_rows 8 'map([.runtime, .mode]) | sort == ([("cold", "fork", "remote", "run") as $r | ("1", "2") as $n
		| [$r, "1 MB, \($n) processes"]] | sort)'
	assert_rows 8 'all(.failed == 0 and .mb == 1 and .runs > 0 and .per_second > 0)'
	wrap never '[ "$verb" != restore ] || { echo "no, never" >&2; exit 3; }'
	! seeds peak --seconds 1 --processes 1 --way fork --runtime never="$PWD/never" || return 1
	assert_rows 3 'map(select(.runtime == "fork")) | length == 1 and .[0].failed == 1 and (.[0].error | test("status 3: .*no, never"))'
	assert_rows 3 'map(select(.runtime != "fork")) | all(.failed == 0)'
	wrap seedless '[ "$verb" != checkpoint ] || { echo "no seed" >&2; exit 3; }'
	! seeds peak --seconds 1 --processes 1 --way fork --runtime seedless="$PWD/seedless" || return 1
	assert_rows 3 'map(select(.failed > 0)) | length == 1 and .[0].runtime == "fork" and .[0].error == "checkpoint: no seed"'
}

@test "peak: a function, whose child has to give the right answer first, goes on after an interrupt" {
	local of pid
	kept_function
	of+=" --seconds 1 --processes 1"
	# shellcheck disable=SC2086
	"$BENCH" peak $of --mb 1 --output out.json </dev/null >out.txt 2>err.txt 3>&- &
	pid=$!
	wait_until grep -q "^peak: helloworld (2 of 2" err.txt
	kill -INT "$pid"
	! wait "$pid" || return 1
	[ "$(wc -l <out.json.partial)" = 2 ]
	# shellcheck disable=SC2086
	seeds peak $of --mb 1
	! grep -q "^peak: 1 MB (" err.txt || return 1
	assert_rows 8 'map(.mode) | unique == ["1 MB, 1 processes", "helloworld, 1 processes"]'
	assert_rows 8 'map(select(.function == "helloworld") | .runtime) | sort == ["cold", "fork", "remote", "run"]'
	assert_rows 8 'all(.failed == 0 and .runs > 0 and .per_second > 0)'
	wrong_function
	# shellcheck disable=SC2086
	! seeds peak $of || return 1
	assert_rows 4 'map(select(.runtime == "fork" or .runtime == "remote")) | length == 2
		and all(.failed == 1 and (.error | test("not what it was: [0-9]+ different")))'
}

@test "rpc: requests over TLS and without" {
	seeds rpc --seconds 1 --clients 1,3
	assert_rows 4 'map(.runtime) | unique == ["plain", "tls"]'
	assert_rows 4 'map(.clients) | unique == [1, 3]'
	assert_rows 4 'all(.failed == 0 and .runs > 0 and .per_second > 0 and .answer_us.p50 > 0 and .answer_us.p99 >= .answer_us.p50)'
}

@test "seeds: what fails is a row that has failed, with the reason" {
	wrap broken '[ "$verb" != restore ] || { echo "no, never" >&2; exit 3; }'
	! seeds resume --mb 1 --runs 2 --way fork --runtime broken="$PWD/broken" || return 1
	assert_rows 1 '.[0].failed == 1 and (.[0].error | test("status 3: no, never"))'
	wrap other '[ "$verb" != restore ] || { echo "1 different"; exit 7; }'
	! seeds resume --mb 1 --runs 2 --way fork --runtime other="$PWD/other" || return 1
	assert_rows 1 '.[0].failed == 1 and (.[0].error | test("memory is not what it was: 1 different"))'
}

@test "seeds: options that make no sense are errors" {
	for options in "--mb 0" "--mb x" "--mb 1,x" "--runs 0" "--way water"; do
		# shellcheck disable=SC2086 # words
		run ! "$BENCH" resume $options
		[[ $output =~ --(mb|runs|way) ]]
	done
	run ! "$BENCH" peak --processes 0
	[[ $output =~ --processes ]]
	run ! "$BENCH" rpc --clients 65
	[[ $output =~ --clients ]]
}
