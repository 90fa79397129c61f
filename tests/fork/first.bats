#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --engine=fork: a container whose first process has left the namespaces or the root that config.json gave it
# is refused by name; its child would have them back.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	mkdir -p "$R"/{own,jail}
	printf '#!/bin/sh\nexec >/dev/null; i=0\nwhile sleep 0.02; do i=$((i + 1)); echo $i >/n; [ ! -e /go ] || . /go; done\n' >"$R/bin/count"
	chmod 755 "$R/bin/count" "$BATS_TEST_TMPDIR"
	chmod 777 "$R"
}
teardown() {
	signal_remembered TERM
	umount -l mounted 2>/dev/null || true
	common_teardown
}

# It may go where it likes.
privileged() {
	cfg --argjson caps "$("$LEAN_RUNTIME" features | jq .linux.capabilities)" '.process.capabilities = ({bounding: $caps, effective: $caps, permitted: $caps})
		| del(.linux.maskedPaths, .linux.readonlyPaths, .linux.seccomp) | .process.noNewPrivileges = false
		| .linux.resources.devices = [{allow: true, access: "rwm"}]'
}

# Its first process does SCRIPT, and counts.
begin() { # SCRIPT
	cfg --arg s "{ $1; } 2>/err || exit 1; exec /bin/count" '.process.args = ["/bin/sh", "-c", $s]'
	rm -f "$R"/{go,err} "$N"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N" || fail "it says: $(cat "$R/err")"
}

refused_and_deleted() { # LINE...
	refused "$@"
	rt delete --force "$ID"
}

carried() {
	seed "$ID"
	moves
	rt delete --force "$ID"
	grow "$ID"
	moves
	rt delete --force "$ID"
}

# Between the look and the hold it goes to another namespace, by SCRIPT; FILE is there when it has done so.
refused_with() { # SCRIPT FILE
	late_begin
	echo "rm /go; $1" >"$R/new"
	mv "$R/new" "$R/go"
	wait_until test -e "$R/$2"
	late_end
	assert_eq "$what" 1
}

@test "first: a user namespace of its own is refused by name, also of who may do nothing, and in one of config.json's" {
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}'
	begin 'exec busybox unshare -r /bin/count'
	refused_and_deleted "a user namespace of its own"
	begin true
	carried
	cfg '.process.user = {uid: 0, gid: 0}'
	begin 'exec busybox unshare -U /bin/count'
	refused_and_deleted "a user namespace of its own"
	# Where its ids would be those of config.json's.
	chown -R 100000:100000 "$R"
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings
		| .process.user = {uid: 1000, gid: 1000} | .mounts |= map(select(.type != "tmpfs"))'
	begin 'exec busybox unshare -r /bin/count'
	refused_and_deleted "a user namespace of its own"
	begin true
	carried
}

@test "first: other namespaces than the host's, or those that it has joined, are refused by name" {
	privileged
	without_ns network
	without_ns ipc
	without_ns uts
	cfg 'del(.hostname)'
	begin 'exec busybox unshare -n -i -u /bin/count'
	refused_and_deleted "a net namespace of its own" "an ipc namespace of its own" "a uts namespace of its own"
	begin true
	carried
	without_ns network
	unshare -n sleep 1000 3>&- &
	HOLDER=$!
	remember "$HOLDER"
	wait_until eval '[ "$(readlink "/proc/$HOLDER/ns/net")" != "$(readlink /proc/self/ns/net)" ]'
	cfg --arg p "/proc/$HOLDER/ns/net" '.linux.namespaces += [{type: "network", path: $p}]'
	begin 'exec busybox unshare -n /bin/count'
	refused_and_deleted "a net namespace of its own"
	begin true
	carried
	# Config.json makes these, for its child as well.
	without_ns network
	cfg '.linux.namespaces += [{type: "network"}, {type: "ipc"}, {type: "uts"}]'
	begin 'exec busybox unshare -n -i -u -m /bin/count'
	carried
}

