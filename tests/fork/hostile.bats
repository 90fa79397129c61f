#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore with --engine=fork: containers and seeds that mean harm.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_program hostile
	needs_seedtool
}
teardown() {
	common_teardown
}

# The files stay: a program may have had them open just then.
goes_round() {
	: >"$R/n"
	wait_until eval '[ -s "$R/n" ]'
}

# What it says; the file is empty for an instant when it writes.
out() {
	local text
	for _ in $(seq 200); do
		text=$(cat "$R/out" 2>/dev/null) && [ -n "$text" ] && break
		sleep 0.01
	done
	echo "$text"
}

# start VERB [ARGUMENT...]
start() {
	cfg --arg a "$*" '.process.args = ["/bin/hostile"] + ($a | split(" "))'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
}

seed() { # [OPTION...]
	timeout -k 5 20 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$@" "$ID" </dev/null
}

grow() {
	timeout 20 "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >grow.out 2>&1 3>&-
}

# Of config.json and of the seed.
ordinary_user() {
	chmod 777 "$R"
	touch "$R/n" "$R/out"
	chmod 666 "$R/n" "$R/out"
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = true'
	for m in uids gids; do
		"$SEEDTOOL" forge "$IMG" creds 0 "$m" 1000
	done
	for m in permitted effective inheritable ambient bounding; do
		"$SEEDTOOL" forge "$IMG" creds 0 "$m" 0
	done
}

@test "fork: a working directory that became a link leads nowhere: descriptors of the host's are open then (CVE-2024-21626)" {
	mkdir -p "$R/w/x"
	start stays /w/x
	assert_eq "$(out)" /w/x
	seed --stop
	rmdir "$R/w/x"
	for fd in $(seq 3 40); do
		ln -sfn "/proc/self/fd/$fd" "$R/w/x"
		run grow
		[ "$status" -ne 0 ] || fail "$fd: it is in $(goes_round; out)"
		assert_has "$(cat grow.out)" "open /w/x, which is a process's working directory"
	done
	rm "$R/w/x"
	mkdir "$R/w/x"
	: >"$R/out"
	grow
	assert_eq "$(out)" /w/x
}

@test "fork: what a file shows only to who opened it with more rights, a seed's process does not see either" {
	grep -q -v "^0000000000000000" /proc/kallsyms || skip "this kernel shows its addresses to nobody"
	start reads /proc/kallsyms
	assert_match "$(out)" '^0000000000000000 '
	seed --stop
	: >"$R/out"
	grow
	assert_match "$(out)" '^0000000000000000 '
}

@test "fork: no file is opened for a seed that the process of config.json could not open" {
	echo secret >"$R/secret"
	chmod 600 "$R/secret"
	start reads /secret
	seed --stop
	: >"$R/out"
	grow
	assert_eq "$(out)" secret
	rt delete --force "$ID"
	# A forged one, who has it open.
	ordinary_user
	: >"$R/out"
	run grow
	[ "$status" -ne 0 ] || fail "it has it open: $(out)"
	assert_has "$(cat grow.out)" "open /secret, which the seed had open: permission denied"
	chmod 644 "$R/secret"
	grow
	assert_eq "$(out)" secret
}

@test "fork: no process of a seed is in a directory that the process of config.json could not go to" {
	mkdir -p "$R/closed/in"
	start stays /closed/in
	assert_eq "$(out)" /closed/in
	seed --stop
	ordinary_user
	# On the way to it, and itself.
	for closed in closed closed/in; do
		chmod 700 "$R/$closed"
		: >"$R/out"
		run grow
		[ "$status" -ne 0 ] || fail "it is in $(out)"
		assert_has "$(cat grow.out)" "open /closed/in, which is a process's working directory: permission denied"
		chmod 755 "$R/$closed"
	done
	chmod 700 "$R/closed"
	# It begins there by config.json, which asks nobody.
	cfg '.process.cwd = "/closed/in"'
	grow
	assert_eq "$(out)" /closed/in
}

