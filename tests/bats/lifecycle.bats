#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# create, start, state, kill, delete, pause, resume: every step of runtime.md, and the wrong ones.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

# bats test_tags=ci
@test "lifecycle: created, running, stopped, gone" {
	sh_cfg 'echo started; trap "exit 0" TERM; while :; do sleep 0.05; done'
	rt_create
	assert_eq "$(status_of)" created
	[ "$(pid_of)" -gt 0 ]
	sleep 0.2
	assert_eq "$(cat "$OUT")" ""
	rt start "$ID"
	assert_eq "$(status_of)" running
	wait_until grep -q started "$OUT"
	rt kill "$ID" TERM
	wait_for_status stopped "$ID"
	assert_eq "$(pid_of)" 0
	rt delete "$ID"
	run ! rt state "$ID"
	assert_has "$output" "does not exist"
}

@test "lifecycle: create, start, kill and delete print nothing" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_create
	assert_eq "$(cat "$OUT" "$ERR")" ""
	run -0 rt start "$ID"
	assert_eq "$output" ""
	run -0 rt kill "$ID" KILL
	assert_eq "$output" ""
	wait_for_status stopped "$ID"
	run -0 rt delete "$ID"
	assert_eq "$output" ""
}

@test "create: --pid-file has the pid of state" {
	rt_bg create --pid-file "$BATS_TEST_TMPDIR/pid" -b "$BUNDLE" "$ID"
	assert_eq "$(cat pid)" "$(pid_of)"
}

@test "create: the pid stays the same over start" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_create
	local pid
	pid=$(pid_of)
	rt start "$ID"
	assert_eq "$(pid_of)" "$pid"
}

@test "create: the program runs only after start, with the config as it was at create" {
	sh_cfg 'echo first'
	rt_create
	sh_cfg 'echo second'
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(cat "$OUT")" first
}

@test "create: a missing program is found out by start at the latest, with its name" {
	cfg '.process.args = ["no-such-program"]'
	run rt create -b "$BUNDLE" "$ID" </dev/null
	if [ "$status" = 0 ]; then
		run rt start "$ID"
	fi
	assert_one_error
	assert_has "$output" 'exec: "no-such-program": executable file not found in $PATH'
}

@test "create: the same id twice" {
	rt_create
	local before
	before=$(rt state "$ID")
	run rt create -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "exist|in use"
	assert_eq "$(rt state "$ID")" "$before"
}

@test "create: ids of every allowed character" {
	local id
	for id in "$TAG-a.b_c+d" "${TAG}A" "_$TAG" "+$TAG" "0$TAG"; do
		cfg --arg p "$(cgroups_path "$id")" '.linux.cgroupsPath = $p'
		rt_create "$id"
		assert_eq "$(status_of "$id")" created
		rt delete --force "$id"
	done
}

@test "create: bad ids" {
	local id
	for id in "" "." ".." "a/b" "../$TAG" "a b" $'a\nb' 'a*' "ä" ".hidden"; do
		is_lean || [ "$id" != .hidden ] || continue
		run rt create -b "$BUNDLE" "$id"
		[ "$status" -ne 0 ] || fail "id '$id' was accepted"
		is_lean && [ "$status" -lt 128 ]
		run rt state "$id"
		[ "$status" -ne 0 ] || fail "state of '$id'"
	done
}

@test "create: an id that begins with a dash" {
	lean_only "its option parser takes it as a flag"
	local id=-$TAG
	cfg --arg p "$(cgroups_path "x$id")" '.linux.cgroupsPath = $p'
	rt_bg create -b "$BUNDLE" -- "$id"
	assert_eq "$(rt state -- "$id" | jq -r .id)" "$id"
	rt delete --force -- "$id"
}

@test "start: twice" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_create
	rt start "$ID"
	run rt start "$ID"
	assert_one_error
	assert_eq "$(status_of)" running
}

@test "start: of a stopped container" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	run rt start "$ID"
	assert_one_error
}

@test "start: after init was killed while created" {
	rt_create
	kill -KILL "$(pid_of)"
	wait_for_status stopped "$ID"
	run rt start "$ID"
	assert_one_error
	rt delete "$ID"
}

