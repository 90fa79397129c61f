# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# daemon.bash: what the suites have in common that drive the runtime through a container manager.
# They run inside tests/lib/sandbox, so that daemons, bridges and mounts end with the suite.

bats_require_minimum_version 1.5.0

LR_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${LEAN_RUNTIME:?is not set: the runtime to test}"
: "${LR_SANDBOX_TAG:?start this suite with its run script, which makes a sandbox}"
LEAN_RUNTIME=$(realpath "$(command -v "$LEAN_RUNTIME")")
export LEAN_RUNTIME LC_ALL=C
. "$LR_LIB/processes.bash"

is_lean() {
	[ -n "${LR_IS_LEAN-}" ] || {
		case $("$LEAN_RUNTIME" --version 2>/dev/null | head -n 1) in
		lean-runtime*) LR_IS_LEAN=1 ;;
		*) LR_IS_LEAN=0 ;;
		esac
		export LR_IS_LEAN
	}
	[ "$LR_IS_LEAN" = 1 ]
}

# What a stand-in (the suite is checked with other runtimes) cannot do is left out there, only there.
lean_only() {
	is_lean || skip "stand-in runtime: ${1:-not a feature of it}"
}

fail() {
	echo "$*"
	return 1
}

assert_eq() {
	[ "$1" = "$2" ] || fail "got: '$1'
expected: '$2'"
}

assert_has() {
	case $1 in
	*"$2"*) ;;
	*) fail "'$2' is not in:
$1" ;;
	esac
}

assert_hasnt() {
	case $1 in
	*"$2"*) fail "'$2' is in:
$1" ;;
	esac
}

assert_match() {
	[[ $1 =~ $2 ]] || fail "no match for '$2' in:
$1"
}

# wait_until COMMAND...: up to a minute, as the machine may be busy.
wait_until() {
	local end=$((SECONDS + 60))
	while [ "$SECONDS" -lt "$end" ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	echo "waited in vain for: $*"
	return 1
}

# on-pty steps: type a line that waits in the shell until the terminal has that size (managers pass it
# on when they come to it). What it then shows is `sized-ROWSxCOLS`; the line itself does not have that.
until_size() {
	printf 'until [ "$(stty size)" = "%s %s" ]; do sleep 0.1; done; echo sized-""%sx%s\\n' "$1" "$2" "$1" "$2"
}

# rootfs_tar FILE: the busybox tree as a tar, what `docker import` takes.
rootfs_tar() {
	local dir
	dir=$(mktemp -d)
	"$LR_LIB/mkrootfs" "$dir"
	tar -C "$dir" -cf "$1" .
	rm -rf "$dir"
}

# No process of a container, no mount and no cgroup of the sandbox may be left once the manager has
# removed its containers: assert_clean PATH-PREFIX. BuildKit and conmon keep cgroups of their own, and
# Podman removes a pod's parent only where it made it, not where the runtime did.
assert_clean() {
	local left end=$((SECONDS + 30))
	while [ "$SECONDS" -lt "$end" ]; do
		left=$(find /sys/fs/cgroup -mindepth 2 -type d -path "*/$LR_SANDBOX_TAG*/*" 2>/dev/null |
			grep -v -E '/buildkit$|/conmon$|/cgroup/(unified|systemd)/[^/]+/[0-9a-f]{64}$')
		[ -z "$1" ] || left+=$(awk -v p="$1" 'index($5, p) == 1 {print "mount", $5}' /proc/self/mountinfo)
		[ -n "$left" ] || return 0
		sleep 0.1
	done
	fail "left behind:
$left"
}