@test "fork: nor has one a root that the process of config.json could not go to" {
	mkdir -p "$R/closed/in"
	cfg '.process.args = ["/bin/hostile", "jailed", "/closed/in"] | .process.capabilities |= map_values(["CAP_SYS_CHROOT"])'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ -s "$R/closed/in/n" ]'
	seed --stop
	ordinary_user
	cfg '.process.capabilities = (["bounding", "permitted", "effective", "inheritable", "ambient"] | map({(.): ["CAP_SYS_CHROOT"]}) | add)'
	# On the way to it, and itself.
	for closed in closed closed/in; do
		chmod 700 "$R/$closed"
		run grow
		[ "$status" -ne 0 ] || fail "its root is $(readlink "/proc/$(pid_of)/root")"
		assert_has "$(cat grow.out)" "open /closed/in, which is a process's root: permission denied"
		chmod 777 "$R/$closed"
	done
	chmod 666 "$R/closed/in/n"
	grow || fail "$(cat grow.out)"
	assert_eq "$(readlink "/proc/$(pid_of)/root")" "/closed/in"
}

# detached WHAT REFUSAL...
detached_is_refused() {
	start detached "$1"
	run -1 seed
	assert_has "$output" "cannot carry $(($# - 1)) of the container's resources"
	for refusal in "${@:2}"; do
		assert_has "$output" "(hostile): $refusal"
	done
	[ ! -e "$IMG/descriptor" ]
	rt delete --force "$ID"
	rm -rf "$IMG" "$R/j" "$R/n"
}

@test "fork: who is in a mount that is in no namespace, or has a file of it, does not get the container's of that path" {
	with_caps CAP_SYS_ADMIN CAP_SYS_CHROOT
	local none="is in none of the container's mounts"
	detached_is_refused root "a root that $none (/)" "a working directory that $none (/)"
	detached_is_refused cwd "a working directory that $none (/)"
	detached_is_refused directory "descriptor 6: a file that $none (/)"
	detached_is_refused file "descriptor 5: a file that $none (/secret)"
}

@test "fork: nor does the first process, which has no other mount then" {
	with_caps CAP_SYS_ADMIN CAP_SYS_CHROOT
	cfg '.process.args = ["/bin/hostile", "detached", "self"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ -z "$(cat "/proc/$(pid_of)/mountinfo")" ]'
	run -1 seed
	assert_has "$output" "a root that is in none of the container's mounts (/)"
}

@test "fork: nor has who is in a bind of the container's root what is mounted below that" {
	with_caps CAP_SYS_ADMIN CAP_SYS_CHROOT
	local none="is in none of the container's mounts"
	detached_is_refused bind "a root that $none (/)" "a working directory that $none (/)"
}

@test "fork: nor does who has mapped one" {
	with_caps CAP_SYS_ADMIN
	detached_is_refused mapped "a file that is in none of the container's mounts, and is mapped, at "
}

@test "fork: nor does who is in, or has a file of, what was moved out of the directory that a bind mount shows" {
	with_caps CAP_SYS_CHROOT
	mkdir -p vol/sub/d
	echo theirs >vol/sub/d/f
	cfg --arg v "$PWD/vol" '.mounts += [{destination: "/v", type: "bind", source: $v, options: ["bind"]},
		{destination: "/s", type: "bind", source: ($v + "/sub"), options: ["bind"]}]'
	local none="is in none of the container's mounts"
	detached_is_refused moved "a root that $none (/)" "a working directory that $none (/)" "descriptor 5: a file that $none (/)" \
		"descriptor 6: a file that $none (/)" "a file that $none, and is mapped, at "
}

@test "fork: a root directory that is open is the container's, whichever root its processes have" {
	mkdir -p "$R/jail"
	cfg '.process.args = ["/bin/hostile", "jailed", "/jail", "/"] | .process.capabilities |= map_values(["CAP_SYS_CHROOT"])'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ -s "$R/jail/n" ]'
	seed --stop
	grow || fail "$(cat grow.out)"
	assert_eq "$(readlink "/proc/$(pid_of)/fd/3")" /
	assert_eq "$(stat -Lc %d:%i "/proc/$(pid_of)/fd/3")" "$(stat -c %d:%i "$R")"
}

@test "fork: nor is who is in a directory that is deleted in one that is called so later" {
	with_caps CAP_SYS_CHROOT
	detached_is_refused deleted "a root that is deleted (/j (deleted))" "a working directory that is deleted (/j (deleted))"
}

@test "fork: nor is a program of memory the container's of that name" {
	start detached program
	run -1 seed
	assert_has "$output" "a program that is deleted (/memfd:program (deleted))"
}

