#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Docker with --userns-remap: every container in a user namespace.

load dockerd.bash

setup_file() {
	# The sandbox's /etc is a layer of its own.
	echo 'leanremap:x:61234:61234::/nonexistent:/bin/false' >>/etc/passwd
	echo 'leanremap:x:61234:' >>/etc/group
	echo 'leanremap:700000:65536' >>/etc/subuid
	echo 'leanremap:700000:65536' >>/etc/subgid
	chmod 711 "$TMPDIR"
	start_dockerd remapped --default-runtime lean --userns-remap leanremap
}

teardown_file() {
	stop_dockerd
}

setup() {
	NAME=c$BATS_TEST_NUMBER
}

teardown() {
	remove_all
	assert_clean ""
}

@test "userns-remap: ids" {
	run -0 dk run --name "$NAME" bb sh -c 'id -u; cat /proc/self/uid_map; touch /tmp/x && stat -c %u /tmp/x'
	assert_match "$output" $'^0\n +0 +700000 +65536\n0$'
}

@test "userns-remap: exec, --user, volumes, network" {
	dk run -d --name "$NAME" -v vol:/v bb sleep 300
	local pid
	pid=$(dk inspect -f '{{.State.Pid}}' "$NAME")
	assert_match "$(grep Uid "/proc/$pid/status")" 700000
	run -0 dk exec -u 1000 "$NAME" id -u
	assert_eq "$output" 1000
	run -0 dk exec "$NAME" sh -c 'touch /v/x; stat -c %u /v/x; ip -4 -o addr show eth0'
	assert_match "$output" $'^0\n.*172\\.'
}

@test "userns-remap: --userns host opts out" {
	run -0 dk run --rm --userns host bb cat /proc/self/uid_map
	assert_match "$output" '0 +0 +4294967295'
}

@test "userns-remap: -it" {
	run -0 "$LR_LIB/on-pty" --step '# =>tty; stat -c owner%u $(tty)\n' --step 'owner0=>exit\n' -- \
		"$DOCKER" -H "unix://$DOCKER_DIR/sock" run -it --name "$NAME" bb sh
}