@test "delete: a running container is refused and keeps running" {
	rt_sleeper
	run rt delete "$ID"
	assert_one_error
	assert_match "$output" "running|not stopped"
	assert_eq "$(status_of)" running
}

@test "start: says that init was killed before it executed the program" {
	lean_only "takes it for started"
	command -v strace >/dev/null || skip "strace is not installed"
	# Init is a child of who does not wait for it: waited for, it could as well have been a program that ended.
	python3 -c 'import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) # PR_SET_CHILD_SUBREAPER
subprocess.check_call(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print("created", flush=True)
time.sleep(300)' "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create -b "$BUNDLE" "$ID" >made 3>&- &
	local keeper=$! pid
	wait_until grep -q created made
	pid=$(pid_of)
	strace -o trace -e trace=execve -e inject=execve:signal=KILL -p "$pid" </dev/null >/dev/null 2>&1 3>&- &
	wait_until grep -q "^TracerPid:.[1-9]" "/proc/$pid/status"
	run rt start "$ID"
	wait $! || true
	kill "$keeper"
	wait "$keeper" || true
	assert_one_error
	assert_has "$output" "died before it executed its program"
	wait_for_status stopped "$ID"
}

@test "delete: a created container" {
	rt_create
	local pid
	pid=$(pid_of)
	rt delete "$ID"
	run ! rt state "$ID"
	wait_until eval "! kill -0 $pid"
}

@test "delete --force: running, created, paused, stopped" {
	rt_sleeper
	rt delete --force "$ID"
	run ! rt state "$ID"
	assert_nothing_left
	rt_create
	rt delete -f "$ID"
	run ! rt state "$ID"
	assert_nothing_left
	rt_sleeper
	rt pause "$ID"
	rt delete --force "$ID"
	run ! rt state "$ID"
	assert_nothing_left
	cfg '.process.args = ["true"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	rt delete --force "$ID"
	run ! rt state "$ID"
}

@test "delete --force: an unknown id succeeds" {
	run -0 rt delete --force "$ID"
}

@test "delete: an unknown id fails with the words managers look for" {
	run rt delete "$ID"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "delete: twice" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	rt delete "$ID"
	run rt delete "$ID"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "delete: does not need the bundle any more" {
	rt_sleeper
	mv "$BUNDLE" "$BUNDLE.gone"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	mv "$BUNDLE.gone" "$BUNDLE"
}

@test "delete: kills what init left in the cgroup" {
	without_ns pid
	sh_cfg 'sleep 300 >/dev/null 2>&1 & exit 0'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	rt delete --force "$ID"
	assert_nothing_left
}

@test "state: the fields" {
	cfg '.annotations = {"org.test.key": "value", "two": ""} | .process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	run -0 --separate-stderr rt state "$ID"
	assert_eq "$stderr" ""
	assert_eq "$(jq -r .id <<<"$output")" "$ID"
	assert_eq "$(jq -r .status <<<"$output")" running
	assert_eq "$(jq -r .bundle <<<"$output")" "$BUNDLE"
	assert_eq "$(jq -r .rootfs <<<"$output")" "$BUNDLE/rootfs"
	assert_match "$(jq -r .ociVersion <<<"$output")" '^1\.[0-9]+\.[0-9]+'
	assert_eq "$(jq -r '.pid | type' <<<"$output")" number
	assert_eq "$(jq -r '.annotations["org.test.key"]' <<<"$output")" value
	assert_eq "$(jq -r '.owner' <<<"$output")" ""
	local created
	created=$(jq -r .created <<<"$output")
	assert_match "$created" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]+Z$'
	[ $(($(date +%s) - $(date -d "$created" +%s))) -lt 30 ]
	# The same again later: it is recorded, not computed.
	assert_eq "$(rt state "$ID" | jq -r .created)" "$created"
}

@test "state: of a zombie is stopped" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(pid_of)" 0
	assert_eq "$(rt state "$ID" | jq -r .bundle)" "$BUNDLE"
}

