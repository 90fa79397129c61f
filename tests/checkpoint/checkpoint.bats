#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore by the command line, with the real criu.

load helpers.bash

setup() {
	checkpoint_setup
}
teardown() {
	show_logs
	common_teardown
}

python_root() {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
}

# Kernels without CONFIG_MEM_SOFT_DIRTY, as some of virtual machines, have no pre-dumps.
needs_dirty_tracking() {
	criu check --feature mem_dirty_track >/dev/null 2>&1 || skip "the kernel does not track writes to memory"
}

@test "checkpoint: a counter goes on where it was" {
	start_counter
	checkpoint "$ID"
	at=$(count)
	run rt state "$ID"
	assert_has "$output" "does not exist" # as with runc and crun
	sleep 0.2
	assert_eq "$(count)" "$at"
	restore "$ID"
	counts_on "$at"
	assert_eq "$(status_of)" running
}

@test "checkpoint: it goes on under another id, after delete" {
	start_counter
	checkpoint "$ID" --leave-running
	# Where it was just writing, criu wants a file that it has renamed since.
	while grep -q n.new "$IMG/files.img"; do
		rm -r "$IMG"
		checkpoint "$ID" --leave-running
	done
	at=$(count)
	counts_on "$at" # it was left running
	rt delete --force "$ID"
	new_id NEW
	cfg --arg id "$NEW" '.linux.cgroupsPath = "/" + $id'
	echo 0 >"$N"
	restore "$NEW"
	wait_until eval '[ "$(count)" -ge '"$at"' ]'
	counts_on "$at"
	assert_has "$(cat "/proc/$(pid_of "$NEW")/cgroup")" "/$NEW"
	assert_hasnt "$(cat "/proc/$(pid_of "$NEW")/cgroup")" "/$ID"
}

@test "restore: what comes out is a container: exec, ps, events, pause, resume, kill, delete" {
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_ERRNO", errnoRet: 38}]}'
	start_counter
	checkpoint "$ID"
	restore "$ID" --pid-file "$PWD/pid"
	assert_eq "$(cat pid)" "$(pid_of)"
	run -0 rt exec "$ID" /bin/echo in there
	assert_eq "$output" "in there"
	run rt exec "$ID" /bin/mkdir /tmp/x
	assert_has "$output" "not implemented"
	assert_has "$(rt ps --format json "$ID")" "$(pid_of)"
	rt events --stats "$ID" | jq -e '.data.pids.current > 0'
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	at=$(count)
	sleep 0.2
	assert_eq "$(count)" "$at"
	rt resume "$ID"
	counts_on "$at"
	run rt start "$ID"
	assert_one_error
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
}

@test "restore: in the foreground it is waited for, and deleted at its end" {
	sh_cfg 'trap "exit 7" TERM; while :; do usleep 20000; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	checkpoint "$ID"
	rt restore --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >fg.out 2>&1 &
	front=$!
	wait_until eval '[ "$(status_of 2>/dev/null)" = running ]'
	rt kill "$ID" TERM
	code=0
	wait "$front" || code=$?
	assert_eq "$code" 7
	run rt state "$ID"
	assert_has "$output" "does not exist"
}

@test "restore: masked and read-only paths are as they were, and no mask can be written to" {
	cfg '.linux.maskedPaths = ["/proc/keys", "/proc/timer_list", "/proc/kcore", "/proc/acpi", "/proc/scsi", "/sys/firmware"]
		| .linux.readonlyPaths = ["/proc/sys", "/proc/bus"]'
	start_counter
	sorted() { # each mount's attributes and propagation, without what a new one has to have another of
		sed -E 's/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ (.*) - .*/\1/; s/(shared|master|propagate_from):[0-9]+/\1/g' "/proc/$(pid_of)/mountinfo" | sort
	}
	sorted >before
	checkpoint "$ID"
	restore "$ID"
	sorted >after
	diff before after
	grep ' /null ' "/proc/$(pid_of)/mountinfo" >masks
	! grep -v ' /null [^ ]* ro,' masks || return 1
	run -0 rt exec "$ID" /bin/cat /proc/keys
	assert_eq "$output" ""
}

