#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# root and mounts: kinds, options, propagation, masked and read-only paths, devices.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() {
	local code=0
	common_teardown || code=$?
	signal_remembered TERM
	return $code
}

mnt() { # JSON
	cfg --argjson m "$1" '.mounts += [$m]'
}

# The mount options of a destination as the container sees them.
show() {
	cfg --arg d "$1" '.process.args = ["/bin/grep", "-F", " " + $d + " ", "/proc/self/mountinfo"]'
}

@test "root: read-only and writable" {
	lean_changes rootfs
	sh_cfg 'touch /x && echo wrote'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" wrote
	cfg '.root.readonly = true'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "Read-only file system"
}

@test "root: absolute, relative, symlinked" {
	cfg --arg r "$BUNDLE/rootfs" '.root.path = $r'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	is_lean || skip "stand-in runtime: refuses a symlink"
	mv "$BUNDLE/rootfs" real
	ln -s ../real "$BUNDLE/rootfs"
	cfg '.root.path = "rootfs"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	rm "$BUNDLE/rootfs"
	mv real "$BUNDLE/rootfs"
}

@test "root: the host's is out of reach" {
	echo secret >"$BATS_TEST_TMPDIR/secret"
	cfg --arg p "$BATS_TEST_TMPDIR/secret" '.process.args = ["sh", "-c", "ls / | tr \"\\n\" \" \"; cat " + $p + " ../../../../.." + $p + "; grep -c . /proc/self/mountinfo; cat /proc/self/mountinfo"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" secret$'\n'
	assert_hasnt "$output" oldroot
	# every mount is below the container's own root
	run -0 rt_mountinfo
	assert_eq "$(awk '$5 == "/" {n++} END {print n}' <<<"$output")" 1
}
rt_mountinfo() {
	cfg '.process.args = ["cat", "/proc/self/mountinfo"]'
	rt run -b "$BUNDLE" "$ID"
}

# The runtime is called in a copy of the host's mount namespace: what else runs mounts, too.
apart() {
	[ "$(id -u)" = 0 ] || return 0
	unshare --mount --propagation private sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
	HOLDER=$!
	remember "$HOLDER"
	wait_until eval '[ "$(readlink "/proc/$HOLDER/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] && [ "$(cat "/proc/$HOLDER/comm")" = sleep ]'
	printf '#!/bin/sh\nexec nsenter --target %s --mount sh -c '"'cd \"\$0\" && exec \"\$@\"'"' "$PWD" %q "$@"\n' "$HOLDER" "$LEAN_RUNTIME" >apart
	chmod +x apart
	LEAN_RUNTIME=$PWD/apart
}

# But for what the lean profile keeps ready, which goes when the pool is drained.
mount_table() {
	grep -v '/\.lean/' "/proc/${HOLDER:-self}/mountinfo" | sort
}

@test "mounts: the host's mount table is untouched" {
	local before
	apart
	before=$(mount_table)
	rt_sleeper
	assert_eq "$(mount_table)" "$before"
	rt delete --force "$ID"
	assert_eq "$(mount_table)" "$before"
}

@test "mounts: tmpfs with size and mode" {
	mnt '{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs", "options": ["size=64k", "mode=0750", "nosuid", "nodev", "noexec"]}'
	show /mnt/t
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'nosuid,nodev,noexec.* - tmpfs tmpfs rw.*size=64k'
	assert_match "$output" 'mode=750'
}

@test "mounts: bind of a directory, read-only and writable" {
	mkdir src
	echo in source >src/file
	mnt '{"destination": "/mnt/rw", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["bind"]}'
	mnt '{"destination": "/mnt/ro", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind", "ro"]}'
	sh_cfg 'cat /mnt/rw/file; echo new >/mnt/rw/new; touch /mnt/ro/x || echo is ro; cat /mnt/ro/new'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "in source"
	assert_has "$output" "is ro"
	assert_match "$output" $'\nnew$'
	assert_eq "$(cat src/new)" new
}

@test "mounts: bind of a file, the destination is made" {
	echo content >file
	mnt '{"destination": "/etc/deep/er/file", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/file", "options": ["bind", "ro"]}'
	mnt '{"destination": "/etc/hosts", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/file", "options": ["rbind", "rprivate"]}'
	sh_cfg 'cat /etc/deep/er/file /etc/hosts; echo more >>/etc/hosts'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\ncontent'
	assert_eq "$(cat file)" $'content\nmore'
}

@test "mounts: bind with a relative source counts from the bundle" {
	mkdir "$BUNDLE/data"
	echo here >"$BUNDLE/data/f"
	mnt '{"destination": "/mnt/d", "type": "bind", "source": "data", "options": ["bind"]}'
	cfg '.process.args = ["cat", "/mnt/d/f"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" here
}

