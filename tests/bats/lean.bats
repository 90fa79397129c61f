#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The lean profile: what it changes, what it must not change, and what its pool leaves behind.

load ../lib/helpers.bash

setup() {
	unset LEAN_RUNTIME_PROFILE # each test says for itself
	lean_only "a profile of its own"
	needs_root
	cgroupfs_only "a slot has one of the runtime's"
	common_setup
	# As a manager that knows of the profile writes it: the slot's cgroup, a shared root.
	cfg 'del(.linux.cgroupsPath) | .root.readonly = true'
	CG=$(cg_parent)
}

teardown() {
	[ -n "${TAG-}" ] || return 0
	local id rc=0
	for id in $(list_ids); do
		rt delete --force "$id" </dev/null >/dev/null 2>&1 || true
	done
	rt pool drain || rc=1
	[ -z "$(pool_cgroups)" ] || { echo "cgroups: $(pool_cgroups)"; rc=1; }
	common_teardown || rc=1
	return "$rc"
}

lean() {
	rt --lean "$@"
}

home() {
	echo "$ROOT/.lean/m$(stat -L -c %i /proc/self/ns/mnt)"
}

# The name of this root's control groups: a hash of where the pool is.
cg_parent() {
	python3 - "$(home)" <<-'END'
		import sys
		h = 0xcbf29ce484222325
		for c in sys.argv[1].encode():
		    h = ((h ^ c) * 0x100000001b3) & 0xffffffffffffffff
		print("lean-runtime.%016x" % h)
	END
}

pool_cgroups() {
	find /sys/fs/cgroup -mindepth 1 -maxdepth 4 -type d -name "$CG" 2>/dev/null
}

# count FIELD: summed over the pool's rows.
count() {
	rt pool status --format json | jq "[.slots[].$1] | add // 0"
}

sleeper() { # [ID]
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg --lean="${LEAN_PARTS-lean}" run --detach --bundle "$BUNDLE" "${1:-$ID}"
}

ns_of() { # KIND ID
	readlink "/proc/$(pid_of "$2")/ns/$1"
}

# ---- who asks for it ---------------------------------------------------------------------------

# The root of the profile is read-only whatever the config says: that tells. 1: it is not on.
is_on() {
	local out
	out=$("$@" 2>&1 3>&-) || true
	case $out in
	on) ;;
	off) return 1 ;;
	*) echo "neither on nor off: $out" && return 2 ;;
	esac
}

probe() {
	cfg '.root.readonly = false'
	sh_cfg 'if touch /written 2>/dev/null; then echo off; else echo on; fi'
}

@test "lean: chosen by --lean, the environment, the program's name or an annotation" {
	probe
	run is_on rt run -b "$BUNDLE" "$ID"
	assert_eq "$status" 1
	is_on rt --lean run -b "$BUNDLE" "$ID"
	is_on rt --lean=rootfs run -b "$BUNDLE" "$ID"
	LEAN_RUNTIME_PROFILE=lean is_on rt run -b "$BUNDLE" "$ID"
	ln -s "$LEAN_RUNTIME" some-runtime-lean
	is_on ./some-runtime-lean --root "$ROOT" run -b "$BUNDLE" "$ID"
	cfg '.annotations["org.lean-runtime.profile"] = "lean"'
	is_on rt run -b "$BUNDLE" "$ID"
	cfg '.annotations["org.lean-runtime.rootfs"] = "config"'
	run is_on rt run -b "$BUNDLE" "$ID"
	assert_eq "$status" 1
}

@test "lean: what is chosen nearer to the container decides" {
	probe
	cfg '.annotations["org.lean-runtime.profile"] = "none"'
	run is_on rt --lean run -b "$BUNDLE" "$ID"
	assert_eq "$status" 1
	cfg '.annotations = {"org.lean-runtime.rootfs": "ro"}'
	is_on rt run -b "$BUNDLE" "$ID"
	cfg 'del(.annotations)'
	run is_on rt --lean=network=shared run -b "$BUNDLE" "$ID"
	assert_eq "$status" 1
	run env LEAN_RUNTIME_PROFILE=none "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" 3>&-
	assert_eq "$output" off
}

@test "lean: what is not known is an error with its place" {
	run ! rt --lean=rootsf run -b "$BUNDLE" "$ID"
	assert_has "$output" 'no part'
	assert_has "$output" rootsf
	run ! rt --lean=network=public run -b "$BUNDLE" "$ID"
	assert_has "$output" 'is no way for network'
	cfg '.annotations["org.lean-runtime.cgroup"] = "none"'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" annotations.org.lean-runtime.cgroup
	cfg '.annotations = {"org.lean-runtime.profile": "lean", "org.lean-runtime.tmpfs": "tmp"}'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" annotations.org.lean-runtime.tmpfs
}

@test "lean: features names every annotation that relaxes" {
	local all a
	all=$(rt features | jq -r '.potentiallyUnsafeConfigAnnotations[]')
	for a in bounding cgroup image mounts network profile rootfs tmpfs; do
		assert_has "$all" "org.lean-runtime.$a"
	done
}

# ---- what it is equal in -------------------------------------------------------------------------

@test "lean: identity, limits, environment, devices and protected paths are as without it" {
	local plain
	cfg '.process.rlimits = [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}]
		| .process.user = {"uid": 1000, "gid": 1001, "additionalGids": [7]} | .process.cwd = "/tmp"
		| .process.noNewPrivileges = true | .hostname = "leanhost"'
	sh_cfg 'id; pwd; hostname; env | grep -v -e TAG -e ^_= | sort; ulimit -n; ulimit -Hn
		grep -e ^Cap[IPEA] -e NoNew -e Seccomp: /proc/self/status
		ls -l /dev | awk "{print \$1, \$3, \$4, \$5, \$6, \$NF}" | grep -e ^c -e ^l
		for p in /proc/acpi /proc/keys /proc/timer_list /proc/scsi /sys/firmware; do
			[ -e $p ] || continue; echo $p; ls $p 2>&1 | wc -l; cat $p 2>&1 | wc -c; done
		for p in /proc/bus /proc/fs /proc/irq /proc/sys /sys; do grep " $p " /proc/mounts | tail -n 1 | cut -d" " -f 3,4 | cut -c -7; done
		awk "{print \$2, \$3}" /proc/mounts | sort -u | grep -v -e "cgroup/" -e "/proc tmpfs"
		set -- /proc/[0-9]*; echo $#; cat /proc/1/comm; ls /proc/self/fd | wc -l'
	plain=$(rt run -b "$BUNDLE" "$ID")
	# Masked files are another file system's /dev/null.
	assert_eq "$(lean run -b "$BUNDLE" "$ID" | sed 's/devtmpfs$/tmpfs/')" "$(sed 's/devtmpfs$/tmpfs/' <<<"$plain")"
}