@test "fork: a file of the host's that was handed in is not the container's of that path, unless it is a volume's there" {
	mkdir host
	echo "the host's" >host/f
	mkdir -p "$R$PWD/host"
	echo "the container's" >"$R$PWD/host/f"
	cfg '.process.args = ["/bin/hostile", "reads", "/n"]'
	run_with_file() {
		"$LEAN_RUNTIME" --root "$ROOT" run --detach --preserve-fds 1 --bundle "$BUNDLE" "$ID" </dev/null >began 2>&1 3<host/f || fail "$(cat began)"
		goes_round
	}
	run_with_file
	run -1 seed
	assert_has "$output" "(hostile): descriptor 3: a file that is in none of the container's mounts ($PWD/host/f)"
	rt delete --force "$ID"
	rm -rf "$IMG"
	cfg --arg d "$PWD/host" '.mounts += [{destination: $d, source: $d, type: "bind", options: ["rbind"]}]'
	run_with_file
	seed --stop
	grow || fail "$(cat grow.out)"
	assert_eq "$(readlink "/proc/$(pid_of)/fd/3")" "$PWD/host/f"
	assert_eq "$(stat -Lc %d:%i "/proc/$(pid_of)/fd/3")" "$(stat -c %d:%i host/f)"
}

@test "fork: memory that a program has as its standard output stays its own: a child does not print that for whoever continues it" {
	start prints memory
	seed --stop
	rm "$R/n"
	touch "$R/n"
	grow
	goes_round
	assert_eq "$(readlink "/proc/$(pid_of)/fd/1")" "/memfd:own (deleted)"
	assert_hasnt "$(cat grow.out)" secret
	# What was one open file is one still: each position is behind both.
	rt pause "$ID"
	assert_eq "$(awk '/^pos/ {print $2}' "/proc/$(pid_of)/fdinfo/1")" "$(awk '/^pos/ {print $2}' "/proc/$(pid_of)/fdinfo/2")"
	rt resume "$ID"
}

@test "fork: nor does it if that is a file of a mount that its parent has unmounted" {
	with_caps CAP_SYS_ADMIN
	start prints unmounted
	run -1 seed
	assert_has "$output" "(hostile): descriptor 1: a file that is in none of the container's mounts (/f)"
}

@test "fork: a file of a volume that is taken away between the look and the hold is not the container's of that path" {
	command -v strace >/dev/null || skip "strace is not installed"
	mkdir host "$R/v"
	echo theirs >host/f
	echo "the container's" >"$R/f"
	cfg --arg d "$PWD/host" '.process.args = ["/bin/hostile", "reads", "/v/f"] | .process.capabilities |= map_values(. - ["CAP_SYS_ADMIN"])
		| .mounts += [{destination: "/v", source: $d, type: "bind", options: ["bind"]}]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
	late_begin
	nsenter -t "$(pid_of)" -m umount -l /v
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "(hostile): descriptor 3: a file that is in none of the container's mounts (/f)"
}

@test "fork: nor is a file of proc(5), of another process, a child's, where the directory above is called otherwise since the look" {
	command -v strace >/dev/null || skip "strace is not installed"
	mkdir "$R/a"
	cfg --arg s 'exec >/dev/null; sleep 1000 & echo 1 >/n; while [ ! -e /go ]; do :; done; mv /a /z; exec 5</z/proc/$!/stat; : >/there; exec sleep 1000' \
		'.process.args = ["/bin/sh", "-c", $s] | .mounts += [{destination: "/a/proc", type: "proc", source: "proc"}]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$R/n"
	late_begin
	touch "$R/go"
	wait_until test -e "$R/there"
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "descriptor 5: a file of proc(5), of another process than the first, or of a thread (/z/proc/"
}

# In mountinfo each space of them is four bytes.
@test "fork: nor where the directories above have as many spaces as a path may have" {
	mkdir "$R/a"
	cfg --arg s 'exec >/dev/null; sleep 1000 & d=$(printf "%250s" ""); p=; for i in 1 2 3 4 5; do p="$p/$d"; mkdir "$p"; done; mv /a "$p/a"
		exec 5<"$p/a/proc/$!/stat"; echo 1 >/n; exec sleep 1000' \
		'.process.args = ["/bin/sh", "-c", $s] | .mounts += [{destination: "/a/proc", type: "proc", source: "proc"}]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$R/n"
	run -1 seed
	assert_has "$output" "descriptor 5: a file of proc(5), of another process than the first, or of a thread (/  "
}