# Runs itself again in a mount namespace where ./src is a mount with every flag that a bind inherits,
# and ./src/sub another; prints the flags of what is mounted below /mnt in the container.
flags_of_source() { # RUNTIME
	unshare -m --propagation private bash -c 'mkdir -p src && mount -t tmpfs -o nosuid,nodev,noexec,noatime,mode=755 t src &&
		mkdir src/sub && mount -t tmpfs -o nosuid,nodev t src/sub && exec "${@}"' bash "$@" 2>&1
}

by_us() {
	"$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" 3>&-
}

@test "mounts: bind: once a flag is named, those of the source that are not named go" {
	local line opts want who p
	export -f by_us
	export LEAN_RUNTIME TAG ROOT BUNDLE ID
	for_peers
	while read -r who opts want; do
		cfg '.mounts |= map(select(.destination != "/mnt/a"))'
		mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$PWD"'/src", "options": '"$opts"'}'
		cfg '.process.args = ["awk", "$5 ~ \"^/mnt\" {printf \"%s \", $6}", "/proc/self/mountinfo"]'
		run -0 flags_of_source bash -c by_us
		assert_eq "$opts: $output" "$opts: $want "
		for p in $(peers ${who//,/ }); do
			# Newer ones keep the flags of the source.
			[ "$p" != crun ] || is_before crun 1.22 || continue
			run flags_of_source "$LR_LIB/peer" "$p" "$BUNDLE" "$ID"
			# Newer ones take "defaults" for one of the file system's.
			[[ $opts != *defaults* || $output != *"bind mounts cannot have any filesystem-specific options"* ]] || continue
			assert_eq "$status: $p: $opts: $output" "0: $p: $opts: $want "
		done
	done <<-'END'
		runc ["bind"] rw,nosuid,nodev,noexec,noatime
		runc ["bind","defaults"] rw,nosuid,nodev,noexec,noatime
		runc,crun ["bind","ro"] ro,noatime
		crun ["bind","rw"] rw,noatime
		crun ["bind","exec"] rw,noatime
		runc,crun ["bind","nosuid"] rw,nosuid,noatime
		runc,crun ["bind","relatime"] rw,relatime
		runc,crun ["bind","strictatime"] rw
		runc,crun ["bind","nodiratime"] rw,nodiratime,relatime
		runc,crun ["rbind","rprivate","ro"] ro,noatime rw,nosuid,nodev,relatime
		runc,crun ["rbind","ro","rnosuid"] ro,nosuid,noatime rw,nosuid,nodev,relatime
		runc,crun ["rbind","bind","nosuid"] rw,nosuid,noatime rw,nosuid,nodev,relatime
	END
}

@test "mounts: bind: flags of the source stay where the kernel locks them" {
	lean_changes rootfs
	lean_only "runc 1.1 fails, crun clears some"
	export -f by_us
	export LEAN_RUNTIME TAG ROOT BUNDLE ID
	in_userns
	cfg '.process.args = ["awk", "$5 ~ \"^/mnt\" {printf \"%s \", $6}", "/proc/self/mountinfo"]'
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$PWD"'/src", "options": ["rbind", "ro"]}'
	run -0 flags_of_source bash -c by_us
	assert_eq "$output" "ro,nosuid,nodev,noexec,noatime rw,nosuid,nodev,relatime "
}

# A bundle with ./vol/deep/f, bound on /srv, and the first of it bound on /mnt/a by its path below the root.
early_source() { # OPTIONS
	mkdir -p vol/deep
	echo content >vol/deep/f
	chown -R 100000:100000 vol
	for_peers
	cfg --argjson o "$1" --arg v "$PWD/vol" --arg s "$BUNDLE/rootfs/srv/deep" '.mounts += [
		{destination: "/srv", type: "bind", source: $v, options: ["rbind"]},
		{destination: "/mnt/a", type: "bind", source: $s, options: $o}]'
	sh_cfg 'cat /mnt/a/f; stat -c %u:%g /mnt/a/f'
}

in_userns() {
	chown -R 100000:100000 "$BUNDLE/rootfs"
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings'
}

# Whether it is installed, and older than that.
is_before() { # PEER VERSION
	[[ $(peers "$1") ]] && ! printf '%s\n' "$2" "$("$1" --version | sed -n "s/^$1 version //p")" | sort -C -V
}

# as_peers RESULT PEER...: these end with the same.
as_peers() {
	local p want=$1
	shift
	for p in $(peers "$@"); do
		run -0 peer_run "$p"
		assert_eq "$p: $output" "$p: $want"
	done
}