@test "lean: root with capabilities and a bounding set" {
	local script='grep ^Cap /proc/self/status'
	cfg '.process.noNewPrivileges = false'
	sh_cfg "$script"
	local plain
	plain=$(rt run -b "$BUNDLE" "$ID")
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" "$plain"
	# With no-new-privileges the bounding set may stay, as nothing can be had from it.
	cfg '.process.noNewPrivileges = true'
	plain=$(rt run -b "$BUNDLE" "$ID")
	assert_eq "$(lean run -b "$BUNDLE" "$ID" | grep -v Bnd)" "$(grep -v Bnd <<<"$plain")"
	assert_eq "$(rt --lean=bounding=drop run -b "$BUNDLE" "$ID")" "$plain"
	# A permitted capability that is not in the bounding set is lost at the next execve: it is needed.
	cfg '.process.capabilities |= (.permitted += ["CAP_CHOWN"] | .effective += ["CAP_CHOWN"])'
	plain=$(rt run -b "$BUNDLE" "$ID")
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" "$plain"
}

@test "lean: the exit status, standard input and the terminal come through" {
	sh_cfg 'cat; exit 42'
	run -42 lean run -b "$BUNDLE" "$ID" <<<"from outside"
	assert_eq "$output" "from outside"
	cfg '.process.terminal = true'
	sh_cfg 'tty; [ -t 1 ] && echo terminal; ls -l /dev/console'
	run -0 "$LR_LIB/on-pty" "$LEAN_RUNTIME" --root "$ROOT" --lean run -b "$BUNDLE" "$ID"
	assert_has "$output" terminal
	assert_has "$output" /dev/pts/0
}

@test "lean: state, exec, ps, kill, pause and delete of a lean container" {
	sleeper
	assert_eq "$(status_of)" running
	assert_eq "$(rt exec "$ID" cat /proc/1/comm)" sleep
	assert_has "$(rt exec "$ID" mount)" "/proc/keys"
	assert_eq "$(rt ps -f json "$ID")" "[$(pid_of)]"
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	assert_eq "$(list_ids)" ""
}

@test "lean: create, start and hooks of a container" {
	cfg '.hooks = {"startContainer": [{"path": "/bin/sh", "args": ["sh", "-c", "echo hook >/dev/shm/hook"]}]}'
	sh_cfg 'cat /dev/shm/hook; echo program'
	rt_bg --lean create -b "$BUNDLE" "$ID"
	rt start "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(cat "$OUT")" "hook
program"
}

@test "lean: hooks that see the host's files do" {
	cfg --arg f "$BATS_TEST_TMPDIR/seen" '.hooks = {"createContainer": [{"path": "/bin/sh", "args": ["sh", "-c", "touch \($f)"]}]}'
	lean run -b "$BUNDLE" "$ID"
	[ -e seen ]
}

@test "lean: binds, files of the host's among them, are the container's own" {
	echo one >volume
	mkdir dir && echo two >dir/file
	cfg --arg d "$BATS_TEST_TMPDIR" '.mounts += [
		{"destination": "/etc/one", "type": "bind", "source": "\($d)/volume", "options": ["bind", "ro"]},
		{"destination": "/data", "type": "bind", "source": "\($d)/dir", "options": ["rbind", "rw"]},
		{"destination": "/data/deep", "type": "tmpfs", "source": "tmpfs", "options": ["mode=700"]}]'
	sh_cfg 'cat /etc/one /data/file; echo three >/data/new; echo x >/data/deep/x; (echo x >/etc/one) 2>/dev/null || echo ro'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" "one
two
ro"
	assert_eq "$(cat dir/new)" three
	[ ! -e dir/deep/x ]
	# The same slot, another source.
	echo other >volume2
	cfg --arg d "$BATS_TEST_TMPDIR" '(.mounts[] | select(.destination == "/etc/one")).source = "\($d)/volume2"'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_has "$output" other
	assert_eq "$(count free)" 1
}

@test "lean: an id that is too long for the pool does without" {
	local id
	id=$(printf 'x%.0s' $(seq 230))
	LEAN_PARTS=mounts,cgroup,network=pool sleeper "$id"
	assert_eq "$(count used) $(count free)" "0 0"
	rt delete -f "$id"
}

@test "lean: a user namespace, a joined namespace and --no-pivot go the usual way" {
	cfg '.linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}] | .linux.gidMappings = .linux.uidMappings
		| .mounts |= map(select(.type != "cgroup"))'
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
	sh_cfg 'cat /proc/self/uid_map'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_has "$output" 100000
	cfg 'del(.linux.uidMappings, .linux.gidMappings) | .linux.namespaces |= map(select(.type != "user"))'
	run -0 lean run --no-pivot -b "$BUNDLE" "$ID"
	# A cgroup alone, which of v2 is never used again.
	assert_eq "$(count free)" "$(cgroup_v2 && echo 0 || echo 1)"
}

# ---- rootfs -------------------------------------------------------------------------------------

@test "lean rootfs: read-only with all that is mounted below, tmpfs where it is asked for" {
	mkdir -p vol "$BUNDLE/rootfs/sub" "$BUNDLE/rootfs/scratch"
	cfg '.root.readonly = false | .annotations = {"org.lean-runtime.tmpfs": "/scratch:/var/tmp"}'
	sh_cfg 'touch /a 2>/dev/null && echo "root is writable"; touch /dev/a 2>/dev/null && echo "dev is writable"
		touch /scratch/b /var/tmp/c && echo scratch; stat -c %a /scratch /var/tmp'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" "scratch
755
1777"
	[ ! -e "$BUNDLE/rootfs/scratch/b" ]
}

@test "lean rootfs: a mount below the root is read-only, too" {
	local dir=$BATS_TEST_TMPDIR
	mkdir -p "$BUNDLE/rootfs/sub" vol
	sh_cfg 'touch /sub/file 2>/dev/null && echo writable; grep -c " /sub " /proc/mounts'
	run -0 unshare -m --propagation private sh -c "mount --bind '$dir/vol' '$BUNDLE/rootfs/sub' &&
		'$LEAN_RUNTIME' --root '$dir/root2' --lean run -b '$BUNDLE' '$ID'
		'$LEAN_RUNTIME' --root '$dir/root2' pool drain && ls -A '$dir/root2'" 3>&-
	assert_eq "$output" 1
}

@test "lean rootfs: another directory under the same path is another root" {
	sh_cfg 'cat /which'
	echo first >"$BUNDLE/rootfs/which"
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" first
	echo changed >"$BUNDLE/rootfs/which"
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" changed
	cp -a "$BUNDLE/rootfs" "$BUNDLE/new"
	echo second >"$BUNDLE/new/which"
	mv "$BUNDLE/rootfs" "$BUNDLE/old"
	mv "$BUNDLE/new" "$BUNDLE/rootfs"
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" second
}

