#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore of containers, and in directories, that mean harm.

load helpers.bash

setup() {
	checkpoint_setup
}
teardown() {
	show_logs
	common_teardown
}

@test "checkpoint: a container that swaps its mount points is not saved, and goes on" {
	mkdir ro rw
	cfg --arg d "$PWD" '.mounts += [
		{destination: "/x/a", type: "bind", source: ($d + "/ro"), options: ["bind", "ro"]},
		{destination: "/y/b", type: "bind", source: ($d + "/rw"), options: ["bind", "rw"]}]'
	counter 'mv /x /t; mv /y /u; mkdir /x /y; ln -s /u/b /x/a; ln -s /t/a /y/b; '
	start_counter
	is_not_saved "without the attributes"
}

python_root() {
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
}

is_not_saved() { # WORDS
	local at
	at=$(count)
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "$1"
	[ ! -e "$IMG/inventory.img" ]
	counts_on "$at"
}

may_mount() {
	cfg '.process.capabilities[] += ["CAP_DAC_OVERRIDE", "CAP_SYS_ADMIN"]'
}

# A sleep that criu has interrupted may end.
aside() { # COMMANDS: a process does them in a mount namespace of its own, and stays there
	counter "unshare -m sh -c 'set -e; $1; touch /tmp/aside; while :; do sleep 1000; done' & "
	start_counter
	wait_until test -e "$(dirname "$N")/aside"
}

who_is_aside() {
	local pid
	for pid in $(rt ps --format json "$ID" | jq '.[]'); do
		case $(readlink "/proc/$pid/ns/mnt") in
		"" | "$(readlink "/proc/$(pid_of)/ns/mnt")") ;;
		*) echo "$pid" && return ;;
		esac
	done
}

@test "checkpoint and restore: a mount namespace of the container's own making" {
	mkdir volume tmp
	N=$PWD/tmp/n
	may_mount
	cfg --arg d "$PWD/volume" '.root.readonly = true | .mounts += [
		{destination: "/tmp", type: "bind", source: ($d + "/../tmp"), options: ["bind"]},
		{destination: "/v", type: "bind", source: $d, options: ["bind", "ro", "nosuid"]}]'
	aside "mount -t tmpfs none /dev/shm; mkdir /dev/shm/d; mount -o bind /dev/shm/d /dev/mqueue; mount -o bind /v /sys/fs"
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	other=$(who_is_aside)
	grep -q ' /sys/fs ro,nosuid' "/proc/$other/mountinfo"
	run -1 grep ' /sys/fs ro,nosuid' "/proc/$(pid_of)/mountinfo"
}

@test "checkpoint: an overlay in a mount namespace of the container's own making is not saved" {
	may_mount
	aside "mount -t tmpfs none /dev/shm; cd /dev/shm; mkdir l u w m; mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m"
	is_not_saved "in a mount namespace of the container's own making, (overlay, / of it) is not in config.json"
}

@test "restore: a link in a volume leads what was a part of another one nowhere" {
	mkdir -p a b host/etc
	echo secret >host/etc/shadow
	may_mount
	cfg --arg d "$PWD" '.mounts += [
		{destination: "/x/a", type: "bind", source: ($d + "/a"), options: ["bind"]},
		{destination: "/y/b", type: "bind", source: ($d + "/b"), options: ["bind"]}]'
	# Each is saved under the other's name.
	aside "mv /x /t; mv /y /u; mkdir -p /x /y /u/b/d/etc; ln -s /u/b /x/a; ln -s /t/a /y/b; ln -s $PWD/host /t/a/d; mount -o bind /u/b/d/etc /dev/mqueue"
	checkpoint "$ID"
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "$PWD/host/etc (" # and its file system
	assert_has "$output" "would be mounted on /dev/mqueue, and is not in config.json"
	assert_eq "$(whats_left)" ""
}