@test "restore: the propagation of the root and of volumes is as it was, whether or not the host shares them" {
	# In a mount namespace where all is shared, as systemd has it.
	cat >script <<-'END'
		set -eu
		rt() { "$LEAN_RUNTIME" --root "$ROOT" "$@"; }
		kinds() {
			sed -nE 's,^[^ ]+ [^ ]+ [^ ]+ [^ ]+ (/|/vol|/own) [^ ]+ (.*)- .*,\1 \2,p' "/proc/$(rt state "$ID" | jq .pid)/mountinfo" |
				sed -E 's/:[0-9]+//g' | sort
		}
		mount --make-rshared /
		rt run --detach --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
		kinds >before
		rt checkpoint --image-path "$IMG" "$ID"
		rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
		kinds >after
		rt checkpoint --image-path "$IMG-2" "$ID"
		mount --make-rprivate /
		rt restore --detach --image-path "$IMG-2" --bundle "$BUNDLE" "$ID" </dev/null
		rt delete --force "$ID"
	END
	mkdir vol
	cfg --arg d "$PWD/vol" '.mounts += [{destination: "/vol", type: "bind", source: $d, options: ["rbind", "rslave"]},
		{destination: "/own", type: "bind", source: $d, options: ["rbind", "rprivate"]}]'
	export TAG ROOT BUNDLE ID IMG
	timeout 60 unshare -m bash script </dev/null 3>&-
	diff before after
	assert_has "$(grep /vol before)" master
	assert_hasnt "$(grep /own before)" master
}

@test "restore: /run/notify of a container with a socket for readiness is that of the restored one" {
	# Nobody says that it is ready: `run` would wait.
	NOTIFY_SOCKET=$PWD/none rt run --bundle "$BUNDLE" "$ID" </dev/null >o 2>&1 &
	wait_until eval '[ "$(count)" -gt 5 ]'
	checkpoint "$ID"
	wait $! || true
	at=$(count)
	new_id NEW
	cfg --arg id "$NEW" '.linux.cgroupsPath = "/" + $id'
	restore "$NEW"
	counts_on "$at"
	touch "$ROOT/$NEW/notify/seen"
	rt exec "$NEW" /bin/ls /run/notify/seen
}

@test "restore: masks that lie below other masks" {
	mkdir -p "$BUNDLE/rootfs/secret/deep"
	echo 1 >"$BUNDLE/rootfs/secret/deep/file"
	cfg '.linux.maskedPaths = ["/secret/deep/file", "/secret/deep/file", "/secret/deep", "/secret"]'
	start_counter
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	assert_eq "$(rt exec "$ID" /bin/ls -A /secret)" ""
}

@test "restore: bind mounts keep their attributes, also two of one file system" {
	mkdir a b c
	echo one >a/file
	echo two >b/file
	cfg --arg d "$PWD" '.mounts += [
		{destination: "/a", type: "bind", source: ($d + "/a"), options: ["bind", "ro"]},
		{destination: "/b", type: "bind", source: ($d + "/b"), options: ["rbind", "ro", "nosuid", "nodev"]},
		{destination: "/c/deeper", type: "none", source: ($d + "/c"), options: ["bind", "rw", "noexec"]},
		{destination: "/one", type: "bind", source: ($d + "/a/file"), options: ["bind", "ro"]}]'
	start_counter
	checkpoint "$ID"
	restore "$ID"
	for m in /a /b /one; do
		run rt exec "$ID" /bin/touch $m/x
		[ "$status" -ne 0 ] || fail "$m can be written to"
	done
	assert_match "$(grep ' /b ' "/proc/$(pid_of)/mountinfo")" 'ro,nosuid,nodev'
	rt exec "$ID" /bin/touch /c/deeper/x
	[ -e c/x ]
	assert_eq "$(rt exec "$ID" /bin/cat /b/file /one)" "two
one"
}

# Its program counts in a volume.
start_readonly() {
	cfg --arg d "$BUNDLE/rootfs/tmp" '.root.readonly = true | .mounts += [{destination: "/tmp", type: "bind", source: $d, options: ["bind"]}]'
	start_counter
}

