#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# podman container checkpoint and restore.

load ../podman/podman.bash
load managers.bash

setup_file() {
	command -v podman >/dev/null || skip "podman is not installed"
	start_podman
}

setup() {
	NAME=c$BATS_TEST_NUMBER
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || find "$POD_DIR/root" -name '*.log' -path '*userdata*' -exec grep -H -E 'Error|Warn' {} + || true
	remove_all
	assert_clean "$POD_DIR/root/overlay/"
}

start() { # [OPTION...]
	pm run --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" -d "$@" bb sh -c "$COUNTER"
	wait_until eval '[ "$(count)" -gt 5 ]'
}

# shellcheck disable=SC2120 # another name comes by counts_on
count() {
	pm exec "${1:-$NAME}" cat /n
}

@test "podman: checkpoint and restore" {
	start
	at=$(count)
	pm container checkpoint "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Status}} {{.State.Checkpointed}}' "$NAME")" "exited true"
	pm container restore "$NAME"
	counts_on "$at" count
	assert_eq "$(pm inspect -f '{{.State.Status}}' "$NAME")" running
}

@test "podman: --leave-running, and --keep" {
	start
	at=$(count)
	pm container checkpoint --leave-running --keep "$NAME"
	counts_on "$at" count
	assert_eq "$(pm inspect -f '{{.State.Status}}' "$NAME")" running
	pm container checkpoint --keep "$NAME"
	at=$(find "$POD_DIR/root" -name dump.log | wc -l)
	[ "$at" -ge 1 ]
	pm container restore --keep "$NAME"
	counts_on 6 count
}

@test "podman: --export, --import, --name, in another container" {
	start -v "$PWD:/vol"
	echo hello >file
	at=$(count)
	pm container checkpoint --export "$PWD/c.tar.gz" "$NAME"
	pm rm -f -t 0 "$NAME"
	pm container restore --import "$PWD/c.tar.gz"
	counts_on "$at" count
	pm container restore --import "$PWD/c.tar.gz" --name "$NAME-2"
	counts_on "$at" count "$NAME-2"
	counts_on "$at" count
	assert_eq "$(pm exec "$NAME-2" cat /vol/file)" hello
}

@test "podman: --tcp-established, --print-stats, --file-locks" {
	start
	at=$(count)
	run -0 pm container checkpoint --print-stats --tcp-established --file-locks "$NAME"
	assert_has "$output" runtime_checkpoint_duration
	run -0 pm container restore --print-stats --tcp-established --file-locks "$NAME"
	assert_has "$output" runtime_restore_duration
	counts_on "$at" count
}

@test "podman: --pre-checkpoint and --with-previous" {
	criu check --feature mem_dirty_track >/dev/null 2>&1 || skip "the kernel does not track writes to memory"
	start
	pm container checkpoint --pre-checkpoint -e "$PWD/pre.tar.gz" "$NAME"
	at=$(count)
	counts_on "$at" count
	pm container checkpoint --with-previous -e "$PWD/c.tar.gz" "$NAME"
	pm rm -f -t 0 "$NAME"
	pm container restore --import-previous "$PWD/pre.tar.gz" --import "$PWD/c.tar.gz"
	counts_on "$at" count
}

@test "podman: logs and the terminal go on" {
	pm run --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" -d -t bb sh -c 'i=0; while :; do i=$((i+1)); echo line-$i; usleep 50000; done'
	wait_until eval 'pm logs "$NAME" | grep -q line-5'
	pm container checkpoint "$NAME"
	pm container restore "$NAME"
	last=$(pm logs "$NAME" | tail -n 1 | tr -d '\r' | cut -d - -f 2)
	wait_until eval 'pm logs "$NAME" | grep -q line-$((last + 20))'
}
