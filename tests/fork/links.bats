#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a child of another host's seed sees when the link, or that host, is slow, gone for a while, or gone for good: the
# right memory, or its end with the reason. And that there may be a thousand children.

load ../lib/helpers.bash
load seeds.bash
load hosts.bash

# With another patience than before.
impatient() { # DURATION
	signal_process "$b" KILL
	daemon $B b --metrics "$PWD/b.metrics" --patience "$1"
	b=$started
}

# A child that has yet to get most of its memory.
begin() { # [PATIENCE]
	python 64
	start
	seed
	[ -z "${1-}" ] || impatient "$1"
	other_host
	grow
	came_there
}

link_down() { ip -n $A link set veth0 down; }
link_up() { ip -n $A link set veth0 up; }

# The child touches memory that has not come: it asks for pages that it does not get.
waits() {
	local asked
	asked=$(metric filled_pages_total)
	[ -n "$asked" ]
	sleep 0.5
	assert_eq "$(metric filled_pages_total)" "$asked"
	assert_eq "$(status_of "$CHILD")" running
}

@test "links: a slow one: what is touched comes late, and is right" {
	python 4
	start
	seed
	other_host
	ip netns exec $A tc qdisc add dev veth0 root tbf rate 24mbit burst 32kb latency 400ms || skip "no tbf in this kernel"
	grow
	came_there
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 200 ]' # all of it was looked at
	nothing_bad
	assert_eq "$(status_of "$CHILD")" running
	[ "$(ip netns exec $A tc -s qdisc show dev veth0 | grep -o 'overlimits [0-9]*' | cut -d' ' -f2)" -gt 0 ]
}

@test "links: a cut one that is mended in time: the child waits, and goes on with the right memory" {
	begin
	link_down
	waits
	link_up
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	moves # the parent
}

@test "links: a cut one that nobody mends: the child ends, and the daemon says why" {
	begin 2s
	link_down
	wait_until eval '[ "$(status_of "$CHILD")" = stopped ]'
	nothing_bad
	assert_match "$(cat b.log)" "processes end: .*fetch from the seed's host: .*timed out"
	link_up
	# Nothing of the failure stays.
	rt delete "$CHILD"
	echo 1 >"$THERE/rootfs/n"
	grow --fetch=prefetch
	came_there
	nothing_bad
}

@test "links: the seed's host dies before all has come: the child ends" {
	begin 2s
	signal_process "$(head -n 1 daemons)" KILL
	wait_for_status stopped "$CHILD"
	nothing_bad
	assert_match "$(cat b.log)" 'processes end: .*connection (refused|reset)'
	moves # the parent has nothing to do with it
}

# A shell that waits for somebody who opens the pipe; all of them have one root.
@test "links: a thousand children of one seed run side by side, and each has its parent's memory" {
	mkfifo "$BUNDLE/rootfs/gate"
	cfg '.process.args = ["/bin/sh", "-c", "x=whole; echo 1 >/n; read y </gate; echo $x >>/said"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -eq 1 ]'
	wait_until eval '[ "$(cut -d" " -f3 "/proc/$(pid_of)/stat")" = S ]'
	seed
	rt delete --force "$ID"
	cp -a "$BUNDLE" "$THERE"
	cfg -b "$THERE" 'del(.linux.cgroupsPath)'
	for CHILD in "$TAG-"{a,b,c,d}; do
		grow --count 250
	done
	assert_eq "$(rt list --format json | jq '[.[] | select(.status == "running")] | length')" 1000
	: >"$THERE/rootfs/gate" # they are all let through
	wait_until eval '[ "$(wc -l <"$THERE/rootfs/said")" -eq 1000 ]'
	assert_eq "$(sort -u "$THERE/rootfs/said")" whole
	wait_until eval '[ "$(rt list --format json | jq "[.[] | select(.status == \"stopped\")] | length")" -eq 1000 ]'
	wait_until eval '[ "$(metric children)" -eq 0 ]' # nothing is held for them
}