@test "first: a joined namespace that can't be found any more is in the way of who may have left it, and of nobody else" {
	touch "$BATS_TEST_TMPDIR/net"
	unshare -n sleep 1000 3>&- &
	HOLDER=$!
	remember "$HOLDER"
	wait_until eval '[ "$(readlink "/proc/$HOLDER/ns/net")" != "$(readlink /proc/self/ns/net)" ]'
	without_ns network
	cfg --arg p "/proc/$HOLDER/ns/net" '.linux.namespaces += [{type: "network", path: $p}]'
	begin true
	kill "$HOLDER"
	wait "$HOLDER" || true
	seed "$ID"
	moves
	cfg '.process.capabilities.bounding += ["CAP_SYS_ADMIN"]'
	refused_and_deleted "a net namespace that can't be compared: look at /proc/$HOLDER/ns/net: no such file or directory"
}

@test "first: a mount namespace that it goes to between the look and the hold is looked at as well" {
	command -v strace >/dev/null || skip "strace is not installed"
	privileged
	begin true
	refused_with 'exec busybox unshare -m sh -c "mount -t tmpfs own /own && : >/there && exec /bin/count"' there
	assert_has "$(cat said)" "a mount that config.json does not have (tmpfs on /own)"
	moves
}

@test "first: a user namespace of its own, to which it goes between the look and the hold, is refused by name" {
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}'
	begin true
	refused_with 'exec busybox unshare -r -n sh -c ": >/there; exec /bin/count"' there
	assert_has "$(cat said)" "process $(pid_of) (count): a user namespace of its own"
	moves
}

@test "first: whom somebody sends in between the look and the hold, and leaves there with other namespaces, is refused by name" {
	command -v strace >/dev/null || skip "strace is not installed"
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}'
	begin true
	late_begin
	nsenter -t "$(pid_of)" -p sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 3>&- &'
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "(sleep): a mnt namespace of its own"
	moves
}

# In the namespaces of process FIRST, but for a network namespace of its own, and without capabilities: a process with that
# number, as we see it and as FIRST does, which FIRST adopts.
again() { # FIRST PID INNER
	python3 - "$@" <<-'END'
		import ctypes, os, struct, sys
		first, pid, inner = map(int, sys.argv[1:])
		libc = ctypes.CDLL(None, use_errno=True)
		def need(result, what):
		    if result < 0:
		        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")
		    return result
		NEWNS, NEWPID, NEWNET = 0x20000, 0x20000000, 0x40000000
		rest = 0x2000000 | 0x4000000 | 0x8000000  # cgroup, uts, ipc
		need(libc.setns(os.pidfd_open(first), NEWNS | NEWPID | rest), "setns")
		need(libc.unshare(NEWNET), "unshare")
		if os.fork():
		    os.wait()
		    sys.exit()
		tids = struct.pack("ii", inner, pid)
		at = ctypes.create_string_buffer(tids)
		args = ctypes.create_string_buffer(struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0) + struct.pack("2Q", ctypes.addressof(at), 2))
		if need(libc.syscall(435, args, 80), "clone3"):
		    os._exit(0)
		for cap in range(64):
		    libc.prctl(24, cap, 0, 0, 0)  # PR_CAPBSET_DROP
		os.closerange(0, 65536)
		null = os.open("/dev/null", os.O_RDWR)
		os.dup2(null, 1), os.dup2(null, 2)
		os.chdir("/")
		os.execv("/bin/busybox", ["sleep", "1000"])
	END
}

@test "first: whoever has the number of one that was looked at, and has ended, is a new one" {
	command -v strace >/dev/null || skip "strace is not installed"
	local child inside
	cfg '.process.capabilities = {} | .process.args = ["/bin/sh", "-c", "exec >/dev/null; sleep 1000 & echo 1 >/n; wait; while :; do :; done"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N"
	child=$(tr -d ' ' <"/proc/$(pid_of)/task/$(pid_of)/children")
	inside=$(awk '/^NSpid/ {print $NF}' "/proc/$child/status")
	late_begin # no process comes or goes meanwhile that was not looked at: it would be tried again
	kill -9 "$child"
	wait_until test ! -e "/proc/$child"
	again "$(pid_of)" "$child" "$inside"
	wait_until grep -q '^CapBnd:.*0000000000000000' "/proc/$child/status"
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "process $child (busybox): a net namespace of its own"
}

