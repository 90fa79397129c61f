#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Docker with the lean profile by runtimeArgs, asked for more than is good for it: the cgroup pool and
# shared networks. Docker counts and limits everything and configures every network, so it gets neither.

load dockerd.bash

setup_file() {
	is_lean || return 0
	RUNTIME_ARGS='["--lean=rootfs,cgroup=pool,network=shared,bounding"]' start_dockerd docker-args --default-runtime lean
}

teardown_file() {
	! is_lean || stop_dockerd
}

setup() {
	lean_only "a profile of its own"
}

teardown() {
	is_lean || return 0
	local rc=0
	remove_all
	assert_clean "$DOCKER_DIR/exec/runtime" || rc=1
	assert_nothing_pooled || rc=1
	return "$rc"
}

cgroup_of() { # NAME
	cat "/proc/$(dk inspect -f '{{.State.Pid}}' "$1")/cgroup"
}

@test "lean docker, runtimeArgs: two containers on the bridge never share a network namespace" {
	dk run -d --name one bb sleep 300
	dk run -d --name two bb sleep 300
	[ "$(dk exec one readlink /proc/self/ns/net)" != "$(dk exec two readlink /proc/self/ns/net)" ]
	assert_match "$(dk exec one ip -4 -o addr show eth0)" '172\.'
	run ! dk exec one touch /written
}

@test "lean docker, runtimeArgs: each container has the cgroup that Docker asked for, and its statistics" {
	dk run -d --name one bb sleep 300
	dk run -d --name two bb sh -c 'sleep 300 & sleep 300 & wait'
	assert_hasnt "$(cgroup_of one)" lean-runtime.
	assert_has "$(cgroup_of one)" "$(dk inspect -f '{{.Id}}' one)"
	wait_until eval '[ "$(dk stats --no-stream --format "{{.PIDs}}" two)" = 3 ]'
	assert_eq "$(dk stats --no-stream --format '{{.PIDs}}' one)" 1
	run -137 dk run --name oom --memory 32m --memory-swap 32m bb awk 'BEGIN { s = "xxxxxxxxxxxxxxxx"; while (1) s = s s }'
	wait_until eval '[ "$(dk inspect -f "{{.State.OOMKilled}}" oom)" = true ]'
	assert_eq "$(dk inspect -f '{{.State.OOMKilled}}' one)" false
}
