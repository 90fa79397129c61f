#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# process.*: user, groups, umask, cwd, rlimits, capabilities, oom score, descriptors, socket activation.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

@test "user: uid, gid, additional groups" {
	cfg '.process.user = {"uid": 1000, "gid": 1001, "additionalGids": [5, 6, 2000]}'
	sh_cfg 'grep -E "^(Uid|Gid|Groups)" /proc/self/status'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "${lines[0]}" '^Uid:.1000.1000.1000.1000'
	assert_match "${lines[1]}" '^Gid:.1001.1001.1001.1001'
	assert_match "${lines[2]}" '^Groups:.5 6 2000'
}

@test "user: the caller's groups are dropped" {
	sh_cfg 'grep Groups /proc/self/status'
	run -0 setpriv --groups 4,20,24 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_match "$output" '^Groups:[[:space:]]*0?[[:space:]]*$'
}

@test "umask: default 0022, and the configured one" {
	sh_cfg 'umask'
	(umask 0077 && rt run -b "$BUNDLE" "$ID" </dev/null >o 2>&1)
	assert_eq "$(cat o)" 0022
	cfg '.process.user.umask = 7'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 0007
}

@test "cwd" {
	sh_cfg 'pwd; pwd -P'
	cfg '.process.cwd = "/usr/bin"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'/usr/bin\n/usr/bin'
	ln -s usr/bin "$BUNDLE/rootfs/link"
	cfg '.process.cwd = "/link"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[1]}" "/usr/bin"
}

@test "cwd: must be absolute" {
	cfg '.process.cwd = "tmp"'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "cwd|Cwd|absolute"
}

@test "no-new-privileges" {
	sh_cfg 'grep NoNewPrivs /proc/self/status'
	cfg '.process.noNewPrivileges = true'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" ':.1'
	cfg '.process.noNewPrivileges = false'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" ':.0'
}

@test "rlimits: lowered, several" {
	cfg '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}, {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
		{"type": "RLIMIT_STACK", "soft": 4194304, "hard": 8388608}]'
	sh_cfg 'grep -E "open files|core file|Max stack" /proc/self/limits'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'Max open files +100 +200'
	assert_match "$output" 'Max core file size +0 +0'
	assert_match "$output" 'Max stack size +4194304 +8388608'
}

@test "rlimits: an unknown one, a double one, one that can't be raised" {
	cfg '.process.rlimits = [{"type": "RLIMIT_NONSENSE", "soft": 1, "hard": 1}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "RLIMIT_NONSENSE|rlimit"
	cfg '.process.rlimits = [{"type": "RLIMIT_CPU", "soft": 9, "hard": 9}, {"type": "RLIMIT_CPU", "soft": 9, "hard": 9}]'
	if is_lean; then
		run rt run -b "$BUNDLE" "$ID"
		assert_one_error
	fi
	has_cap 24 && skip "the rest needs a machine without CAP_SYS_RESOURCE"
	cfg '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 100000000, "hard": 100000000}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "operation not permitted"
}

@test "rlimits and oomScoreAdj beyond the runtime's own, in a user namespace; the runtime keeps its own" {
	lean_only "another way to the same"
	needs_root
	has_cap 24 || skip "CAP_SYS_RESOURCE is missing"
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
	cfg '.linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}] | .linux.gidMappings = .linux.uidMappings
		| .process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 1000, "hard": 50000}] | .process.oomScoreAdj = -500'
	local script='ulimit -n; ulimit -H -n; cat /proc/self/oom_score_adj' first
	sh_cfg "$script; exec sleep 300"
	ulimit -n 2000
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until grep -q -e -500 "$OUT"
	assert_eq "$(cat "$OUT")" $'1000\n50000\n-500'
	run -0 rt exec "$ID" sh -c "$script"
	assert_eq "$output" $'1000\n50000\n-500'
	# Another container that joins the user namespace.
	first=$ID
	new_id
	cfg --arg p "/proc/$(pid_of "$first")/ns/user" '.process.args[2] |= sub("; exec .*"; "")
		| .linux.namespaces |= map(if .type == "user" then .path = $p else . end) | del(.linux.uidMappings, .linux.gidMappings)
		| .linux.cgroupsPath += "-b"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'1000\n50000\n-500'
}