@test "first: what a process is called makes no line of its own" {
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}'
	begin 'exec busybox unshare -r /bin/count'
	echo "rm /go; printf 'a\\nb\\\\c' >/proc/self/comm; : >/named" >"$R/new"
	mv "$R/new" "$R/go"
	wait_until test -e "$R/named"
	run -1 seed "$ID"
	assert_has "$output" '(a?b\\c): a user namespace of its own'
}

# A directory that a program may have as its root.
deep() { # DIR
	mkdir -p "$1/dev"
	: >"$1/dev/null"
	cp -a "$R/bin" "$1/bin"
}

@test "first: a directory of its root that it has made its root (pivot_root) is refused by name, whatever is mounted there" {
	privileged
	cp -a "$R/bin" "$R/jail/bin"
	mkdir "$R"/jail/{proc,dev,sys}
	jail='mount --make-rprivate / && mount --bind /jail /jail && for d in proc dev sys; do mount --rbind /$d /jail/$d || exit 1; done
		cd /jail && busybox pivot_root . . && umount -l . && cd /'
	N=$R/jail/n
	begin "$jail"
	refused_and_deleted "a root that is not config.json's (pivot_root(2))"
	# And a root by chroot(2) in there.
	deep "$R/jail/deep"
	N=$R/jail/deep/n
	begin "$jail && exec busybox chroot /deep /bin/count"
	run -1 seed "$ID"
	assert_has "$output" "a root that is not config.json's (pivot_root(2))"
	rt delete --force "$ID"
	# That alone leads nobody out.
	deep "$R/deep"
	N=$R/deep/n
	begin 'exec busybox chroot /deep /bin/count'
	carried
}

@test "first: a root that can't be looked at is not taken for config.json's" {
	command -v strace >/dev/null || skip "strace is not installed"
	privileged
	begin true
	local what=0
	timeout 60 strace -o calls -P "$(realpath "$R")" -e trace=statx -e inject=statx:error=EIO "$LEAN_RUNTIME" --root "$ROOT" \
		checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null >said 2>&1 3>&- || what=$?
	assert_eq "$what" 1
	assert_has "$(cat said)" "a root that can't be compared with config.json's"
	moves
}

@test "first: a root that a manager has unmounted since is not refused" {
	privileged
	mkdir mounted
	mount --bind "$R" mounted
	cfg --arg p "$PWD/mounted" '.root.path = $p'
	begin true
	seed "$ID"
	umount -l mounted
	cfg '.root.path = "rootfs"'
	carried
}

@test "first: a mount that its root hid when it was looked at (chroot), and not any more when it is held, is refused by name" {
	command -v strace >/dev/null || skip "strace is not installed"
	needs_program apart
	privileged
	deep "$R/deep"
	N=$R/deep/n
	begin 'mount -t tmpfs own /own && exec 5</ && exec busybox chroot /deep /bin/apart root late'
	seed "$ID"
	rm -rf "$IMG"
	late_begin
	touch "$R/deep/go"
	wait_until eval '[ "$(readlink "/proc/$(pid_of)/root")" = / ]'
	late_end
	assert_eq "$(readlink "/proc/$(pid_of)/root")" /
	assert_eq "$what" 1
	assert_has "$(cat said)" "a mount that config.json does not have (tmpfs on /own)"
}

@test "first: a mount of its own that it has made its root (chroot) is refused by name, and a volume is not" {
	privileged
	deep "$R/jail"
	N=$R/jail/n
	begin 'mount --bind /jail /own && exec busybox chroot /own /bin/count'
	refused_and_deleted "a mount that config.json does not have ($(findmnt -n -o FSTYPE -T "$R") on /own)"
	cfg --arg s "$R/jail" '.mounts += [{destination: "/own", type: "bind", source: $s, options: ["bind"]}]'
	begin 'exec busybox chroot /own /bin/count'
	carried
}
