#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Podman with the lean profile: by --runtime-flag, by an annotation, by the program's name.

load podman.bash

setup_file() {
	start_podman
}

setup() {
	lean_only "a profile of its own"
	NAME=c$BATS_TEST_NUMBER
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	local rc=0
	remove_all
	"$LEAN_RUNTIME" pool drain || rc=1
	assert_clean "$POD_DIR/root/overlay/" || rc=1
	[ ! -e /run/lean-runtime/.lean ] || rc=1
	return "$rc"
}

pml() { # FLAG PODMAN-ARGUMENT...
	pm --runtime-flag="$1" "${@:2}"
}

lean_run() { # FLAG podman-run options
	pml "$1" run --cgroup-parent "/$LR_SANDBOX_TAG" --name "$NAME" "${@:2}"
}

pid_of() {
	pm inspect -f '{{.State.Pid}}' "$1"
}

pool() { # FIELD
	"$LEAN_RUNTIME" pool status --format json | jq "[.slots[].$1] | add // 0"
}

net_of() {
	readlink "/proc/$(pid_of "$1")/ns/net"
}

@test "lean podman: --runtime-flag, in all its forms" {
	local run=(run --rm --network none --cgroup-parent "/$LR_SANDBOX_TAG")
	local try=(bb sh -c 'touch /written 2>/dev/null && echo off || echo on')
	assert_eq "$(pm "${run[@]}" "${try[@]}")" off
	assert_eq "$(pm --runtime-flag=lean "${run[@]}" "${try[@]}")" on
	assert_eq "$(pm --runtime-flag lean "${run[@]}" "${try[@]}")" on
	assert_eq "$(pm --runtime-flag=lean=rootfs,bounding "${run[@]}" "${try[@]}")" on
	assert_eq "$(pm --runtime-flag=lean=network=shared "${run[@]}" "${try[@]}")" off
	assert_eq "$(pm "${run[@]}" --annotation org.lean-runtime.profile=lean "${try[@]}")" on
	ln -s "$LEAN_RUNTIME" lean-runtime-lean
	assert_eq "$(pm --runtime "$PWD/lean-runtime-lean" "${run[@]}" "${try[@]}")" on
	run ! pm --runtime-flag=lean=rootsf "${run[@]}" "${try[@]}"
	assert_has "$output" rootsf
}

@test "lean podman: output, input, exit code, exec, pause, stop, start, kill, rm -f" {
	run -42 lean_run lean --rm --network none -i bb sh -c 'cat; exit 42' <<<"typed in"
	assert_eq "$output" "typed in"
	lean_run lean -d --network none bb sleep 300
	run -9 pml lean exec "$NAME" sh -c 'cat /proc/1/comm; exit 9'
	assert_eq "$output" sleep
	# Nobody has to repeat the flag.
	run -0 pm exec "$NAME" cat /proc/1/comm
	pm pause "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Status}}' "$NAME")" paused
	pm unpause "$NAME"
	pm stop -t 1 "$NAME"
	pml lean start "$NAME"
	pm kill "$NAME"
	run pm wait "$NAME"
	assert_has "$output" 137
	pml lean start "$NAME"
	pm rm -f -t 0 "$NAME"
}

@test "lean podman: two containers on the bridge have a network each" {
	has_bridge || skip "Podman has no network plug-in here"
	pml lean run -d --name one --cgroup-parent "/$LR_SANDBOX_TAG" bb httpd -f -p 80 -h /etc
	pml lean run -d --name two --cgroup-parent "/$LR_SANDBOX_TAG" bb sleep 300
	[ "$(net_of one)" != "$(net_of two)" ]
	[ "$(net_of two)" != "$(readlink /proc/self/ns/net)" ]
	local ip
	ip=$(pm inspect -f '{{.NetworkSettings.IPAddress}}' one)
	assert_has "$(pm exec one ip -4 -o addr show eth0)" "$ip/"
	assert_hasnt "$(pm exec two ip -4 -o addr)" "$ip/"
	wait_until pm exec two wget -q -O /dev/null "http://$ip/motd"
}

@test "lean podman: without a network there is one of its own, or a shared one where that is asked for" {
	pml lean run -d --name one --network none --cgroup-parent "/$LR_SANDBOX_TAG" bb sleep 300
	pml lean run -d --name two --network none --cgroup-parent "/$LR_SANDBOX_TAG" bb sleep 300
	[ "$(net_of one)" != "$(net_of two)" ]
	local flag=lean=lean,network=shared
	pml $flag run -d --name three --network none --cgroup-parent "/$LR_SANDBOX_TAG" bb sleep 300
	pml $flag run -d --name four --network none --cgroup-parent "/$LR_SANDBOX_TAG" bb sleep 300
	assert_eq "$(net_of three)" "$(net_of four)"
	[ "$(net_of three)" != "$(readlink /proc/self/ns/net)" ]
	assert_eq "$(pm exec three ip -o link | wc -l)" 1
}

@test "lean podman: limits, stats and OOM kills" {
	lean_run lean -d --network none --memory 64m --pids-limit 33 bb sleep 300
	run -0 pm stats --no-stream --format '{{.MemUsage}} {{.PIDs}}' "$NAME"
	assert_match "$output" '^[0-9.]+[kKM]i?B / 67.11MB 1'
	pm rm -f -t 0 "$NAME"
	run -137 lean_run lean --network none --memory 32m --memory-swap 32m bb awk 'BEGIN { s = "xxxxxxxxxxxxxxxx"; while (1) s = s s }'
	pm rm "$NAME"
	# As it names the cgroup it wants, none is taken from the pool.
	lean_run lean -d --network none bb sleep 300
	assert_hasnt "$(cat "/proc/$(pid_of "$NAME")/cgroup")" lean-runtime.
	run -0 pm stats --no-stream --format '{{.PIDs}}' "$NAME"
	assert_eq "$output" 1
}

@test "lean podman: --rootfs is a shared root, from a template" {
	"$LR_LIB/mkrootfs" "$PWD/rootfs"
	local id
	for id in one two; do
		pml lean run -d --name $id --network none --cgroupns=private --cgroup-parent "/$LR_SANDBOX_TAG" --rootfs "$PWD/rootfs" sleep 300
	done
	run ! pm exec one touch /written
	[ "$(readlink "/proc/$(pid_of one)/ns/mnt")" != "$(readlink "/proc/$(pid_of two)/ns/mnt")" ]
	[ "$(pm exec one cat /proc/self/mountinfo | wc -l)" -lt 50 ]
	assert_eq "$(pool used)" 2
	pm pause one
	pm unpause one
	pm kill one
	pm rm -f -t 0 one two
	assert_eq "$(pool used) $(pool lost)" "0 0"
}
