# SPDX-License-Identifier: Apache-2.0
# Two hosts, which are network namespaces, each with a lean-forkd: a container of the one becomes a seed, and others
# continue it on the other.

setup() {
	seeds_setup
	THERE=$PWD/there # the bundle of the other host
	TICKET=$PWD/ticket
	build=$(dirname "$LEAN_RUNTIME")/../..
	needs_program counter
	needs_forkd
	[ -z "${WITH_RDMA-}" ] || pretend_rdma || WITH_RDMA=
	cfg '.process.args = ["/bin/counter", "/n"]'
	A=fa$$ B=fb$$
	ip netns add $A && ip netns add $B || skip "no network namespaces"
	ip -n $A link add veth0 type veth peer name veth0 netns $B
	ip -n $A addr add 192.0.2.1/24 dev veth0
	ip -n $B addr add 192.0.2.2/24 dev veth0
	ip -n $A link set veth0 up
	ip -n $B link set veth0 up
	daemon $A a --listen 192.0.2.1:7411
	daemon $B b --metrics "$PWD/b.metrics"
	b=$started
}

teardown() {
	local id daemon
	for id in $(list_ids); do # before those who would end them
		rt delete --force "$id" </dev/null >/dev/null 2>&1 || true
	done
	for daemon in $(cat daemons 2>/dev/null); do
		signal_process "$daemon" KILL
	done
	managers_end
	ip netns del $A 2>/dev/null || true
	ip netns del $B 2>/dev/null || true
	common_teardown
}

# Daemons find an adapter from here on: libraries that pretend to be one (tests/forkd/fake_rdma.c).
pretend_rdma() {
	LIBRARIES=$(realpath "$(dirname "$forkd")/../../tests/forkd")
	if [ ! -e "$LIBRARIES/librdmacm.so.1" ]; then
		[ "${CI-}" != true ] || fail "lean-forkd is built without RDMA" || exit 1
		return 1
	fi
	FABRIC=$PWD/fabric
	mkdir "$FABRIC"
}

# The daemon of a host, at the socket $PWD/NAME; its note is in $started. PATIENCE: that of its children.
daemon() { # HOST NAME OPTION...
	# What its keeper holds for a minute is not the runtime's.
	ip netns exec "$1" env -u LR_TEST_TAG ${FABRIC:+FAKE_RDMA="$FABRIC" LD_LIBRARY_PATH="$LIBRARIES"} "$forkd" --control "$PWD/$2" serve ${PATIENCE:+--patience "$PATIENCE"} "${@:3}" >>"$2.log" 2>&1 3>&- &
	started=$(note_process $!)
	echo "$started" >>daemons # also of a subshell
	wait_until ask "$2" list
}

ask() { # NAME VERB...
	timeout 60 "$forkd" --control "$PWD/$1" "${@:2}"
}

metric() { # NAME OF THE METRIC [DAEMON]
	socat -u "UNIX-CONNECT:$PWD/${2-b}.metrics" - | sed -n "s/^lean_forkd_$1 //p"
}

start() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 20 ]'
}

# The ticket is all that is printed.
seed() { # [OPTION...]
	# Who waits until it succeeds (wait_until) would not hear of the first two.
	(umask 077 && rt checkpoint --remote --forkd "$PWD/a" "$@" "$ID" </dev/null >"$TICKET") &&
		assert_match "$(cat "$TICKET")" '^lean-seed:1:tls:[0-9a-f]{32}:[A-Za-z0-9_-]{43}@192\.0\.2\.1:7411$' &&
		id=$(cut -d: -f4 "$TICKET")
}

# On a busy machine.
waits_long_until() {
	local _
	for _ in 1 2 3 4 5 6; do
		wait_until "$@" && return 0
	done
	return 1
}

# The bundle of the other host has no file that the first one's container wrote.
other_host() {
	cp -a "$BUNDLE" "$THERE"
	new_id CHILD
	cfg -b "$THERE" --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	echo 1 >"$THERE/rootfs/n"
}

grow() { # [OPTION...]
	rt_bg restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --bundle "$THERE" "$@" "$CHILD"
}

# A program that began again would say less at first than what it had reached.
came_there() {
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 1 ]'
	[ "$(count "$THERE/rootfs/n")" -ge 20 ] || fail "it began again: $(count "$THERE/rootfs/n")"
	moves "$THERE/rootfs/n"
}

# Threads, and memory that each of them looks at again and again: what differs is told in /bad.
python() { # MEGABYTES
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	cfg --arg mb "$1" --arg p 'import os, random, threading, time, zlib
size = 65536
random.seed(7)
pages = [random.randbytes(size) for _ in range(int(os.environ["MB"]) * 16)]
sums = [zlib.crc32(p) for p in pages]
counts = [0, 0, 0]
def work(i):
    at = i
    while True:
        if zlib.crc32(pages[at]) != sums[at] or (not any(pages[at])):
            open("/bad", "w").write(str(at))
        at = (at + 3) % len(pages)
        counts[i] += 1
        time.sleep(0.005)
'"$THREE_THREADS" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1", "MB=" + $mb]'
}

nothing_bad() {
	[ ! -e "$THERE/rootfs/bad" ] || fail "wrong memory: $(cat "$THERE/rootfs/bad")"
	[ ! -e "$BUNDLE/rootfs/bad" ] || fail "wrong memory in the parent: $(cat "$BUNDLE/rootfs/bad")"
}
