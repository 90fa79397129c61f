#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Buildah as root: builds and runs with the runtime by --runtime.

load ../lib/daemon.bash

# The runtime's options are a build's too: `buildah build` is `buildah bud` by its newer name.
setup_file() {
	export B_DIR=$TMPDIR/buildah
	mkdir -p "$B_DIR/context"
	rootfs_tar "$B_DIR/context/rootfs.tar"
	# What it asks the runtime for.
	cat >"$B_DIR/runtime" <<-END
		#!/bin/sh
		echo "\$*" >>$B_DIR/calls
		exec $LEAN_RUNTIME "\$@"
	END
	chmod +x "$B_DIR/runtime"
	containerfile 'RUN echo built >/made'
	build -t base >"$B_DIR/log" 2>&1 || { cat "$B_DIR/log" >&2; return 1; }
}

setup() {
	: >"$B_DIR/calls"
}

teardown() {
	bd rm --all >/dev/null
	assert_clean "$B_DIR/root/overlay/"
}

bd() {
	buildah --root "$B_DIR/root" --runroot "$B_DIR/run" --storage-driver overlay "$@" 3>&-
}

containerfile() {
	printf '%s\n' 'FROM scratch' 'ADD rootfs.tar /' "$@" >"$B_DIR/context/Containerfile"
}

build() {
	bd bud --isolation oci --runtime "$B_DIR/runtime" --network none --cgroup-parent "/$LR_SANDBOX_TAG" "$@" "$B_DIR/context"
}

# brun [buildah's options --] CONTAINER COMMAND...
brun() {
	bd run --isolation oci --runtime "$B_DIR/runtime" --network none "$@"
}

@test "buildah bud: RUN, users, mounts, and the same sequence of calls for each" {
	containerfile 'RUN id -u && echo built >/made' 'RUN --mount=type=tmpfs,target=/t touch /t/x && grep " /t tmpfs" /proc/mounts' \
		'USER 1000' 'WORKDIR /work' 'RUN id -u && pwd'
	run -0 build -t image
	assert_match "$output" $'\n0\n'
	assert_has "$output" " /t tmpfs"
	assert_match "$output" $'\n1000\n/work\n'
	# It asks for the state until the program has ended.
	assert_eq "$(awk '{print $1}' "$B_DIR/calls" | uniq | sort | uniq -c | awk '{print $1, $2}' | sort -k 2)" \
		$'3 create\n3 delete\n3 start\n3 state'
	run -0 brun "$(bd from image)" cat /made
	assert_eq "$output" built
}

@test "buildah bud: a RUN that fails fails the build with its exit code" {
	containerfile 'RUN exit 3'
	run -3 build -t broken
	assert_has "$output" "exit status 3"
	containerfile 'RUN ["/no/such/program"]'
	run build -t broken
	[ "$status" != 0 ]
	output=${output//\\\"/\"} # the text form of the log escapes quotes
	assert_has "$output" 'exec: "/no/such/program": stat /no/such/program: no such file or directory'
}

@test "buildah bud: what the runtime has to say beside is one line at most" {
	# It asks for ambient capabilities that are not inheritable, in each RUN.
	containerfile 'RUN true'
	run -0 build -t quiet
	[ "$(grep -c level= <<<"$output")" -le 1 ] || fail "$output"
}

@test "buildah run: output, input, exit code, user, working directory" {
	local c
	c=$(bd from base)
	run -7 brun --user 1000 --workingdir /etc "$c" sh -c 'id -u; pwd; exit 7'
	assert_match "$output" $'1000\n/etc'
	run -0 brun "$c" cat <<<"typed in"
	assert_has "$output" "typed in"
	run brun "$c" no-such-program
	[ "$status" != 0 ]
	output=${output//\\\"/\"}
	assert_has "$output" 'exec: "no-such-program": executable file not found in $PATH'
}

@test "buildah run: volumes, hostname, capabilities" {
	local c
	c=$(bd from base)
	mkdir "$BATS_TEST_TMPDIR/volume"
	run -0 brun -v "$BATS_TEST_TMPDIR/volume:/v" --cap-add CAP_SYS_TIME --hostname built "$c" \
		sh -c 'touch /v/x; hostname; grep CapBnd /proc/self/status'
	[ -e "$BATS_TEST_TMPDIR/volume/x" ]
	assert_has "$output" built
	local bounding
	bounding=$(sed -n 's/^CapBnd:\s*//p' <<<"$output" | tr -d '\r')
	[ $((0x$bounding >> 25 & 1)) = 1 ] || fail "$output"
}

@test "buildah run: a terminal" {
	local words
	mapfile -t words < <(printf '%s\n' buildah --root "$B_DIR/root" --runroot "$B_DIR/run" --storage-driver overlay \
		run --tty --isolation oci --runtime "$B_DIR/runtime" --network none "$(bd from base)" sh -c 'tty; echo done')
	run -0 "$LR_LIB/on-pty" -- "${words[@]}"
	assert_has "$output" /dev/pts/0
	assert_has "$(cat "$B_DIR/calls")" "--console-socket"
}

@test "buildah run: flags for the runtime, in front of its command" {
	run -0 bd run --isolation oci --runtime "$B_DIR/runtime" --runtime-flag log-level=error --network none "$(bd from base)" true
	assert_match "$(head -n 1 "$B_DIR/calls")" "^--log-level=error create "
}
