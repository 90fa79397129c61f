#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# exec: a second process in a running container.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

@test "exec: output, exit code, stderr, stdin" {
	rt_sleeper
	run -0 --separate-stderr rt exec "$ID" echo hi there
	assert_eq "$output" "hi there"
	assert_eq "$stderr" ""
	run -7 rt exec "$ID" sh -c 'exit 7'
	run -0 --separate-stderr rt exec "$ID" sh -c 'echo out; echo err >&2'
	assert_eq "$output|$stderr" "out|err"
	head -c 2000000 /dev/urandom >in
	run -0 rt exec "$ID" md5sum <in
	assert_eq "${output%% *}" "$(md5sum <in | cut -d' ' -f1)"
}

@test "exec: exit code 128+N for a signal" {
	rt_sleeper
	run -143 rt exec "$ID" sh -c 'kill -TERM $$'
}

@test "exec: joins every namespace and the cgroup of init" {
	rt_sleeper
	local ns pid
	pid=$(pid_of)
	run -0 rt exec "$ID" sh -c 'for n in cgroup ipc mnt net pid uts user time; do readlink /proc/self/ns/$n; done'
	local want
	want=$(for ns in cgroup ipc mnt net pid uts user time; do readlink "/proc/$pid/ns/$ns"; done)
	assert_eq "$output" "$want"
	run -0 rt exec "$ID" cat /proc/1/cgroup /proc/self/cgroup
	assert_eq "$(sort <<<"$output" | uniq -c | awk '$1 != 2')" ""
	run -0 rt exec "$ID" readlink /proc/self/root
	assert_eq "$output" /
}

@test "exec: options of the program are not ours" {
	rt_sleeper
	run -0 rt exec "$ID" ls -d --color=never /bin
	assert_eq "$output" /bin
	run -0 rt exec "$ID" sh -c 'echo "$@"' sh -d --root x
	assert_eq "$output" "-d --root x"
}

@test "exec: --cwd, --env, --user, --additional-gids, --no-new-privs" {
	rt_sleeper
	run -0 rt exec --cwd /usr/bin "$ID" pwd
	assert_eq "$output" /usr/bin
	run -0 rt exec -e A=1 -e "B=two words" "$ID" sh -c 'echo "$A|$B|$PATH"'
	assert_match "$output" '^1\|two words\|/usr'
	run -0 rt exec -u 1000:2000 "$ID" sh -c 'id -u; id -g'
	assert_eq "$output" $'1000\n2000'
	run -0 rt exec --user 1000 "$ID" id -u
	assert_eq "$output" 1000
	run -0 rt exec -u 1000:1000 -g 3000 -g 3001 "$ID" id -G
	assert_eq "$output" "1000 3000 3001"
	run -0 rt exec --no-new-privs "$ID" grep NoNewPrivs /proc/self/status
	assert_match "$output" 'NoNewPrivs:.1'
}

@test "exec: -u is parsed strictly" {
	lean_only "lenient"
	rt_sleeper
	local u
	for u in "" ":" "1000:" ":1000" "a" "1000x" "-1" "99999999999" "1:2:3" " 1" "0x10" "1000:abc"; do
		run rt exec -u "$u" "$ID" true
		[ "$status" -ne 0 ] || fail "user '$u' was accepted"
	done
}

@test "exec: the environment is that of the container's process, and -e adds" {
	cfg '.process.env += ["FROM=config"]'
	rt_sleeper
	SECRET=leaked run -0 rt exec -e NEW=1 "$ID" env
	assert_has "$output" FROM=config
	assert_has "$output" NEW=1
	assert_hasnt "$output" SECRET
}