@test "state: an unknown id" {
	run rt state "$ID"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "state: of each of two containers" {
	rt_sleeper
	local second
	new_id second
	cfg --arg p "$(cgroups_path "$second")" '.linux.cgroupsPath = $p'
	rt_create "$second"
	assert_eq "$(status_of "$ID")" running
	assert_eq "$(status_of "$second")" created
}

@test "kill: by number, name, with and without SIG, small letters" {
	local sig
	sh_cfg 'for s in HUP INT USR1 USR2 TERM; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.02; done'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q ready "$OUT"
	rt kill "$ID" 1
	wait_until grep -q HUP "$OUT"
	rt kill "$ID" INT
	wait_until grep -q INT "$OUT"
	rt kill "$ID" SIGUSR1
	wait_until grep -q USR1 "$OUT"
	rt kill "$ID" sigusr2
	wait_until grep -q USR2 "$OUT"
	rt kill "$ID"
	wait_until grep -q TERM "$OUT"
	assert_eq "$(status_of)" running
	rt kill "$ID" 9
	wait_for_status stopped "$ID"
}

@test "kill: real-time signals by name" {
	lean_only "does not know them"
	sh_cfg 'trap "echo rt" 37; echo ready; while :; do sleep 0.02; done'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q ready "$OUT"
	rt kill "$ID" RTMIN+3
	wait_until grep -q rt "$OUT"
}

@test "kill: signals that don't exist" {
	local sig
	rt_sleeper
	for sig in NOSUCH 999 -1 SIG ""; do
		is_lean || [ -n "$sig" ] || continue
		run rt kill "$ID" "$sig"
		[ "$status" -ne 0 ] || fail "signal '$sig' was accepted"
	done
	assert_eq "$(status_of)" running
}

@test "kill: signal 0 asks only" {
	rt_sleeper
	rt kill "$ID" 0
	assert_eq "$(status_of)" running
}

# As with runc, whose init ends by itself: the first process of a pid namespace could not be ended by
# these otherwise.
@test "create: what waits for start is a program of a page, in little memory" {
	lean_only "a process of its own program"
	needs_root
	cfg '.linux.seccomp = {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["fork"], "action": "SCMP_ACT_ERRNO"},
		{"names": ["brk", "capset", "close", "execve", "execveat", "exit_group", "fcntl", "getuid", "mmap", "mprotect", "nanosleep",
			"clock_nanosleep", "arch_prctl", "prctl", "prlimit64", "read", "readlinkat", "rt_sigaction", "rt_sigprocmask",
			"set_robust_list", "set_tid_address", "write", "uname", "getrandom", "rseq", "readlink", "poll"],
			"action": "SCMP_ACT_ALLOW"}]} | .process.args = ["/bin/sleep", "300"]'
	rt_create
	assert_has "$(readlink "/proc/$(pid_of)/exe")" memfd:lean-stub
	local kb
	kb=$(awk '/^Private/ { n += $2 } END { print n }' "/proc/$(pid_of)/smaps_rollup")
	[ "$kb" -le 100 ] || fail "$kb kB are its own"
	assert_eq "$(awk '/^Seccomp:/ { print $2 }' "/proc/$(pid_of)/status")" 2
	rt start "$ID"
	assert_has "$(readlink "/proc/$(pid_of)/exe")" busybox
}

@test "create: a filter that stands between the page and its work gets a process of the runtime's" {
	lean_only "a process of its own program"
	local refused
	for refused in fcntl prctl read rt_sigaction rt_sigprocmask; do
		cfg --arg c $refused '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
			{"names": [$c], "action": "SCMP_ACT_KILL_PROCESS", "args": [{"index": 2, "value": 77777, "op": "SCMP_CMP_EQ"}]}]} |
			.process.args = ["/bin/sleep", "300"]'
		rt_create
		assert_hasnt "$(readlink "/proc/$(pid_of)/exe")" lean-stub
		rt start "$ID"
		assert_has "$(readlink "/proc/$(pid_of)/exe")" busybox
		rt delete --force "$ID"
	done
}

@test "start: names the program that could not be executed" {
	printf '#!/no/interpreter\n' >"$BUNDLE/rootfs/bin/script"
	chmod 755 "$BUNDLE/rootfs/bin/script"
	cfg '.process.args = ["script"]'
	rt_create
	run rt start "$ID"
	assert_one_error
	assert_has "$output" "/bin/script: no such file or directory"
	wait_for_status stopped "$ID"
}

@test "create: a signal is not lost, however soon it comes" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	local i
	for i in 1 2 3 4 5 6 7 8; do
		rt_create
		rt kill "$ID" TERM
		wait_for_status stopped "$ID"
		rt delete "$ID"
	done
}