is_readonly() {
	run rt exec "$ID" /bin/touch /x
	[ "$status" -ne 0 ]
	assert_has "$output" "Read-only"
}

@test "restore: a root that is read-only is so again" {
	start_readonly
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	is_readonly
}

@test "restore: a root that config.json has read-only is so, also if the container had it otherwise" {
	start_readonly
	rt exec --cap CAP_SYS_ADMIN "$ID" /bin/busybox mount -o remount,bind,rw /
	rt exec "$ID" /bin/touch /x
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	is_readonly
}

@test "restore: a bind mount whose destination is a symbolic link of the image" {
	mkdir data
	echo hello >data/file
	mkdir -p "$BUNDLE/rootfs/run/real"
	ln -s ../run "$BUNDLE/rootfs/var-run"
	ln -s /run/real "$BUNDLE/rootfs/link"
	cfg --arg d "$PWD/data" '.mounts += [
		{destination: "/link", type: "bind", source: $d, options: ["bind"]},
		{destination: "/var-run//made/", type: "bind", source: $d, options: ["bind"]}]'
	start_counter
	checkpoint "$ID"
	restore "$ID"
	assert_eq "$(rt exec "$ID" /bin/cat /run/real/file /run/made/file)" "hello
hello"
}

@test "restore: into a fresh copy of the root, whose mount points are missing, with another source" {
	mkdir data new
	echo old >data/file
	echo new >new/file
	cfg --arg d "$PWD/data" '.mounts += [{destination: "/vol/x", type: "bind", source: $d, options: ["bind"]}]'
	start_counter
	checkpoint "$ID"
	at=$(count)
	rm -rf "$BUNDLE/rootfs/vol"
	# By a link, relative to the bundle.
	ln -s "$PWD/new" "$BUNDLE/new"
	cfg '.mounts[-1].source = "new"'
	(umask 077 && restore "$ID")
	counts_on "$at"
	assert_eq "$(rt exec "$ID" /bin/cat /vol/x/file)" new
	assert_eq "$(stat -c %a "$BUNDLE/rootfs/vol" "$BUNDLE/rootfs/vol/x" | tr '\n' ' ')" "755 755 "
}

@test "restore: links of the image do not lead its mount points out of the root" {
	mkdir data outside
	cfg --arg d "$PWD/data" '.mounts += [{destination: "/vol/x", type: "bind", source: $d, options: ["bind"]}]'
	start_counter
	checkpoint "$ID"
	rm -rf "$BUNDLE/rootfs/vol"
	ln -s "$PWD/outside" "$BUNDLE/rootfs/vol"
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	echo "restore: $status $output"
	assert_eq "$(ls -A outside)" ""
	rt delete --force "$ID"
}

@test "checkpoint: the terminal goes on: its master arrives over the console socket" {
	cfg '.process.terminal = true'
	sh_cfg 'while read -r line; do echo "got $line"; done'
	"$LR_LIB/recv-console" "$PWD/c1.sock" "$PWD/console1" </dev/null 3>&- &
	first=$!
	wait_until test -S c1.sock
	rt_bg run --detach --console-socket "$PWD/c1.sock" -b "$BUNDLE" "$ID"
	checkpoint "$ID"
	wait "$first" || true
	mkfifo in
	"$LR_LIB/recv-console" "$PWD/c2.sock" "$PWD/console2" </dev/null 3>&- &
	second=$!
	wait_until test -S c2.sock
	restore "$ID" --console-socket "$PWD/c2.sock"
	assert_eq "$(readlink "/proc/$(pid_of)/fd/0" | cut -c 1-9)" /dev/pts/
	# Through the terminal it has.
	rt exec "$ID" /bin/sh -c 'echo seen >/proc/1/fd/1'
	wait_until grep -q seen console2
	rt kill "$ID" KILL
	wait "$second" || true
}

@test "restore: a terminal in the images needs one in config.json, and a console socket when detached" {
	cfg '.process.terminal = true'
	sh_cfg 'while read -r line; do :; done'
	"$LR_LIB/recv-console" "$PWD/c1.sock" "$PWD/console1" </dev/null 3>&- &
	first=$!
	wait_until test -S c1.sock
	rt_bg run --detach --console-socket "$PWD/c1.sock" -b "$BUNDLE" "$ID"
	checkpoint "$ID"
	wait "$first" || true
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "console socket"
	cfg '.process.terminal = false'
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "process.terminal is false"
	assert_eq "$(list_ids)" ""
}