@test "checkpoint: what was deleted, or replaced, since it was mounted would be made again, and is not saved" {
	mkdir -p host
	may_mount
	aside "mkdir -p /d/new; mount -o bind /d/new /dev/mqueue; rm -r /d; ln -s $PWD/host /d"
	is_not_saved "what is mounted on /dev/mqueue was deleted, or replaced, since"
	rt delete --force "$ID"
	rm "$BUNDLE/rootfs/tmp/aside"
	# By the host, which replaces files so.
	echo old >hosts
	cfg --arg d "$PWD" '.mounts += [{destination: "/etc/hosts", type: "bind", source: ($d + "/hosts"), options: ["bind"]}]'
	counter
	start_counter
	echo new >hosts.new
	mv hosts.new hosts
	is_not_saved "what is mounted on /etc/hosts was deleted, or replaced, since"
}

@test "checkpoint and restore: a deleted file that is open is made again nowhere but where it was" {
	mkdir -p host volume
	cfg --arg d "$PWD/volume" '.mounts += [{destination: "/v", type: "bind", source: $d, options: ["bind"]}]'
	counter "mkdir /d /v/d; exec 5>/d/evil 6>/v/d/evil; echo content >&5; rm /d/evil /v/d/evil; "
	start_counter
	checkpoint "$ID"
	at=$(count)
	for dir in "$BUNDLE/rootfs/d" volume/d; do
		mv "$dir" "$dir.old"
		for link in "$PWD/host" "../../../../../../../../../../..$PWD/host" "/proc/$$/root$PWD/host"; do
			ln -s "$link" "$dir"
			run restore "$ID"
			assert_eq "$status" 1
			assert_has "$output" "d/evil was deleted, and is still open: the way to it leads through a link now"
			rm "$dir"
		done
		run restore "$ID"
		assert_eq "$status" 1
		assert_has "$output" "d/evil was deleted, and is still open: its directory is not there any more"
		mv "$dir.old" "$dir"
	done
	assert_eq "$(whats_left)" ""
	restore "$ID"
	counts_on "$at"
	assert_eq "$(cat "/proc/$(pid_of)/fd/5")" content
	rt delete --force "$ID"
	rm -rf "$BUNDLE/rootfs/d" volume/d
	# Nor is a container saved that has seen to it itself.
	counter "mkdir /d; exec 5>/d/evil; rm /d/evil; rmdir /d; ln -s $PWD/host /d; "
	rm -f "$N"
	start_counter
	is_not_saved "/d/evil was deleted, and is still open: the way to it leads through a link now"
	rt delete --force "$ID"
	rm "$BUNDLE/rootfs/d"
	counter "mkdir -p /d/cwd; cd /d/cwd; rmdir /d/cwd; rmdir /d; ln -s $PWD/host /d; "
	rm -f "$N"
	start_counter
	is_not_saved "/d/cwd was deleted, and is still open: the way to it leads through a link now"
	assert_eq "$(ls host)" ""
}

@test "restore: what covers a part of the root or of a volume is where it was" {
	mkdir -p "$BUNDLE/rootfs/secret" volume/conf
	echo hidden >"$BUNDLE/rootfs/secret/f"
	echo host >volume/conf/f
	echo cover >cover
	cfg --arg d "$PWD" '.linux.maskedPaths += ["/secret/f"] | .mounts += [
		{destination: "/v", type: "bind", source: ($d + "/volume"), options: ["bind"]},
		{destination: "/v/conf/f", type: "bind", source: ($d + "/cover"), options: ["bind", "ro"]}]'
	start_counter
	checkpoint "$ID"
	for dir in "$BUNDLE/rootfs/secret" volume/conf; do
		mv "$dir" "$dir.old"
		mkdir -p "$BUNDLE/rootfs/tmp/x" volume/x
		touch "$BUNDLE/rootfs/tmp/x/f" volume/x/f
		ln -s "$([ "$dir" = volume/conf ] && echo x || echo tmp/x)" "$dir"
		run restore "$ID"
		assert_eq "$status" 1
		assert_has "$output" "would be mounted elsewhere"
		assert_eq "$(whats_left)" ""
		rm "$dir"
		mv "$dir.old" "$dir"
	done
	restore "$ID"
	assert_eq "$(rt exec "$ID" /bin/cat /v/conf/f)" cover
}

