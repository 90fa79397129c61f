#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-bench works in namespaces of its own, whatever is in its environment.

load ../lib/bench

# own COMMAND...: in namespaces for this test, so that a lean-bench that makes none changes nothing of anybody's.
own() {
	unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private "$@"
}

# same COMMAND...: mounts and network devices are what they were, when it has ended.
same() {
	own bash -c 'look() { cat /proc/self/mounts /proc/self/net/dev; ls /run/netns 2>/dev/null; }
		look >before; "$@" </dev/null >out.txt 2>err.txt || { cat out.txt err.txt >&2; exit 1; }
		look | diff before -' bash "$@"
}

# Those of earlier versions, and whatever else one may have had.
STALE=(LEAN_BENCH_NAMESPACE=1 LEAN_BENCH_SANDBOX=inside)

@test "a variable of another lean-bench doesn't make it work on the caller's mounts" {
	same env "${STALE[@]}" "$BENCH" start --host-mounts 3 --runs 1 --gap-ms 1 --config default --no-inprocess --no-counts \
		--runtime lean-runtime
	same env "${STALE[@]}" LEAN_BENCH_SANDBOX=first "$BENCH" lifecycle --manager none --runs 1 --test ping --cache "$PWD/cache" \
		--runtime lean-runtime
	same env "${STALE[@]}" LEAN_BENCH_TAG="stale-$$" "$BENCH" lifecycle --manager none --runs 1 --test ping \
		--cache "$PWD/cache" --runtime lean-runtime
}

# Without the control groups of this machine: one that took any tag would remove what it finds by it.
@test "a tag that is no name of a control group of its own is refused" {
	cat >try <<-'SH'
		mount -t tmpfs tmpfs /sys/fs/cgroup
		mkdir -p /sys/fs/cgroup/cpu/there
		! LEAN_BENCH_TAG=$1 "$2" lifecycle --manager none --runs 1 --cache "$PWD/cache" </dev/null >out.txt 2>err.txt || exit 1
		[ -d /sys/fs/cgroup/cpu/there ]
	SH
	local tag
	for tag in '*' '../x' 'a/b' '.' '-x' "$(printf '%065d' 0)"; do
		own bash -e try "$tag" "$BENCH"
		grep -q '^lean-bench: LEAN_BENCH_TAG=.*letters, digits' err.txt
	done
	own bash -e try there "$BENCH"
	grep -q '^lean-bench: LEAN_BENCH_TAG=there: /sys/fs/cgroup/cpu/there is there already' err.txt
}
