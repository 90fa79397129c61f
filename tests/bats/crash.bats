#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 of the runtime at any moment: `delete --force` removes everything that it left.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

# How long one undisturbed call takes, in microseconds.
duration_of() {
	local t0 t1
	t0=$(date +%s%N)
	"$@" >/dev/null 2>&1 </dev/null
	t1=$(date +%s%N)
	echo $(((t1 - t0) / 1000))
}

crash_at() { # MICROSECONDS VERB...
	new_id
	cfg --arg p "$(cgroups_path "$ID")" '.linux.cgroupsPath = $p'
	kill_at "$1" "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" "${@:2}" -b "$BUNDLE" "$ID" 3>&-
	run rt delete --force "$ID"
	assert_eq "at $1: $status $output" "at $1: 0 "
	assert_eq "at $1: $(left_state)" "at $1: "
}

# Where a processor is slow to kill, most moments may be too late: so there are some at once, too.
crash() { # VERB ROUNDS
	local n full
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt "${@:3}" -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 # not killed, it works
	rt delete --force "$ID"
	full=$(duration_of rt "${@:3}" -b "$BUNDLE" "$ID")
	rt delete --force "$ID"
	for n in $(seq "$2"); do
		crash_at $((full * n / $2 * 11 / 10)) "${@:3}"
	done
	for ((n = 0; n < 100 && KILLED <= 3; n++)); do
		crash_at $((n * 10)) "${@:3}"
	done
	[ "$KILLED" -gt 3 ] || fail "it was killed $KILLED times only"
	assert_nothing_left
}

@test "crash: run --detach killed at 25 moments" {
	lean_only "leaves things behind"
	crash run 25 run -d
}

@test "crash: create killed at 25 moments" {
	lean_only "leaves things behind"
	crash create 25 create
}

# Deterministic, unlike the above: the child is ready to wait for `start` long before its pid is noted.
@test "crash: create killed before it has noted its child" {
	lean_only "leaves a process behind"
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.args = ["/bin/sleep", "300"]'
	strace -o /dev/null -e trace=pwrite64 -e inject=pwrite64:delay_enter=2000000 \
		"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	local tracer=$! runtime
	wait_until eval '[ -n "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)")" ]'
	hold_tracer "$tracer"
	sleep 0.3
	runtime=$(cat "/proc/$tracer/task/$tracer/children")
	kill -KILL ${runtime:?}
	let_tracer_go
	wait "$tracer" || true
	run rt delete --force "$ID"
	assert_eq "$status $output" "0 "
	assert_nothing_left
}

@test "crash: run in the foreground killed, delete --force" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	local pid=$!
	wait_for_status running "$ID"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	rt delete --force "$ID"
	assert_nothing_left
}

@test "crash: delete killed at 10 moments, then again" {
	local n full
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	full=$(duration_of rt delete --force "$ID")
	for n in 1 2 3 4 5 6 7 8 9 10; do
		rt_bg run -d -b "$BUNDLE" "$ID"
		kill_at $((full * n / 10)) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" delete --force "$ID" 3>&-
		rt delete --force "$ID"
		run ! rt state "$ID"
	done
	assert_nothing_left
}

@test "crash: delete killed at each file of the record" {
	lean_only "leaves things behind"
	command -v strace >/dev/null || skip "strace is not installed"
	local n
	cfg '.process.args = ["/bin/true"] | .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW"}'
	for n in 1 2 3 4 5 6; do
		new_id
		cfg --arg p "$(cgroups_path "$ID")" '.linux.cgroupsPath = $p'
		rt create -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
		run strace -o /dev/null -e trace=unlinkat -e "inject=unlinkat:signal=KILL:when=$n" \
			"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" delete --force "$ID"
		assert_eq "$n: $status" "$n: 137"
		if [ -e "$ROOT/$ID" ]; then
			run ! rt create -b "$BUNDLE" "$ID"
		fi
		run -0 rt delete --force "$ID"
		run ! test -e "$ROOT/$ID"
	done
	assert_nothing_left
}

@test "crash: a record that is not written to its end is none" {
	local n
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.args = ["/bin/true"]'
	# As it is written first: killed before anybody is born, and the record told of it.
	run strace -o /dev/null -e trace=clone3 -e inject=clone3:signal=KILL \
		"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create -b "$BUNDLE" "$ID" </dev/null
	assert_eq "$status" 137
	cp "$ROOT/$ID/record" record
	rt delete --force "$ID"
	# One of its two copies is enough.
	for n in 0 1 63 64 65 79 80 81 500 $(($(stat -c %s record) / 2 - 1)); do
		mkdir "$ROOT/$ID"
		head -c "$n" record >"$ROOT/$ID/record"
		run ! rt state "$ID"
		assert_has "$output" "never created completely"
		run -0 rt list -q
		assert_eq "$output" ""
		run -0 rt delete "$ID"
		run ! test -e "$ROOT/$ID"
	done
}