# make_image TYPE FILE: the bundle's root in a file.
make_image() {
	local root=$BUNDLE/rootfs
	mkdir -p "$root"/{proc,sys,dev}
	rm -f "$2"
	case $1 in
	squashfs) mksquashfs "$root" "$2" -quiet -no-progress -all-root >/dev/null ;;
	erofs) mkfs.erofs "$2" "$root" >/dev/null 2>&1 ;;
	ext4) mke2fs -q -t ext4 -d "$root" "$2" 32M ;;
	esac
}

needs_images() { # TYPE...
	local type
	for type; do
		grep -q -w "$type" /proc/filesystems || skip "the kernel has no $type"
		case $type in
		squashfs) command -v mksquashfs ;;
		erofs) command -v mkfs.erofs ;;
		ext4) command -v mke2fs ;;
		esac >/dev/null || skip "nothing to make an image with: $type"
	done
	[ -e /dev/loop-control ] || skip "no loop devices"
}

loops_of() {
	grep -l -s "$1" /sys/block/loop*/loop/backing_file || true
}

no_loops_of() {
	[ -z "$(loops_of "$1")" ]
}

@test "lean rootfs: an image in a file: squashfs, erofs, ext4" {
	needs_images squashfs erofs ext4
	local type
	sh_cfg 'cat /which; touch /x 2>/dev/null && echo writable; true'
	for type in squashfs erofs ext4; do
		echo "$type" >"$BUNDLE/rootfs/which"
		make_image "$type" "$BUNDLE/root.$type"
		cfg --arg p "root.$type" '.root.path = $p'
		assert_eq "$(lean run -b "$BUNDLE" "$ID")" "$type"
		assert_eq "$(lean run -b "$BUNDLE" "$ID")" "$type"
		# Without a template, too; and named by an annotation.
		assert_eq "$(rt --lean=rootfs run -b "$BUNDLE" "$ID")" "$type"
		cfg --arg p "$BUNDLE/root.$type" '.annotations["org.lean-runtime.image"] = $p | .root.path = "rootfs"'
		assert_eq "$(rt --lean=rootfs run -b "$BUNDLE" "$ID")" "$type"
		cfg 'del(.annotations)'
	done
	assert_eq "$(grep -c "$ROOT.*/img/" /proc/self/mountinfo)" 3
	# Not unmounted when it was written: its journal can't be replayed.
	debugfs -w -R 'feature needs_recovery' "$BUNDLE/root.ext4" 2>/dev/null
	cfg '.root.path = "root.ext4"'
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" ext4
	rt pool drain
	wait_until no_loops_of "$BUNDLE/root"
}

@test "lean rootfs: an image that changed is another; containers keep theirs when the pool is drained" {
	needs_images squashfs
	sh_cfg 'cat /which; sleep 300'
	echo first >"$BUNDLE/rootfs/which"
	make_image squashfs "$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	rt_bg --lean run -d -b "$BUNDLE" a1
	run ! rt pool drain
	assert_eq "$(rt exec a1 cat /which)" first
	echo second >"$BUNDLE/rootfs/which"
	make_image squashfs "$BUNDLE/root.img"
	rt_bg --lean run -d -b "$BUNDLE" a2
	assert_eq "$(rt exec a2 cat /which)" second
	assert_eq "$(rt exec a1 cat /which)" first
	rt delete -f a1 && rt delete -f a2
	rt pool drain
	wait_until no_loops_of "$BUNDLE/root"
}

@test "lean rootfs: what is no image" {
	needs_images squashfs
	echo nonsense >"$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "can't be mounted: mount: "
	assert_has "$output" "it has to be an image of a file system"
	run ! rt run -b "$BUNDLE" "$ID"
	cfg '.annotations["org.lean-runtime.image"] = "missing.img"'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_has "$output" annotations.org.lean-runtime.image
	cfg --arg p "$BUNDLE/rootfs" '.annotations["org.lean-runtime.image"] = $p'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "is not a file"
	rm "$BUNDLE/root.img"
	truncate -s 100 "$BUNDLE/root.img"
	printf hsqs | dd of="$BUNDLE/root.img" conv=notrunc status=none
	cfg 'del(.annotations)'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "can't be mounted: mount: "
	run ! unshare -m sh -c 'mount --bind /dev/null "$(command -v mount)" && exec "$@"' sh \
		"$LEAN_RUNTIME" --root "$ROOT" --lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "mount(8) of util-linux"
	assert_eq "$(count used) $(count lost) $(loops_of "$BUNDLE/root")" "0 0 "
}

# instead_of_mount SCRIPT ARGS...: the runtime, where SCRIPT is mount(8), and $own_mount is the real one. No image has to be one.
instead_of_mount() {
	local mount
	mount=$(command -v mount)
	cp "$mount" own-mount
	printf '#!/bin/sh\nown_mount=%s\n%s\n' "$PWD/own-mount" "$1" >mount-script
	chmod +x mount-script
	timeout 100 unshare -m sh -c 'mount --bind mount-script "$1" && shift && exec "$@"' sh "$mount" \
		"$LEAN_RUNTIME" --root "$ROOT" "${@:2}" </dev/null 3>&-
}

@test "lean rootfs: an image is mounted by the kernel, and no helper of mount(8) keeps the pool's lock" {
	echo image >"$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	# Those that serve a file system stay in the background, with all descriptors.
	run -0 instead_of_mount "for target; do :; done
		case \" \$* \" in
		*' -i '*) ;;
		*)
			touch '$PWD/helped'
			sleep 3 >/dev/null 2>&1 &
			;;
		esac
		\$own_mount --bind '$BUNDLE/rootfs' \"\$target\"" --lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	[ ! -e helped ]
}

@test "lean rootfs: an image that is replaced while it is mounted" {
	sh_cfg 'cat /which'
	cfg '.root.path = "root.img"'
	echo second >"$BUNDLE/rootfs/which"
	echo image >"$BUNDLE/root.img"
	echo another >"$BUNDLE/second.img"
	run ! instead_of_mount "for target; do :; done
		mv '$BUNDLE/second.img' '$BUNDLE/root.img'
		\$own_mount --bind '$BUNDLE/rootfs' \"\$target\"" --lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "root.img was replaced while it was mounted"
}

@test "lean rootfs: a mount(8) that is killed, floods us, or leaves somebody behind" {
	needs_images squashfs
	sh_cfg 'echo here'
	make_image squashfs "$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	local it=(--lean run -b "$BUNDLE" "$ID")
	run ! instead_of_mount 'kill -KILL $$' "${it[@]}"
	assert_one_error
	assert_has "$output" "can't be mounted"
	run ! instead_of_mount 'sleep 300 & echo $! >'"$PWD"'/left; echo it does not like that; exit 32' "${it[@]}"
	kill "$(tail -n 1 left)" || true
	assert_has "$output" "can't be mounted: it does not like that"
	run ! instead_of_mount 'yes complaint | head -c 1000000; exit 1' "${it[@]}"
	assert_one_error
	assert_has "$output" "can't be mounted: complaint"
	# Done, and killed before it could say so: once is enough.
	run -0 instead_of_mount '"$own_mount" "$@"; echo once >>'"$PWD"'/mounted; kill -KILL $$' "${it[@]}"
	assert_eq "$output" here
	assert_eq "$(wc -l <mounted)" 1
	rt pool drain
	wait_until no_loops_of "$BUNDLE/root"
}