@test "oomScoreAdj" {
	cfg '.process.oomScoreAdj = 321'
	sh_cfg 'cat /proc/self/oom_score_adj'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 321
	cfg '.process.oomScoreAdj = 1001'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	has_cap 24 && skip "the rest needs a machine without CAP_SYS_RESOURCE"
	cfg '.process.oomScoreAdj = -500'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_match "$output" "permission denied|oom"
}

caps_cfg() {
	cfg --argjson c "$1" '.process.capabilities = $c'
	sh_cfg 'grep Cap /proc/self/status'
}

@test "capabilities: the five sets" {
	# KILL is 5, SETUID 7, SETGID 6, NET_BIND_SERVICE 10, CHOWN 0
	caps_cfg '{"bounding": ["CAP_KILL", "CAP_SETUID", "CAP_SETGID"], "permitted": ["CAP_KILL", "CAP_SETUID"],
		"effective": ["CAP_KILL"], "inheritable": ["CAP_SETUID"], "ambient": ["CAP_SETUID"]}'
	cfg '.process.user = {"uid": 1000, "gid": 1000}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'CapBnd:.00000000000000e0'
	assert_match "$output" 'CapInh:.0000000000000080'
	assert_match "$output" 'CapAmb:.0000000000000080'
	# After execve of a plain file by an ordinary user the ambient set is what remains.
	assert_match "$output" 'CapPrm:.0000000000000080'
	assert_match "$output" 'CapEff:.0000000000000080'
}

@test "capabilities: an ordinary user's are there when the program is executed, whichever way" {
	lean_only "asks for its two ways"
	caps_cfg '{"bounding": ["CAP_DAC_OVERRIDE"], "permitted": ["CAP_DAC_OVERRIDE"], "effective": ["CAP_DAC_OVERRIDE"]}'
	mkdir -m 0700 "$BUNDLE/rootfs/locked"
	cp "$BUNDLE/rootfs/bin/busybox" "$BUNDLE/rootfs/locked/"
	cfg '.process.user = {"uid": 1000, "gid": 1000} | .process.args = ["/locked/busybox", "true"]'
	local how
	for how in "" mount; do
		LEAN_RUNTIME_SELF=$how run -0 rt run -b "$BUNDLE" "$ID"
		LEAN_RUNTIME_SELF=$how rt create -b "$BUNDLE" "$ID" </dev/null >out 2>&1
		run -0 rt start "$ID"
		run -0 rt delete --force "$ID"
	done
}

@test "capabilities: none at all" {
	lean_changes bounding
	caps_cfg '{"bounding": [], "permitted": [], "effective": [], "inheritable": [], "ambient": []}'
	run -0 rt run -b "$BUNDLE" "$ID"
	local set
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		assert_match "$output" "$set:.0000000000000000"
	done
}

@test "capabilities: root gets its bounding set on exec" {
	lean_changes bounding
	caps_cfg '{"bounding": ["CAP_KILL", "CAP_CHOWN"], "permitted": ["CAP_KILL", "CAP_CHOWN"], "effective": ["CAP_KILL", "CAP_CHOWN"]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'CapEff:.0000000000000021'
	assert_match "$output" 'CapBnd:.0000000000000021'
}

@test "capabilities: an unknown name warns, and the container runs" {
	caps_cfg '{"bounding": ["CAP_KILL", "CAP_NONSENSE"], "permitted": ["CAP_KILL"], "effective": ["CAP_KILL"]}'
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'CapEff:.0000000000000020'
	assert_has "$stderr" CAP_NONSENSE
}

@test "capabilities: one that the caller lacks does not stop the container" {
	lean_only "fails"
	has_cap 24 && skip "this machine grants CAP_SYS_RESOURCE"
	caps_cfg '{"bounding": ["CAP_KILL", "CAP_SYS_RESOURCE"], "permitted": ["CAP_KILL", "CAP_SYS_RESOURCE"],
		"effective": ["CAP_KILL", "CAP_SYS_RESOURCE"]}'
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'CapEff:.0000000000000020'
	assert_has "$stderr" CAP_SYS_RESOURCE
}

rt_fds() {
	"$LEAN_RUNTIME" --root "$ROOT" "$@" </dev/null
}

@test "descriptors: only the standard three" {
	# ls itself opens the directory as 3.
	sh_cfg 'ls /proc/self/fd; for f in /proc/$$/fd/*; do readlink $f; done | grep -v -e pipe -e /dev/null'
	run rt_fds run -b "$BUNDLE" "$ID" 3</ 4</etc/passwd 11</sys/fs/cgroup
	assert_eq "$output" $'0\n1\n2\n3'
}

