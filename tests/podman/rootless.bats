#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Podman as an ordinary user: no root anywhere, user namespace by newuidmap, and its default network,
# which is slirp4netns, or pasta.

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
	# Elsewhere everybody may open it; here perhaps root only.
	mknod "$POD_DIR/tun" c 10 200
	chmod 666 "$POD_DIR/tun"
	mount --bind "$POD_DIR/tun" /dev/net/tun
	less import "$TMPDIR/rootfs.tar" bb >"$POD_DIR/log" 2>&1 || { cat "$POD_DIR/log" >&2; return 1; }
	less import -c 'ENTRYPOINT ["/bin/sleep", "3000"]' "$TMPDIR/rootfs.tar" infra >/dev/null 2>>"$POD_DIR/log"
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
	less pod rm -f -a -t 0 >/dev/null
	less rm -f -a -t 0 >/dev/null
}

lrun() {
	less run --name "$NAME" "$@"
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

# Of slirp4netns; of pasta, in a sandbox whose host has none either.
ADDRESS='inet (10\.0\.2\.100/24|169\.254\.2\.1/16) '

@test "rootless: the default network, without one, and the host's" {
	run -0 lrun --rm bb sh -c 'ip -o -4 addr show tap0; readlink /proc/self/ns/net'
	assert_match "$output" "$ADDRESS"
	assert_hasnt "$output" "$(readlink /proc/self/ns/net)"
	run -0 lrun --rm --network none bb ip -o link
	assert_hasnt "$output" tap0
	run -0 lrun --rm --network host bb readlink /proc/self/ns/net
	assert_eq "$output" "$(readlink /proc/self/ns/net)"
}

said() { # PORT TEXT
	timeout 30 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && cat <&3' bash "$1" | grep -qx "$2"
}

@test "rootless: a published port" {
	run -0 lrun -d -p 127.0.0.1:18080:80 bb sh -c 'while :; do echo from the container | nc -l -p 80; done'
	wait_until said 18080 "from the container"
	run -0 less exec "$NAME" ip -o -4 addr show tap0
	assert_match "$output" "$ADDRESS"
	less stop -t 0 "$NAME"
	run -0 less start "$NAME"
	wait_until said 18080 "from the container"
}

@test "rootless: a pod shares its network, and its pid namespace if it is told to" {
	run -0 less pod create --name "$NAME" --share net,uts,ipc,pid -p 127.0.0.1:18081:80
	run -0 less run -d --pod "$NAME" --name "$NAME-server" bb sh -c 'while :; do echo from the pod | nc -l -p 80; done'
	wait_until said 18081 "from the pod"
	run -0 less run --rm --pod "$NAME" bb sh -c 'nc 127.0.0.1 80 </dev/null; ps'
	assert_has "$output" "from the pod"
	assert_has "$output" "sleep 3000"
	run -0 less exec "$NAME-server" sh -c 'readlink /proc/self/ns/net; readlink /proc/1/ns/net'
	assert_eq "${lines[0]}" "${lines[1]}"
}

@test "rootless: the network of another container, and a user namespace of its own" {
	run -0 lrun -d bb sleep 3000
	run -0 less run --rm --network "container:$NAME" --pid "container:$NAME" bb sh -c 'ip -o -4 addr show tap0; ps'
	assert_match "$output" "$ADDRESS"
	assert_has "$output" "sleep 3000"
	run -0 less run --rm --userns keep-id bb sh -c 'id -u; ip -o -4 addr show tap0'
	assert_has "$output" "61235"
	assert_match "$output" "$ADDRESS"
}