@test "lean rootfs: 16 starters of one image, with a template or without, drained meanwhile" {
	needs_images squashfs
	local i parts
	make_image squashfs "$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	for parts in lean rootfs; do
		sh_cfg 'exit 7'
		for i in $(seq 16); do
			{ rt --lean=$parts run -b "$BUNDLE" "p$i" >"out.$i" 2>&1 </dev/null || echo $? >>"out.$i"; } &
		done
		for i in 1 2 3; do rt pool drain >/dev/null 2>&1 || true; done
		wait
		for i in $(seq 16); do assert_eq "$(cat "out.$i")" 7; done
		sleeper a1
		assert_eq "$(loops_of "$BUNDLE/root" | wc -l)" 1
		rt delete -f a1
		rt pool drain
		wait_until no_loops_of "$BUNDLE/root"
	done
}

@test "lean rootfs: a starter of an image killed at 20 moments" {
	needs_images squashfs erofs
	make_image erofs "$BUNDLE/root.erofs"
	make_image squashfs "$BUNDLE/root.img"
	cfg '.root.path = "root.img"'
	crash 20 500 --lean=rootfs run -d -b "$BUNDLE" "$ID"
	cfg '.root.path = "root.erofs"'
	crash 20 500 --lean run -d -b "$BUNDLE" "$ID"
	wait_until no_loops_of "$BUNDLE/root"
}

# ---- the tree: with a template as without one ----------------------------------------------------------

# hostile_dev TARGET: the image has a link to /dev where a volume is mounted, and the volume's null is a link to TARGET.
hostile_dev() {
	mkdir -p volume
	ln -sf "$1" volume/null
	ln -s /dev "$BUNDLE/rootfs/data"
	cfg --arg s "$PWD/volume" '.mounts += [{"destination": "/data", "type": "bind", "source": $s, "options": ["rbind"]}]'
}

@test "lean tree: files are masked by the host's null device, whatever lies on /dev (CVE-2025-31133)" {
	# The container's own host name stands for kernel.core_pattern.
	hostile_dev /proc/sys/kernel/hostname
	cfg '.linux.maskedPaths = ["/proc/keys"]'
	sh_cfg 'ls /dev; echo opened >/proc/keys; hostname; stat -c %t:%T /proc/keys'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$(count free)" 1 # it came from a template
	assert_match "$output" $'^null\n'
	assert_hasnt "$output" opened
	assert_match "$output" '1:3$'
}

# masked_or_refused: the container of a hostile image does not read /proc/keys, and knows no more than that it was masked.
masked_or_refused() {
	sh_cfg 'echo started; wc -c </proc/keys; ls /proc/acpi | wc -l'
	run lean run -b "$BUNDLE" "$ID"
	[ "$status" != 0 ] || assert_eq "$output" $'started\n0\n0'
	[ "$status" = 0 ] || assert_one_error
}

@test "lean tree: a mask is never lost for want of what covers it" {
	wc -c </proc/keys | grep -q -v '^0$' || skip "the kernel shows no keys"
	cfg '.linux.maskedPaths = ["/proc/keys", "/proc/acpi"]'
	# An empty /dev, so that there is no null in it.
	ln -s /dev "$BUNDLE/rootfs/data"
	cfg '.mounts += [{"destination": "/data", "type": "tmpfs", "source": "tmpfs"}]'
	masked_or_refused
	assert_eq "$status" 0
	# By the way of those that the kernel has not directly there.
	cfg '.linux.maskedPaths = ["/proc/./keys", "/proc/acpi"]'
	masked_or_refused
	assert_eq "$status" 0
	# A way to the descriptors of whoever mounts.
	ln -sfn /proc/self/fd "$BUNDLE/rootfs/data"
	mkdir -p "$BUNDLE/rootfs/proc/self/fd"
	masked_or_refused
	assert_has "$output" "mounts["
	assert_has "$output" "is refused"
}

@test "lean tree: a protected path that links of the image lead into /proc is protected" {
	ln -s /proc "$BUNDLE/rootfs/p"
	cfg '.linux.maskedPaths = ["/p/keys", "/p/../proc/acpi", "proc/timer_list"] | .linux.readonlyPaths = ["/p/sys"]'
	sh_cfg 'wc -c </proc/keys; ls /proc/acpi | wc -l; wc -c </proc/timer_list; echo x >/proc/sys/kernel/hostname || hostname'
	local plain
	plain=$(rt run -b "$BUNDLE" "$ID" 2>&1)
	assert_eq "${plain/: line 0:/:}" "0
0
0
/bin/sh: can't create /proc/sys/kernel/hostname: Read-only file system
$(jq -r .hostname "$BUNDLE/config.json")"
	assert_eq "$(lean run -b "$BUNDLE" "$ID" 2>&1)" "$plain"
	assert_eq "$(count free)" 1
}

@test "lean tree: the program is not below what covers /proc" {
	local kind
	sh_cfg 'pwd; ls sys/kernel; cat sys/kernel/hostname; echo x >sys/kernel/hostname; exit 0'
	# A name that is mounted on from inside, and then all of it.
	for kind in masked readonly; do
		cfg --arg k "${kind}Paths" '.linux.maskedPaths = [] | .linux.readonlyPaths = [] | .linux[$k] = ["/proc/fs", "/proc"]'
		run lean run -b "$BUNDLE" "$ID"
		assert_eq "${lines[0]}" /
		assert_hasnt "$output" "$(jq -r .hostname "$BUNDLE/config.json")"
		assert_hasnt "$output" core_pattern
	done
	assert_eq "$(count free)" 1
	# Nor is a hook of the image's.
	cfg '.hooks.startContainer = [{"path": "/bin/sh", "args": ["sh", "-c", "[ $PWD = / ] && [ $(readlink /proc/self/cwd) = / ]"]}]
		| .linux.readonlyPaths = ["/proc/fs"]'
	run -0 lean run -b "$BUNDLE" "$ID"
}

@test "lean tree: a destination with a space in it is not two" {
	mkdir volume
	echo inside >volume/file
	places() { # JSON
		cfg --arg s "$PWD/volume" --argjson p "$1" '.mounts |= map(select(.source != $s)) | .mounts += [$p[]
			| {"destination": ., "type": "bind", "source": $s, "options": ["bind", "ro"]}]'
	}
	cfg '.process.args = ["cat", "/one/file"]'
	places '["/one", "/two"]'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" inside
	cfg '.process.args = ["cat", "/one /two/file"]'
	places '["/one /two"]'
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" inside
}

