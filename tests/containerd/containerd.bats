#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# containerd's own shim (io.containerd.runc.v2) by ctr, with BinaryName and with --runc-binary.

load ../lib/daemon.bash

setup_file() {
	export CD_DIR=$TMPDIR/containerd
	mkdir -p "$CD_DIR"
	cat >"$CD_DIR/config.toml" <<-END
		version = 2
		root = "$CD_DIR/root"
		state = "$CD_DIR/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
		  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
		[grpc]
		  address = "$CD_DIR/sock"
		[ttrpc]
		  address = "$CD_DIR/ttrpc"
	END
	containerd --config "$CD_DIR/config.toml" </dev/null >"$CD_DIR/log" 2>&1 3>&- &
	note_process $! >"$CD_DIR/daemon"
	wait_until ctr -a "$CD_DIR/sock" version || { tail "$CD_DIR/log" >&2; return 1; }
	make_image
	ct image import "$CD_DIR/image.tar" >/dev/null
}

teardown_file() {
	end_process "$(cat "$CD_DIR/daemon")"
	if [ -n "${LR_TEST_LOGS-}" ]; then
		mkdir -p "$LR_TEST_LOGS"
		cp "$CD_DIR/log" "$LR_TEST_LOGS/containerd.log"
	fi
}

# An image of one layer in the form of `docker save`, with nothing but tar and sha256sum.
make_image() {
	local d=$CD_DIR/image sum
	mkdir -p "$d"
	rootfs_tar "$d/layer.tar"
	sum=$(sha256sum "$d/layer.tar" | cut -d' ' -f1)
	jq -n --arg s "sha256:$sum" --arg a "$(dpkg --print-architecture 2>/dev/null || echo amd64)" '{architecture: $a, os: "linux",
		config: {Env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], Cmd: ["sh"]}, rootfs: {type: "layers", diff_ids: [$s]}}' >"$d/config.json"
	echo '[{"Config": "config.json", "RepoTags": ["test.local/bb:1"], "Layers": ["layer.tar"]}]' >"$d/manifest.json"
	tar -C "$d" -cf "$CD_DIR/image.tar" manifest.json config.json layer.tar
}

ct() {
	ctr -a "$CD_DIR/sock" "$@" 3>&-
}

IMAGE=test.local/bb:1

# crun ... NAME ARGS: ctr run with our runtime
crun() {
	ct run --runc-binary "$LEAN_RUNTIME" --cgroup "/$LR_SANDBOX_TAG/$NAME" "$@"
}

setup() {
	NAME=c$BATS_TEST_NUMBER
}

teardown() {
	local c
	for c in $(ct task ls -q); do
		ct task kill -a -s KILL "$c" >/dev/null 2>&1 || true
		wait_until eval "ct task ls | grep -E '^$c .*STOPPED'" >/dev/null || true
		ct task rm -f "$c" >/dev/null 2>&1 || true
	done
	for c in $(ct container ls -q); do
		ct container rm "$c" >/dev/null 2>&1 || true
	done
	assert_clean "$CD_DIR/state/io.containerd.runtime"
}

@test "ctr run: output and exit code" {
	run -0 crun --rm $IMAGE "$NAME" echo hello
	assert_eq "$output" hello
	run -42 crun --rm $IMAGE "$NAME" sh -c 'exit 42'
}

@test "ctr run: it is this runtime that ran" {
	printf '#!/bin/sh\necho "$*" >>%s\nexec %s "$@"\n' "$CD_DIR/calls" "$LEAN_RUNTIME" >"$CD_DIR/wrapper"
	chmod 755 "$CD_DIR/wrapper"
	run -0 ct run --rm --runc-binary "$CD_DIR/wrapper" --cgroup "/$LR_SANDBOX_TAG/$NAME" $IMAGE "$NAME" true
	assert_match "$(cat "$CD_DIR/calls")" "--root [^ ]+ --log [^ ]+/log.json --log-format json create --bundle"
	assert_has "$(cat "$CD_DIR/calls")" " start "
	assert_has "$(cat "$CD_DIR/calls")" " delete "
}

@test "ctr run: standard input" {
	# ctr itself never passes the end of its input on, so the program must not wait for it.
	run -0 crun --rm $IMAGE "$NAME" sh -c 'read x; echo "got $x"' <<<"typed in"
	assert_has "$output" "got typed in"
}

@test "ctr run: errors come through" {
	run ! crun --rm $IMAGE "$NAME" no-such-program
	assert_has "$output" "executable file not found in"
	run ! crun --rm $IMAGE "$NAME" /no/such
	assert_has "$output" "no such file or directory"
	assert_hasnt "$output" "unable to retrieve OCI runtime error"
}

@test "ctr run -d, task ls, ps, exec, kill, rm" {
	crun -d $IMAGE "$NAME" sleep 300
	run -0 ct task ls
	assert_match "$output" "$NAME +[0-9]+ +RUNNING"
	run -0 ct task ps "$NAME"
	assert_match "$output" '[0-9]+'
	run -0 ct task exec --exec-id e1 "$NAME" sh -c 'echo inside; cat /proc/1/comm'
	assert_eq "$output" $'inside\nsleep'
	run -9 ct task exec --exec-id e2 "$NAME" sh -c 'exit 9'
	run -0 ct task exec --exec-id e3 --cwd /usr "$NAME" pwd
	assert_eq "$output" /usr
	run ! ct task exec --exec-id e4 "$NAME" no-such-program
	assert_has "$output" "executable file not found in"
	ct task kill -s KILL "$NAME"
	wait_until eval 'ct task ls | grep -q "$NAME .*STOPPED"'
	ct task rm "$NAME" || true
	ct container rm "$NAME"
}