@test "fork: nor where its path is longer than the kernel tells" {
	mkdir "$R/a"
	cfg --arg s 'exec >/dev/null; sleep 1000 & d=$(printf "%200s" "" | tr " " d); for i in $(seq 25); do mkdir "$d"; cd -P "$d"; done; mv /a a
		exec 5<"a/proc/$!/stat"; cd /; echo 1 >/n; exec sleep 1000' \
		'.process.args = ["/bin/sh", "-c", $s] | .mounts += [{destination: "/a/proc", type: "proc", source: "proc"}]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$R/n"
	run -1 seed
	assert_has "$output" "descriptor 5: a file whose path is longer than the kernel tells"
}

@test "fork: who has a root of its own may have files outside of it, also the first process" {
	mkdir -p "$R/jail"
	echo outside >"$R/outside"
	cfg '.process.args = ["/bin/hostile", "jailed", "/jail", "/outside"] | .process.capabilities |= map_values(["CAP_SYS_CHROOT"])'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ -s "$R/jail/n" ]'
	seed --stop
	grow || fail "$(cat grow.out)"
	assert_eq "$(cat "/proc/$(pid_of)/fd/3")" outside
	assert_eq "$(readlink "/proc/$(pid_of)/root")" /jail
}

@test "fork: priorities that its process could not have are refused to a forged seed" {
	start reads /n
	seed --stop
	cp -a "$IMG" plain
	"$SEEDTOOL" forge "$IMG" threads 0 policy 1
	"$SEEDTOOL" forge "$IMG" threads 0 priority 50
	run grow
	[ "$status" -ne 0 ] || fail "its priority: $(chrt -p "$(pid_of)")"
	rm -rf "$IMG"
	cp -a plain "$IMG"
	"$SEEDTOOL" forge "$IMG" threads 0 nice 0xffffffec
	run grow
	[ "$status" -ne 0 ] || fail "its niceness: $(ps -o ni= -p "$(pid_of)")"
	rm -rf "$IMG"
	cp -a plain "$IMG"
	# One that it may have, whoever calls.
	"$SEEDTOOL" forge "$IMG" threads 0 nice 19
	grow
	assert_eq "$(ps -o ni= -p "$(pid_of)" | tr -d ' ')" 19
}

# CI's root may not raise a limit, so what is looked at is the order.
@test "fork: nor priorities that only the limits of whoever continues it allow: they are config.json's by then" {
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.rlimits = [{type: "RLIMIT_NICE", soft: 0, hard: 0}, {type: "RLIMIT_RTPRIO", soft: 0, hard: 0}]'
	start reads /n
	seed --stop
	"$SEEDTOOL" forge "$IMG" threads 0 nice 19
	timeout 60 strace -f -o calls -e trace=prlimit64,sched_setattr "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach \
		--image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	for limit in RLIMIT_NICE RLIMIT_RTPRIO sched_setattr; do
		wait_until grep -q "$limit" calls
	done
	for limit in RLIMIT_NICE RLIMIT_RTPRIO sched_setattr; do
		echo "$(grep -n -m1 "$limit" calls | cut -d: -f1) $limit"
	done | sort -n >order
	assert_eq "$(sed -n '3s/.* //p' order)" sched_setattr
}

@test "fork: a group that gets signals is known as it was, however often a process changes its own" {
	start moves
	local seen=0
	for _ in $(seq 100); do
		rm -rf "$IMG"
		seed >said 2>&1 || continue
		"$SEEDTOOL" dump "$IMG" >dump.json
		jq -e '.processes[1] | .pgid == .pid' dump.json >/dev/null || continue
		jq -e '.processes[1].pid as $p | any(.files[]; .owner_kind == 3 and .owner == $p)' dump.json >/dev/null ||
			fail "nobody gets the signals: $(jq -c '[.files[] | {kind, owner_kind, owner}]' dump.json)"
		seen=$((seen + 1))
		[ "$seen" -lt 8 ] || break
	done
	[ "$seen" -ge 8 ] || fail "seen $seen times: $(cat said)"
}

FILTER='{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}'

