# SPDX-License-Identifier: Apache-2.0
# What the tests share whose container counts (counter.c).

setup() {
	seeds_setup
	needs_program counter
	cfg '.process.args = ["/bin/counter", "/n"]'
}
teardown() {
	common_teardown
}

# In place of that of seeds.bash: not all programs here say that they are ready.
start() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
}

# The file stays: a program may have had it open just then.
begin_anew() {
	echo 1 >"$N"
}