@test "mounts: a source that an earlier mount brings into being" {
	early_source '["rbind"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n100000:100000'
	as_peers "$output" runc crun
	# A directory that nobody has made: the earlier mount's own place.
	cfg --arg s "$BUNDLE/rootfs/new/place/deep" '.mounts[-2].destination = "/new/place" | .mounts[-1].source = $s'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n100000:100000'
	as_peers "$output" runc crun
}

@test "mounts: a source that an earlier mount brings into being, in a user namespace" {
	lean_changes rootfs
	early_source '["rbind"]'
	in_userns
	# Also where root of the user namespace can't go: the path leads below the container's root.
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n0:0'
	chmod o+x "$(dirname "$BATS_TEST_TMPDIR")" "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR"
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n0:0'
	as_peers "$output" crun
	cfg --arg s "$BUNDLE/rootfs/srv/none" '.mounts[-1].source = $s'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "$BUNDLE/rootfs/srv/none: no such file or directory"
}

@test "mounts: a source that an earlier mount brings into being, id-mapped" {
	lean_changes rootfs
	lean_only "crun looks before there is anything"
	early_source '["rbind", "idmap=uids=100000-5-10;gids=100000-6-10"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n5:6'
	# In a user namespace by the runtime, as the host's root alone may do it; and read-only stays so.
	in_userns
	chown 7:8 vol/deep/f
	cfg '.mounts[-1].options = ["rbind", "idmap"] | .mounts[-2].options += ["ro"]'
	sh_cfg 'cat /mnt/a/f; stat -c %u:%g /mnt/a/f; touch /mnt/a/g 2>&1'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^content\n7:8\ntouch: .*Read-only file system'
	# A mount on / brings everything below into being.
	cp -a "$BUNDLE/rootfs" other
	mkdir -p other/only/deep
	echo other >other/only/deep/f
	chown 9:10 other/only/deep/f
	cfg --arg o "$PWD/other" --arg s "$BUNDLE/rootfs/only/deep" '.mounts = [{destination: "/", type: "bind", source: $o,
		options: ["rbind"]}] + .mounts | .mounts[-1].source = $s'
	sh_cfg 'cat /mnt/a/f; stat -c %u:%g /mnt/a/f'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'other\n9:10'
	[ ! -e "$BUNDLE/rootfs/only" ]
	cfg '.mounts |= .[1:]'
	# Nobody may map what belongs to the namespace itself.
	cfg --arg s "$BUNDLE/rootfs/fresh" '.mounts[-2] = {destination: "/fresh", type: "tmpfs", source: "tmpfs"} | .mounts[-1].source = $s'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "mounts[8].source"
}

# Older crun than 1.22 (its issue 1752) can't: that is asked, too, so that the test says when it can.
@test "mounts: on /: what is mounted there is the root of all that follows" {
	lean_changes rootfs
	local opts
	for_peers
	cp -a "$BUNDLE/rootfs" other
	echo other >other/marker
	cfg --arg s "$PWD/other" '.mounts = [{destination: "/", type: "bind", source: $s, options: ["rbind"]}] + .mounts'
	sh_cfg 'cat /marker; awk "\$5 == \"/\" {print \$6; n++} END {print n}" /proc/self/mountinfo; ls /dev/null /proc/1/comm; touch /w 2>&1; true'
	for opts in '["rbind"]' '["rbind","ro"]'; do
		cfg --argjson o "$opts" '.mounts[0].options = $o'
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_match "$output" $'^other\nr[ow],relatime\n1\n/dev/null\n/proc/1/comm'
		if [ "$opts" = '["rbind"]' ]; then
			assert_has "$output" rw,
			[ -e other/w ]
		else
			assert_has "$output" "ro,"
			assert_has "$output" "Read-only file system"
		fi
		# runc 1.2 refuses that.
		! is_before runc 1.2 || as_peers "$output" runc
		if is_before crun 1.22; then
			run ! peer_run crun
			assert_has "$output" "mount \`$PWD/other\` to"
		else
			as_peers "$output" crun
		fi
		rm -f other/w
	done
	[ ! -e "$BUNDLE/rootfs/w" ]
}

@test "mounts: on /: a new file system, after others, in a user namespace" {
	lean_changes rootfs
	cp -a "$BUNDLE/rootfs/bin" bin
	cfg --arg s "$PWD/bin" '.mounts = [{destination: "/dev", type: "tmpfs", source: "early"},
		{destination: "/", type: "tmpfs", source: "top", options: ["mode=751"]}, {destination: "/bin", type: "bind", source: $s, options: ["rbind"]}] + .mounts'
	sh_cfg 'stat -c %a /; ls /; cat /proc/self/mountinfo; : >/dev/null'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^751\nbin\ndev\nproc\nsys\n'
	assert_hasnt "$output" early
	in_userns
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^751\nbin\ndev\nproc\nsys\n'
}