@test "RLIMIT_NOFILE: a low one is the program's, not the runtime's" {
	is_lean || skip "stand-in runtime: needs more itself"
	cfg '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 5, hard: 5}] | .process.env -= [.process.env[] | select(startswith("HOME="))]'
	mkdir -p "$BUNDLE/rootfs/etc"
	echo 'root:x:0:0::/home/of/root:/bin/sh' >"$BUNDLE/rootfs/etc/passwd"
	sh_cfg 'ulimit -n; echo $HOME'
	run -0 rt_fds run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'5\n/home/of/root'
}

@test "descriptors: only the standard three, created and started apart" {
	sh_cfg 'ls /proc/self/fd; for f in /proc/$$/fd/*; do readlink $f; done | grep -v -e pipe -e /dev/null -e /out -e /err'
	rt_fds create -b "$BUNDLE" "$ID" 3</ 5</etc/passwd >out 2>err
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(cat out err)" $'0\n1\n2\n3'
}

@test "descriptors: --preserve-fds passes exactly N" {
	echo three >three
	echo four >four
	sh_cfg 'cat <&3; cat <&4; ls /proc/self/fd'
	run -0 rt_fds run --preserve-fds 2 -b "$BUNDLE" "$ID" 3<three 4<four 5</ 6</etc/passwd
	assert_eq "$output" $'three\nfour\n0\n1\n2\n3\n4\n5'
}

@test "descriptors: --preserve-fds beyond what is open passes what there is, as crun's" {
	sh_cfg 'for f in 3 4 5 6 7; do [ ! -e /proc/$$/fd/$f ] || readlink /proc/$$/fd/$f; done'
	run -0 rt_fds run --preserve-fds 50 -b "$BUNDLE" "$ID" 3</etc/passwd 4<&- 5</etc/group 6<&-
	assert_eq "$output" $'/etc/passwd\n/etc/group'
	run -0 rt_fds run --preserve-fds 2000000000 -b "$BUNDLE" "$ID" 3</etc/passwd 4<&- 5</etc/group
	assert_eq "$output" $'/etc/passwd\n/etc/group'
	if [[ $(peers) == *crun* ]]; then
		run -0 crun_fds --preserve-fds 3
		assert_eq "$output" $'/etc/passwd\n/etc/group'
	fi
}

# Not through peer, which closes 3.
crun_fds() {
	cfg '.ociVersion = "1.0.2"'
	unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh \
		crun --root "$BATS_TEST_TMPDIR/crun" run "$@" -b "$BUNDLE" "$ID" </dev/null 3</etc/passwd 4<&- 5</etc/group
}

@test "socket activation: LISTEN_FDS beyond what is open passes what there is, as crun's" {
	sh_cfg 'for f in 3 4 5 6 7; do [ ! -e /proc/$$/fd/$f ] || readlink /proc/$$/fd/$f; done; echo $LISTEN_PID'
	LISTEN_FDS=4 run -0 rt_fds run -b "$BUNDLE" "$ID" 3</etc/passwd 4<&- 5</etc/group 6<&-
	assert_eq "$output" $'/etc/passwd\n/etc/group\n1'
	if [[ $(peers) == *crun* ]]; then
		LISTEN_FDS=4 run -0 crun_fds
		assert_eq "$output" $'/etc/passwd\n/etc/group\n1'
	fi
}

@test "environment: of a name that is given twice the last counts, as runc's and crun's" {
	cfg '.process.args = ["sh", "-c", "cat /proc/1/environ | tr \"\\0\" \"\\n\" | grep -v LR_TEST_TAG | sort"]
		| .process.env = ["TWO=a", "PATH=/nowhere", "LR_TEST_TAG=x", "TWO=b", "T=1", "TWOS=1", "PATH=/bin", "TWO=c", "T=", "LR_TEST_TAG='"$TAG"'"]'
	local p
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'HOME=/root\nPATH=/bin\nT=\nTWO=c\nTWOS=1'
	for p in $(peers); do
		run -0 peer "$p" run -b "$BUNDLE" "$ID"
		assert_eq "$output" $'HOME=/root\nPATH=/bin\nT=\nTWO=c\nTWOS=1'
	done
}