@test "lean pool: a fifo in the place of a key or a pin does not hang" {
	local what file
	for what in key slot; do
		run -0 lean run -b "$BUNDLE" "$ID"
		file=$(echo "$(home)/$what"/*)
		umount -l "$file" 2>/dev/null || true
		mv "$file" kept
		mkfifo "$file"
		# 1: refused; 124: timeout has ended it.
		timeout -k 2 20 "$LEAN_RUNTIME" --root "$ROOT" --lean run -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&- ||
			[ $? = 1 ] || fail "$what: $(cat out)"
		run -0 timeout -k 2 20 "$LEAN_RUNTIME" --root "$ROOT" pool status
		rm "$file"
		mv kept "$file"
		run -0 rt pool drain
	done
}

@test "lean tree: links of the image as destinations are followed, and refused, as without a template" {
	local to plain
	# What the image has there is not what the container will have there.
	mkdir -p "$BUNDLE"/rootfs/proc/{1,self}/fd
	cfg '.mounts += [{"destination": "/logs", "type": "tmpfs", "source": "tmpfs", "options": ["mode=700", "size=16k"]}]'
	sh_cfg 'grep size=16k /proc/mounts | cut -d" " -f 2'
	for to in /proc/1/fd /proc/self/fd /proc /sys/kernel /etc /missing/dir / ..; do
		ln -sfn "$to" "$BUNDLE/rootfs/logs"
		plain=$(rt run -b "$BUNDLE" "$ID" 2>&1) || true
		[ -n "$plain" ] || fail "nothing came of $to"
		assert_eq "$to: $(rt --lean=lean,rootfs=config run -b "$BUNDLE" "$ID" 2>&1 | sed 's/.*msg=//; s/mounts\[[0-9]*\]//')" \
			"$to: $(sed 's/.*msg=//; s/mounts\[[0-9]*\]//' <<<"$plain")"
	done
	assert_eq "$(count used)" 0
	[ "$(count free)" -ge 1 ]
}

# What the container's processes find: mounts with their options, without the numbers that differ each time.
tree_of() { # PARTS
	rt --lean="$1" run -b "$BUNDLE" "$ID" | sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/ (shared|master):[0-9]+//g' | sort
}

@test "lean tree: mounts, masks and read-only paths are those that it has without a template" {
	mkdir -p src "$BUNDLE/rootfs/ro" "$BUNDLE/rootfs/masked"
	echo x >"$BUNDLE/rootfs/secret"
	cfg --arg s "$PWD/src" '.mounts += [{"destination": "/data", "type": "bind", "source": $s, "options": ["rbind", "ro", "nosuid"]},
			{"destination": "/var/run/x", "type": "tmpfs", "source": "tmpfs", "options": ["mode=700", "size=8k"]},
			{"destination": "/dev/deep", "type": "tmpfs", "source": "tmpfs"}]
		| .mounts |= map(select(.type != "cgroup"))
		| .linux.maskedPaths += ["/masked", "/secret", "/none"] | .linux.readonlyPaths += ["/ro", "/none"]'
	local ro plain
	for ro in true false; do
		cfg ".root.readonly = $ro"
		sh_cfg 'cat /proc/self/mountinfo; for p in /secret /masked /proc/keys /proc/acpi; do stat -c "%n %F %a %u %t:%T" $p; done
			for p in /ro/x /data/x /var/run/x/x /proc/sys/kernel/hostname; do sh -c "echo x >$p" && echo $p is writable; done 2>&1
			ls -lR /dev | sed "s/ [A-Z].* / /" | grep -v console'
		# The template's /dev is read-only, as containers share it, and has a place for a terminal: docs/lean-profile.md.
		plain=$(tree_of none)
		assert_has "$plain" /data
		assert_eq "$(tree_of mounts | sed 's|^/ /dev ro,|/ /dev rw,|')" "$plain"
	done
	assert_eq "$(count free)" 2
}

# ---- namespaces ------------------------------------------------------------------------------------

@test "lean: two containers of one template share no mount, process, name, memory or terminal" {
	sleeper a1 && sleeper a2
	local kind
	for kind in mnt pid ipc uts; do
		[ "$(ns_of $kind a1)" != "$(ns_of $kind a2)" ] || fail "one $kind namespace"
		[ "$(ns_of $kind a1)" != "$(readlink /proc/self/ns/$kind)" ] || fail "the host's $kind namespace"
	done
	rt exec a1 sh -c 'echo secret >/dev/shm/secret'
	run ! rt exec a2 cat /dev/shm/secret
	assert_eq "$(rt exec a2 sh -c 'echo /proc/[0-9]*' | wc -w)" 2 # sleep and sh
	rt exec --cap CAP_SYS_ADMIN a1 sh -c 'mount -t tmpfs tmpfs /mnt && hostname renamed && echo x >/mnt/x'
	assert_eq "$(rt exec a1 cat /mnt/x)" x
	run ! rt exec a2 cat /mnt/x
	assert_hasnt "$(rt exec a2 hostname)" renamed
	# /dev is one file system, but nobody's to write to, not even as root with everything.
	run ! rt exec --cap CAP_MKNOD a1 mknod /dev/node c 1 3
	run ! rt exec --cap CAP_DAC_OVERRIDE a1 sh -c 'echo x >/dev/console'
	run ! rt exec --cap CAP_DAC_OVERRIDE a1 touch /dev/x
	rt delete -f a1 && rt delete -f a2
}

@test "lean: the host's mounts are not there, nor are those of other slots" {
	local plain
	sh_cfg 'cat /proc/self/mountinfo'
	plain=$(rt run -b "$BUNDLE" "$ID")
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" .lean
	# It may show fewer hierarchies of cgroups.
	[ "$(wc -l <<<"$output")" -le "$(wc -l <<<"$plain")" ]
}

@test "lean: the program in the container cannot be written to" {
	local before
	cp "$LEAN_RUNTIME" victim-lean
	before=$(sha256sum <victim-lean)
	sh_cfg_attack
	./victim-lean --root "$ROOT" run -d -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&-
	attacked out ./victim-lean --root "$ROOT"
	assert_hasnt "$(cat out)" WROTE
	assert_eq "$(sha256sum <victim-lean)" "$before"
}

# ---- network ----------------------------------------------------------------------------------------

@test "lean network: shared has loopback alone, and is not the host's" {
	sleeper a1 && sleeper a2
	assert_eq "$(ns_of net a1)" "$(ns_of net a2)"
	[ "$(ns_of net a1)" != "$(readlink /proc/self/ns/net)" ]
	assert_eq "$(rt exec a1 sh -c 'ls /sys/class/net; cat /proc/net/route | wc -l')" "lo
1"
	assert_eq "$(rt exec a1 ip addr show lo | grep -c "LOOPBACK,UP")" 1
	rt delete -f a1 && rt delete -f a2
	# It stays for the next one.
	sleeper a3
	assert_eq "$(rt pool status --format json | jq .sharedNetwork)" true
	rt delete -f a3
}

# own_net WHY: no lean container may share its network namespace now.
own_net() {
	sleeper a1 || return 1
	sleeper a2 || return 1
	[ "$(ns_of net a1)" != "$(ns_of net a2)" ] || fail "$1: one network namespace"
	[ "$(ns_of net a1)" != "$(readlink /proc/self/ns/net)" ] || fail "$1: the host's"
	rt delete -f a1 && rt delete -f a2
}

@test "lean network: whoever may be configured keeps a namespace of its own" {
	local h
	for h in prestart createRuntime createContainer; do
		cfg --arg h $h '.hooks = {($h): [{"path": "/bin/true"}]}'
		own_net "hook $h"
	done
	cfg 'del(.hooks) | .linux.sysctl = {"net.ipv4.ip_forward": "1"}'
	own_net sysctl
	cfg 'del(.linux.sysctl)'
	with_caps CAP_NET_ADMIN
	own_net CAP_NET_ADMIN
	cfg '.process.capabilities |= with_entries(.value -= ["CAP_NET_ADMIN"]) | .linux.readonlyPaths -= ["/proc/sys"]'
	own_net "writable /proc/sys"
	LEAN_PARTS=network=shared own_net "asked for, but /proc/sys is writable"
}

@test "lean network: what is created and then started has its own, as it can be configured between" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg --lean create -b "$BUNDLE" a1 && rt_bg --lean create -b "$BUNDLE" a2
	[ "$(ns_of net a1)" != "$(ns_of net a2)" ]
	rt_bg --lean=mounts,network=shared create -b "$BUNDLE" a3 && rt_bg --lean=network=shared create -b "$BUNDLE" a4
	assert_eq "$(ns_of net a3)" "$(ns_of net a4)"
	for id in a1 a2 a3 a4; do rt delete -f $id; done
}

@test "lean network: a path in the config is joined" {
	ip netns add "$TAG"
	cfg --arg p "/run/netns/$TAG" '(.linux.namespaces[] | select(.type == "network")).path = $p'
	sleeper
	assert_eq "$(ns_of net "$ID")" "net:[$(stat -L -c %i "/run/netns/$TAG")]"
	rt delete -f "$ID"
	ip netns delete "$TAG"
}

@test "lean network: host" {
	LEAN_PARTS=network=host sleeper
	assert_eq "$(ns_of net "$ID")" "$(readlink /proc/self/ns/net)"
}

@test "lean network: the pool's are private while in use, and used again" {
	export LEAN_PARTS=network=pool
	sleeper a1 && sleeper a2
	local first second
	first=$(ns_of net a1) second=$(ns_of net a2)
	[ "$first" != "$second" ]
	[ "$first" != "$(readlink /proc/self/ns/net)" ]
	rt delete -f a1
	sleeper a3
	assert_eq "$(ns_of net a3)" "$first"
	assert_eq "$(rt exec a3 ip addr show lo | grep -c "LOOPBACK,UP")" 1
	# ip's socket goes with an RCU grace period, and as long as it is there nothing is proven.
	wait_until grep -q "used 0" "/proc/$(pid_of a3)/net/sockstat"
	rt delete -f a2 && rt delete -f a3
	assert_eq "$(count free)" 2
}

# next_gets same|another EXEC-ARGUMENT...: the network namespace of one in which that was executed.
next_gets() {
	export LEAN_PARTS=network=pool
	local before
	sleeper a1 || return 1
	before=$(ns_of net a1)
	exec {held}<"/proc/$(pid_of a1)/ns/net" # or its number would be given out again
	rt exec "${@:2}" || return 1
	rt delete -f a1
	sleeper a2 || return 1
	if [ "$1" = another ]; then
		[ "$(ns_of net a2)" != "$before" ] || fail "the same network namespace after: ${*:2}"
	else
		assert_eq "$(ns_of net a2)" "$before"
	fi
	assert_eq "$(rt exec a2 sh -c 'cat /proc/sys/net/ipv4/ip_forward; ip addr | grep -c inet; ip route | wc -l; ip link | grep -c ^[0-9]; wc -l </proc/net/unix')" "0
2
0
1
1"
	rt delete -f a2
	exec {held}<&-
}

@test "lean network: what was changed goes to nobody: addresses, routes, devices, sysctls, traffic" {
	local caps=(--cap CAP_NET_ADMIN --cap CAP_SYS_ADMIN)
	next_gets same a1 true
	next_gets another "${caps[@]}" a1 ip addr add 192.0.2.1/32 dev lo
	next_gets another "${caps[@]}" a1 ip route add 198.51.100.0/24 dev lo
	next_gets another "${caps[@]}" a1 ip link add name lean0 type bridge
	next_gets another "${caps[@]}" a1 sh -c 'mount -o remount,bind,rw /proc/sys && echo 1 >/proc/sys/net/ipv4/ip_forward'
	# Counters would tell of the one before.
	next_gets another a1 sh -c 'echo x | nc -w 1 127.0.0.1 1 || true'
	next_gets another a1 sh -c 'nc -w 1 192.0.2.1 1 || true' # there is no way: only /proc/net/snmp tells
}

@test "lean network: firewall rules and abstract sockets do not outlive a container" {
	command -v iptables >/dev/null || skip "no iptables"
	export LEAN_PARTS=network=pool
	sleeper a1
	local before
	before=$(ns_of net a1)
	exec {held}<"/proc/$(pid_of a1)/ns/net"
	nsenter -t "$(pid_of a1)" -n iptables -A OUTPUT -d 192.0.2.9 -j DROP || skip "the kernel has no iptables"
	# By somebody of the host's: nothing tells, and nothing is looked at. What the runtime lets in does.
	rt exec --cap CAP_NET_ADMIN a1 true
	rt delete -f a1
	sleeper a2
	[ "$(ns_of net a2)" != "$before" ]
	assert_hasnt "$(nsenter -t "$(pid_of a2)" -n iptables -S)" 192.0.2.9
	rt delete -f a2
}

@test "lean network: a socket that outlives its container keeps its namespace from being used again" {
	export LEAN_PARTS=network=pool
	sleeper a1
	local before holder
	before=$(ns_of net a1)
	python3 - "$(pid_of a1)" >held 2>&1 3>&- <<-'END' &
		import ctypes, os, socket, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		assert libc.setns(os.open("/proc/%s/ns/net" % sys.argv[1], os.O_RDONLY), 0x40000000) == 0
		s = socket.socket(socket.AF_UNIX)
		s.bind("\0lean-test")
		print("held", flush=True)
		time.sleep(30)
	END
	holder=$!
	wait_until grep held held
	rt delete -f a1
	sleeper a2
	[ "$(ns_of net a2)" != "$before" ]
	assert_hasnt "$(rt exec a2 cat /proc/net/unix)" lean-test
	kill "$holder"
	rt delete -f a2
}

@test "lean network: exec with the power to change the shared one leaves it to those who are in it" {
	sleeper a1
	rt exec --cap CAP_NET_ADMIN a1 ip addr add 192.0.2.7/32 dev lo
	sleeper a2
	[ "$(ns_of net a1)" != "$(ns_of net a2)" ]
	assert_hasnt "$(rt exec a2 ip addr)" 192.0.2.7
	rt delete -f a1 && rt delete -f a2
}

# ---- cgroups --------------------------------------------------------------------------------------------

pooled() { # CONTROLLER ID: the path below the mount point
	sed -n "s/^[0-9]*:$1:\(.*\)/\1/p" "/proc/$(pid_of "$2")/cgroup"
}

v1_only() {
	! cgroup_v2 || skip "control groups of v2 keep their statistics: they are never used again"
}

@test "lean cgroup: taken from the pool, with the limits of the config, and given back" {
	v1_only
	mkdir "$BUNDLE/rootfs/scratch"
	cfg '.linux.resources.cpu = {"cpus": "0"} | .mounts += [{destination: "/scratch", type: "tmpfs", source: "tmpfs"}]'
	sleeper a1
	local path
	path=$(pooled devices a1)
	assert_has "$path" "/$CG/"
	assert_eq "$(cat "/sys/fs/cgroup/cpuset$(pooled cpuset a1)/cpuset.cpus")" 0
	run ! rt exec --cap CAP_MKNOD a1 sh -c 'mknod /scratch/x b 7 0 && head -c 1 /scratch/x'
	assert_has "$output" "Operation not permitted"
	rt delete -f a1
	sleeper a2
	assert_eq "$(pooled devices a2)" "$path"
	rt delete -f a2
	assert_eq "$(cat /sys/fs/cgroup/*/"$CG"/*/cgroup.procs)" ""
	# Other limits are another slot.
	cfg '.linux.resources.cpu = {"cpus": "0-1"}'
	sleeper a3
	[ "$(pooled devices a3)" != "$path" ]
	assert_eq "$(cat "/sys/fs/cgroup/cpuset$(pooled cpuset a3)/cpuset.cpus")" 0-1
	rt delete -f a3
}

@test "lean cgroup: no file of it tells of the container before" {
	v1_only
	# What processes there are is not of interest, and differs.
	local first look='cat /proc/self/cgroup; for f in /sys/fs/cgroup/*/*; do
			case $f in */tasks | *.procs) ;; *) echo "$f: $(cat $f)" ;; esac; done'
	cfg '.linux.resources.cpu = {"cpus": "0"}'
	sh_cfg "$look"
	first=$(lean run -b "$BUNDLE" "$ID")
	assert_has "$first" devices.list
	assert_has "$first" cpuset.cpus
	sh_cfg 'for i in 1 2 3; do (i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done) & done; wait'
	lean run -b "$BUNDLE" "$ID"
	sh_cfg "$look"
	assert_eq "$(lean run -b "$BUNDLE" "$ID")" "$first"
	assert_eq "$(count free) $(count used) $(count lost)" "1 0 0"
}

