#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench sysbench: its figures are those that sysbench reports, and a run that went wrong has none.

load ../lib/bench

@test "every figure of every test, on the host and in a container" {
	bench sysbench --root host --runs 1 --seconds 1 --file-size 16M --runtime lean-runtime
	assert_rows 14 'length == 14 and all(.failed == 0 and .runs == 1)'
	assert_rows 14 'map(select(.runtime == "host")) | map(.mode) ==
		["cpu", "threads", "memory", "file prepare", "file seqrd", "file seqwr", "file rndrw"]'
	assert_rows 14 'map(select(.mode == "cpu" or .mode == "threads")) |
		length == 4 and all(.events_per_second.p50 > 0 and .latency_ms_p95.p50 > 0)'
	assert_rows 14 'map(select(.mode == "memory")) |
		length == 2 and all(.mib_per_second.p50 > 0 and .operations.p50 > 0)'
	assert_rows 14 'map(select(.mode == "file seqrd")) | length == 2 and all(.read_mib_per_second.p50 > 0)'
	assert_rows 14 'map(select(.mode == "file seqwr")) | length == 2 and all(.written_mib_per_second.p50 > 0)'
	assert_rows 14 'map(select(.mode == "file rndrw")) |
		length == 2 and all(.read_mib_per_second.p50 > 0 and .written_mib_per_second.p50 > 0)'
	local version
	version=$(sysbench --version | cut -d' ' -f 1-2)
	assert_rows 14 "all(.ratio_host_p50 > 0 and .sysbench == \"$version\")"
	# What the seed has stands apart, and isn't a row.
	grep -q '^On other hardware: ' out.txt
	grep -q '^memory operations .*104857600$' out.txt
}

@test "a neighbour of each kind gives figures, too" {
	local with=(--runtime bwrap)
	for name in systemd-nspawn lxc-execute; do
		! command -v $name >/dev/null || with+=(--runtime "$name")
	done
	bench sysbench --root host --runs 1 --seconds 1 --file-size 1M --no-host --test file "${with[@]}"
	assert_rows 4 'all(.failed == 0 and .mib_per_second.p50 > 0)'
}

@test "a sysbench that fails, lies or never ends is no sample" {
	false_sysbench
	local rest=(--root "$PWD/root" --runs 1 --seconds 1 --file-size 1M --output out.json)
	# Without a fault the same script's figures count: what follows is found for what is wrong with it.
	# And who isn't installed is a row that says so.
	bench sysbench "${rest[@]}" --test cpu --test file
	assert_rows 10 'all(.failed == 0)'
	local name
	for name in host lean-runtime lean crun runc youki bwrap systemd-nspawn lxc-execute; do
		case $name in host | lean*) true ;; *) command -v $name >/dev/null ;; esac || {
			assert_rows 1 "map(select(.runtime == \"$name\") | .skipped) == [\"not installed\"]"
			continue
		}
		assert_rows 1 "map(select(.runtime == \"$name\" and .mode == \"cpu\") | .events_per_second.p50) == [111]"
		assert_rows 1 "map(select(.runtime == \"$name\" and .mode == \"file rndrw\") | .mib_per_second.p50) == [444]"
	done
	touch root/etc/one
	bench_fails "$BENCH" sysbench "${rest[@]}" --runtime crun
	none_of cpu 'status 1: out of order'
	none_of threads 'it ended after 0.5 s of 1'
	none_of memory 'sysbench reported no mib_per_second'
	none_of 'file prepare' 'sysbench wrote 1048576 bytes, and 10 are there'
	none_of 'file seqrd' 'not prepared'
	mv root/etc/one root/etc/two
	# All others have to be quicker than that, on a busy machine, too.
	bench_fails "$BENCH" sysbench "${rest[@]}" --patience 8 --runtime crun
	none_of cpu "this wasn't sysbench 9.9.9"
	none_of threads 'no end within 9 s'
	none_of memory 'sysbench reported a mib_per_second of 0'
	none_of 'file prepare' 'files are left after cleanup'
	none_of 'file seqrd' 'sysbench reported a mib_per_second of 0'
	run ! pgrep -f '^sleep 55[5]'
}