@test "ctr task kill: by signal" {
	crun -d $IMAGE "$NAME" sh -c 'trap "exit 7" USR1; while :; do sleep 0.1; done'
	sleep 0.3
	ct task kill -s USR1 "$NAME"
	wait_until eval 'ct task ls | grep -q "$NAME .*STOPPED"'
}

@test "ctr task pause and resume" {
	crun -d $IMAGE "$NAME" sleep 300
	ct task pause "$NAME"
	run -0 ct task ls
	assert_match "$output" "$NAME +[0-9]+ +PAUSED"
	ct task resume "$NAME"
	run -0 ct task ls
	assert_match "$output" "$NAME +[0-9]+ +RUNNING"
	run -0 ct task exec --exec-id e1 "$NAME" true
}

@test "ctr task metrics" {
	crun -d --memory-limit 67108864 $IMAGE "$NAME" sleep 300
	run -0 ct task metrics "$NAME"
	assert_match "$output" 'memory.(limit|usage_limit|usage)|memory\.usage_in_bytes'
	run -0 ct task metrics --format json "$NAME"
	assert_has "$output" 67108864
}

@test "ctr run --tty, and exec --tty" {
	run -5 "$LR_LIB/on-pty" --size 31x91 --step "# =>$(until_size 31 91)" --step 'sized-31x91=>tty; exit 5\n' -- \
		ctr -a "$CD_DIR/sock" run --rm --tty --runc-binary "$LEAN_RUNTIME" --cgroup "/$LR_SANDBOX_TAG/$NAME" $IMAGE "$NAME" sh
	assert_match "$output" "/dev/(pts/0|console)"
	NAME=${NAME}x
	crun -d $IMAGE "$NAME" sleep 300
	run -4 "$LR_LIB/on-pty" --step '# =>tty; exit 4\n' -- ctr -a "$CD_DIR/sock" task exec --tty --exec-id t1 "$NAME" sh
}

@test "ctr run: capabilities, environment, mounts, seccomp, network, privileged" {
	mkdir "$BATS_TEST_TMPDIR/src"
	echo in >"$BATS_TEST_TMPDIR/src/f"
	run -0 crun --rm --mount "type=bind,src=$BATS_TEST_TMPDIR/src,dst=/a,options=rbind:ro" --cap-drop CAP_KILL --env A=b --cwd /usr \
		$IMAGE "$NAME" sh -c 'cat /a/f; touch /a/x; grep CapEff /proc/self/status; echo $A; pwd; true'
	assert_has "$output" in
	assert_has "$output" "Read-only file system"
	assert_has "$output" 00000000a80425db
	assert_has "$output" $'\nb\n/usr'
	run -0 crun --rm --read-only $IMAGE "$NAME" sh -c 'touch /x; true'
	assert_has "$output" "Read-only file system"
	run -0 crun --rm --seccomp $IMAGE "$NAME" grep Seccomp: /proc/self/status
	assert_match "$output" ':.2'
	run -0 crun --rm --net-host $IMAGE "$NAME" readlink /proc/self/ns/net
	assert_eq "$output" "$(readlink /proc/self/ns/net)"
	is_lean || return 0
	run -0 crun --rm --privileged $IMAGE "$NAME" sh -c 'mount -t tmpfs none /mnt && echo mounted'
	assert_eq "$output" mounted
}

@test "ctr run: an out-of-memory kill is an event" {
	ct events >"$CD_DIR/events" 2>&1 3>&- &
	local ev=$!
	crun -d --memory-limit 33554432 $IMAGE "$NAME" sh -c 'awk "BEGIN { s = \"xxxxxxxxxxxxxxxx\"; while (1) s = s s }"; sleep 1'
	wait_until grep -q /tasks/oom "$CD_DIR/events"
	kill "$ev"
}

@test "the shim is killed: ctr cleans up without it" {
	crun -d $IMAGE "$NAME" sleep 300
	local shim
	shim=$(pgrep -f "containerd-shim-runc-v2 .*-id $NAME ")
	kill -KILL "$shim"
	wait_until eval '! ct task ls | grep -q "$NAME .*RUNNING"'
	# containerd calls the runtime's delete --force by the shim's `delete`
	wait_until eval '! grep -q -s -z "^300$" /proc/[0-9]*/cmdline'
}

@test "eight containers at once" {
	local i pids=()
	for i in 0 1 2 3 4 5 6 7; do
		NAME=m$i crun --rm $IMAGE "m$i" echo "out $i" >"$BATS_TEST_TMPDIR/o$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	assert_eq "$(cat "$BATS_TEST_TMPDIR"/o? | grep -c '^out [0-9]$')" 8
}

@test "ctr run: a privileged container becomes a seed" {
	lean_only "an engine of its own"
	[ "$(uname -m)" = x86_64 ] || skip "seeds are for x86-64"
	crun -d --runc-root "$CD_DIR/runc" --privileged --net-host $IMAGE "$NAME" sleep 1000
	"$LEAN_RUNTIME" --root "$CD_DIR/runc/default" checkpoint --engine=fork --image-path "$BATS_TEST_TMPDIR/seed" "$NAME"
}