@test "lean cgroup: where the kernel counts, there is none out of the pool" {
	v1_only
	local r
	for r in '{"pids": {"limit": 17}}' '{"memory": {"limit": 33554432}}' '{"cpu": {"shares": 512}}' '{"blockIO": {"weight": 100}}'; do
		cfg --argjson r "$r" '.linux.resources = $r'
		sleeper a1
		assert_hasnt "$(cat "/proc/$(pid_of a1)/cgroup")" "$CG"
		rt delete -f a1
	done
	cfg '.linux.resources = {"pids": {"limit": -1}}'
	sleeper a1
	# The v2 tree of a hybrid host counts processor time.
	assert_eq "$(grep -c "$CG" "/proc/$(pid_of a1)/cgroup")" 2
	rt pause a1 && rt resume a1
	assert_eq "$(rt events --stats a1 | jq -r .type)" stats
	rt delete -f a1
}

# retired WHAT COMMAND...: after that the slot of a1 serves nobody.
retired() {
	local before
	sleeper a1 || return 1
	before=$(count free)
	"${@:2}" || return 1
	rt delete -f a1 || return 1
	assert_eq "$1: $(count free) free, $(count used) used" "$1: $before free, 0 used"
}

paused_and_killed() {
	rt pause a1 && rt kill a1 KILL && wait_for_status stopped a1
}