@test "checkpoint and restore: volumes that overlap, in a mount namespace of the container's own making" {
	mkdir -p all/in tmp
	N=$PWD/tmp/n
	may_mount
	cfg --arg d "$PWD" '.root.readonly = true | .mounts += [
		{destination: "/tmp", type: "bind", source: ($d + "/tmp"), options: ["bind"]},
		{destination: "/all", type: "bind", source: ($d + "/all"), options: ["bind", "ro"]},
		{destination: "/in", type: "bind", source: ($d + "/all/in"), options: ["bind"]},
		{destination: "/again", type: "bind", source: ($d + "/all"), options: ["bind"]},
		{destination: "/mnt", type: "bind", source: ($d + "/bundle/rootfs/mnt"), options: ["bind"]}]'
	mkdir -p "$BUNDLE/rootfs/mnt"
	aside "touch /in/1 /again/2 /mnt/3; ! touch /all/x"
	checkpoint "$ID"
	at=$(count)
	restore "$ID"
	counts_on "$at"
	other=$(who_is_aside)
	points() { sed -nE 's,^.* (/all|/in|/again|/mnt|/) (r[ow]).*,\1 \2,p' "/proc/$1/mountinfo" | sort | tr '\n' ' '; }
	assert_eq "$(points "$other")" "/ ro /again rw /all ro /in rw /mnt rw "
	assert_eq "$(points "$(pid_of)")" "/ ro /again rw /all ro /in rw /mnt rw "
}

@test "restore: images with an overlay of directories of the host's are not mounted" {
	mkdir -p host/upper host/work
	may_mount
	aside "mount -t tmpfs plain-tmpfs /dev/mqueue"
	checkpoint "$ID"
	# What an older version, or somebody else, may have saved.
	python3 - "$IMG" "upperdir=$PWD/host/upper,workdir=$PWD/host/work,lowerdir=/etc" <<-'END'
		import glob, struct, sys
		done = 0
		for name in glob.glob(sys.argv[1] + "/mountpoints-*.img"):
		    old = open(name, "rb").read()
		    new, at = old[:8], 8
		    while at < len(old):
		        n, = struct.unpack_from("=I", old, at)
		        body = old[at + 4 : at + 4 + n]
		        at += 4 + n
		        if b"plain-tmpfs" in body:
		            options = sys.argv[2].encode()
		            assert body[:2] == b"\x08\x05"
		            body = b"\x08\x11" + body[2:] + b"\x4a" + bytes([len(options) & 127 | 128, len(options) >> 7]) + options
		            done += 1
		        new += struct.pack("=I", len(body)) + body
		    open(name, "wb").write(new)
		assert done == 1, done
	END
	touch "host/work/stays"
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "is not in config.json"
	assert_eq "$(whats_left)" ""
	assert_eq "$(find host -mindepth 2)" host/work/stays
}

@test "checkpoint: what a mount namespace of the container's own making has with fewer attributes is not saved" {
	mkdir volume
	may_mount
	cfg --arg d "$PWD/volume" '.mounts += [
		{destination: "/v", type: "bind", source: $d, options: ["bind", "ro"]}]'
	aside "mount -o bind,remount,rw /v"
	is_not_saved "without the attributes"
	rt delete --force "$ID"
	# A part of it, elsewhere.
	mkdir volume/part
	rm "$BUNDLE/rootfs/tmp/aside"
	aside "mount -o bind /v/part /dev/mqueue; mount -o bind,remount,rw /dev/mqueue"
	is_not_saved "without the attributes"
	rt delete --force "$ID"
	mkdir tmp
	N=$PWD/tmp/n
	cfg --arg d "$PWD/tmp" '.root.readonly = true | .mounts[-1] = {destination: "/tmp", type: "bind", source: $d, options: ["bind"]}'
	aside "mount -o bind,remount,rw /"
	is_not_saved "(at root.readonly)"
}