@test "checkpoint: a network namespace that was joined stays outside, and is joined again" {
	ip netns add "$TAG"
	ip netns add "$TAG-2"
	cfg --arg p "/run/netns/$TAG" '(.linux.namespaces[] | select(.type == "network")).path = $p'
	start_counter
	checkpoint "$ID"
	at=$(count)
	cfg --arg p "/run/netns/$TAG-2" '(.linux.namespaces[] | select(.type == "network")).path = $p'
	rc=0
	restore "$ID" && counts_on "$at" &&
		assert_eq "$(stat -Lc %i "/proc/$(pid_of)/ns/net")" "$(stat -Lc %i "/run/netns/$TAG-2")" || rc=1
	rt delete --force "$ID"
	ip netns del "$TAG"
	ip netns del "$TAG-2"
	return $rc
}

@test "checkpoint: a pid namespace that was joined stays outside, and config.json says which is joined again" {
	local other
	for other in other-1 other-2; do
		make_bundle "$PWD/$other"
		cfg -b "$PWD/$other" --arg id "$TAG-$other" '.process.args = ["/bin/sleep", "300"] | .linux.cgroupsPath = "/" + $id'
		rt_bg run --detach --bundle "$PWD/$other" "$TAG-$other"
	done
	join() {
		cfg --arg p "/proc/$(pid_of "$TAG-$1")/ns/pid" '(.linux.namespaces[] | select(.type == "pid")).path = $p'
	}
	join other-1
	start_counter
	checkpoint "$ID"
	at=$(count)
	join other-2
	restore "$ID"
	counts_on "$at"
	assert_eq "$(stat -Lc %i "/proc/$(pid_of)/ns/pid")" "$(stat -Lc %i "/proc/$(pid_of "$TAG-other-2")/ns/pid")"
}

@test "checkpoint: standard output that was a file of the host's is the caller's" {
	sh_cfg 'i=0; while :; do i=$((i+1)); echo $i; echo $i >/tmp/n.new; mv /tmp/n.new /tmp/n; usleep 20000; done'
	start_counter
	checkpoint "$ID"
	before=$(wc -l <"$OUT")
	cp "$OUT" other # criu wants the size that the old one had
	rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >>other 2>"$ERR"
	wait_until eval '[ "$(wc -l <other)" -gt $((before + 3)) ]'
	assert_eq "$(wc -l <"$OUT")" "$before"
	assert_match "$(cat "$IMG/descriptors.json")" '"file\[[0-9a-f]+:[0-9a-f]+\]"'
}

@test "checkpoint: pipes of standard input, output and error are attached again" {
	sh_cfg 'while read -r line; do echo "got $line"; echo "err $line" >&2; done'
	# A shell of its own, whose descriptors are none of bats'.
	cat >script <<-'END'
		rt() { "$LEAN_RUNTIME" --root "$ROOT" "$@"; }
		set -eu
		mkfifo i o e i2 o2 e2
		exec 21<>i 22<>o 23<>e 24<>i2 25<>o2 26<>e2
		rt run --detach --bundle "$BUNDLE" "$ID" < <(exec timeout 30 cat i) > >(exec cat >o) 2> >(exec cat >e)
		echo before >&21
		read -r -t 20 -u 22 line
		[ "$line" = "got before" ]
		rt checkpoint --image-path "$IMG" "$ID" </dev/null
		rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" < <(exec timeout 30 cat i2) > >(exec cat >o2) 2> >(exec cat >e2)
		echo one >&24
		read -r -t 20 -u 25 line
		[ "$line" = "got one" ]
		read -r -t 20 -u 26 line
		[ "$line" = "err one" ]
		rt delete --force "$ID"
		kill $(jobs -p) 2>/dev/null || true
	END
	export TAG ROOT BUNDLE ID IMG
	run -0 timeout 60 setsid bash script </dev/null 3>&-
	assert_match "$(cat "$IMG/descriptors.json")" '^\["pipe:\[[0-9]*\]","pipe:\[[0-9]*\]","pipe:\[[0-9]*\]"\]$'
}

