#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `run`: in the foreground, detached, and by hand.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

# bats test_tags=ci
@test "run: prints and exits 0" {
	run -0 --separate-stderr rt run --bundle "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_eq "$stderr" ""
	run ! rt state "$ID"
}

@test "run: the bundle is the current directory by default" {
	cd "$BUNDLE"
	run -0 rt run "$ID"
	assert_eq "$output" hello
}

@test "run: a relative --bundle" {
	run -0 rt run -b bundle "$ID"
	assert_eq "$output" hello
}

@test "run: however --bundle is spelled, the bundle is known by its path without links" {
	local dir=${BUNDLE%/*} real spelled
	real=$(realpath "$BUNDLE")
	ln -s "$BUNDLE" "$dir/link"
	ln -s "$dir" "$dir/up"
	cfg '.process.args = ["/bin/sleep", "300"]'
	for spelled in "$BUNDLE" "$BUNDLE/" "$dir/link" "$dir/up/bundle" "$dir/./bundle" \
		"$dir//bundle" "$BUNDLE/../bundle"; do
		rt run -d -b "$spelled" "$ID" </dev/null &>/dev/null
		run -0 rt state "$ID"
		assert_eq "$(jq -r .bundle <<<"$output")" "$real"
		rt delete --force "$ID"
	done
	run ! rt run -b "$dir/nothing/../bundle" "$ID"
	# config.json alone may be a link: the bundle is where it is, not where it leads
	mv "$BUNDLE/config.json" "$dir/other.json"
	ln -s "$dir/other.json" "$BUNDLE/config.json"
	rt run -d -b "$BUNDLE" "$ID" </dev/null &>/dev/null
	run -0 rt state "$ID"
	assert_eq "$(jq -r .bundle <<<"$output")" "$real"
}

open_of() { # PID
	find "/proc/$1/fd" -mindepth 1 -printf '%l\n' | sort
}

holds() { # PID WHAT
	[ "$(open_of "$1")" = "$2" ]
}

# bats test_tags=ci
@test "run: while the container runs, nothing is open but what its end takes" {
	lean_changes network
	lean_only "its own affair"
	cfg '.process.args = ["/bin/sleep", "300"]'
	local pid change
	# By the stub, by a mount of the program's file, and by that with a hook, which waits for a process of ours.
	for change in . '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["prctl"], "action": "SCMP_ACT_ERRNO",
			"args": [{"index": 0, "value": 99, "op": "SCMP_CMP_EQ"}]}]}' \
		'.hooks.createRuntime = [{"path": "/bin/true"}]'; do
		cfg "$change"
		# Python passes no descriptors on but these.
		python3 -c 'import subprocess, sys
null = subprocess.DEVNULL
print(subprocess.Popen(sys.argv[1:], stdin=null, stdout=null, stderr=null).pid)' \
			"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" >pid
		pid=$(cat pid)
		wait_for_status running "$ID"
		wait_until grep -q sleep "/proc/$(pid_of)/cmdline"
		wait_until holds "$pid" "/dev/null
/dev/null
/dev/null
$ROOT
$ROOT/$ID
$ROOT/$ID/record
anon_inode:[pidfd]
anon_inode:[signalfd]" || fail "$(open_of "$pid")"
		rt kill "$ID" KILL
		wait_until test ! -e "/proc/$pid"
	done
}

@test "run: what a hook leaves running is a child of run as long as that stays" {
	local pid left
	cfg --arg f "$PWD/left" '.process.args = ["/bin/sleep", "300"] | .hooks = {"poststart": [{
		"path": "/bin/sh", "args": ["sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $! >\($f)"]}]}'
	"$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	pid=$!
	wait_until test -s left
	left=$(cat left)
	wait_until grep -q "^PPid:[[:space:]]*$pid$" "/proc/$left/status"
	kill -KILL "$left"
	wait_until test ! -e "/proc/$left"
	rt kill "$ID" KILL
	wait "$pid" || true
}

@test "run: exit code of the program" {
	sh_cfg 'exit 3'
	run -3 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" ""
}

@test "run: exit code 128+N when a signal ends the program" {
	without_ns pid
	sh_cfg 'kill -KILL $$'
	run -137 rt run -b "$BUNDLE" "$ID"
}

@test "run: exit code 128+N when another ends the container" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt run -b "$BUNDLE" "$ID" </dev/null &
	local pid=$! rc=0
	wait_for_status running "$ID"
	rt kill "$ID" KILL
	wait "$pid" || rc=$?
	assert_eq "$rc" 137
}

@test "run: stderr stays apart from stdout" {
	sh_cfg 'echo one; echo two >&2'
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" one
	assert_eq "$stderr" two
}

@test "run: standard input goes through whole" {
	cfg '.process.args = ["md5sum"]'
	head -c 3000000 /dev/urandom >in
	run -0 rt run -b "$BUNDLE" "$ID" <in
	assert_eq "${output%% *}" "$(md5sum <in | cut -d' ' -f1)"
}

@test "run: a lot of output goes through whole" {
	sh_cfg 'head -c 3000000 /dev/zero'
	rt run -b "$BUNDLE" "$ID" </dev/null >out
	assert_eq "$(stat -c %s out)" 3000000
}

@test "run: closed standard input" {
	sh_cfg 'echo fine'
	run -0 rt run -b "$BUNDLE" "$ID" <&-
	assert_has "$output" fine
}

@test "run: signals are forwarded to the program" {
	sh_cfg 'trap "echo got TERM; exit 7" TERM; trap "echo got HUP" HUP; echo ready; while :; do sleep 0.05; done'
	# The suite may run under nohup, and what the caller ignores is not forwarded.
	env --default-signal=HUP "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&- &
	local pid=$! rc=0
	wait_until grep -q ready out
	kill -HUP "$pid"
	wait_until grep -q 'got HUP' out
	kill -TERM "$pid"
	wait "$pid" || rc=$?
	assert_eq "$rc" 7
	assert_has "$(cat out)" "got TERM"
}

# bats test_tags=ci
@test "run: --detach returns, and --pid-file names init" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run --detach --pid-file "$BATS_TEST_TMPDIR/pid" -b "$BUNDLE" "$ID"
	assert_eq "$(status_of)" running
	assert_eq "$(cat pid)" "$(pid_of)"
	# Exactly the number: readers use atoi or ParseInt on all of it.
	assert_match "$(od -c pid | head -n 1)" '^0000000( +[0-9])+$'
	assert_eq "$(tr '\0' ' ' <"/proc/$(cat pid)/cmdline")" "/bin/sleep 300 "
}

@test "run: --detach of a short program leaves a stopped container" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(cat "$OUT")" hello
	rt delete "$ID"
	run ! rt state "$ID"
}

@test "run: --pid-file in the foreground" {
	rt run --pid-file "$BATS_TEST_TMPDIR/pid" -b "$BUNDLE" "$ID" </dev/null >/dev/null
	assert_match "$(cat pid)" '^[0-9]+$'
}

@test "run: --keep leaves the stopped container" {
	run -0 rt run --keep -b "$BUNDLE" "$ID"
	assert_eq "$(status_of)" stopped
	rt delete "$ID"
}

@test "run: a bundle as the argument, the id is made up and gone afterwards" {
	lean_only "needs an id"
	cfg 'del(.linux.cgroupsPath)'
	run -0 --separate-stderr rt run "$BUNDLE/"
	assert_eq "$output" hello
	assert_eq "$stderr" ""
	assert_eq "$(list_ids)" ""
	# Without the slash too, and the program's exit code comes through.
	sh_cfg 'exit 5'
	run -5 rt run "$BUNDLE"
	assert_eq "$(list_ids)" ""
}

@test "run: a made-up id is listed while it runs" {
	lean_only "needs an id"
	cfg 'del(.linux.cgroupsPath) | .process.args = ["/bin/sleep", "300"]'
	rt run "$BUNDLE/" </dev/null >/dev/null 2>&1 &
	local pid=$! id rc=0
	wait_until eval '[ -n "$(list_ids)" ]'
	id=$(list_ids)
	wait_for_status running "$id"
	rt kill "$id" KILL
	wait "$pid" || rc=$?
	assert_eq "$rc" 137
	assert_eq "$(list_ids)" ""
}

@test "run: two containers from one bundle at once" {
	lean_only "needs an id"
	cfg 'del(.linux.cgroupsPath)'
	sh_cfg 'sleep 0.3; echo done'
	rt run "$BUNDLE/" </dev/null >one 2>&1 &
	local pid=$!
	run -0 rt run "$BUNDLE/"
	assert_eq "$output" "done"
	wait "$pid"
	assert_eq "$(cat one)" "done"
}

@test "run: orphans of the container are reaped, and it ends with its init" {
	sh_cfg '(sleep 300 &) ; echo bye'
	run -0 rt run -b "$BUNDLE" "$ID" </dev/null
	assert_eq "$output" bye
}

@test "run: without a pid namespace everything in the container ends with its init" {
	without_ns pid
	sh_cfg '(sleep 300 >/dev/null 2>&1 &) ; echo bye'
	run -0 rt run -b "$BUNDLE" "$ID" </dev/null
	assert_has "$output" bye
}

@test "run: no such program" {
	cfg '.process.args = ["no-such-program"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" 'exec: "no-such-program": executable file not found in $PATH'
}

@test "run: no such path" {
	cfg '.process.args = ["/no/such"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" 'exec: "/no/such"'
	assert_has "$output" "no such file or directory"
}

@test "run: a program without the x bit" {
	cfg '.process.args = ["/bin/not-executable"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "permission denied"
}

@test "run: a directory as the program" {
	cfg '.process.args = ["/bin"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	# Docker 20.10 tells 126 by these words and no others
	assert_has "$output" "permission denied"
}

@test "run: a script whose interpreter is missing" {
	cfg '.process.args = ["/bin/bad-interpreter"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "no such file or directory"
}

@test "run: neither ELF nor script" {
	cfg '.process.args = ["/bin/bad-format"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "exec format error"
}

@test "run: the program is found by the container's PATH, not by the caller's" {
	mkdir "$BUNDLE/rootfs/opt"
	printf '#!/bin/sh\necho from opt\n' >"$BUNDLE/rootfs/opt/prog"
	chmod 755 "$BUNDLE/rootfs/opt/prog"
	cfg '.process.args = ["prog"] | .process.env |= map(if startswith("PATH=") then "PATH=/opt:/bin" else . end)'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" "from opt"
}

@test "run: the environment is the configured one only" {
	cfg '.process.args = ["env"]'
	SECRET=leaked run -0 rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" SECRET
	assert_has "$output" "LR_TEST_TAG=$TAG"
	assert_has "$output" "PATH="
}

@test "run: HOME comes from the container's passwd when it isn't given" {
	sh_cfg 'echo $HOME'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" /root
	cfg '.process.user = {"uid": 1000, "gid": 1000}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" /home/tester
}

@test "run: --no-pivot" {
	sh_cfg 'ls / | tr "\n" " "; cat /etc/motd'
	run -0 rt run --no-pivot -b "$BUNDLE" "$ID"
	assert_has "$output" "busybox test image"
}

@test "run: --no-new-keyring and --no-subreaper" {
	run -0 rt run --no-new-keyring --no-subreaper -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

@test "run: a second container of the same id is refused, the first lives on" {
	rt_sleeper
	local before
	before=$(rt state "$ID")
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "exist|in use"
	! is_lean || assert_has "$output" "$ID"
	assert_eq "$(rt state "$ID")" "$before"
}

@test "run: a root directory of its own per caller keeps ids apart" {
	rt_sleeper
	cfg --arg p "$(cgroups_path "$TAG-other")" '.linux.cgroupsPath = $p | .process.args = ["echo", "other"]'
	run -0 "$LEAN_RUNTIME" --root "$BATS_TEST_TMPDIR/root2" run -b "$BUNDLE" "$ID"
	assert_eq "$output" other
	assert_eq "$(status_of)" running
}

@test "run: relative --root" {
	run -0 "$LEAN_RUNTIME" --root rel/root run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

@test "run: --detach says that init was killed before it executed the program" {
	lean_only "takes it for started"
	command -v strace >/dev/null || skip "strace is not installed"
	local self
	cfg '.process.args = ["/bin/sleep", "300"]'
	# By the sealed program in between, and without.
	for self in "" mount; do
		export LEAN_RUNTIME_SELF=$self
		run dies_at_execve run --detach -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "killed by signal 9 (SIGKILL) before it executed its program"
		run ! rt state "$ID"
		# In the foreground its status tells.
		run -137 dies_at_execve run -b "$BUNDLE" "$ID"
	done
	# A program that ends at once has been executed, whatever its name is.
	unset LEAN_RUNTIME_SELF
	local name
	for name in true 3 4 5 6 7 8 9 10 memfd:lean-stub; do
		cp --remove-destination "$BUNDLE/rootfs/bin/busybox" "$BUNDLE/rootfs/bin/$name" # no applet's name: that would be a link to the host's
		cfg --arg n "/bin/$name" '.process.args = [$n, "kill"]'
		rt_bg run --detach -b "$BUNDLE" "$ID"
		rt delete --force "$ID"
	done
}
