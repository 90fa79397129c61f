#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore of containers, and in directories, that mean harm.

load helpers.bash

setup() {
	checkpoint_setup
}
teardown() {
	show_logs
	common_teardown
}

@test "restore: a container that swaps its mount points cannot write to a read-only volume" {
	mkdir ro rw
	cfg --arg d "$PWD" '.mounts += [
		{destination: "/x/a", type: "bind", source: ($d + "/ro"), options: ["bind", "ro"]},
		{destination: "/y/b", type: "bind", source: ($d + "/rw"), options: ["bind", "rw"]}]'
	counter 'mv /x /t; mv /y /u; mkdir /x /y; ln -s /u/b /x/a; ln -s /t/a /y/b; '
	start_counter
	checkpoint "$ID"
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "without the attributes"
	assert_eq "$(whats_left)" ""
}

@test "restore: every mount of a cgroup keeps its attributes, also when it is mounted twice" {
	cfg '.mounts += [{destination: "/cg/again", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "noexec", "nodev"]}]'
	start_counter
	kinds() {
		sed -nE 's,^[^ ]+ [^ ]+ [^ ]+ [^ ]+ ([^ ]+ [^ ]+) .*- (cgroup2?) .*,\1 \2,p' "/proc/$(pid_of)/mountinfo" | sort
	}
	kinds >before
	checkpoint "$ID"
	restore "$ID"
	kinds >after
	diff before after
	grep -q /cg/again before
}