@test "checkpoint: three pre-dumps, each with the one before as its parent" {
	needs_dirty_tracking
	start_counter
	rt_bg checkpoint --pre-dump --image-path "$PWD/p1" "$ID"
	rt_bg checkpoint --pre-dump --image-path "$PWD/p2" --parent-path ../p1 "$ID"
	rt_bg checkpoint --pre-dump --image-path "$PWD/p3" --parent-path ../p2 "$ID"
	at=$(count)
	counts_on "$at"
	[ -L p2/parent ]
	checkpoint "$ID" --parent-path ../p3
	at=$(count)
	restore "$ID"
	counts_on "$at"
}

@test "checkpoint: --parent-path counts from the image directory, and has to be there" {
	start_counter
	run rt checkpoint --pre-dump --image-path "$IMG" --parent-path /abs "$ID"
	assert_one_error
	assert_has "$output" "absolute"
	if criu check --feature mem_dirty_track >/dev/null 2>&1; then
		run rt checkpoint --pre-dump --image-path "$IMG" --parent-path ../none "$ID"
		assert_one_error
		assert_has "$output" "no such file"
	else # criu would take every page for one that has not changed
		run rt checkpoint --pre-dump --image-path "$IMG" "$ID"
		assert_one_error
		assert_has "$output" "CONFIG_MEM_SOFT_DIRTY"
	fi
	counts_on "$(count)"
}

@test "checkpoint: the work directory has the log, and the images have none" {
	start_counter
	checkpoint "$ID" --work-path "$PWD/work"
	[ -s work/dump.log ]
	[ ! -e "$IMG/dump.log" ]
	restore "$ID" --work-path "$PWD/work"
	[ -s work/restore.log ]
}

@test "checkpoint: threads of python go on" {
	python_root
	cat >"$BUNDLE/rootfs/threads.py" <<-'END'
		import threading, time
		n = [0] * 4
		def work(i):
		    while True:
		        n[i] += 1
		        time.sleep(0.01)
		for i in range(4):
		    threading.Thread(target=work, args=(i,), daemon=True).start()
		while True:
		    with open('/tmp/n.new', 'w') as f: f.write(str(min(n)))
		    import os; os.rename('/tmp/n.new', '/tmp/n')
		    time.sleep(0.02)
	END
	cfg '.process.args = ["python3", "/threads.py"]'
	start_counter
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	assert_eq "$(ls "/proc/$(pid_of)/task" | wc -l)" 5
}

# Whoever is frozen between vfork(2) and the child's execve(2) can't be stopped by criu.
@test "checkpoint: one that starts other programs all the time, by vfork(2)" {
	python_root
	cat >"$BUNDLE/rootfs/spawns.py" <<-'END'
		import os, subprocess
		n = 0
		while True:
		    subprocess.run(["/bin/sh", "-c", ":"])
		    n += 1
		    with open('/tmp/n.new', 'w') as f: f.write(str(n))
		    os.rename('/tmp/n.new', '/tmp/n')
	END
	cfg '.process.args = ["python3", "/spawns.py"]'
	start_counter
	local i
	for i in 1 2 3 4 5 6 7 8; do
		rm -rf "$IMG"
		[ "$i" != 5 ] || rt pause "$ID"
		checkpoint "$ID" --leave-running
	done
	at=$(count)
	checkpoint "$ID"
	restore "$ID"
	counts_on "$at"
}

@test "restore: limits and the cgroup are those of config.json" {
	cfg '.linux.resources.pids.limit = 33 | .linux.resources.memory.limit = 67108864'
	start_counter
	checkpoint "$ID"
	cfg '.linux.resources.pids.limit = 44'
	restore "$ID"
	assert_eq "$(cat "$(cgroup_file pids pids.max pids.max)")" 44
	assert_eq "$(cat "$(cgroup_file memory memory.limit_in_bytes memory.max)")" 67108864
	assert_has "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)")" "$(pid_of)"
}