@test "restore: what config.json protects since is so in each mount namespace, or nothing is restored" {
	mkdir volume
	may_mount
	cfg --arg d "$PWD/volume" '.mounts += [{destination: "/v", type: "bind", source: $d, options: ["bind"]}]'
	aside "true"
	rt exec "$ID" /bin/busybox mount -o bind,remount,ro /v
	checkpoint "$ID"
	cfg '.mounts[-1].options += ["ro"]'
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "in a mount namespace of the container's own making, without the attributes"
	assert_eq "$(whats_left)" ""
	cfg '.mounts[-1].options -= ["ro"] | .root.readonly = true'
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "(at root.readonly)"
	assert_eq "$(whats_left)" ""
	cfg '.root.readonly = false'
	restore "$ID"
}

@test "checkpoint: a process that is asked before files are opened, for which criu would wait, is refused" {
	python_root
	cat >"$BUNDLE/rootfs/asked.py" <<-'END'
		import ctypes, os, sys, time
		ctypes.CDLL(None).fanotify_init(int(sys.argv[1]), 0)
		n = 0
		while True:
		    n += 1
		    with open("/tmp/n.new", "w") as f: f.write(str(n))
		    os.rename("/tmp/n.new", "/tmp/n")
		    time.sleep(0.02)
	END
	may_mount
	for class in 4 8; do
		cfg --arg c "$class" '.process.args = ["python3", "/asked.py", $c]'
		rm -f "$N"
		start_counter
		[ -n "$(find "/proc/$(pid_of)/fd" -lname '*fanotify*')" ] || skip "the kernel has no fanotify permissions"
		is_not_saved "is asked by fanotify(7) before files are opened"
		rt delete --force "$ID"
	done
	# One that is told afterwards holds nobody up.
	cfg '.process.args = ["python3", "/asked.py", "0"]'
	rm -f "$N"
	start_counter
	checkpoint "$ID"
}

@test "restore: every mount of a cgroup keeps its attributes, also when it is mounted twice" {
	cfg '.mounts += [{destination: "/cg/again", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "noexec", "nodev"]}]'
	start_counter
	kinds() {
		sed -nE 's,^[^ ]+ [^ ]+ [^ ]+ [^ ]+ ([^ ]+ [^ ]+) .*- (cgroup2?) .*,\1 \2,p' "/proc/$(pid_of)/mountinfo" | sort
	}
	kinds >before
	checkpoint "$ID"
	restore "$ID"
	kinds >after
	diff before after
	grep -q /cg/again before
}

@test "restore: memory that a program has as its standard output stays its own" {
	python_root
	cat >"$BUNDLE/rootfs/prints.py" <<-'END'
		import os, time
		fd = os.memfd_create("own")
		os.dup2(fd, 1)
		n = 0
		while True:
		    n += 1
		    print("secret", flush=True)
		    with open("/tmp/n.new", "w") as f: f.write(str(n))
		    os.rename("/tmp/n.new", "/tmp/n")
		    time.sleep(0.02)
	END
	cfg '.process.args = ["python3", "/prints.py"]'
	start_counter
	checkpoint "$ID"
	restore "$ID"
	assert_eq "$(readlink "/proc/$(pid_of)/fd/1")" "/memfd:own (deleted)"
}

@test "restore: neither the keys nor the CPUs of the caller's session are the container's" {
	python_root
	cat >"$BUNDLE/rootfs/keys.py" <<-'END'
		import ctypes, os, time
		libc = ctypes.CDLL(None)
		keyctl = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
		n = 0
		while True:
		    n += 1
		    name = ctypes.create_string_buffer(256)
		    if libc.syscall(keyctl, 6, -3, name, 256) < 0: name.value = b"none"  # KEYCTL_DESCRIBE, the session's
		    with open("/tmp/seen.new", "w") as f: f.write("%s %d" % (name.value.decode(), len(os.sched_getaffinity(0))))
		    os.rename("/tmp/seen.new", "/tmp/seen")
		    with open("/tmp/n.new", "w") as f: f.write(str(n))
		    os.rename("/tmp/n.new", "/tmp/n")
		    time.sleep(0.02)
	END
	cfg '.process.args = ["python3", "/keys.py"]'
	cat >caller.py <<-'END'
		import ctypes, os, sys
		keyctl = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
		if ctypes.CDLL(None).syscall(keyctl, 1, b"the-callers") < 0: sys.exit("the kernel has no keyrings")
		os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
		os.execv(sys.argv[1], sys.argv[1:])
	END
	python3 caller.py /bin/true 2>/dev/null || skip "the kernel has no keyrings"
	start_counter
	before=$(cat "$BUNDLE/rootfs/tmp/seen")
	assert_has "$before" "_ses.$ID "
	checkpoint "$ID"
	at=$(count)
	python3 caller.py "$LEAN_RUNTIME" --root "$ROOT" restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&-
	counts_on "$at"
	assert_eq "$(cat "$BUNDLE/rootfs/tmp/seen")" "$before"
}

