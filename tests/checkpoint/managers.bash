# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# managers.bash: what the managers' files share.
: "${LR_CRIU:?is not set: call tests/checkpoint/run}"
export PATH=$LR_CRIU:$PATH

# What goes on is memory: it counts in a file of the container's root.
export COUNTER='i=0; while :; do i=$((i+1)); echo $i >/n.new; mv /n.new /n; usleep 20000; done'

# counts_on FROM COMMAND...: what the command prints is beyond that, and grows.
counts_on() {
	local from=$1 first
	shift
	wait_until eval '[ "$('"$*"')" -gt 0 ]'
	first=$("$@")
	[ "$first" -ge "$from" ] || fail "it began again: $first, and had been at $from"
	wait_until eval '[ "$('"$*"')" -gt '"$first"' ]'
}