@test "kill: a created container ends by TERM, INT, HUP and QUIT, and not by USR1" {
	local sig
	for sig in TERM INT HUP QUIT; do
		rt_create
		rt kill "$ID" USR1
		assert_eq "$(status_of)" created
		rt kill "$ID" $sig
		wait_for_status stopped "$ID"
		run rt start "$ID"
		assert_one_error
		rt delete "$ID"
	done
	# So it is with runc. With crun it stays, by whichever of these: pid 1 of a namespace gets no signal that it has not asked for.
	local p status
	for p in $(peers); do
		for sig in TERM INT HUP QUIT; do
			peer "$p" create -b "$BUNDLE" "$ID" >out 2>&1
			peer "$p" kill "$ID" USR1
			peer "$p" kill "$ID" $sig
			status=created
			[ "$p" = crun ] || wait_until eval "peer $p state $ID | grep -q '\"status\": \"stopped\"'"
			[ "$p" = crun ] || status=stopped
			assert_eq "$p: $(peer "$p" state "$ID" | jq -r .status)" "$p: $status"
			peer "$p" delete --force "$ID"
		done
	done
	# The program is asked as ever.
	sh_cfg 'trap "echo asked; exit 3" TERM; echo ready; while :; do sleep 0.1; done'
	rt_create
	rt start "$ID"
	wait_until grep -q ready "$OUT"
	rt kill "$ID" TERM
	wait_for_status stopped "$ID"
	assert_has "$(cat "$OUT")" asked
	# And it begins with the signals as they are by default.
	cfg '.process.args = ["grep", "-E", "^Sig(Cgt|Ign)", "/proc/self/status"]'
	rt delete "$ID"
	rt_create
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_match "$(cat "$OUT")" 'SigIgn:.0000000000000000.SigCgt:.0000000000000000'
}

@test "kill: a created container" {
	rt_create
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
}

@test "kill: a stopped container fails with the words managers look for" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	run rt kill "$ID" TERM
	assert_one_error
	assert_match "$output" "container not running|process already finished|no such process"
}

@test "kill: an unknown id" {
	run rt kill "$ID" TERM
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "kill --all: every process of the container" {
	without_ns pid
	sh_cfg 'sleep 301 & sleep 302 & echo ready; wait'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q ready "$OUT"
	rt kill --all "$ID" KILL
	wait_for_status stopped "$ID"
	wait_until eval '[ -z "$(left_processes)" ]'
}

@test "kill --all: of a stopped container succeeds" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	rt kill --all "$ID" 9
}

@test "pause and resume" {
	sh_cfg 'while :; do echo x; sleep 0.02; done'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q x "$OUT"
	run -0 rt pause "$ID"
	assert_eq "$output" ""
	assert_eq "$(status_of)" paused
	local size
	size=$(stat -c %s "$OUT")
	sleep 0.2
	assert_eq "$(stat -c %s "$OUT")" "$size"
	run -0 rt resume "$ID"
	assert_eq "$output" ""
	assert_eq "$(status_of)" running
	wait_until eval "[ \$(stat -c %s \"$OUT\") -gt $size ]"
}

@test "pause: KILL reaches a paused container" {
	rt_sleeper
	rt pause "$ID"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
}

@test "pause: only what runs, resume: only what is paused" {
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	run rt pause "$ID"
	assert_one_error
	run rt resume "$ID"
	assert_one_error
	rt delete "$ID"
	rt_sleeper
	run rt resume "$ID"
	assert_one_error
	run rt pause "$TAG-unknown"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "pause: a created container can be paused and resumed" {
	rt_create
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	assert_eq "$(status_of)" created
}

@test "the record survives another working directory and a symlinked bundle" {
	ln -s "$BUNDLE" link
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b link "$ID"
	cd /
	assert_eq "$(status_of)" running
	assert_match "$(rt state "$ID" | jq -r .bundle)" '^/'
}

@test "init's parent does not matter: the caller may end" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	bash -c 'exec "$0" --root "$1" run -d -b "$2" "$3" </dev/null >/dev/null 2>&1 3>&-' "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID"
	assert_eq "$(status_of)" running
	kill -0 "$(pid_of)"
}