@test "restore: the I/O priority and the execution domain are those of config.json" {
	cfg '.process.ioPriority = {class: "IOPRIO_CLASS_BE", priority: 6} | .linux.personality = {domain: "LINUX32"}'
	start_counter
	checkpoint "$ID"
	restore "$ID"
	assert_eq "$(ionice -p "$(pid_of)")" "best-effort: prio 6"
	assert_eq "$(cat "/proc/$(pid_of)/personality")" 00000008
}

@test "checkpoint and restore: an annotation names no options for criu but the administrator's" {
	# What Podman makes of an annotation of the image's, whose files are root's.
	printf '#!/bin/sh\ntouch %s/executed\n' "$PWD" >"$BUNDLE/rootfs/run-me"
	chmod +x "$BUNDLE/rootfs/run-me"
	echo "action-script $BUNDLE/rootfs/run-me" >"$BUNDLE/rootfs/criu.conf"
	start_counter
	for path in "$BUNDLE/rootfs/criu.conf" "/etc/criu/../..$BUNDLE/rootfs/criu.conf" /etc/criu/ /etc/criu/.. criu.conf; do
		cfg --arg p "$path" '.annotations["org.criu.config"] = $p'
		run rt checkpoint --image-path "$IMG" "$ID"
		assert_one_error
		assert_has "$output" "is not a file in /etc/criu/"
	done
	cfg 'del(.annotations)'
	checkpoint "$ID"
	cfg --arg p "$BUNDLE/rootfs/criu.conf" '.annotations["org.criu.config"] = $p'
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "is not a file in /etc/criu/"
	[ ! -e executed ]
}

@test "restore: a container with a terminal gets none of the caller's standard descriptors" {
	python_root
	cat >"$BUNDLE/rootfs/pipes.py" <<-'END'
		import os, time
		for fd in 0, 1:
		    os.dup2(os.pipe()[fd], fd)
		n = 0
		while True:
		    n += 1
		    with open("/tmp/n.new", "w") as f: f.write(str(n))
		    os.rename("/tmp/n.new", "/tmp/n")
		    time.sleep(0.02)
	END
	cfg '.process.terminal = true | .process.args = ["python3", "/pipes.py"]'
	"$LR_LIB/recv-console" "$PWD/c1.sock" "$PWD/console1" </dev/null 3>&- &
	first=$!
	wait_until test -S c1.sock
	rt_bg run --detach --console-socket "$PWD/c1.sock" -b "$BUNDLE" "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	checkpoint "$ID"
	at=$(count)
	wait "$first" || true
	"$LR_LIB/recv-console" "$PWD/c2.sock" "$PWD/console2" </dev/null 3>&- &
	second=$!
	wait_until test -S c2.sock
	echo secret >in
	rt restore --detach --console-socket "$PWD/c2.sock" --image-path "$IMG" --bundle "$BUNDLE" "$ID" <in >out 2>&1 3>&-
	counts_on "$at"
	assert_eq "$(readlink "/proc/$(pid_of)"/fd/* | grep "^$PWD" || true)" ""
	assert_match "$(readlink "/proc/$(pid_of)/fd/0")" '^pipe:'
	rt kill "$ID" KILL
	wait "$second" || true
}

