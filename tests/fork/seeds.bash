# SPDX-License-Identifier: Apache-2.0
# What the tests of seeds share.

seeds_setup() {
	common_setup
	needs_root
	lean_only "an engine of its own"
	export LEAN_RUNTIME_PROFILE=none # its containers' roots are nobody's bundle
	IMG=$BATS_TEST_TMPDIR/img
	R=$BUNDLE/rootfs
	N=$R/n
}

count() { # [FILE]; it is empty for an instant when a shell writes it
	local c
	for _ in $(seq 1000); do
		c=$(cat "${1:-$N}" 2>/dev/null) && [ -n "$c" ] && break
	done
	echo "${c:-0}"
}

moves() { # [FILE]
	local first
	first=$(count "${1-}")
	wait_until eval '[ "$(count '"${1-}"')" -gt '"$first"' ]'
}