@test "mounts: more than there may be descriptors, and none is left" {
	local n
	for n in {1..70}; do
		mkdir -p "src/$n"
		printf '{"destination":"/m/b%d","type":"bind","source":"%s","options":["bind","ro"]}\n' "$n" "$PWD/src/$n"
		printf '{"destination":"/m/t%d","type":"tmpfs","source":"t%d","options":["mode=755"]}\n' "$n" "$n"
	done >all
	cfg --slurpfile m all '.mounts += $m'
	sh_cfg 'grep -c " /m/" /proc/self/mountinfo; ls /proc/self/fd'
	run -0 bash -c 'ulimit -S -n 90; exec "$LEAN_RUNTIME" --root "$1" run -b "$2" "$3" </dev/null 3>&-' bash "$ROOT" "$BUNDLE" "$ID"
	assert_eq "$output" $'140\n0\n1\n2\n3'
}

@test "mounts: in the listed order, one below another" {
	mkdir a b
	echo a >a/f
	echo b >b/f
	mkdir a/sub
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/a", "options": ["bind"]}'
	mnt '{"destination": "/mnt/a/sub", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/b", "options": ["bind"]}'
	cfg '.process.args = ["cat", "/mnt/a/f", "/mnt/a/sub/f"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'a\nb'
}

@test "mounts: ro stops at the top, rro goes through" {
	mkdir -p src
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind", "ro"]}'
	mnt '{"destination": "/mnt/b", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind", "rro"]}'
	sh_cfg 'touch /mnt/a/x 2>/dev/null && echo a; touch /mnt/a/sub/x && echo a/sub; touch /mnt/b/x 2>/dev/null && echo b; touch /mnt/b/sub/x 2>/dev/null && echo b/sub; true'
	export TAG ROOT ID BUNDLE BATS_TEST_TMPDIR
	run -0 unshare -m --propagation private bash -c 'mkdir src/sub && mount -t tmpfs tmpfs src/sub &&
		"$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"'
	assert_eq "$output" a/sub
}

@test "mounts: recursive attributes rnosuid, rnodev, rnoexec" {
	mkdir -p src
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind", "rnosuid", "rnodev", "rnoexec"]}'
	cfg '.process.args = ["grep", "/mnt/a", "/proc/self/mountinfo"]'
	export TAG ROOT ID BUNDLE BATS_TEST_TMPDIR
	run -0 unshare -m --propagation private bash -c 'mkdir src/sub && mount -t tmpfs tmpfs src/sub &&
		"$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"'
	assert_match "$output" '/mnt/a rw,nosuid,nodev,noexec'
	assert_match "$output" '/mnt/a/sub rw,nosuid,nodev,noexec'
}

@test "mounts: every flag option reaches the kernel" {
	mkdir src
	mnt '{"destination": "/mnt/a", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "noexec", "noatime", "nodiratime", "ro", "sync", "dirsync"]}'
	show /mnt/a
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '/mnt/a ro,nosuid,nodev,noexec,noatime,nodiratime'
	assert_match "$output" '- tmpfs tmpfs r[ow],sync,dirsync'
	cfg '.mounts |= .[:-1]'
	mnt '{"destination": "/mnt/a", "type": "tmpfs", "source": "tmpfs", "options": ["strictatime", "nosymfollow", "lazytime"]}'
	show /mnt/a
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" relatime
	assert_hasnt "$output" noatime
	is_lean || return 0
	assert_has "$output" nosymfollow
	assert_has "$output" lazytime
}

@test "mounts: later options win, negations, defaults" {
	mnt '{"destination": "/mnt/a", "type": "tmpfs", "source": "tmpfs", "options": ["ro", "rw", "nosuid", "suid", "noexec", "exec", "nodev", "dev"]}'
	show /mnt/a
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '/mnt/a rw,relatime'
	lean_only "passes it to the kernel"
	cfg '.mounts[-1].options = ["defaults"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '/mnt/a rw,relatime'
}