@test "exec: --cap adds to what the container has" {
	rt_sleeper
	run -0 rt exec --cap CAP_SYS_ADMIN "$ID" grep CapEff /proc/self/status
	local eff=$((0x${output##*[[:space:]]}))
	[ $((eff >> 21 & 1)) = 1 ]
	run -0 rt exec "$ID" grep CapEff /proc/self/status
	eff=$((0x${output##*[[:space:]]}))
	[ $((eff >> 21 & 1)) = 0 ]
}

@test "exec: --cap makes nothing inheritable, ambient only what is, as runc's" {
	local want got inheritable
	while read -r inheritable want; do
		cfg --argjson i "$inheritable" '.process.capabilities = {"bounding": ["CAP_KILL"], "permitted": ["CAP_KILL"], "effective": ["CAP_KILL"], "inheritable": $i}'
		[ "$inheritable" != '["CAP_KILL","CAP_SYS_PTRACE"]' ] || cfg '.process.capabilities.bounding += ["CAP_SYS_PTRACE"]'
		rt_sleeper
		run -0 rt exec --cap CAP_SYS_PTRACE "$ID" grep -E 'Cap(Inh|Prm|Amb)' /proc/self/status
		assert_eq "$(cut -f2 <<<"$output" | sed 's/^0*//; s/^$/0/' | tr '\n' ' ')" "$want "
		rt delete --force "$ID"
		if [[ $(peers) == *runc* ]]; then
			peer runc run -d -b "$BUNDLE" "$ID" </dev/null >out 2>&1
			got=$(peer runc exec --cap CAP_SYS_PTRACE "$ID" grep -E 'Cap(Inh|Prm|Amb)' /proc/self/status)
			peer runc delete --force "$ID"
			assert_eq "$(cut -f2 <<<"$got" | sed 's/^0*//; s/^$/0/' | tr '\n' ' ')" "$want "
		fi
	done <<-'END'
		[] 0 80020 0
		["CAP_KILL"] 20 80020 0
		["CAP_KILL","CAP_SYS_PTRACE"] 80020 80020 80000
	END
}

@test "exec: --process reads a pipe, a FIFO and standard input" {
	rt_sleeper
	jq '.process | .args = ["echo", "by a pipe"]' "$BUNDLE/config.json" >p.json
	run -0 bash -c '"$0" --root "$1" exec --process <(cat p.json) "$2"' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_eq "$output" "by a pipe"
	run -0 bash -c 'cat p.json | "$0" --root "$1" exec --process /dev/stdin "$2"' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_eq "$output" "by a pipe"
	run -0 bash -c '"$0" --root "$1" exec --process - "$2" <p.json' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_eq "$output" "by a pipe"
	mkfifo fifo
	cat p.json >fifo &
	run -0 rt exec --process fifo "$ID"
	assert_eq "$output" "by a pipe"
	# Longer than what a pipe holds, so it comes in pieces.
	jq '.env += ["LONG=" + ("x" * 100000)] | .args = ["sh", "-c", "echo ${#LONG}"]' p.json >long.json
	run -0 bash -c 'cat long.json | "$0" --root "$1" exec --process /dev/stdin "$2"' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_eq "$output" 100000
	run bash -c 'head -c 50 p.json | "$0" --root "$1" exec --process /dev/stdin "$2"' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_one_error
	run bash -c 'head -c 17M /dev/zero | "$0" --root "$1" exec --process - "$2"' "$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_one_error
	assert_has "$output" '"standard input" is larger than 16 MiB'
}

@test "exec: seccomp of the container holds" {
	cfg '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
		"syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}'
	rt_sleeper
	run ! rt exec "$ID" mkdir /tmp/x
	assert_has "$output" "No space left"
}

@test "exec: --process" {
	rt_sleeper
	jq '.process | .args = ["sh", "-c", "echo $X; pwd; id -u; umask"] | .env += ["X=from file"] | .cwd = "/tmp"
		| .user = {"uid": 1000, "gid": 1000, "umask": 63}' "$BUNDLE/config.json" >p.json
	run -0 rt exec --process p.json "$ID"
	assert_match "$output" $'^from file\n/tmp\n1000\n00'
	! is_lean || assert_has "$output" 0077
	run -0 rt exec -p "$BATS_TEST_TMPDIR/p.json" "$ID"
	assert_has "$output" "from file"
}

@test "exec: --process with rlimits, capabilities and noNewPrivileges" {
	rt_sleeper
	jq '.process | .args = ["sh", "-c", "ulimit -n; grep -E \"CapEff|NoNew\" /proc/self/status"]
		| .rlimits = [{"type": "RLIMIT_NOFILE", "soft": 123, "hard": 456}] | .noNewPrivileges = true
		| .capabilities = {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"], "permitted": ["CAP_KILL"]}' \
		"$BUNDLE/config.json" >p.json
	run -0 rt exec -p p.json "$ID"
	assert_match "$output" $'^123\n'
	assert_match "$output" 'CapEff:.0000000000000020'
	assert_match "$output" 'NoNewPrivs:.1'
}

@test "exec: --process that is broken" {
	rt_sleeper
	echo '{"args": ' >p.json
	run rt exec -p p.json "$ID"
	assert_one_error
	echo '{"cwd": "/", "user": {"uid": 0, "gid": 0}}' >p.json
	run rt exec -p p.json "$ID"
	assert_one_error
	run rt exec -p no-such-file "$ID"
	assert_one_error
	assert_has "$output" no-such-file
	run rt exec "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(status_of)" running
}

@test "exec: --detach and --pid-file" {
	rt_sleeper
	rt_bg exec --detach --pid-file "$BATS_TEST_TMPDIR/pid" "$ID" sh -c 'echo from exec; exec sleep 303'
	assert_match "$(cat pid)" '^[0-9]+$'
	wait_until grep -q "from exec" "$OUT"
	wait_until eval '[ "$(tr "\0" " " </proc/$(cat pid)/cmdline)" = "sleep 303 " ]'
	assert_eq "$(readlink "/proc/$(cat pid)/ns/pid")" "$(readlink "/proc/$(pid_of)/ns/pid")"
	assert_has "$(rt ps -f json "$ID")" "$(cat pid)"
}

@test "exec: detached processes are children of whoever asked, with a subreaper" {
	# The containerd shim is a subreaper and waits for the pid in the pid file.
	rt_sleeper
	cat >shim.py <<-'END'
		import ctypes, os, subprocess, sys
		ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
		subprocess.run(sys.argv[2:], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
		pid = int(open(sys.argv[1]).read())
		_, status = os.waitpid(pid, 0)
		sys.exit(os.WEXITSTATUS(status))
	END
	local rc=0
	python3 shim.py pid "$LEAN_RUNTIME" --root "$ROOT" exec -d --pid-file pid "$ID" sh -c 'exit 33' 3>&- || rc=$?
	assert_eq "$rc" 33
}

@test "exec: runtime failures exit with 255" {
	rt_sleeper
	run -255 rt exec "$ID" no-such-program
	assert_one_error
	assert_has "$output" 'exec: "no-such-program": executable file not found in $PATH'
	run -255 rt exec "$ID" /no/such
	assert_one_error
	assert_has "$output" "no such file or directory"
	run -255 rt exec "$ID" /bin/not-executable
	assert_one_error
	assert_has "$output" "permission denied"
	run -255 rt exec --cwd /no/such/dir "$ID" true
	assert_one_error
	assert_match "$output" "no such file or directory"
	is_lean || return 0
	run -255 rt exec --cap CAP_NONSENSE "$ID" true
	assert_has "$output" CAP_NONSENSE
}

@test "exec: a directory as the program" {
	rt_sleeper
	run -255 rt exec "$ID" /bin
	assert_one_error
	# Docker 20.10 tells 126 by these words and no others
	assert_has "$output" "permission denied"
}

@test "exec: failures leave no process behind" {
	rt_sleeper
	run rt exec "$ID" no-such-program
	run rt exec -d "$ID" /no/such
	run rt exec --cwd /no "$ID" true
	assert_eq "$(rt ps -f json "$ID" | jq length)" 1
}

@test "exec: into created, paused, stopped and unknown containers" {
	rt_create
	run -0 rt exec "$ID" echo in created
	assert_has "$output" "in created"
	rt delete --force "$ID"
	rt_sleeper
	rt pause "$ID"
	run timeout 30 "$LEAN_RUNTIME" --root "$ROOT" exec "$ID" true
	assert_one_error
	[ "$status" -ne 124 ]
	assert_has "$output" paused
	rt resume "$ID"
	run -0 rt exec "$ID" true
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	run rt exec "$ID" true
	assert_one_error
	rt delete "$ID"
	run rt exec "$ID" true
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "exec: many at once" {
	rt_sleeper
	local i pids=()
	for i in 1 2 3 4 5 6 7 8; do
		rt exec "$ID" sh -c "sleep 0.1; echo $i" </dev/null >"o$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	assert_eq "$(cat o? | tr '\n' ' ')" "1 2 3 4 5 6 7 8 "
	assert_eq "$(rt ps -f json "$ID" | jq length)" 1
}

@test "exec: works after the bundle's config.json changed or went" {
	lean_only "reads it"
	rt_sleeper
	mv "$BUNDLE/config.json" saved
	run -0 rt exec "$ID" echo still
	assert_eq "$output" still
	mv saved "$BUNDLE/config.json"
}

@test "exec: umask, rlimits and oom score of the container's process apply" {
	cfg '.process.user.umask = 23 | .process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 200, "hard": 300}]
		| .process.oomScoreAdj = 500'
	rt_sleeper
	run -0 rt exec "$ID" sh -c 'ulimit -n; cat /proc/self/oom_score_adj'
	# Go's own raising of NOFILE shines through in some builds of a stand-in.
	is_lean || output=${output/#300/200}
	assert_eq "$output" $'200\n500'
}

@test "exec: --preserve-fds passes exactly N" {
	rt_sleeper
	echo three >three
	run -0 rt_fds exec --preserve-fds 1 "$ID" sh -c 'cat <&3; ls /proc/self/fd'
	assert_eq "$output" $'three\n0\n1\n2\n3\n4'
}

rt_fds() {
	"$LEAN_RUNTIME" --root "$ROOT" "$@" 3<three 4</dev/null
}

@test "exec: --preserve-fds beyond what is open passes what there is, as crun's" {
	rt_sleeper
	run -0 rt_fds3 exec --preserve-fds 50 "$ID" sh -c 'for f in 3 4 5 6; do [ ! -e /proc/$$/fd/$f ] || readlink /proc/$$/fd/$f; done'
	assert_eq "$output" $'/etc/passwd\n/etc/group'
	rt delete --force "$ID"
	if [[ $(peers crun) ]]; then
		peer crun run -d -b "$BUNDLE" "$ID" >out 2>&1
		run -0 crun_fds3 exec --preserve-fds 3 "$ID" sh -c 'for f in 3 4 5 6; do [ ! -e /proc/$$/fd/$f ] || readlink /proc/$$/fd/$f; done'
		peer crun delete --force "$ID"
		assert_eq "$output" $'/etc/passwd\n/etc/group'
	fi
}

rt_fds3() {
	"$LEAN_RUNTIME" --root "$ROOT" "$@" 3</etc/passwd 4<&- 5</etc/group 6<&-
}

# Not through peer, which closes 3.
crun_fds3() {
	unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh \
		crun --root "$BATS_TEST_TMPDIR/crun-root" "$@" </dev/null 3</etc/passwd 4<&- 5</etc/group 6<&-
}

@test "exec: no descriptor but the standard three, and none of the host's" {
	rt_sleeper
	run -0 rt_fds2 exec "$ID" sh -c 'ls /proc/self/fd; for f in /proc/$$/fd/*; do readlink $f; done | grep -c -e /sys -e /run -e memfd'
	assert_eq "$output" $'0\n1\n2\n3\n0'
}

rt_fds2() {
	"$LEAN_RUNTIME" --root "$ROOT" "$@" 3</dev/null 7</ 9</etc/passwd || true
}

@test "exec: -t with a console socket" {
	rt_sleeper
	"$LR_LIB/recv-console" "$BATS_TEST_TMPDIR/c.sock" console.out 3>&- &
	local recv=$!
	wait_until test -S c.sock
	rt_bg exec -t --detach --console-socket "$BATS_TEST_TMPDIR/c.sock" --pid-file pid "$ID" \
		sh -c 'test -t 0 && test -t 1 && test -t 2 && echo is a terminal; tty'
	wait "$recv"
	assert_has "$(cat console.out)" "is a terminal"
	assert_match "$(cat console.out)" "/dev/(pts/[0-9]+|console)"
}

@test "exec: -t in the foreground" {
	rt_sleeper
	run -5 "$LR_LIB/on-pty" --size 31x91 --step '31 91=>resize 41x99' --step 'resized=>\x03' -- \
		"$LEAN_RUNTIME" --root "$ROOT" exec -t "$ID" sh -c 'trap "exit 5" INT; stty size; until [ "$(stty size)" = "41 99" ]; do sleep 0.05; done; echo resized; while :; do sleep 0.05; done'
}

@test "exec: -t without a terminal or console socket is refused when detached" {
	rt_sleeper
	run rt exec -t -d "$ID" true
	[ "$status" -ne 0 ]
	[ "$(rt ps -f json "$ID" | jq length)" = 1 ]
}

@test "exec: --cgroup puts the process into a sub-cgroup" {
	cgroup_v2 && skip "cgroup v1 is mounted on the machines this runs on"
	rt_sleeper
	mkdir "/sys/fs/cgroup/pids/$ID/sub"
	run -0 rt exec --cgroup pids:sub "$ID" grep pids /proc/self/cgroup
	assert_match "$output" "/sub$"
	rmdir "/sys/fs/cgroup/pids/$ID/sub"
}

@test "exec: --ignore-paused starts a process that runs after resume" {
	rt_sleeper
	rt pause "$ID"
	"$LEAN_RUNTIME" --root "$ROOT" exec --ignore-paused "$ID" echo late >late 2>&1 </dev/null 3>&- &
	local pid=$!
	sleep 0.3
	rt resume "$ID"
	wait "$pid"
	assert_eq "$(cat late)" late
}

@test "exec: the user's home and the container's PATH are used" {
	mkdir "$BUNDLE/rootfs/opt"
	printf '#!/bin/sh\necho from opt $HOME\n' >"$BUNDLE/rootfs/opt/prog"
	chmod 755 "$BUNDLE/rootfs/opt/prog"
	rt_sleeper
	run -0 rt exec -e PATH=/opt:/bin -u 1000 "$ID" prog
	assert_eq "$output" "from opt /home/tester"
}

@test "exec: --detach says that the process was killed before it executed its program" {
	lean_only "takes it for started"
	command -v strace >/dev/null || skip "strace is not installed"
	rt_sleeper
	run dies_at_execve exec --detach "$ID" true
	assert_one_error
	assert_has "$output" "killed by signal 9 (SIGKILL) before it executed its program"
	run -137 dies_at_execve exec "$ID" true
}