@test "lean cgroup: one that was changed or frozen goes to nobody" {
	v1_only
	cfg '.linux.resources.cpu = {"cpus": "0"}'
	retired update rt update --cpuset-cpus 0-1 a1
	retired pause rt pause a1
	retired "paused and killed" paused_and_killed
	retired "entered with CAP_SYS_ADMIN" rt exec --cap CAP_SYS_ADMIN a1 true
	sleeper a1
	assert_eq "$(cat "/sys/fs/cgroup/cpuset$(pooled cpuset a1)/cpuset.cpus")" 0
	assert_eq "$(cat "/sys/fs/cgroup/freezer$(pooled freezer a1)/freezer.state")" THAWED
	rt exec a1 true
	rt delete -f a1
}

@test "lean cgroup: memory and CPU limits, writable cgroups and a given path are as without" {
	cfg '.linux.resources.memory = {"limit": 33554432}'
	sleeper a1
	cgroup_v2 || assert_hasnt "$(pooled devices a1)" "$CG"
	assert_eq "$(cat "$(cgroup_file memory memory.limit_in_bytes memory.max a1)")" 33554432
	rt delete -f a1
	cfg --arg p "$(cgroups_path "$TAG")" 'del(.linux.resources.memory) | .linux.cgroupsPath = $p'
	sleeper a1
	cgroup_v2 || assert_eq "$(pooled devices a1)" "/$TAG"
	rt delete -f a1
	cgroup_v2 || {
		LEAN_PARTS=cgroup=pool sleeper a1
		assert_has "$(pooled devices a1)" "/$CG/"
		rt delete -f a1
	}
	cfg 'del(.linux.cgroupsPath) | .process.noNewPrivileges = false'
	with_caps CAP_SYS_ADMIN
	sleeper a1
	cgroup_v2 || assert_hasnt "$(pooled devices a1)" "$CG"
	rt delete -f a1
}

@test "lean cgroup: a container sees its own in /sys/fs/cgroup, read-only" {
	v1_only
	sleeper a1 && sleeper a2
	local id
	for id in a1 a2; do
		# In the namespace of the reader, other containers' processes are 0.
		assert_eq "$(rt exec $id cat /sys/fs/cgroup/freezer/cgroup.procs | head -n 1)" 1
		run ! rt exec $id sh -c 'echo FROZEN >/sys/fs/cgroup/freezer/freezer.state'
	done
	rt delete -f a1 && rt delete -f a2
}

# ---- the pool ---------------------------------------------------------------------------------------------