@test "mounts: propagation options" {
	mkdir src
	local o want
	for o in private:'^$' slave:master: shared:shared: unbindable:unbindable; do
		want=${o#*:} o=${o%%:*}
		cfg '.mounts |= map(select(.destination != "/mnt/p"))'
		mnt '{"destination": "/mnt/p", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind", "r'"$o"'"]}'
		cfg '.process.args = ["awk", "$5 == \"/mnt/p\" { s = \"\"; for (i = 7; $i != \"-\"; i++) s = s $i; print s }", "/proc/self/mountinfo"]'
		run -0 unshare -m bash -c 'mount --bind "$1/src" "$1/src" && mount --make-shared "$1/src" && LR_TEST_TAG=$2 "$LEAN_RUNTIME" --root "$1/root" run -b "$1/bundle" "$3"' \
			bash "$BATS_TEST_TMPDIR" "$TAG" "$ID"
		if [ "$o" = private ]; then
			assert_eq "$output" ""
		else
			assert_match "$output" "$want"
		fi
	done
}

@test "rootfsPropagation: slave gets the host's later mounts, private doesn't" {
	cat >prop.sh <<-'END'
		set -e
		dir=$1 tag=$2 id=$3
		mkdir -p "$dir/src"
		mount -t tmpfs tmpfs "$dir/src"
		mount --make-shared "$dir/src"
		LR_TEST_TAG=$tag "$LEAN_RUNTIME" --root "$dir/root" run -d -b "$dir/bundle" "$id" </dev/null >"$dir/o" 2>&1
		mkdir "$dir/src/late"
		mount -t tmpfs tmpfs "$dir/src/late"
		touch "$dir/src/late/file"
		LR_TEST_TAG=$tag "$LEAN_RUNTIME" --root "$dir/root" exec "$id" ls /mnt/p/late
		LR_TEST_TAG=$tag "$LEAN_RUNTIME" --root "$dir/root" delete --force "$id"
	END
	cfg '.linux.rootfsPropagation = "rslave" | .process.args = ["/bin/sleep", "300"]'
	mnt '{"destination": "/mnt/p", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["rbind"]}'
	run -0 unshare -m bash prop.sh "$BATS_TEST_TMPDIR" "$TAG" "$ID" 3>&-
	assert_has "$output" file
	cfg '.linux.rootfsPropagation = "rprivate"'
	run -0 unshare -m bash prop.sh "$BATS_TEST_TMPDIR" "$TAG" "$ID" 3>&-
	assert_hasnt "$output" file
}

@test "mounts: tmpcopyup" {
	mkdir "$BUNDLE/rootfs/full"
	echo kept >"$BUNDLE/rootfs/full/file"
	mkdir "$BUNDLE/rootfs/full/d"
	ln -s file "$BUNDLE/rootfs/full/link"
	chmod 640 "$BUNDLE/rootfs/full/file"
	mnt '{"destination": "/full", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup", "mode=0755"]}'
	sh_cfg 'cat /full/file /full/link; stat -c %a /full/file; echo gone >/full/file; stat -f -c %T /full; ls /full'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'kept\nkept\n640\ntmpfs\nd\nfile\nlink'
	assert_eq "$(cat "$BUNDLE/rootfs/full/file")" kept
}

@test "mounts: proc, sysfs, mqueue, devpts, shm as in the default spec" {
	cfg '.process.args = ["cat", "/proc/mounts"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'\nproc /proc proc '
	assert_match "$output" $'\n(tmpfs|dev) /dev tmpfs '
	assert_match "$output" $'\ndevpts /dev/pts devpts rw,nosuid,noexec'
	assert_match "$output" $'\n(shm|tmpfs) /dev/shm tmpfs rw,nosuid,nodev,noexec'
	assert_match "$output" $'\nmqueue /dev/mqueue mqueue '
	assert_match "$output" $'\nsysfs /sys sysfs ro'
}

@test "mounts: /dev has the default devices and links" {
	sh_cfg 'for d in null zero full random urandom tty; do stat -c "%n %t:%T %a %F" /dev/$d; done; for l in fd stdin stdout stderr ptmx; do readlink /dev/$l; done; echo x >/dev/null && echo fine'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "/dev/null 1:3 666 character special file"
	assert_has "$output" "/dev/zero 1:5 666"
	assert_has "$output" "/dev/full 1:7 666"
	assert_has "$output" "/dev/random 1:8 666"
	assert_has "$output" "/dev/urandom 1:9 666"
	assert_has "$output" "/dev/tty 5:0 666"
	assert_has "$output" $'/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\npts/ptmx\nfine'
}

@test "masked and read-only paths" {
	echo visible >"$BUNDLE/rootfs/file"
	mkdir "$BUNDLE/rootfs/dir" "$BUNDLE/rootfs/rodir"
	touch "$BUNDLE/rootfs/dir/inside" "$BUNDLE/rootfs/rofile"
	cfg '.linux.maskedPaths += ["/file", "/dir", "/no/such"] | .linux.readonlyPaths += ["/rodir", "/rofile", "/none"]'
	sh_cfg 'echo "[$(cat /file)]"; ls /dir; touch /dir/x 2>/dev/null && echo wrote; touch /rodir/x 2>/dev/null && echo wrote; echo x 2>/dev/null >/rofile && echo wrote; echo x 2>/dev/null >/file; cat /proc/kcore 2>/dev/null | head -c 10; ls /proc/scsi 2>/dev/null; stat -c %t:%T /file; { echo x >/proc/sys/kernel/panic; } 2>&1; true'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" $'^\\[\\]\n1:3\n.*Read-only file system'
}

@test "masked and read-only paths without a slash in front count from the root" {
	mkdir "$BUNDLE/rootfs/dir" "$BUNDLE/rootfs/rodir" "$BUNDLE/rootfs/tmp/dir"
	touch "$BUNDLE/rootfs/dir/inside" "$BUNDLE/rootfs/tmp/dir/inside"
	cfg '.linux.maskedPaths = ["dir", "proc/keys", "none"] | .linux.readonlyPaths = ["rodir", "proc/sys", "none"] | .process.cwd = "/tmp"'
	sh_cfg 'ls /dir /tmp/dir; wc -c </proc/keys; (echo x >/rodir/x) 2>&1; (echo x >/proc/sys/kernel/hostname) 2>&1; true'
	for_peers
	run -0 rt run -b "$BUNDLE" "$ID"
	as_peers "$output" runc crun
	assert_match "$output" $'^/dir:\n\n/tmp/dir:\ninside\n0\n.*rodir/x: Read-only file system\n.*hostname: Read-only file system$'
}

# All three leave the root writable; but crun makes it read-only if it is a mount point, in the caller's mount namespace. And
# runc 1.1 sets the propagation there, and leaves a mount of the root behind.
@test "without a mount namespace, what would change the host's mounts is ignored: root.readonly, propagation" {
	lean_changes rootfs
	without_ns mount
	cfg '.mounts = [] | .linux.maskedPaths = [] | .linux.readonlyPaths = [] | .root.readonly = true | .linux.rootfsPropagation = "rprivate"'
	sh_cfg 'echo started; touch /new && echo writable'
	local before
	apart
	before=$(mount_table)
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" $'started\nwritable'
	! is_lean || assert_has "$output" "root.readonly is ignored"
	assert_eq "$(mount_table)" "$before"
	# What runc and crun need to start anything. They have a mount namespace to spoil: their caller's.
	for_peers
	cfg 'del(.linux.rootfsPropagation)'
	local p
	for p in $(peers); do
		# runc 1.2 makes links in that tree by paths that lead nowhere.
		[ "$p" != runc ] || is_before runc 1.2 || continue
		rm "$BUNDLE/rootfs/new"
		run -0 unshare --mount --propagation private sh -c 'mount -t proc proc "$1/rootfs/proc" && exec "$0" "$2" "$1" "$3"' \
			"$LR_LIB/peer" "$BUNDLE" "$p" "$ID"
		assert_has "$p: $output" "$p: started"$'\n'"writable"
		[ -e "$BUNDLE/rootfs/new" ]
	done
	cfg '.linux.maskedPaths = ["/etc"]'
	! is_lean || run ! rt run -b "$BUNDLE" "$ID"
	! is_lean || assert_has "$output" "need a mount namespace"
}

@test "devices: made with mode and owner, and only those allowed work" {
	cfg '.linux.devices = [{"path": "/dev/mine", "type": "c", "major": 1, "minor": 11, "fileMode": 432, "uid": 0, "gid": 8},
		{"path": "/dev/sub/fifo", "type": "p", "fileMode": 384}]
		| .linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]'
	sh_cfg 'stat -c "%F %a %u:%g %t:%T" /dev/mine; stat -c %F /dev/sub/fifo; { : >/dev/mine; } && echo may write; { : </dev/mine; } 2>&1'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'character special file 660 0:8 1:b'
	assert_has "$output" fifo
	assert_has "$output" "may write"
	assert_has "$output" "Operation not permitted"
}

