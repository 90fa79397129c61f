#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# ctr containers checkpoint and restore, through containerd's own shim.

load ../lib/daemon.bash
load managers.bash

setup_file() {
	command -v containerd >/dev/null || skip "containerd is not installed"
	export CD_DIR=$TMPDIR/containerd
	mkdir -p "$CD_DIR"
	cat >"$CD_DIR/config.toml" <<-END
		version = 2
		root = "$CD_DIR/root"
		state = "$CD_DIR/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
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
}

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

setup() {
	NAME=c$BATS_TEST_NUMBER
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 20 "$CD_DIR/log"
	local c
	for c in $(ct c ls -q); do
		ct task rm -f "$c" >/dev/null 2>&1 || true
		ct c rm "$c" >/dev/null 2>&1 || true
	done
}

# shellcheck disable=SC2120 # another name comes by counts_on
count() {
	ct task exec --exec-id "e$RANDOM$RANDOM" "${1:-$NAME}" cat /n
}

@test "containerd: ctr c checkpoint --rw --task, and restore under another name" {
	ct run -d --runc-binary "$LEAN_RUNTIME" --cgroup "/$LR_SANDBOX_TAG/$NAME" test.local/bb:1 "$NAME" sh -c "$COUNTER"
	wait_until eval '[ "$(count)" -gt 5 ]'
	at=$(count)
	ct c checkpoint --rw --task --image "$NAME" "ck/$NAME:1"
	counts_on "$at" count # it was paused, and goes on
	ct task kill -s KILL "$NAME"
	wait_until eval '! ct task ls | grep -q "$NAME .*RUNNING"'
	ct task rm "$NAME" || true
	ct c rm "$NAME"
	ct c restore --rw --live "$NAME-2" "ck/$NAME:1"
	counts_on "$at" count "$NAME-2"
}
