# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# helpers.bash: what the files here share. $IMG is where images go; a counter counts in $BUNDLE/rootfs/tmp/n.
load ../lib/helpers.bash

: "${LR_CRIU:?is not set: call tests/checkpoint/run}"
export PATH=$LR_CRIU:$PATH
export LR_HERE
LR_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

checkpoint_setup() {
	common_setup
	IMG=$BATS_TEST_TMPDIR/img
	N=$BUNDLE/rootfs/tmp/n
	mkdir -p "$BUNDLE/rootfs/tmp"
	counter
}

# It counts in a file, and tells no other process of its own: what goes on is memory. While its `echo` goes to a file, a
# shell has its standard output at another number, where criu takes it for any file: so that is none of the test's.
# shellcheck disable=SC2120
counter() { # [BEFORE]
	sh_cfg "exec >/dev/null; ${1-}"'i=0; while :; do i=$((i+1)); echo $i >/tmp/n.new; mv /tmp/n.new /tmp/n; usleep 20000; done'
}

count() {
	cat "${1:-$N}"
}

counts_on() { # FROM [FILE]: it is beyond that, and moves
	local first
	first=$(count "${2-}")
	[ "$first" -ge "$1" ] || fail "it began again: $first, and had been at $1" || return 1
	wait_until eval '[ "$(count '"${2-}"')" -gt '"$first"' ]'
}

start_counter() { # [ID]
	rt_bg run --detach --bundle "$BUNDLE" "${1:-$ID}"
	wait_until eval '[ "$(count)" -gt 5 ]'
}

# What criu has to say is for who reads of a failure.
show_logs() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || grep -H -E 'Error|Warn' "$BATS_TEST_TMPDIR"/*/*.log || true
}

checkpoint() { # ID [OPTION...]
	local id=$1
	shift
	rt_bg checkpoint --image-path "$IMG" "$@" "$id"
}

restore() { # ID [OPTION...]
	local id=$1
	shift
	rt_bg restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$@" "$id"
}