@test "devices: the default set may be used, others not" {
	lean_changes rootfs
	with_caps CAP_MKNOD
	cfg '.linux.resources.devices = [{"allow": false, "access": "rwm"}]'
	sh_cfg 'head -c 1 /dev/zero | wc -c; mknod /tmp/kmsg c 1 11; cat /tmp/kmsg 2>&1 | head -c 300; mknod /tmp/z c 1 5 && head -c 1 /tmp/z | wc -c'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '^1'
	assert_match "$output" "Operation not permitted"
	assert_match "$output" '1$'
}

@test "mounts: a missing source names it and leaves nothing" {
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "/no/such/source", "options": ["bind"]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" /no/such/source
	assert_has "$output" "no such file or directory"
	run ! rt state "$ID"
	assert_nothing_left
}

@test "mounts: an unknown type, an unknown option" {
	mnt '{"destination": "/mnt/a", "type": "nosuchfs", "source": "x"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" nosuchfs
	cfg '.mounts |= .[:-1]'
	mnt '{"destination": "/mnt/a", "type": "tmpfs", "source": "tmpfs", "options": ["nosuchoption=1"]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" nosuchoption
}

@test "mounts: cgroup, read-only, own part only" {
	cgroup_v2 && skip "cgroup v1 is mounted on the machines this runs on"
	mnt '{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]}'
	# Processes of others' would be shown as 0.
	sh_cfg 'ls /sys/fs/cgroup; echo pids: $(sort -n /sys/fs/cgroup/pids/cgroup.procs | head -n 1); mkdir /sys/fs/cgroup/pids/x 2>&1'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" memory
	assert_has "$output" "pids: 1"
	assert_has "$output" "Read-only file system"
}

