#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Podman as an ordinary user: no root anywhere, user namespace by newuidmap.

load podman.bash

setup_file() {
	export POD_DIR=$TMPDIR/rootless LESS_UID=61235
	command -v newuidmap >/dev/null || skip "newuidmap is not installed (uidmap)"
	# The sandbox's /etc is a layer of its own.
	echo "leanuser:x:$LESS_UID:$LESS_UID::$POD_DIR/home:/bin/bash" >>/etc/passwd
	echo "leanuser:x:$LESS_UID:" >>/etc/group
	echo "leanuser:800000:65536" >>/etc/subuid
	echo "leanuser:800000:65536" >>/etc/subgid
	chmod 755 "$TMPDIR"
	mkdir -p "$POD_DIR/home" "$POD_DIR/xdg" "$POD_DIR/tmpdir"
	[ -e "$TMPDIR/rootfs.tar" ] || rootfs_tar "$TMPDIR/rootfs.tar"
	chmod 644 "$TMPDIR/rootfs.tar"
	# The runtime must be reachable for that user.
	cp "$LEAN_RUNTIME" "$POD_DIR/runtime"
	LEAN_RUNTIME=$POD_DIR/runtime write_conf "$POD_DIR/containers.conf"
	chmod 755 "$POD_DIR" "$POD_DIR/runtime"
	chmod 644 "$POD_DIR/containers.conf"
	chown -R $LESS_UID:$LESS_UID "$POD_DIR/home" "$POD_DIR/xdg" "$POD_DIR/tmpdir"
	chmod 700 "$POD_DIR/xdg"
	less import "$TMPDIR/rootfs.tar" bb >"$POD_DIR/log" 2>&1 || { cat "$POD_DIR/log" >&2; return 1; }
}

less() {
	(
		cd "$POD_DIR/home" || exit 1
		exec setpriv --reuid "$LESS_UID" --regid "$LESS_UID" --clear-groups env -i HOME="$POD_DIR/home" USER=leanuser \
			PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin XDG_RUNTIME_DIR="$POD_DIR/xdg" TMPDIR="$POD_DIR/tmpdir" \
			CONTAINERS_CONF="$POD_DIR/containers.conf" podman --storage-driver vfs --events-backend none "$@" 3>&-
	)
}

setup() {
	NAME=c$BATS_TEST_NUMBER
}

teardown() {
	less rm -f -a -t 0 >/dev/null
}

lrun() {
	less run --network none --name "$NAME" "$@"
}

@test "rootless: run, exit code, ids" {
	run -0 lrun --rm bb sh -c 'id -u; cat /proc/self/uid_map; touch /tmp/x && stat -c %u /tmp/x'
	assert_match "$output" $'0\n +0 +61235 +1\n +1 +800000 +65536\n0$'
	run -7 lrun --rm bb sh -c 'exit 7'
}

@test "rootless: detached, exec, stop" {
	run -0 lrun -d bb sh -c 'trap "exit 3" TERM; while :; do sleep 0.1; done'
	run -0 less exec "$NAME" id -u
	assert_has "$output" 0
	run -5 less exec -u 1000 "$NAME" sh -c 'exit 5'
	less stop -t 10 "$NAME"
	assert_eq "$(less inspect -f '{{.State.ExitCode}}' "$NAME")" 3
}

@test "rootless: --user, volumes, read-only, mounts" {
	mkdir -p "$POD_DIR/home/vol"
	chown "$LESS_UID" "$POD_DIR/home/vol"
	run -0 lrun --rm --user 1000 --read-only -v "$POD_DIR/home/vol:/v:ro" --tmpfs /t bb sh -c 'id -u; touch /v/x || touch /x || touch /t/y && echo wrote t; cat /proc/mounts | grep -c sysfs'
	assert_has "$output" "1000"
	assert_has "$output" "wrote t"
}

@test "rootless: no such program is 127" {
	run -127 lrun --rm bb no-such-program
	assert_has "$output" "executable file not found in"
}

@test "rootless: the caller's own name space ids (--userns keep-id)" {
	run -0 lrun --rm --userns keep-id bb id -u
	assert_eq "$output" 61235
}