@test "environment: an empty HOME is the user's of the image, as runc's" {
	cfg '.process.args = ["sh", "-c", "echo $HOME"] | .process.user.uid = 1000'
	local env p
	for env in '["HOME="]' '["HOME=/a", "HOME="]' '["A=b"]'; do
		cfg --argjson e "$env" '.process.env = ["PATH=/bin", "LR_TEST_TAG='"$TAG"'"] + $e'
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_eq "$output" /home/tester
		[[ $(peers) != *runc* ]] || assert_eq "$(peer runc run -b "$BUNDLE" "$ID" </dev/null)" /home/tester
	done
	cfg '.process.env += ["HOME=", "HOME=/b"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" /b
	for p in $(peers); do
		assert_eq "$(peer "$p" run -b "$BUNDLE" "$ID" </dev/null)" /b
	done
}

# Each peer's answer to the capabilities of the config: the sets, or "refused".
capabilities_of() {
	"$@" -b "$BUNDLE" "$ID" </dev/null 2>err | cut -f2 | tr '\n' ' ' || true
	! grep -q -i "capabilities\|apply caps\|capset" err || echo refused
}

@test "capabilities: inheritable outside bounding, effective outside permitted are errors, as runc's and crun's" {
	local k='"CAP_KILL"' both='"CAP_KILL","CAP_SYS_PTRACE"' sets want p
	while IFS='|' read -r sets want; do
		cfg --argjson c "{$sets}" '.process.capabilities = $c | .process.args = ["grep", "-E", "Cap(Prm|Eff|Bnd)", "/proc/self/status"]'
		assert_eq "$(capabilities_of rt run)" "$want"
		for p in $(peers); do
			assert_eq "$(capabilities_of peer "$p" run)" "$want"
		done
	done <<-END
		"bounding":[$k],"permitted":[$k],"effective":[$k],"inheritable":[$both]|refused
		"bounding":[$k],"permitted":[$both],"effective":[$k],"inheritable":[$both]|refused
		"inheritable":[$k]|refused
		"bounding":[$k],"permitted":[$k],"effective":[$both]|refused
		"bounding":[$k],"permitted":[$both],"effective":[$both]|0000000000000020 0000000000000020 0000000000000020 
		"bounding":[$both],"permitted":[$k],"effective":[$k],"inheritable":[$k],"ambient":[$both]|0000000000000020 0000000000000020 0000000000080020 
	END
}

@test "socket activation: LISTEN_FDS reach the container, LISTEN_PID is 1" {
	echo three >three
	sh_cfg 'echo "$LISTEN_FDS $LISTEN_PID"; cat <&3; ls /proc/self/fd'
	run -0 rt_listen run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'1 1\nthree\n0\n1\n2\n3\n4'
}

rt_listen() {
	bash -c 'exec env LISTEN_FDS=1 LISTEN_PID=$$ LR_TEST_TAG="$1" "${@:2}"' bash "$TAG" "$LEAN_RUNTIME" --root "$ROOT" "$@" 3<three </dev/null
}

@test "NOTIFY_SOCKET: readiness goes through" {
	cat >notify.py <<-'END'
		import os, socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind("notify.sock")
		s.settimeout(20)
		open("listening", "w")
		got = b""
		while b"READY=1" not in got:
		    got += s.recv(4096) + b"\n"
		open("got", "wb").write(got)
	END
	python3 notify.py 3>&- &
	local py=$!
	wait_until test -e listening
	# busybox nc speaks no unix datagrams: a bind-mounted python is heavier than a helper of the host
	# that writes to the socket through /proc/PID/root.
	sh_cfg 'echo "$NOTIFY_SOCKET"; sleep 300'
	NOTIFY_SOCKET=$BATS_TEST_TMPDIR/notify.sock rt run -b "$BUNDLE" "$ID" </dev/null >o 2>&1 &
	local pid=$! path init
	wait_until test -s o
	path=$(cat o)
	init=$(pid_of)
	[ -S "/proc/$init/root$path" ]
	python3 -c 'import socket,sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]); s.send(b"READY=1\n")' "/proc/$init/root$path"
	wait "$py"
	assert_has "$(cat got)" READY=1
	rt kill "$ID" KILL
	wait "$pid" || true
}

@test "args: empty, missing" {
	cfg '.process.args = []'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" args
	cfg 'del(.process.args)'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" args
}

@test "args: bytes and lengths come through" {
	cfg '.process.args = ["printf", "%s|", "", " ", "\"", "ä\n€", "$X", ("x" * 100000)]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^\| \\|"\\|ä\n€\\|\\$X\\|x{1000}'
	assert_eq "${#output}" $((100000 + $(printf '%s' $'|"| |ä\n€|$X||' | LC_ALL=C wc -c)))
}