@test "mounts: overlay" {
	mkdir lower upper work
	echo low >lower/f
	mnt '{"destination": "/mnt/o", "type": "overlay", "source": "overlay", "options": ["lowerdir='"$BATS_TEST_TMPDIR/lower,upperdir=$BATS_TEST_TMPDIR/upper,workdir=$BATS_TEST_TMPDIR/work"'"]}'
	sh_cfg 'cat /mnt/o/f; echo up >/mnt/o/f'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" low
	assert_eq "$(cat upper/f lower/f)" $'up\nlow'
	is_lean || return 0
	# Its paths may be relative to the caller's directory.
	cfg --arg d "$BATS_TEST_TMPDIR/" '.mounts[-1].options[] |= gsub($d; "")'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" up
}

@test "mounts: id-mapped bind" {
	lean_only "came with 1.2"
	mkdir src
	touch src/f
	chown 300005:300006 src/f
	mnt '{"destination": "/mnt/i", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["bind"],
		"uidMappings": [{"containerID": 300000, "hostID": 0, "size": 100}], "gidMappings": [{"containerID": 300000, "hostID": 0, "size": 100}]}'
	cfg '.process.args = ["stat", "-c", "%u:%g", "/mnt/i/f"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 5:6
}

@test "mounts: what is made for them is open to the container's users, whatever the caller's umask" {
	echo in the file >file
	cfg --arg s "$PWD/file" '.process.user = {"uid": 1000, "gid": 1000} | .process.cwd = "/work/here" | .mounts += [
		{"destination": "/made/by/us", "type": "tmpfs", "source": "tmpfs"},
		{"destination": "/and/this/file", "type": "bind", "source": $s, "options": ["bind"]}]'
	chmod 644 file
	sh_cfg 'ls -d /made/by/us; cat /and/this/file; ls -d . /proc/self /dev/null'
	umask 077
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "/made/by/us"
	assert_has "$output" "in the file"
	assert_eq "$(stat -c %a "$BUNDLE/rootfs/made" "$BUNDLE/rootfs/work" "$BUNDLE/rootfs/work/here" | uniq)" 755
}

@test "mounts: symbolic links in destinations stay inside the root" {
	ln -s /etc "$BUNDLE/rootfs/alias"
	ln -s ../../../../../../tmp/"$TAG"-escape "$BUNDLE/rootfs/out"
	echo content >file
	mnt '{"destination": "/alias/bound", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/file", "options": ["bind"]}'
	mnt '{"destination": "/out/x", "type": "tmpfs", "source": "tmpfs"}'
	sh_cfg 'cat /etc/bound; grep -c escape/x /proc/mounts'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" $'content\n1'
	[ ! -e "/tmp/$TAG-escape" ]
}

# --- mounts add, mounts remove --------------------------------------------------------------------

@test "mounts add: a bind, a tmpfs and a procfs into a running container, and out again" {
	lean_changes rootfs
	lean_only "an experiment of newer versions of crun"
	mkdir src
	echo data >src/file
	rt_sleeper
	echo '[{"destination": "/mnt/a", "type": "bind", "source": "'"$PWD"'/src", "options": ["rbind", "ro"]},
		{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs", "options": ["size=1m", "nosuid"]},
		{"destination": "/mnt/p", "type": "proc", "source": "proc"}]' >m.json
	run -0 rt mounts add "$ID" m.json
	assert_eq "$output" ""
	run -0 rt exec "$ID" sh -c 'cat /mnt/a/file; touch /mnt/a/x 2>&1; awk "\$5 == \"/mnt/t\" {print \$6, \$NF}" /proc/self/mountinfo; cat /mnt/p/1/comm'
	assert_match "$output" 'data
touch: .*Read-only file system
rw,nosuid,relatime rw,size=1024k(,inode64)?
sleep'
	grep -F "$PWD/src" /proc/self/mountinfo && fail "mounted on the host"
	run -0 rt mounts remove "$ID" - <m.json
	run -0 rt exec "$ID" cat /proc/self/mountinfo
	assert_hasnt "$output" " /mnt/"
}

