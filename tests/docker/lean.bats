#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Docker with the lean profile, chosen by the program's name: --add-runtime takes nothing else.

load dockerd.bash

setup_file() {
	is_lean || return 0
	ln -s "$LEAN_RUNTIME" "$TMPDIR/lean-runtime-lean"
	RUNTIME_PATH=$TMPDIR/lean-runtime-lean start_dockerd docker-lean --default-runtime lean
}

teardown_file() {
	! is_lean || stop_dockerd
}

setup() {
	lean_only "a profile of its own"
	NAME=c$BATS_TEST_NUMBER
}

teardown() {
	is_lean || return 0
	local rc=0
	remove_all
	assert_clean "$DOCKER_DIR/exec/runtime" || rc=1
	assert_nothing_pooled || rc=1
	return "$rc"
}

drun() {
	dk run --name "$NAME" "$@"
}

net_of() { # NAME
	dk exec "$1" readlink /proc/self/ns/net
}

@test "lean docker: the profile is on, and a container works" {
	run -0 dk info --format '{{json .Runtimes}}'
	assert_has "$output" lean-runtime-lean
	run -0 drun bb sh -c 'touch /written || echo read-only; touch /dev/shm/x && echo scratch'
	assert_has "$output" read-only
	assert_has "$output" scratch
	run -42 dk run --rm -i bb sh -c 'cat; exit 42' <<<"typed in"
	assert_eq "$output" "typed in"
	run -0 dk run --rm -v vol:/v --tmpfs /t bb sh -c 'touch /v/x /t/y && ls /v /t'
	assert_has "$output" x
	dk volume rm vol
}

@test "lean docker: two containers on the bridge have a network each, with an address each" {
	dk run -d --name one bb httpd -f -p 80 -h /etc
	dk run -d --name two bb sleep 300
	[ "$(net_of one)" != "$(net_of two)" ]
	[ "$(net_of two)" != "$(readlink /proc/self/ns/net)" ]
	local one two
	one=$(dk inspect -f '{{.NetworkSettings.IPAddress}}' one)
	two=$(dk inspect -f '{{.NetworkSettings.IPAddress}}' two)
	assert_has "$(dk exec one ip -4 -o addr show eth0)" "$one/"
	assert_hasnt "$(dk exec one ip -4 -o addr)" "$two/"
	assert_has "$(dk exec two ip -4 -o addr show eth0)" "$two/"
	wait_until dk exec two wget -q -O /dev/null "http://$one/motd"
}

@test "lean docker: --network none, host and container" {
	dk run -d --name one --network none bb sleep 300
	dk run -d --name two --network none bb sleep 300
	[ "$(net_of one)" != "$(net_of two)" ]
	assert_eq "$(dk run --rm --network host bb readlink /proc/self/ns/net)" "$(readlink /proc/self/ns/net)"
	assert_eq "$(dk run --rm --network container:one bb readlink /proc/self/ns/net)" "$(net_of one)"
}

@test "lean docker: exec, pause, stop, start, kill, rm -f" {
	drun -d bb sleep 300
	run -9 dk exec "$NAME" sh -c 'cat /proc/1/comm; exit 9'
	assert_eq "$output" sleep
	dk pause "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Status}}' "$NAME")" paused
	dk unpause "$NAME"
	dk stop -t 1 "$NAME"
	dk start "$NAME"
	run -0 dk exec "$NAME" true
	dk kill "$NAME"
	wait_until eval '[ "$(dk inspect -f "{{.State.ExitCode}}" "$NAME")" = 137 ]'
	dk start "$NAME"
	dk rm -f "$NAME"
	assert_eq "$(dk ps -aq)" ""
}

@test "lean docker: limits, stats, update and OOM kills" {
	drun -d --memory 64m --pids-limit 33 bb sleep 300
	run -0 dk stats --no-stream --format '{{.MemUsage}} {{.PIDs}}' "$NAME"
	assert_match "$output" '^[0-9.]+[kKM]i?B / 64MiB 1$'
	dk update --memory 128m --memory-swap 128m "$NAME"
	run -0 dk stats --no-stream --format '{{.MemUsage}}' "$NAME"
	assert_match "$output" ' / 128MiB'
	dk rm -f "$NAME"
	run -137 drun --memory 32m --memory-swap 32m bb awk 'BEGIN { s = "xxxxxxxxxxxxxxxx"; while (1) s = s s }'
	wait_until eval '[ "$(dk inspect -f "{{.State.OOMKilled}}" "$NAME")" = true ]'
}