@test "stopped half-way, by either signal, nothing is left" {
	local name signal
	for name in lean-runtime bwrap systemd-nspawn lxc-execute; do
		[ $name = lean-runtime ] || command -v $name >/dev/null || continue
		[ "${signal-}" = INT ] && signal=TERM || signal=INT
		"$BENCH" sysbench --root host --runs 1 --seconds 100 --no-host --test cpu --runtime $name --output out.json \
			</dev/null >out.txt 2>&1 3>&- &
		local bench=$!
		for _ in $(seq 300); do
			! pgrep -f '^/usr/bin/sysbench cp[u]' >/dev/null || break
			sleep 0.1
		done
		pgrep -f '^/usr/bin/sysbench cp[u]'
		kill -$signal $bench
		wait $bench && return 1
		grep -q '^lean-bench: stopped$' out.txt || { cat out.txt; return 1; }
		run ! pgrep -f 'cp[u]-max-prime'
		[ ! -e out.json ]
		! ls -d "$BATS_TEST_TMPDIR"/lean-bench-* || return 1
		[ "$(find /sys/fs/cgroup -type d \( -path "*$name-default-sysbench*" -o -name "lean-bench-lxc-$bench" \))" = '' ]
		rm -f out.json.partial
	done
}

# none_of MODE REASON: both rows, the host's and the container's, failed for that, and have no figure.
none_of() {
	jq -e --arg mode "$1" --arg why "$2" '.results | map(select(.mode == $mode)) | length == 2 and
		all(.runs == 1 and .failed == 1 and .error == $why and (has("total_time_s") or has("mib_per_second") | not))' \
		out.json >/dev/null || {
		echo "not both rows of $1 have failed with $2:" >&2
		jq -c ".results[] | select(.mode == \"$1\")" out.json >&2
		return 1
	}
}

# A root whose sysbench is a script: it measures nothing, and says what is expected unless etc/one or etc/two is there.
false_sysbench() {
	mkdir -p root/{bin,dev,etc,mnt,proc,root,run,sys,tmp,usr/bin,var}
	cp "$(command -v busybox)" root/bin/sh
	cat >root/usr/bin/sysbench <<-'SH'
		#!/bin/sh
		etc=${0%/usr/bin/sysbench}/etc fault=
		for f in one two; do [ ! -e "$etc/$f" ] || fault=$f; done
		case $fault,$* in
		two,cpu*) exit ;;
		two,threads*) sleep 555 ;;
		esac
		time=1.0001 rate=222.00
		echo 'sysbench 9.9.9 (made of nothing)'
		case $fault,$* in
		*,--version) exit ;;
		one,threads*) time=0.5000 ;;
		two,memory* | two,fileio*) rate=0.00 ;;
		esac
		case $* in
		cpu*) echo '    events per second:   111.00' ;;
		memory*)
			echo 'Total operations: 333 (333.00 per second)'
			[ "$fault" = one ] || echo "3.33 MiB transferred ($rate MiB/sec)"
			;;
		*prepare)
			if [ "$fault" = one ]; then echo 123456789 >test_file.0; else dd if=/dev/zero of=test_file.0 bs=1024 count=1024; fi
			echo '1048576 bytes written in 0.01 seconds (100.00 MiB/sec).'
			exit
			;;
		*cleanup)
			[ "$fault" = two ] || rm test_file.0
			exit
			;;
		fileio*)
			echo "    read, MiB/s:                  $rate"
			echo "    written, MiB/s:               $rate"
			;;
		esac
		cat <<-END
			    total time:                          ${time}s
			    total number of events:              444

			Latency (ms):
			         min:                                    0.10
			         avg:                                    0.20
			         max:                                    0.30
			         95th percentile:                        0.25
		END
		case $fault,$* in
		one,cpu*) echo 'out of order' && exit 1 ;;
		esac
	SH
	chmod +x root/usr/bin/sysbench
	for applet in cat dd rm sleep; do ln -s sh root/bin/$applet; done
}