@test "restore: hooks: prestart and createRuntime with the process there, poststart when it runs" {
	for k in prestart createRuntime poststart poststop; do
		printf '#!/bin/sh\nread -r state\necho "%s $state" >>%s/hooks\n' $k "$PWD" >h-$k
		chmod +x h-$k
	done
	start_counter
	checkpoint "$ID"
	cfg --arg d "$PWD" '.hooks = {} | reduce ("prestart", "createRuntime", "poststart", "poststop") as $k (.; .hooks[$k] = [{path: ($d + "/h-" + $k)}])'
	restore "$ID"
	assert_eq "$(cut -d ' ' -f 1 hooks | tr '\n' ' ')" "prestart createRuntime poststart "
	assert_eq "$(sed -n 's/^createRuntime //p' hooks | jq -r '.status, .pid' | tr '\n' ' ')" "creating $(pid_of) "
	assert_eq "$(sed -n 's/^poststart //p' hooks | jq -r .status)" running
	rt delete --force "$ID"
	assert_has "$(tail -n 1 hooks)" poststop
}

@test "restore: a hook that fails leaves nothing" {
	start_counter
	checkpoint "$ID"
	at=$(count)
	cfg '.hooks.createRuntime = [{path: "/bin/false"}]'
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "createRuntime"
	assert_eq "$(count)" "$at"
	assert_eq "$(whats_left)" ""
}

@test "checkpoint: what criu refuses leaves the container running, and is told in criu's words" {
	# A Unix socket whose other end is outside.
	mkdir sock
	python3 -c 'import socket,time; s=socket.socket(socket.AF_UNIX); s.bind("sock/s"); s.listen(); c,_=s.accept(); time.sleep(600)' 3>&- &
	server=$!
	wait_until test -S sock/s
	cfg --arg d "$PWD/sock" '.mounts += [{destination: "/sock", type: "bind", source: $d, options: ["bind"]}]'
	python_root
	cat >"$BUNDLE/rootfs/c.py" <<-'END'
		import socket, time, os
		s = socket.socket(socket.AF_UNIX); s.connect("/sock/s")
		i = 0
		while True:
		    i += 1
		    with open('/tmp/n.new', 'w') as f: f.write(str(i))
		    os.rename('/tmp/n.new', '/tmp/n')
		    time.sleep(0.02)
	END
	cfg '.process.args = ["python3", "/c.py"]'
	start_counter
	run rt checkpoint --image-path "$IMG" "$ID"
	kill $server
	assert_one_error
	assert_has "$output" "criu could not dump the container: "
	assert_has "$output" "unix"
	assert_has "$output" "$IMG/dump.log"
	assert_eq "$(status_of)" running
	counts_on "$(count)"
}

@test "checkpoint: a container that was paused is dumped, and left paused if it is left running" {
	start_counter
	rt pause "$ID"
	at=$(count)
	checkpoint "$ID" --leave-running
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	counts_on "$at"
	rt pause "$ID"
	checkpoint "$ID"
	restore "$ID"
	counts_on "$at"
	assert_eq "$(status_of)" running
}

@test "checkpoint: also one that holds a process that was stopped by a signal" {
	counter '/bin/sleep 1000 & kill -STOP $!; '
	start_counter
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	assert_match "$(ps -o stat= --ppid "$(pid_of)")" T
}

@test "restore: what fails leaves nothing, and says where the log is" {
	start_counter
	checkpoint "$ID"
	rm "$IMG"/core-1.img
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "criu could not restore the container: "
	assert_has "$output" "$IMG/restore.log"
	assert_eq "$(whats_left)" ""
	run rt restore --detach --image-path "$PWD/none" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "no such file or directory"
	assert_eq "$(whats_left)" ""
}

@test "checkpoint and restore: image directories that others can write to are refused" {
	start_counter
	mkdir -m 777 open
	for verb in "checkpoint --image-path open" "checkpoint --image-path open/below" \
		"checkpoint --image-path img --work-path open"; do
		run rt $verb "$ID"
		assert_one_error
		assert_has "$output" "could change the images"
	done
	counts_on "$(count)"
	checkpoint "$ID"
	chmod 777 "$IMG"
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "could change the images"
	chmod 700 "$IMG"
	chown 12345 "$IMG"
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "belongs to user 12345"
	assert_eq "$(list_ids)" ""
}