@test "checkpoint and restore: what others have left in the directories is refused" {
	start_counter
	mkdir -m 700 "$IMG" work
	echo kept >kept
	refused() { # WORD
		run rt checkpoint --image-path "$IMG" --work-path work --leave-running "$ID"
		assert_one_error
		assert_has "$output" "$1"
		assert_eq "$(cat kept)" kept
	}
	ln -s "$PWD/kept" "$IMG/pages-1.img"
	refused "is a link"
	ln -f kept "$IMG/pages-1.img"
	refused "is a link"
	rm "$IMG/pages-1.img"
	mkfifo "$IMG/core-1.img"
	refused "or no file"
	rm "$IMG/core-1.img"
	ln -s "$PWD/kept" work/dump.log
	refused "is a link"
	rm work/dump.log
	echo >"$IMG/inventory.img"
	chown 12345 "$IMG/inventory.img"
	refused "belongs to user 12345"
	chown 0 "$IMG/inventory.img"
	chmod 666 "$IMG/inventory.img"
	refused "may be written to by others"
	rm "$IMG/inventory.img"
	checkpoint "$ID"
	chmod 666 "$IMG/core-1.img"
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "core-1.img"
	chmod 600 "$IMG/core-1.img"
	mkdir -m 777 open
	ln -s ../open "$IMG/parent"
	run rt restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "could change the images"
	assert_eq "$(list_ids)" ""
}

@test "checkpoint: who has had an image open does not read what is written there next" {
	start_counter
	mkdir -m 755 "$IMG"
	echo old >"$IMG/pages-1.img"
	chmod 644 "$IMG/pages-1.img"
	exec 20<"$IMG/pages-1.img"
	checkpoint "$ID"
	assert_eq "$(cat <&20)" old
	assert_eq "$(stat -c %a "$IMG/pages-1.img")" 600
	exec 20<&-
}

@test "restore: a root that config.json has read-only since is not writable, or who writes there is not restored" {
	cfg '.process.args = ["/bin/sh", "-c", "while :; do sleep 1000; done"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	checkpoint "$ID"
	cfg '.root.readonly = true'
	restore "$ID"
	run rt exec "$ID" /bin/touch /x
	[ "$status" -ne 0 ]
	assert_has "$output" "Read-only"
	rt delete --force "$ID"
	cfg '.root.readonly = false | .process.args = ["/bin/sh", "-c", "exec 5>/x; while :; do sleep 1000; done"]'
	rm -rf "$IMG"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -e "$BUNDLE/rootfs/x"
	checkpoint "$ID"
	cfg '.root.readonly = true'
	run restore "$ID"
	assert_eq "$status" 1
	assert_has "$output" "(at root.readonly); a process has a file open there, to write to it"
}

@test "checkpoint: a mount that was moved to /run/notify is no directory of the runtime's" {
	mkdir volume
	cfg --arg d "$PWD/volume" '.mounts += [{destination: "/a/notify", type: "bind", source: $d, options: ["bind", "rw"]}]'
	counter 'mv /run /run-2; mv /a /run; '
	start_counter
	run rt checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "/run/notify"
	assert_has "$output" "is not in config.json"
	rt delete --force "$ID"
	# The directory itself is saved, wherever the images go.
	mv "$BUNDLE/rootfs/run" "$BUNDLE/rootfs/a"
	mv "$BUNDLE/rootfs/run-2" "$BUNDLE/rootfs/run"
	cfg 'del(.mounts[-1])'
	counter
	python3 -c 'import socket,time; s=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind("ready"); time.sleep(600)' 3>&- &
	ready=$!
	wait_until test -S ready
	NOTIFY_SOCKET=$PWD/ready rt_bg create --bundle "$BUNDLE" "$ID"
	rt start "$ID"
	wait_until eval '[ "$(count)" -gt 5 ]'
	kill $ready
	grep -q ' /run/notify ' "/proc/$(pid_of)/mountinfo"
	for _ in 1 2; do
		rm -rf "$IMG"
		checkpoint "$ID"
		at=$(count)
		restore "$ID"
		counts_on "$at"
	done
}