@test "a config without a process can be created, and start says what is missing" {
	lean_only "runc and crun want one at create, the specification at start"
	cfg 'del(.process)'
	rt_create
	assert_eq "$(status_of)" created
	run rt start "$ID"
	assert_one_error
	assert_has "$output" "the process is missing"
	assert_eq "$(status_of)" created
	run -0 rt list
	assert_has "$output" "$ID"
	jq '.process | .args = ["sh", "-c", "id -u; echo $LR_TEST_TAG"]' "$BATS_RUN_TMPDIR/base.json" >p.json
	run -0 rt exec --process <(jq '.terminal = false' p.json) "$ID"
	assert_eq "${lines[0]}" 0
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	run ! rt state "$ID"
}

@test "state: while create is at work there is no such container yet, as both peers say" {
	cfg --arg d "$PWD" '.process.args = ["/bin/sleep", "300"]
		| .hooks.createRuntime = [{path: "/bin/sh", args: ["sh", "-c", "touch \($d)/begun; until [ -e \($d)/go ]; do sleep 0.05; done"]}]'
	rt create -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	wait_until test -e begun
	run ! rt state "$ID"
	touch go
	assert_has "$output" "does not exist"
	wait $!
	assert_eq "$(status_of)" created
	rt delete "$ID"
	local p
	for p in $(peers); do
		rm begun go
		peer "$p" create -b "$BUNDLE" "$ID" >out 2>&1 &
		wait_until test -e begun
		run ! peer "$p" state "$ID"
		touch go
		assert_match "$p: $output" "$p: .*(does not exist|No such file or directory)"
		wait $!
		assert_eq "$p: $(peer "$p" state "$ID" | jq -r .status)" "$p: created"
		peer "$p" delete --force "$ID"
	done
}

# As in runc since 1.2 (its pull request 3374), which until 1.5 has an error for the default one, too (5297). Before that it made any
# directory, as crun does.
@test "list: a root that is not there is an error, if it was asked for" {
	lean_only "runc before 1.2, and crun, make it"
	run ! rt --root "$PWD/no/such" list
	assert_has "$output" "$PWD/no/such: no such file or directory"
	run ! test -e no
	# The default one is made by the first container.
	run -0 unshare -m --propagation private sh -c 'mount -t tmpfs tmpfs /run && exec "$LEAN_RUNTIME" list -q'
	assert_eq "$output" ""
	run -0 rt --root "$PWD/no/such" delete --force --regex '.*'
	if [[ $(peers runc) ]] && printf '%s\n' 1.2 "$(runc --version | sed -n 's/^runc version //p')" | sort -C -V; then
		run ! runc --root "$PWD/no/runc" list
		assert_has "$output" "no such file or directory"
	fi
}

@test "run: what is neither a bundle nor a name is refused as by create" {
	local name verb
	mkdir -p no-bundle
	for name in no-bundle/ /no/such/bundle a/b .. .x ../; do
		for verb in run create; do
			run ! rt $verb "$name"
			assert_one_error
			assert_has "$output" "invalid container id \"$name\""
		done
	done
	run -0 rt run --help
	assert_has "$output" "a directory that has a config.json"
}

@test "exec, update: out of memory is an error and no crash" {
	lean_only "has its own"
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized program needs more"
	! grep -q 'Fatal glibc error' "$LEAN_RUNTIME" || skip "without memory, static glibc crashes before main"
	command -v strace >/dev/null || skip "strace is not installed"
	local n
	rt_sleeper
	for n in 1 2 3 4; do
		for verb in "exec $ID true" "update --pids-limit 20 $ID" "pause $ID" "kill $ID 0"; do
			# shellcheck disable=SC2086
			run timeout -k 2 30 strace -o /dev/null -e trace=brk,mmap -e "inject=brk,mmap:error=ENOMEM:when=$n+" \
				"$LEAN_RUNTIME" --root "$ROOT" $verb </dev/null
			[ "$status" != 124 ] || fail "$verb, from the ${n}th: hangs"
			[ "$status" -lt 128 ] || [ "$status" = 255 ] || fail "$verb, from the ${n}th: status $status: $output"
		done
	done
	rt resume "$ID" || true # pause may have worked
}