@test "crash: pause killed leaves nothing frozen for good" {
	local n full
	rt_sleeper
	full=$(duration_of rt pause "$ID")
	rt resume "$ID"
	for n in 1 2 3 4 5 6; do
		kill_at $((full * n / 6)) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" pause "$ID" 3>&-
		run rt resume "$ID"
		assert_eq "$(status_of)" running
	done
	rt pause "$ID"
	rt delete --force "$ID"
}

@test "crash: exec killed leaves the container in order" {
	local n full
	rt_sleeper
	full=$(duration_of rt exec "$ID" true)
	for n in 1 2 3 4 5 6 7 8; do
		kill_at $((full * n / 8)) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" exec "$ID" true 3>&-
	done
	assert_eq "$(status_of)" running
	run -0 rt exec "$ID" echo fine
	assert_has "$output" fine
	wait_until eval '[ "$(rt ps -f json "$ID" | jq length)" = 1 ]'
}

@test "crash: out of processes is an error, not a hang, and nothing is left" {
	local cg=/sys/fs/cgroup/pids/$TAG-tight n left
	mkdir "$cg" 2>/dev/null || skip "no pids controller of cgroup v1 here"
	for n in 1 2 3; do
		echo $n >"$cg/pids.max"
		timeout 30 bash -c 'echo $$ >$1/cgroup.procs; LR_TEST_TAG=$2 exec "$LEAN_RUNTIME" --root "$3" create -b "$4" "$5"' \
			bash "$cg" "$TAG" "$ROOT" "$BUNDLE" "$ID" </dev/null >o 2>&1 3>&- && status=0 || status=$?
		[ "$status" -ne 124 ] || fail "hangs with $n processes"
		if [ "$status" = 0 ] || ! is_lean; then
			rt delete --force "$ID"
			continue
		fi
		output=$(cat o)
		assert_one_error
		left=$(left_state)
		assert_eq "with $n: $left" "with $n: "
	done
	wait_until rmdir "$cg"
}

@test "crash: out of descriptors is an error, not a hang" {
	export TAG ROOT BUNDLE ID
	local n
	for n in 4 5 6 8 10 12 14 16; do
		status=0
		timeout 20 bash -c 'ulimit -n '$n'; exec "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"' </dev/null >o 2>&1 3>&- || status=$?
		[ "$status" -ne 124 ] || fail "hangs with $n descriptors"
		is_lean || { rt delete --force "$ID" || true; continue; }
		# Without descriptors it may not be able to clean up (a cgroup that is not empty at once takes
		# more of them): what it then leaves is no process, and a record by which this finds the rest.
		assert_match "$(status_of 2>/dev/null)" '^(stopped)?$'
		rt delete --force "$ID"
		left=$(left_state)
		assert_eq "with $n: $left" "with $n: "
	done
}

@test "crash: two at once with one id: exactly one wins" {
	lean_only "races"
	cfg '.process.args = ["/bin/sleep", "300"]'
	local i won=0 pids=()
	for i in 1 2 3 4 5 6; do
		rt run -d -b "$BUNDLE" "$ID" </dev/null >"o$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" && won=$((won + 1)) || true
	done
	assert_eq "$won" 1
	assert_eq "$(status_of)" running
	assert_eq "$(rt ps -f json "$ID" | jq length)" 1
}

@test "crash: 40 containers after each other leave no trace and no slow-down" {
	local i
	cfg '.process.args = ["true"]'
	for i in $(seq 40); do
		rt run -b "$BUNDLE" "$ID" </dev/null
	done
	assert_nothing_left
}

@test "crash: nobody reads our messages: what was begun is done" {
	lean_only "is ended by SIGPIPE"
	cfg '.process.args = ["/bin/sleep", "300"]'
	{
		sleep 0.2
		local rc=0
		rt --debug create -b "$BUNDLE" "$ID" </dev/null >/dev/null || rc=$?
		echo "$rc" >rc
	} 2>&1 | true
	assert_eq "$(cat rc)" 0
	assert_eq "$(status_of)" created
	{
		sleep 0.2
		rm rc
		rc=0
		rt --debug delete "$ID" || rc=$?
		echo "$rc" >rc
	} 2>&1 | true
	assert_eq "$(cat rc)" 0
}
