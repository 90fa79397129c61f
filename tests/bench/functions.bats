#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench functions: roots that are whole or not there. The base is this machine's Python; nothing is fetched.

load ../lib/bench

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	"$BATS_TEST_DIRNAME/../lib/mkpython" base
	tar -C base -cf base.tar .
	"$BATS_TEST_DIRNAME/../rootfs/mkimage" layout base.tar
	rm -rf base
}

# functions NAME...: makes them, without the network.
functions() {
	local words=() name
	for name in "$@"; do words+=(--function "$name"); done
	env -u PIP_FIND_LINKS PIP_NO_INDEX=1 "$BENCH" functions --runtime lean-runtime --cache "$PWD/cache" \
		--base "oci:$BATS_FILE_TMPDIR/layout" "${words[@]}" --output out.json </dev/null >out.txt 2>err.txt
}

@test "functions are made once, and one that can't be is left out with the reason" {
	functions helloworld pyaes compression
	assert_rows 3 'map(select(.state == "built") | .function) == ["helloworld", "compression"]'
	assert_rows 3 '.[1] | .function == "pyaes" and (.skipped | startswith("packages: "))'
	grep -q 'pyaes .*packages: ' out.txt
	local root
	root=$(jq -r '.results[0].root' out.json)
	diff "$root/function/handler.py" "$(dirname "$BENCH")/functions/helloworld/handler.py"
	[ "$(stat -c %a cache/functions)" = 700 ]
	stat -c '%i %Z' "$root" >before
	functions helloworld compression
	assert_rows 2 'all(.state == "cached")'
	stat -c '%i %Z' "$root" | diff before -
	# nothing but them, the lock and the base's tree
	[ "$(find cache/functions -mindepth 1 -maxdepth 1 | wc -l)" = 4 ]
}

@test "a base whose links lead out: nothing is made on the host" {
	local name
	mkdir outside
	for name in run function; do
		rm -rf links cache layout
		mkdir links
		ln -s "$PWD/outside" "links/$name"
		tar -C links -cf links.tar "$name"
		"$BATS_TEST_DIRNAME/../rootfs/mkimage" layout "$BATS_FILE_TMPDIR/base.tar,links.tar"
		"$BENCH" functions --runtime lean-runtime --cache "$PWD/cache" --base "oci:$PWD/layout" --function helloworld \
			--output out.json >out.txt 2>err.txt </dev/null || true
		[ -z "$(ls outside)" ]
		assert_rows 1 '.[0].skipped | test("the base has (a link on the way to|no place for) /")'
	done
}

@test "another function is another root, and a wrong answer is none" {
	functions helloworld
	local first old top
	first=$(jq -r '.results[0].root' out.json)
	top=$(dirname "$(dirname "$BENCH")")
	mkdir other
	cp -r "$top/bench" other/
	ln -s "$top"/{build,contrib,include} other/
	BENCH=$PWD/other/bench/lean-bench
	# That of the other checkout, then the same of this one.
	echo '# changed' >>other/bench/functions/helloworld/handler.py
	functions helloworld
	old=$(jq -r '.results[0].root' out.json)
	[ "$old" != "$first" ]
	[ -e "$first" ]
	echo '# again' >>other/bench/functions/helloworld/handler.py
	functions helloworld
	assert_rows 1 '.[0].state == "built"'
	[ "$(jq -r '.results[0].root' out.json)" != "$old" ]
	[ ! -e "$old" ]
	sed -i 's/Hello/Good bye/' other/bench/functions/helloworld/handler.py
	bench_fails functions helloworld
	assert_rows 1 '.[0] | .failed == 1 and (.error | contains("Good bye")) and (has("state") | not)'
	! find cache/functions -name 'making-*' | grep . || false
	! grep -rqs 'Good bye' cache/functions/helloworld-*
}

# Its steps end with it: what runs when the signal comes is a program that would never end.
@test "stopped half-way, nothing runs on, and the next call makes it whole" {
	local signal pid
	mkdir programs
	printf '#!/bin/sh\necho $$ >%s/running\nsleep 1000.%s\n' "$PWD" "$$" >programs/chroot
	chmod +x programs/chroot
	for signal in TERM INT KILL; do
		PATH="$PWD/programs:$PATH" functions_begin
		kill -"$signal" "$pid"
		wait "$pid" 2>/dev/null || true
		wait_for "! pgrep -f 'sleep 1000.$$'"
		[ "$signal" = KILL ] || [ -z "$(find cache/functions -name 'making-*')" ]
		[ -z "$(find cache/functions -name 'helloworld-*')" ]
		rm running
	done
	rm -rf "$BATS_TEST_TMPDIR"/lean-bench-* # of the one that was killed
	functions helloworld
	assert_rows 1 '.[0].state == "built"'
	[ -z "$(find cache/functions -name 'making-*')" ]
}

# Until its chroot runs; sets pid.
functions_begin() {
	"$BENCH" functions --runtime lean-runtime --cache "$PWD/cache" --base "oci:$BATS_FILE_TMPDIR/layout" --function helloworld \
		</dev/null >out.txt 2>err.txt 3>&- &
	pid=$!
	wait_for '[ -s running ]'
}

wait_for() {
	local i
	for ((i = 0; i < 600; i++)); do
		! eval "$1" >/dev/null || return 0
		sleep 0.1
	done
	echo "never: $1" >&2
	return 1
}

@test "a cache of somebody else's is refused, what is half-made goes, and two at once make one" {
	python3 "$BATS_TEST_DIRNAME/check-cache.py" "$(dirname "$BENCH")" "$PWD/kept"
}
