#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Docker starts a container that continues a seed, by an annotation.

load dockerd.bash

setup_file() {
	is_lean || return 0
	export SEEDS=$TMPDIR/seeds
	mkdir -m 700 "$SEEDS"
	RUNTIME_ARGS="[\"--seed-dir=$SEEDS\"]" start_dockerd docker-seed --default-runtime lean
}

teardown_file() {
	! is_lean || stop_dockerd
}

setup() {
	lean_only "an engine of its own"
	cd "$BATS_TEST_TMPDIR" || return 1
	counter=$(dirname "$LEAN_RUNTIME")/../../tests/fork/fork-counter
	[ -x "$counter" ] || skip "fork-counter is not built" # not x86-64
	mkdir data
	cp "$counter" data/counter
}

teardown() {
	is_lean || return 0
	remove_all
	assert_clean "$DOCKER_DIR/exec/runtime"
}

@test "docker: a container continues a seed behind Docker's filter and network, and is Docker's in every way" {
	dk run --help | grep -q -- --annotation || skip "this Docker has no --annotation"
	dk run -d --name one -v "$PWD/data:/data" bb /data/counter /data/n
	wait_until eval '[ "$(cat data/n 2>/dev/null || echo 0)" -gt 20 ]'
	"$LEAN_RUNTIME" --root "$DOCKER_DIR/exec/runtime-runc/moby" checkpoint --engine=fork --image-path "$SEEDS/web" \
		"$(dk inspect -f '{{.Id}}' one)"
	dk rm -f one
	echo 1 >data/n
	dk run -d --name two -m 64m --annotation org.lean.seed=web -v "$PWD/data:/data" bb /data/counter /data/n
	wait_until eval '[ "$(cat data/n)" -gt 1 ]'
	[ "$(cat data/n)" -ge 20 ] || fail "it began again: $(cat data/n)"
	assert_eq "$(dk inspect -f '{{.State.Status}}' two)" running
	run -0 dk exec two cat /data/n
	assert_match "$output" '^[0-9]+$'
	assert_match "$(dk exec two ip -4 -o addr show eth0)" '172\.'
	assert_has "$(cat "/proc/$(dk inspect -f '{{.State.Pid}}' two)/status")" "Seccomp:	2"
	dk stop -t 0 two
	assert_eq "$(dk inspect -f '{{.State.Status}}' two)" exited
}

# What Docker mounts is not taken for the container's own, and what that mounts is.
privileged() { # RUN-OPTION...
	local id root
	id=$(dk run -d --name own "${RIGHTS---privileged}" -v "$PWD/data:/data" "$@" bb /data/counter /data/n)
	wait_until eval '[ "$(cat data/n 2>/dev/null || echo 0)" -gt 5 ]'
	root=$(dirname "$(find "$DOCKER_DIR/exec" -path '*/runtime-*/moby/*' -name "$id" -print -quit)")
	"$LEAN_RUNTIME" --root "$root" checkpoint --engine=fork --image-path "$SEEDS/own" "$id"
	dk exec own mount -t tmpfs own /mnt
	run -1 "$LEAN_RUNTIME" --root "$root" checkpoint --engine=fork --image-path "$SEEDS/own" "$id"
	assert_has "$output" "a mount that config.json does not have (tmpfs on /mnt)"
	assert_has "$output" "cannot carry 1 of"
	dk rm -f -v own
	echo 1 >data/n
}

@test "docker: privileged containers become seeds, unless they have mounted something themselves" {
	mkdir -p vol/sub
	privileged
	privileged -v "$PWD/vol:/var/run/vol" -v "$PWD/vol:/srv/vol:ro" --tmpfs /scratch --read-only --cgroupns private
	privileged -t -v /var/lib/docker --cgroupns host
	RIGHTS=--cap-add=SYS_ADMIN privileged -t
}

@test "docker: privileged containers become seeds also where the host's namespaces, or another container's, are theirs" {
	privileged --network host --ipc host --uts host --cgroupns host
	dk run -d --name other --ipc shareable bb sleep 1000
	privileged --network container:other --ipc container:other
	dk rm -f other
}