@test "personality: LINUX32" {
	lean_only "came with 1.2"
	cfg '.linux.personality = {"domain": "LINUX32"} | .process.args = ["uname", "-m"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" "^i[3-6]86$"
}

@test "scheduler and ioPriority" {
	lean_only "came with 1.2"
	cfg '.process.scheduler = {"policy": "SCHED_BATCH", "nice": 7} | .process.ioPriority = {"class": "IOPRIO_CLASS_BE", "priority": 6}'
	sh_cfg 'cut -d" " -f19,41 /proc/self/stat; ionice -p $$'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" "7 3"
	assert_match "${lines[1]}" "best-effort: prio 6"
}

@test "CPU affinity of the caller is not inherited" {
	lean_only "inherits it"
	[ "$(nproc)" -gt 1 ] || skip "one CPU only"
	sh_cfg 'grep Cpus_allowed_list /proc/self/status'
	run -0 taskset -c 0 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_match "$output" "0-$(($(nproc) - 1))"
}

@test "the caller's ignored and blocked signals are not inherited" {
	# Not by way of sh: busybox' own ignores SIGQUIT.
	cfg '.process.args = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]'
	(trap "" HUP USR1 QUIT PIPE && rt run -b "$BUNDLE" "$ID" </dev/null >o 2>&1)
	is_lean || skip "stand-in runtime: inherits them"
	assert_match "$(cat o)" 'SigBlk:.0000000000000000'
	assert_match "$(cat o)" 'SigIgn:.0000000000000000'
}

@test "the caller's blocked signals are not inherited by create, run and exec" {
	is_lean || skip "stand-in runtime: inherits them"
	cfg '.process.args = ["grep", "SigBlk", "/proc/self/status"]'
	env --block-signal=TERM,USR2 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >o 2>&1 3>&-
	assert_match "$(cat o)" '^SigBlk:.0000000000000000$'
	env --block-signal=TERM,USR2 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create -b "$BUNDLE" "$ID" </dev/null >o 2>&1 3>&-
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_match "$(cat o)" '^SigBlk:.0000000000000000$'
	rt delete "$ID"
	rt_sleeper
	env --block-signal=TERM,USR2 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" exec "$ID" grep SigBlk /proc/self/status </dev/null >o 2>&1 3>&-
	assert_match "$(cat o)" '^SigBlk:.0000000000000000$'
}

# docs/inherited.md
@test "what a program inherits from the caller, and what it does not" {
	unset LEAN_RUNTIME_PROFILE # it has a personality of its own
	command -v gcc >/dev/null || skip "needs a C compiler"
	needs_root
	local own='^(subreaper|pdeathsig|dumpable|blocked|ignored|umask|leads|affinity) '
	gcc -D_GNU_SOURCE -static -o inherited "$LR_LIB/inherited.c"
	cp inherited "$BUNDLE/rootfs/bin/inherited"
	cfg '.process.args = ["inherited", "show"] | del(.process.rlimits, .process.oomScoreAdj)'
	./inherited set ./inherited show >caller
	rt run -b "$BUNDLE" "$ID" </dev/null >plain
	./inherited set "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null >mine 3>&-
	if is_lean; then
		assert_eq "$(grep -vE "$own" mine)" "$(grep -vE "$own" caller)"
		assert_eq "$(grep -E "$own" mine)" "$(grep -E "$own" plain)"
		assert_eq "$(grep -E "$own" plain)" "subreaper 0
pdeathsig 0
dumpable 1
blocked 0000000000000000
ignored 0000000000000000
umask 22
leads session 1, group 1
affinity $(nproc)"
	fi
	if command -v runc >/dev/null; then
		./inherited set runc --root "$BATS_TEST_TMPDIR/runc" run -b "$BUNDLE" "$ID" </dev/null >runc.set 3>&-
		local others='^(blocked|affinity|ignored) ' # runc 1.3 leaves SIGHUP and SIGINT ignored
		assert_eq "$(grep -vE "$others" mine)" "$(grep -vE "$others" runc.set)"
	fi
	rt_sleeper
	./inherited set "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" exec "$ID" inherited show </dev/null >mine.exec 3>&-
	! is_lean || assert_eq "$(cat mine.exec)" "$(cat mine)"
}