@test "checkpoint: nobody else can read what was in the container's memory" {
	start_counter
	mkdir -m 755 "$IMG"
	checkpoint "$ID"
	assert_eq "$(find "$IMG" -type f -perm /077 ! -name dump.log)" ""
}

@test "checkpoint: no criu, and one that is none, are one clear error" {
	start_counter
	run rt --criu /no/such/criu checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "criu"
	assert_has "$output" "install it"
	run rt --criu /bin/false checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "does not tell what it can"
	counts_on "$(count)"
	rt delete --force "$ID"
	run rt --criu /no/such/criu restore --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_eq "$(whats_left)" ""
}

@test "checkpoint: only what runs" {
	rt_create
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "cannot be checkpointed in created state"
	rt delete --force "$ID"
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "checkpoint: a TCP connection stays, with --tcp-established" {
	python_root
	cat >"$BUNDLE/rootfs/tcp.py" <<-'END'
		import os, socket, threading, time
		# Both ends are in here: what one end counts goes through the kernel to the other.
		listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
		client = socket.create_connection(listener.getsockname())
		server, _ = listener.accept()
		def send():
		    i = 0
		    while True:
		        i += 1
		        client.sendall(b"%d\n" % i)
		        time.sleep(0.02)
		threading.Thread(target=send, daemon=True).start()
		for line in server.makefile():
		    with open("/tmp/n.new", "w") as f: f.write(line)
		    os.rename("/tmp/n.new", "/tmp/n")
	END
	cfg '.process.args = ["python3", "/tcp.py"]'
	start_counter
	run rt checkpoint --image-path "$PWD/no" "$ID"
	assert_one_error
	assert_has "$output" "criu could not dump"
	counts_on "$(count)"
	checkpoint "$ID" --tcp-established --network-lock skip
	at=$(count)
	restore "$ID" --tcp-established --network-lock skip
	counts_on "$at"
}

@test "checkpoint: a container with a user namespace is refused, and why" {
	cfg '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 65536}]'
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
	chmod 1777 "$BUNDLE/rootfs/tmp"
	start_counter
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "user namespace"
	counts_on "$(count)"
}

@test "checkpoint: a container with a cgroup namespace, whose cgroup mount shows it" {
	cfg '.linux.namespaces |= map(select(.type != "cgroup")) + [{type: "cgroup"}]' # with cgroup v2 it is there
	start_counter
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
}

@test "checkpoint: a container of the lean profile is refused, and why" {
	export LEAN_RUNTIME_PROFILE=lean
	rt_sleeper
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "lean profile"
	assert_eq "$(status_of)" running
}

@test "restore: killed at any moment leaves what delete --force removes" {
	start_counter
	checkpoint "$ID"
	for ms in 5 20 40 60 80 100 120 150 200 250 300 400; do
		kill_at ${ms}000 "$LEAN_RUNTIME" --root "$ROOT" restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" 3>&-
		rt delete --force "$ID"
		assert_nothing_left
	done
	[ "$KILLED" -gt 2 ]
	at=$(count)
	sleep 0.2
	assert_eq "$(count)" "$at"
	restore "$ID"
	counts_on "$at"
}

@test "checkpoint: killed at any moment, the container goes on" {
	start_counter
	for ms in 20 60 100 150 200 300; do
		kill_at ${ms}000 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --leave-running --image-path "$IMG" "$ID" 3>&-
		counts_on "$(count)"
	done
	[ "$KILLED" -gt 2 ]
}

@test "checkpoint: fifty times there and back leave nothing" {
	start_counter
	for _ in $(seq 50); do
		rm -rf "$IMG"
		checkpoint "$ID"
		at=$(count)
		restore "$ID"
	done
	counts_on "$at"
	assert_eq "$(ls -A "$ROOT/$ID")" "$(printf 'notify\nrecord')"
	rt delete --force "$ID"
	assert_eq "$(whats_left)" ""
}