@test "mounts add: an object with mounts, as config.json is one" {
	lean_changes rootfs
	lean_only "an experiment of newer versions of crun"
	rt_sleeper
	run -0 rt mounts add "$ID" - <<<'{"ociVersion": "1.0.0", "mounts": [{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs"}]}'
	run -0 rt exec "$ID" grep -c " /mnt/t " /proc/self/mountinfo
}

@test "mounts add: in a user namespace, id-mapped like the container" {
	lean_changes rootfs
	lean_only "an experiment of newer versions of crun"
	mkdir src
	touch src/file
	chown 100005:100006 src/file
	chown -R 100000:100000 "$BUNDLE/rootfs"
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings'
	rt_sleeper
	run -0 rt mounts add "$ID" - <<<'[{"destination": "/mnt/a", "type": "bind", "source": "'"$PWD"'/src"},
		{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs"}]'
	run -0 rt exec "$ID" stat -c %u:%g /mnt/a/file /mnt/t
	assert_eq "$output" "5:6
0:0"
	chown 7:8 src/file
	run -0 rt mounts add "$ID" - <<<'[{"destination": "/mnt/i", "type": "bind", "source": "'"$PWD"'/src", "options": ["bind", "idmap"]}]'
	run -0 rt exec "$ID" stat -c %u:%g /mnt/i/file
	assert_eq "$output" 7:8
}

@test "mounts add: what fails leaves nothing, and says why" {
	lean_changes rootfs
	lean_only "an experiment of newer versions of crun"
	rt_sleeper
	run rt mounts add "$ID" - <<<'[{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs"}, {"destination": "/mnt/b", "type": "bind", "source": "/no/such"}]'
	assert_one_error
	assert_has "$output" "mounts[1].source"
	run rt mounts add "$ID" - <<<'[{"destination": "/mnt/t", "type": "tmpfs", "source": "tmpfs"}, {"destination": "/mnt/b", "type": "tmpfs", "source": "tmpfs", "options": ["size=x"]}]'
	assert_one_error
	assert_has "$output" "mounts[1]"
	run -0 rt exec "$ID" cat /proc/self/mountinfo
	assert_hasnt "$output" " /mnt/"
	run rt mounts add "$ID" - <<<'[{"destination": "/proc/kcore", "type": "tmpfs", "source": "tmpfs"}]'
	assert_one_error
	assert_has "$output" "inside /proc"
	run rt mounts remove "$ID" - <<<'[{"destination": "/mnt/t"}]'
	assert_one_error
	assert_has "$output" "nothing is mounted there"
	run rt mounts remove "$ID" - <<<'[{"destination": "/"}]'
	assert_one_error
	run rt mounts move "$ID" - <<<'[]'
	assert_one_error
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	run rt mounts add "$ID" - <<<'[]'
	assert_one_error
	assert_has "$output" "container not running"
}

@test "mounts add: links of the image do not lead out of the container" {
	lean_changes rootfs
	lean_only "an experiment of newer versions of crun"
	ln -s ../../../../../.. "$BUNDLE/rootfs/up"
	rt_sleeper
	run -0 rt mounts add "$ID" - <<<'[{"destination": "/up/tmp/'"$TAG"'-in", "type": "tmpfs", "source": "tmpfs"}]'
	[ ! -e "/tmp/$TAG-in" ]
	run -0 rt exec "$ID" grep -c "/tmp/$TAG-in " /proc/self/mountinfo
}

@test "mounts: --no-mount-fallback: rw of a source that a user namespace has locked is an error" {
	lean_only "runc's meaning since 1.2"
	mkdir src
	# The caller is root of a user namespace whose mounts of the host are locked.
	cat >nested.sh <<-'END'
		mount --bind "$1/src" "$1/src" && mount -o remount,bind,ro "$1/src" || exit 99
		exec unshare --user --map-root-user --mount --pid --fork --mount-proc \
			"$LEAN_RUNTIME" --root "$1/root" --cgroup-manager disabled run $2 -b "$1/bundle" "$3"
	END
	mnt '{"destination": "/mnt/a", "type": "bind", "source": "'"$PWD"'/src", "options": ["bind", "rw"]}'
	without_ns network
	cfg '.process.args = ["true"] | .mounts |= map(select(.type != "cgroup" and .type != "sysfs"))
		| .linux.resources = null | .linux.maskedPaths = [] | .linux.readonlyPaths = []
		| (.mounts[] | select(.type == "devpts")).options |= map(select(startswith("gid") | not))'
	run unshare -m --propagation private bash nested.sh "$PWD" "" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	assert_has "$output" "stays read-only"
	run unshare -m --propagation private bash nested.sh "$PWD" --no-mount-fallback "$ID"
	assert_one_error
	assert_has "$output" "mounts["
}
