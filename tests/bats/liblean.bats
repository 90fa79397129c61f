#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# liblean as its users meet it: installed, found by pkg-config, linked either way; and what it starts,
# as the command line sees it. Its functions one by one: tests/unit/liblean.

load ../lib/helpers.bash

TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# The build directory that has the library: `make` has a second one where the program is built by
# musl-gcc.
library_build() {
	local dir
	for dir in ${LIBLEAN_BUILD-} "${LEAN_RUNTIME%/src/cli/*}-lib" "${LEAN_RUNTIME%/src/cli/*}" \
		"$TOP/build-lib" "$TOP/build"; do
		[ ! -e "$dir/src/liblean/liblean.so" ] || { echo "$dir"; return; }
	done
}

setup_file() {
	local build
	build=$(library_build)
	[ -z "${LR_SANITIZED-}" ] && [ -n "$build" ] && command -v meson >/dev/null && command -v pkg-config >/dev/null || return 0
	INSTALLED=$BATS_FILE_TMPDIR/installed
	DESTDIR=$INSTALLED meson install -C "$build" --no-rebuild --quiet >&2 || return 1
	local pc
	pc=$(find "$INSTALLED" -name lean.pc)
	export INSTALLED PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$INSTALLED
	LIBDIR=$(pkg-config --variable=libdir lean)
	export LIBDIR=$INSTALLED${LIBDIR#"$INSTALLED"}
}

setup() {
	lean_only "has no library"
	cgroupfs_only "the library knows no systemd"
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized library needs a sanitized program; its unit tests are one"
	[ -n "${INSTALLED-}" ] || skip "no library was built, or no meson, or no pkg-config"
	common_setup
	cfg 'del(.linux.cgroupsPath)'
	export LD_LIBRARY_PATH=$LIBDIR
}

teardown() {
	[ -n "${ROOT-}" ] || return 0
	signal_remembered KILL
	rt pool drain || true
	common_teardown
}

# build OUTPUT SOURCE [shared|static|all-static]
build() {
	local libs
	read -ra libs <<<"$(pkg-config --cflags --libs lean)"
	case ${3-shared} in
	shared) cc -o "$1" "$TOP/$2" "${libs[@]}" ;;
	static) cc -o "$1" "$TOP/$2" "${libs[@]/-llean/-l:liblean.a}" ;;
	all-static) cc -static -o "$1" "$TOP/$2" "${libs[@]}" ;;
	esac
}

ready_or_gone() {
	grep -q ready host.out || ! kill -0 "$HOST"
}

start_host() { # [PROFILE]
	build host tests/liblean/host.c
	./host "$BUNDLE" "$ROOT" "$ID" "$@" >host.out 2>&1 3>&- &
	HOST=$!
	remember "$HOST"
	wait_until ready_or_gone
	grep -q ready host.out || { cat host.out >&2; return 1; }
}

@test "liblean: the example, by the shared library" {
	build hello examples/hello.c
	LEAN_ROOT=$ROOT run -0 ./hello "$BUNDLE" 3 none
	assert_has "$output" "3 containers, the last one ended with status 0"
	LEAN_ROOT=$ROOT run -0 ./hello "$BUNDLE" 3 lean
	assert_has "$output" "3 containers, the last one ended with status 0"
}

@test "liblean: the example, by the archive" {
	for how in static all-static; do
		build hello examples/hello.c $how
		LEAN_ROOT=$ROOT run -0 ./hello "$BUNDLE" 2 none
		assert_has "$output" "2 containers, the last one ended with status 0"
	done
}

# CVE-2019-5736. The library's own answer, a program in between, is in its unit test.
@test "liblean: what a container finds of a protected program cannot be written" {
	# It is executed in the container, and could find the way to its file there.
	printf '#!/proc/self/exe\n' >"$BUNDLE/rootfs/evil"
	chmod +x "$BUNDLE/rootfs/evil"
	cfg '.process.args = ["/evil"]'
	build host tests/liblean/host.c all-static
	PROTECT=1 run -42 ./host "$BUNDLE" "$ROOT" "$ID"
	assert_eq "$(rt list -q)" ""
}