# Without a filter in its way, it would make the directory /broken.
@test "fork: who changes the code that a process is made to run gets past no filter, and keeps nobody" {
	cfg --argjson f "$FILTER" '.linux.seccomp = $f'
	start code
	for _ in 1 2 3 4 5 6 7 8; do # on a busy machine it loses most races
		code=0
		seed || code=$?
		[ ! -e "$R/broken" ] || fail "it made a call that its filter refuses"
		[ "$code" -ne 124 ] || fail "it never ends"
	done
	[ -e "$R/fought" ] || fail "it has not seen the code"
}

@test "fork: nor does who changes it when its seed is continued" {
	cfg --argjson f "$FILTER" '.linux.seccomp = $f'
	start code
	seed --stop
	rm -f "$R/fought"
	for _ in 1 2 3 4 5 6 7 8; do # on a busy machine it loses most races
		code=0
		grow || code=$?
		[ ! -e "$R/broken" ] || fail "it made a call that its filter refuses"
		[ "$code" -ne 124 ] || fail "it never ends"
		rt delete --force "$ID"
	done
	[ -e "$R/fought" ] || fail "it has not seen the code"
}

# A thread of the child's does not come to its end.
@test "fork: who executes a program that never begins keeps nobody, and is held no longer" {
	start executes
	code=0
	seed 2>refused || code=$?
	assert_eq "$code" 1
	assert_match "$(cat refused)" "the process of thread [0-9]+ executes a program that does not begin"
	goes_round
	for status in "/proc/$(pid_of)"/task/*/status /proc/"$(pgrep -P "$(pid_of)")"/status; do
		assert_eq "$(awk '/^TracerPid/ {print $2}' "$status")" 0
	done
}

@test "fork: a named pipe that is called as shared memory is a named pipe, and keeps nobody waiting" {
	start fifo
	code=0
	seed 2>refused || code=$?
	assert_eq "$code" 1
	assert_has "$(cat refused)" "a named pipe or socket (/memfd:)"
	goes_round
}

@test "fork: a process with more that cannot be carried than anybody reads takes no memory for it" {
	cfg '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 4000, hard: 4000}]'
	start many 3000
	code=0
	(
		ulimit -v 200000
		seed
	) 2>refused || code=$?
	assert_eq "$code" 1
	assert_has "$(cat refused)" "a UDP socket"
	assert_has "$(cat refused)" "and more"
	assert_hasnt "$(cat refused)" "memory"
	[ "$(wc -l <refused)" -lt 1000 ]
}

@test "fork: a table of descriptors that very many processes share is looked at a few times, and not once for each" {
	command -v strace >/dev/null || skip "strace is not installed"
	start shares 100 50
	code=0
	timeout 60 strace -o calls -e trace=open,openat,openat2 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null 2>refused 3>&- || code=$?
	assert_eq "$code" 1
	assert_has "$(cat refused)" "descriptors that it shares with process $(pid_of)"
	local looks
	looks=$(grep -cE '"/proc/[0-9]+/fd"' calls)
	[ "$looks" -gt 0 ] || fail "never looked at"
	[ "$looks" -lt 10 ] || fail "looked at $looks times"
	goes_round
}

@test "fork: a descriptor that a process has sent itself is found, and not taken" {
	command -v strace >/dev/null || skip "strace is not installed"
	start flight
	code=0
	timeout 60 strace -o calls -e trace=recvmsg "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null 2>refused 3>&- || code=$?
	assert_eq "$code" 1
	assert_has "$(cat refused)" "descriptors that wait in a pair of sockets"
	assert_has "$(cat calls)" MSG_CTRUNC
	assert_hasnt "$(cat calls)" SCM_RIGHTS
	goes_round
}

@test "fork: who has had a file of an unfinished seed open does not read the next one; what others have left is refused" {
	start reads /n
	mkdir -m 700 "$IMG"
	for f in pages.new descriptor.new; do
		: >"$IMG/$f"
		chmod 644 "$IMG/$f"
	done
	exec 8<"$IMG/pages.new" 9<"$IMG/descriptor.new"
	seed --stop
	assert_eq "$(wc -c <&8) $(wc -c <&9)" "0 0"
	exec 8<&- 9<&-
	for f in pages descriptor; do
		chmod 666 "$IMG/$f"
		run grow
		[ "$status" -eq 1 ]
		assert_has "$(cat grow.out)" "$f, in"
		chmod 600 "$IMG/$f"
		mv "$IMG/$f" kept
		mkfifo -m 600 "$IMG/$f"
		run grow
		[ "$status" -eq 1 ]
		assert_has "$(cat grow.out)" "$f is a link, or no file"
		rm "$IMG/$f"
		mv kept "$IMG/$f"
	done
	grow
	goes_round
}

@test "fork: programs that never stop to fork, and end, become a seed all the same" {
	sh_cfg 'exec >/dev/null; for i in 1 2 3 4 5 6; do while :; do /bin/true; done & done; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
	for _ in 1 2 3; do
		seed
		goes_round
	done
	seed --stop
	grow
	goes_round
	# All six go on.
	wait_until eval '[ "$(rt exec "$ID" /bin/ps | grep -c -w /bin/sh)" -ge 7 ]'
}

@test "fork: a program that wants to be asked before its tmpfs is opened (fanotify), and answers nobody, keeps nobody" {
	with_caps CAP_SYS_ADMIN
	start asks /dev/shm
	run -1 seed
	assert_has "$output" "anon_inode:[fanotify]"
	goes_round
}

@test "fork: nor does a child that asks so, of a program that may not, nor who was sent in by exec" {
	with_caps CAP_SYS_ADMIN CAP_SETPCAP
	start asked /dev/shm
	run -1 seed
	assert_has "$output" "anon_inode:[fanotify]"
	goes_round
	rt delete --force "$ID"
	sh_cfg 'while sleep 1000; do :; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	rt_bg exec --detach --cap CAP_SYS_ADMIN "$ID" /bin/hostile asks /dev/shm
	goes_round
	run -1 seed --without-exec
	assert_has "$output" "anon_inode:[fanotify]"
	goes_round
}

serves_itself() { # VERB [HOW]
	grep -qw fuse /proc/filesystems || skip "no FUSE here"
	mkdir -p "$R/mnt"
	with_caps CAP_SYS_ADMIN CAP_SYS_CHROOT CAP_MKNOD
	# The way to that is through the file system that it serves.
	cfg '.mounts += [{destination: "/mnt/t", type: "tmpfs", source: "tmpfs"}]'
	cfg '.linux.devices += [{path: "/dev/fuse", type: "c", major: 10, minor: 229, fileMode: 438}] |
		.linux.resources.devices += [{allow: true, type: "c", major: 10, minor: 229, access: "rwm"}]'
	start "$@"
	run -1 seed
}

@test "fork: a program whose root, and a file that it has open, it serves itself (FUSE), and answers nobody, keeps nobody" {
	serves_itself serves
	assert_has "$output" "a device (/dev/fuse)"
	goes_round
}

@test "fork: nor does one whose descriptor for that waits in a socket, where no process has it" {
	serves_itself served waits
	assert_has "$output" "descriptors that wait in a socket (socket:["
	goes_round
}

@test "fork: nor if it is in the table of a thread that has its own" {
	serves_itself served thread
	assert_has "$output" "a device (/dev/fuse)"
	goes_round
}

@test "fork: nor if its path is longer than the kernel tells" {
	serves_itself served long
	assert_has "$output" "a device (a path that can't be read)"
	goes_round
}

@test "fork: who ends while it is copied leaves no child behind that nobody waits for" {
	start forks
	for _ in $(seq 15); do
		seed
	done
	goes_round
	nobody() {
		local p
		for p in $(cat "/proc/$(pid_of)/task/$(pid_of)/children"); do
			! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null || return 1
		done
	}
	wait_until nobody
}

# The code by which its twin is waited for would be written to the memory that it has left, and it be sent there.
@test "fork: who executes another program while its memory is copied, and leaves the old memory to a child, is not sent astray" {
	command -v strace >/dev/null || skip "strace is not installed"
	rm -f "$R/left"
	start leaves
	timeout 60 strace -f -o calls -e trace=pwrite64 -e inject=pwrite64:delay_enter=5000 "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null 3>&-
	[ -e "$R/left" ] || fail "it has not executed anything meanwhile"
	assert_eq "$(out)" /
	goes_round
	for p in $(cat "/proc/$(pid_of)/task/$(pid_of)/children"); do
		! grep -q '^State:.Z' "/proc/$p/status" || fail "a twin is left that nobody waits for"
	done
}

@test "fork: what exec sent in is held for --without-exec also when its first thread has ended; what has ended is in nobody's way" {
	command -v python3 >/dev/null || skip "python3 is not installed" # who waits for nobody
	sh_cfg 'i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/m; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$R/m"
	rt_bg exec --detach --pid-file "$PWD/sent" "$ID" /bin/hostile leaderless
	goes_round
	seed --without-exec
	goes_round
	kill -9 "$(cat sent)"
	timeout 60 python3 -c 'import ctypes, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
subprocess.run(sys.argv[1:], check=True)
time.sleep(1000)' "$LEAN_RUNTIME" --root "$ROOT" exec --detach "$ID" /bin/true </dev/null 3>&- &
	parent=$!
	ended() {
		pgrep -r Z -P "$(pgrep -P "$parent")"
	}
	wait_until ended || fail "it has not ended"
	code=0
	seed || code=$?
	kill "$parent" # the pid namespace would wait for it
	assert_eq "$code" 0
}

# Longer tables, in their order of docs/seed-format.md: text for python3, which has d[TYPE], of which `more` changes.
swell() { # TEXT
	python3 -c 'import struct, sys
b, at, d = open(sys.argv[1], "rb").read(), 64, {}
for _ in range(struct.unpack_from("<I", b, 48)[0]):
    kind, flags, stride, _, n = struct.unpack_from("<IIIIQ", b, at)
    d[kind] = [flags, stride, bytearray(b[at + 24:at + 24 + stride * n])]
    at += 24 + (stride * n + 7 & ~7)
def add(kind, n, entry):  # an index, or for each one
    first = len(d[kind][2]) // d[kind][1]
    d[kind][2] += b"".join(entry(first + i) for i in range(n)) if callable(entry) else entry * n
    return first
def put(kind, index, at, form, *values):
    struct.pack_into(form, d[kind][2], index * d[kind][1] + at, *values)
exec(sys.argv[2])
out = b"".join(struct.pack("<IIIIQ", k, f, s, 0, len(t) // s) + t + bytes(-len(t) % 8) for k, (f, s, t) in sorted(d.items()))
open(sys.argv[1], "wb").write(b[:16] + struct.pack("<Q", 64 + len(out)) + b[24:48] + struct.pack("<I", len(d)) + b[52:64] + out)
' "$IMG/descriptor" "$1"
	"$SEEDTOOL" seal "$IMG"
}

@test "fork: a forged seed that has very many of each thing is through in a moment all the same" {
	start reads /n
	seed --stop
	cp -a "$IMG" plain
	# Some watches of an epoll that has a thousand numbers, and ten thousand other ones. What counts is
	# processor time (s), whatever else the machine does.
	swell 'd.setdefault(14, [1, 24, bytearray()])
none = 0xffffffff
fds = struct.unpack_from("<I", d[4][2], 44)[0]
event = add(11, 1, struct.pack("<IIQIIII5QIIII", 5, 2, 0, 0, none, none, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
watches = add(14, 300000, struct.pack("<IIIIQ", 0x7fffffff, event, 0, 1, 0))
epoll = add(11, 1, struct.pack("<IIQIIII5QIIII", 8, 2, 0, 0, none, none, 0, 0, 0, 0, 0, 0, watches, 300000, 0, 0))
add(12, 10000, lambda i: struct.pack("<IIII", i + 100, event, 0, 0))
add(12, 1000, lambda i: struct.pack("<IIII", i + 100, epoll, 0, 0))
put(4, 0, 44, "<I", fds + 11000)'
	(ulimit -t 2 && grow) || fail "$(cat grow.out)"
	goes_round
	rt delete --force "$ID"
	# Half a million mappings, and ten thousand mapped files: it comes to the first of these addresses, which is none.
	rm -rf "$IMG"
	mv plain "$IMG"
	swell 'none = 0xffffffff
vmas = struct.unpack_from("<I", d[7][2], 116)[0]
add(10, 10000, bytes(d[10][2][:24]))
add(8, 500000, lambda i: struct.pack("<QQQIIIIII", (1 << 55) + i * 8192, (1 << 55) + i * 8192 + 4096, 0, 1, 3, 0, none, none, 0))
put(7, 0, 116, "<I", vmas + 500000)'
	code=0
	(ulimit -t 2 && grow) || code=$?
	assert_eq "$code" 1
	assert_has "$(cat grow.out)" "resume: process 1: step"
}