@test "lean pool: status, warm, drain" {
	assert_eq "$(rt pool status | wc -l)" 1
	rt pool drain
	rt pool warm --bundle "$BUNDLE" --count 3
	assert_eq "$(count free)" 3
	assert_eq "$(rt pool status --format json | jq -r '.slots[0].rootfs')" "$BUNDLE/rootfs"
	assert_has "$(rt pool status)" "$BUNDLE/rootfs"
	sleeper a1
	assert_eq "$(count free) $(count used)" "2 1"
	run ! rt pool drain
	assert_has "$output" "in use"
	assert_eq "$(count free)" 0
	rt delete -f a1
	rt pool drain
	[ ! -e "$ROOT/.lean" ]
	run ! rt pool empty
	assert_has "$output" 'unknown command'
	run ! rt pool warm -b "$BUNDLE" -n 0
	assert_has "$output" --count
}

@test "lean pool: warm says what cannot be made ready" {
	cfg '.hooks = {"prestart": [{"path": "/bin/true"}]} | .linux.cgroupsPath = "/x"'
	run ! rt pool warm -b "$BUNDLE"
	assert_has "$output" "hooks"
}

@test "lean pool: what is warm is used: nothing is made for a start" {
	rt pool warm -b "$BUNDLE"
	local before
	before=$(ls -i "$(home)/slot")
	lean run -b "$BUNDLE" "$ID"
	assert_eq "$(ls -i "$(home)/slot")" "$before"
}

@test "lean pool: what was kept in a mount namespace that is gone goes with the next drain" {
	local inside='LR_TEST_TAG=$1 "$2" --root "$3" --lean run -b "$4" "$5" && ls "$3/.lean"' home
	home=$(unshare -m --propagation private sh -c "$inside" sh "$TAG" "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID" 3>&- | tail -n 1)
	[ -d "$ROOT/.lean/$home" ]
	[ ! -d "$(home)" ]
	# Of one that is there it is left alone.
	unshare -m --propagation private sh -c "$inside; echo >ready; read -r _ <end" sh "$TAG" "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID" 3>&- >/dev/null &
	mkfifo end
	wait_until test -e ready
	lean run -b "$BUNDLE" "$ID"
	[ -d "$ROOT/.lean/$home" ]
	# It is not gone as long as somebody who makes slots is at work in there.
	wait_until eval 'rt pool drain; [ "$(ls "$ROOT/.lean" | wc -l)" = 1 ]'
	[ ! -d "$(home)" ]
	# Nor where /proc can't be read, which is what is read second.
	if command -v strace >/dev/null; then
		strace -o calls -e trace=getdents64 -e inject=getdents64:error=EIO:when=2 "$LEAN_RUNTIME" --root "$ROOT" pool drain 3>&-
		assert_has "$(cat calls)" INJECTED
		assert_eq "$(ls "$ROOT/.lean" | wc -l)" 1
	fi
	echo >end
	wait
	wait_until eval 'rt pool drain; [ ! -e "$ROOT/.lean" ]'
}

@test "lean pool: slots whose mounts are gone are made anew" {
	local f
	lean run -b "$BUNDLE" "$ID"
	umount -l "$(home)"/slot/* "$(home)/net/shared"
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	for f in "$(home)"/slot/* "$(home)/net/shared" "$(home)"; do umount -l "$f" || true; done
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_eq "$(count free) $(count used) $(count lost)" "1 0 0"
}

@test "lean pool: a failed start gives everything back" {
	cfg '.process.args = ["/no/such/program"]'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_has "$output" "no such file"
	assert_eq "$(count free) $(count used) $(count lost)" "1 0 0"
	cfg '.process.args = ["/bin/true"] | .root.path = "missing"'
	run ! lean run -b "$BUNDLE" "$ID"
	assert_eq "$(count used) $(count lost)" "0 0"
}

@test "lean pool: 30 starters at once, three times" {
	local i round bad=0
	sh_cfg 'exit 7'
	for round in 1 2 3; do
		for i in $(seq 30); do
			(
				rc=0
				"$LEAN_RUNTIME" --root "$ROOT" --lean=mounts,cgroup,rootfs,network=pool \
					run -b "$BUNDLE" "p$i" >"out.$i" 2>&1 </dev/null 3>&- || rc=$?
				echo $rc >"status.$i"
			) &
		done
		wait
		for i in $(seq 30); do
			[ "$(cat "status.$i")" = 7 ] || { echo "$round/$i: $(cat "status.$i" "out.$i")"; bad=1; }
		done
	done
	[ $bad = 0 ]
	assert_eq "$(count used) $(count lost)" "0 0"
	[ "$(count free)" -le 32 ]
}

@test "lean pool: drained while it is used" {
	local i
	sh_cfg 'exit 7'
	(for i in $(seq 20); do rt pool drain >/dev/null 2>&1 </dev/null || true; sleep 0.01; done) 3>&- &
	for i in $(seq 40); do
		run lean run -b "$BUNDLE" "$ID"
		assert_eq "$i: $status $output" "$i: 7 "
	done
	wait
}

crash() { # ROUNDS STEP-USEC COMMAND...
	local n
	rt "${@:3}" </dev/null >/dev/null 2>&1 # not killed, it works
	rt delete --force "$ID"
	for n in $(seq "$1"); do
		kill_at $((n * $2)) "$LEAN_RUNTIME" --root "$ROOT" "${@:3}" 3>&-
		run rt delete --force "$ID"
		assert_eq "round $n: $status $output" "round $n: 0 "
	done
	# What nobody can be asked to give back is found.
	rt pool drain
	assert_eq "$(count used) $(count lost) $(count free)" "0 0 0"
	[ ! -e "$ROOT/.lean" ]
	[ -z "$(pool_cgroups)" ]
	assert_eq "$(left_mounts)" ""
}

@test "lean pool: a runtime that makes slots, killed at 30 moments" {
	local n
	for n in 1 2 3; do
		crash 10 700 --lean=mounts,cgroup,network=pool run -d -b "$BUNDLE" "$ID"
	done
}

@test "lean pool: a runtime that takes and gives back slots, killed at 40 moments" {
	rt pool warm -b "$BUNDLE" -n 2
	crash 40 150 --lean run -b "$BUNDLE" "$ID"
}

@test "lean pool: warm and drain killed at any moment" {
	local n
	for n in $(seq 12); do
		kill_at $((n * 500)) "$LEAN_RUNTIME" --root "$ROOT" pool warm -b "$BUNDLE" -n 4 3>&-
		kill_at $((n * 150)) "$LEAN_RUNTIME" --root "$ROOT" pool drain 3>&-
	done
	run -0 lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	rt pool drain
	[ ! -e "$ROOT/.lean" ]
}

@test "lean pool: 60 containers leave the pool as it was" {
	local i before
	sh_cfg 'exit 7'
	run -7 lean run -b "$BUNDLE" "$ID"
	before=$(find "$ROOT" | sort; grep -c "$ROOT" /proc/self/mountinfo)
	for i in $(seq 60); do
		run -7 lean run -b "$BUNDLE" "$ID"
	done
	assert_eq "$(find "$ROOT" | sort; grep -c "$ROOT" /proc/self/mountinfo)" "$before"
}