@test "liblean: the archive clashes with nothing" {
	build host tests/liblean/host.c all-static
	run -0 nm -g --defined-only "$LIBDIR/liblean.a"
	assert_hasnt "$output" " lr_"
	assert_hasnt "$output" " seccomp_"
}

@test "liblean: what the headers declare is exported, and nothing else" {
	local headers declared exported pages
	headers=$(find "$INSTALLED" -path '*/include/lean/*.h')
	# shellcheck disable=SC2086 # one word each
	declared=$(sed -n 's/^[a-z].*\b\(lean_[a-z_]*\)(.*/\1/p' $headers | sort)
	exported=$(nm -D --defined-only "$LIBDIR/liblean.so" | sed -n 's/.* T \([^@]*\).*/\1/p' | sort)
	assert_eq "$exported" "$declared"
	assert_eq "$(nm -g --defined-only "$LIBDIR/liblean.a" | sed -n 's/.* [TDBR] //p' | sort)" "$declared"
	pages=$(find "$INSTALLED" -name 'lean_*.3' -printf '%f\n' | sed 's/\.3$//' | sort)
	assert_eq "$pages" "$declared"
}

@test "liblean: the header is C and C++" {
	echo '#include <lean/lean.h>' >h.c
	cp h.c h.cc
	local flags
	read -ra flags <<<"$(pkg-config --cflags lean)"
	cc -std=c99 -Wall -Wextra -Werror -pedantic "${flags[@]}" -c h.c -o /dev/null
	! command -v c++ >/dev/null || c++ -Wall -Werror "${flags[@]}" -c h.cc -o /dev/null
}

@test "liblean: the command line works on its containers" {
	sh_cfg 'sleep 600'
	start_host
	assert_eq "$(status_of "$ID")" running
	run -0 rt list -q
	assert_has "$output" "$ID"
	run -0 rt exec "$ID" echo inside
	assert_has "$output" inside
	run -0 rt pause "$ID"
	run -0 rt resume "$ID"
	run -0 rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	run -0 rt delete "$ID"
}

@test "liblean: what a container's start puts into memory counts for its limit" {
	mkdir "$BUNDLE/rootfs/big"
	head -c 41943040 /dev/zero >"$BUNDLE/rootfs/big/file"
	cfg '.mounts += [{destination: "/big", type: "tmpfs", source: "tmpfs", options: ["tmpcopyup"]}]'
	cfg '.linux.resources.memory = {"limit": 8388608, "swap": 8388608}'
	build host tests/liblean/host.c
	for profile in none lean; do
		# Refused, or killed: 137. Without a limit it ends with 0.
		PROTECT=1 run ! timeout 60 ./host "$BUNDLE" "$ROOT" "$ID" $profile
		[ "$status" != 124 ]
	done
	# Within it, the container's cgroup has them, and not the program's.
	sh_cfg 'sleep 600'
	cfg --arg id "$ID" '.linux.cgroupsPath = "/" + $id'
	cfg '.linux.resources.memory = {"limit": 134217728, "swap": 134217728}'
	start_host
	[ "$(cat "$(cgroup_file memory memory.usage_in_bytes memory.current)")" -gt 41943040 ]
	rt delete --force "$ID"
}

@test "liblean: a program that is killed leaves what delete --force removes" {
	sh_cfg 'sleep 600'
	for profile in none lean; do
		start_host $profile
		kill -9 "$HOST"
		wait "$HOST" || true
		assert_eq "$(status_of "$ID")" running
		run -0 rt delete --force "$ID"
		run ! rt state "$ID"
		new_id
	done
}

@test "liblean: a program that is killed while it starts one leaves what delete --force removes" {
	build hello examples/hello.c
	local delay=5 left=0 id
	until [ "$left" -ge 4 ]; do
		LEAN_ROOT=$ROOT timeout -s KILL "0.$(printf %03d "$delay")" ./hello "$BUNDLE" 100000 none >/dev/null 2>&1 || true
		# What was let go goes on, and ends by itself.
		for id in "$ROOT"/*; do
			[ -e "$id" ] || continue
			left=$((left + 1))
			run -0 rt delete --force "${id##*/}"
		done
		delay=$((delay + 7))
		[ "$delay" -lt 900 ] || fail "nothing was left after most of the kills"
	done
}
