#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lean-rootfs: from images that are written by hand, and made by buildah, to containers that run. Offline; the
# storage is the suite's own.

load ../docker/dockerd.bash

setup_file() {
	export R_DIR=$TMPDIR/rootfs TOOL=$BATS_TEST_DIRNAME/../../contrib/lean-rootfs/lean-rootfs
	chmod 711 "$TMPDIR" # another user gets in
	mkdir -p "$R_DIR/tree" "$R_DIR/bin"
	export CONTAINERS_STORAGE_CONF=$R_DIR/storage.conf XDG_CACHE_HOME=$R_DIR/xdg
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/storage-run"\n' "$R_DIR" "$R_DIR" >"$CONTAINERS_STORAGE_CONF"
	mkdir -p /etc/containers # a layer of the sandbox's
	echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
	"$LR_LIB/mkrootfs" "$R_DIR/tree"
	tar -C "$R_DIR/tree" -cf "$R_DIR/tree.tar" .
	"$BATS_TEST_DIRNAME/mkimage" "$R_DIR/hello" "$R_DIR/tree.tar" '{"Cmd": ["echo", "hello"]}'
	# What it calls.
	local name
	for name in skopeo umoci buildah cp mksquashfs; do
		printf '#!/bin/sh\necho %s "$*" >>%s/calls\n[ ! -e %s/slow-%s ] || { echo $$ >%s/slow; exec sleep 300; }\nexec %s "$@"\n' \
			"$name" "$R_DIR" "$R_DIR" "$name" "$R_DIR" "$(command -v $name)" >"$R_DIR/bin/$name"
		chmod +x "$R_DIR/bin/$name"
	done
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	: >"$R_DIR/calls"
	rm -rf "$R_DIR"/slow* "$XDG_CACHE_HOME"
}

teardown() {
	"$LEAN_RUNTIME" --root "$BATS_TEST_TMPDIR/state" pool drain >/dev/null 2>&1 || true
	local rc=0
	assert_clean "$BATS_TEST_TMPDIR" || rc=1
	assert_eq "$(find "$BATS_TEST_TMPDIR" "$XDG_CACHE_HOME" -name '*.lean-rootfs-*' 2>/dev/null)" "" || rc=1
	return "$rc"
}

lr() {
	PATH=$R_DIR/bin:$PATH "$TOOL" "$@" 3>&-
}

# start BUNDLE [options of the runtime]: runs it.
start() {
	local bundle=$1
	shift
	"$LEAN_RUNTIME" --root "$BATS_TEST_TMPDIR/state" "$@" run "./$bundle" </dev/null 3>&-
}

# image NAME CONFIG [COMMAND that changes the tree, which is its working directory]
image() {
	local tar=$R_DIR/tree.tar
	if [ -n "${3-}" ]; then
		rm -rf changed
		cp -a "$R_DIR/tree" changed
		(cd changed && eval "$3")
		tar -C changed -cf changed.tar .
		tar=changed.tar
	fi
	"$BATS_TEST_DIRNAME/mkimage" "$1" "$tar" "$2"
}

# fails WORD... -- ARGUMENTS: the message has each word; nothing is made.
fails() {
	local words=()
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	run -1 lr "$@" -o made
	local word
	for word in "${words[@]}"; do assert_has "$output" "$word"; done
	assert_hasnt "$output" Traceback
	[ ! -e made ] || fail "there is an output"
}

config() {
	jq -c "$1" made/config.json
}

# with PROGRAM...: a PATH with these and what every call needs.
only() {
	rm -rf only
	mkdir only
	local p
	for p in cp rm du chmod sh sleep "$@"; do ln -s "$(command -v "$p")" "only/$p"; done
	ln -s "$(python3 -c 'import sys; print(sys.executable)')" only/python3
	PATHS=$BATS_TEST_TMPDIR/only
}

# ---- sources ------------------------------------------------------------------------------------------

@test "from: an OCI layout, by tag and without, OCI and Docker archives, the storage of podman and buildah" {
	skopeo copy -q "oci:$R_DIR/hello" oci-archive:oci.tar:latest
	skopeo copy -q "oci:$R_DIR/hello" docker-archive:docker.tar:some/hello:latest
	skopeo copy -q "oci:$R_DIR/hello" containers-storage:localhost/stored:latest
	ln -s "$R_DIR/hello" layout # a relative path
	local source
	for source in "oci:$R_DIR/hello" oci:layout:latest oci-archive:oci.tar docker-archive:docker.tar \
		docker-archive:docker.tar:some/hello:latest containers-storage:localhost/stored; do
		run -0 --separate-stderr lr from "$source" -o made --no-cache
		assert_eq "$output" ""
		assert_has "$stderr" "made is ready"
		assert_eq "$(start made)" hello
		assert_eq "$(stat -c %a made)" 700
		rm -rf made
	done
	[ ! -e "$XDG_CACHE_HOME" ] || fail "--no-cache has made a cache"
}

@test "from: without skopeo by buildah, without umoci, too" {
	skopeo copy -q "oci:$R_DIR/hello" docker-archive:docker.tar:some/hello:latest
	skopeo copy -q "oci:$R_DIR/hello" containers-storage:localhost/stored:latest
	only buildah
	local source
	for source in "oci:$R_DIR/hello" docker-archive:docker.tar containers-storage:localhost/stored; do
		PATH=$PATHS run -0 "$TOOL" from "$source" -o made --no-cache
		assert_has "$output" "unpacking by buildah"
		assert_eq "$(start made)" hello
		rm -rf made
	done
	PATH=$PATHS "$TOOL" from "oci:$R_DIR/hello" -q -o made
	diff <(cd "$R_DIR/tree" && find . -printf '%p %m %U %G %l\n' | sort) \
		<(cd made/rootfs && find . -printf '%p %m %U %G %l\n' | sort)
}

@test "from: docker-daemon, by skopeo and by docker alone; docker builds and loads where nothing else is" {
	command -v dockerd >/dev/null || skip "dockerd is not installed"
	start_dockerd rootfs --iptables=false --bridge none
	DOCKER_CONFIG=$TMPDIR/docker-config DOCKER_HOST=unix://$DOCKER_DIR/sock
	export DOCKER_CONFIG DOCKER_HOST
	dk import --change 'CMD ["echo", "hello"]' --change 'VOLUME /srv' "$R_DIR/tree.tar" hello >/dev/null
	dk save -o docker.tar hello:latest
	mkdir docker
	ln -s "$DOCKER" docker/docker
	PATH=$BATS_TEST_TMPDIR/docker:$PATH
	export PATH
	run -0 lr from docker-daemon:hello -o made
	assert_eq "$(start made)" hello
	rm -rf made
	only tar
	ln -s "$DOCKER" only/docker
	mkdir context
	printf 'FROM hello\nENV X=built\nCMD ["sh", "-c", "echo $X"]\n' >context/Dockerfile
	PATH=$PATHS
	export PATH
	run -0 "$TOOL" from docker-daemon:hello --no-cache -o a
	run -0 "$TOOL" from docker-daemon:hello -o a2
	assert_has "$output" "in the cache"
	run -0 "$TOOL" from docker-archive:docker.tar --no-cache -o b
	DOCKER_BUILDKIT=0 run -0 "$TOOL" build context -o c
	run -1 "$TOOL" from docker-daemon:not-there -o d
	run -1 "$TOOL" from "oci:$R_DIR/hello" -o d
	assert_has "$output" "install the packages skopeo and umoci"
	PATH=/usr/bin:/bin:/usr/sbin:/sbin
	assert_eq "$(start a)$(start b)$(start c)" hellohellobuilt
	assert_eq "$(stat -c %u:%g a/rootfs/home/tester)" 1000:1000
	assert_eq "$(dk ps -aq)$(dk volume ls -q)" ""
	stop_dockerd
}

# ---- output -------------------------------------------------------------------------------------------

@test "--format: squashfs, erofs and ext4 run with the lean profile, with what the tree has" {
	local type
	image i '{"Cmd": ["sh", "-c", "stat -c %u:%g:%a / /home/tester /volume; ls /volume; id -u; touch /tmp/x /run/x && echo written"],
		"Volumes": {"/volume": {}}}' 'mkdir -m 775 volume && touch volume/kept && chown 7:8 volume'
	for type in squashfs erofs ext4; do
		run -0 lr from oci:i -o made --format "$type"
		assert_eq "$(ls made)" "config.json"$'\n'"rootfs.$type"
		if ! grep -q -w "$type" /proc/filesystems; then
			skip "the kernel has no $type"
		fi
		assert_eq "$(start made --lean | tr '\n' ' ')" "0:0:755 1000:1000:755 7:8:775 kept 0 written "
		assert_eq "$(start made --lean=rootfs | tail -n 1)" written
		"$LEAN_RUNTIME" --root state pool drain
		rm -rf made
	done
}

@test "--format ext4: a tree that is larger than it looks" {
	image i '{}' 'dd if=/dev/urandom of=big bs=1M count=9 status=none; for n in $(seq 3000); do echo >f$n; done'
	run -0 lr from oci:i -o made.ext4 --format ext4 --only-export
	run -0 debugfs -R 'ls -p /' made.ext4
	[ "$(grep -c '/f[0-9]*/' <<<"$output")" = 3000 ] || fail "files are missing"
	run -0 e2fsck -f -n made.ext4
}

@test "--only-export: the tree, or the file, without lean-runtime" {
	only skopeo umoci mksquashfs
	unset LEAN_RUNTIME
	PATH=$PATHS run -0 "$TOOL" from "oci:$R_DIR/hello" -q --only-export -o made
	assert_eq "$output" ""
	assert_eq "$(cat made/etc/motd)" "busybox test image"
	[ ! -e made/config.json ]
	PATH=$PATHS run -0 "$TOOL" from "oci:$R_DIR/hello" --only-export --format squashfs -o root.sq
	[ -f root.sq ]
	run -1 lr from "oci:$R_DIR/hello" --only-export --terminal -o x
	assert_has "$output" "--only-export makes no config.json"
}

@test "output: is never overwritten, but a bundle with --force" {
	lr from "oci:$R_DIR/hello" -q -o made
	echo mine >made/rootfs/mine
	run -1 lr from "oci:$R_DIR/hello" -o made
	assert_has "$output" "File exists"
	assert_has "$output" "--force"
	[ -e made/rootfs/mine ]
	run -0 lr from "oci:$R_DIR/hello" -o made --force
	[ ! -e made/rootfs/mine ]
	assert_eq "$(start made)" hello
	mkdir home && echo precious >home/precious
	run -1 lr from "oci:$R_DIR/hello" -o home --force
	assert_has "$output" "is no bundle"
	ln -s made link && touch file
	run -1 lr from "oci:$R_DIR/hello" -o link --force
	run -1 lr from "oci:$R_DIR/hello" -o file --force
	[ "$(cat home/precious)" = precious ]
	[ -L link ]
	[ -f file ]
	run -1 lr from "oci:$R_DIR/hello" -o no/such/place
	assert_has "$output" "its directory is not there"
	# What others may not read in the image, they may not read in the file.
	lr from "oci:$R_DIR/hello" -q --only-export --format squashfs -o closed
	assert_eq "$(stat -c %a closed)" 600
	# A file that was made may have been any.
	run -0 lr from "oci:$R_DIR/hello" -o file --force --only-export --format squashfs
	[ -s file ]
}

# instead WHERE COMMAND: umoci runs COMMAND when it has unpacked.
instead() {
	rm -rf "$1"
	cp -r "$R_DIR/bin" "$1"
	printf '#!/bin/sh\n"%s" "$@" || exit\n%s\n' "$(command -v umoci)" "$2" >"$1/umoci"
}

@test "output: --force does not replace what was put there meanwhile" {
	lr from "oci:$R_DIR/hello" -q -o made
	instead late "mv '$PWD/made' '$PWD/was' && mkdir '$PWD/made' && echo mine >'$PWD/made/precious'"
	PATH=$PWD/late:$PATH run -1 "$TOOL" from "oci:$R_DIR/hello" -o made --force --no-cache
	assert_has "$output" "is no bundle any more"
	assert_eq "$(cat made/precious)" mine
	local deny=${LEAN_RUNTIME%/src/cli/*}/tests/denied/deny
	[ -x "$deny" ] || skip "the launcher that denies is not built"
	rm -rf made
	mv was made
	PATH=$PWD/late:$PATH run -1 "$deny" ENOSYS renameat2 "$TOOL" from "oci:$R_DIR/hello" -o made --force --no-cache
	assert_has "$output" "is no bundle any more"
	assert_eq "$(cat made/precious)" mine
}

# lets_in DIR: by an access list, user 1000 may write there; its mode is as root's group's.
lets_in() {
	python3 -c 'import os, struct, sys
anybody = 2**32 - 1
entries = (1, 7, anybody), (2, 7, 1000), (4, 5, anybody), (16, 7, anybody), (32, 5, anybody)
os.setxattr(sys.argv[1], "system.posix_acl_access", struct.pack("I", 2) + b"".join(struct.pack("HHI", *e) for e in entries))' "$1" 2>access.err
}

@test "output: not as root where another user may exchange it meanwhile" {
	mkdir -p theirs/deep shared group listed
	chown 1000 theirs
	chmod 777 shared
	chgrp 1000 group
	chmod 775 group
	run -1 lr from "oci:$R_DIR/hello" -o shared/made
	assert_has "$output" "output $PWD/shared/made: others may exchange it: others may write to $PWD/shared; make it in a directory of your own"
	assert_has "$output" "or: chmod go-w $PWD/shared"
	run -1 lr from "oci:$R_DIR/hello" -o theirs/deep/made
	assert_has "$output" "$PWD/theirs belongs to user 1000; make it in a directory of your own"
	assert_has "$output" "or: SUDO_UID=1000 in the environment"
	SUDO_UID=1001 run -1 lr from "oci:$R_DIR/hello" -o theirs/made
	SUDO_UID=nobody run -1 lr from "oci:$R_DIR/hello" -o theirs/made
	assert_hasnt "$output" Traceback
	run -1 lr from "oci:$R_DIR/hello" -o group/made
	SUDO_UID=1001 SUDO_GID=1001 run -1 lr from "oci:$R_DIR/hello" -o group/made
	if lets_in listed; then
		run -1 lr from "oci:$R_DIR/hello" -o listed/made
		assert_has "$output" "others may write to $PWD/listed"
	fi
	# What root has there is not taken for ours to remove.
	mkdir theirs/.lean-rootfs-x
	run -1 lr from "oci:$R_DIR/hello" -o theirs/made
	rmdir theirs/.lean-rootfs-x
}

@test "output: as root with /tmp, and what belongs to the user who has called sudo" {
	mkdir -p home/project sticky
	chmod 1777 sticky
	# Where users have a group each, their umask is 002.
	chown -R 1000:1000 home
	chmod 775 home/project
	run -0 lr from "oci:$R_DIR/hello" -o sticky/made
	SUDO_UID=1000 SUDO_GID=1000 run -0 lr from "oci:$R_DIR/hello" -o home/project/made
}

@test "output: where the file system cannot exchange two names, one after the other" {
	local deny=${LEAN_RUNTIME%/src/cli/*}/tests/denied/deny
	[ -x "$deny" ] || skip "the launcher that denies system calls is not built"
	run -0 "$deny" ENOSYS renameat2 "$TOOL" from "oci:$R_DIR/hello" -o made
	echo mine >made/rootfs/mine
	run -1 "$deny" ENOSYS renameat2 "$TOOL" from "oci:$R_DIR/hello" -o made
	assert_has "$output" "File exists"
	[ -e made/rootfs/mine ]
	run -0 "$deny" ENOSYS renameat2 "$TOOL" from "oci:$R_DIR/hello" -o made --force
	[ ! -e made/rootfs/mine ]
	assert_eq "$(start made)" hello
}

@test "output: a directory that nobody can write to, as that of the cache" {
	mkdir ro
	mount -t tmpfs -o ro,mode=700 tmpfs ro
	run -1 lr from "oci:$R_DIR/hello" -o ro/made
	assert_has "$output" "$PWD/ro: a directory in it cannot be made: Read-only file system; give another -o"
	run -1 lr from "oci:$R_DIR/hello" -o made --cache-dir ro
	assert_has "$output" "$PWD/ro: a directory in it cannot be made: Read-only file system; give another --cache-dir, or --no-cache"
	run -1 lr from "oci:$R_DIR/hello" -o made --cache-dir ro/cache
	assert_has "$output" "Read-only file system; give another --cache-dir"
	umount ro
	[ ! -e made ]
}

@test "words that are no UTF-8 get into no config.json" {
	run -1 lr from "oci:$R_DIR/hello" -o made -- echo $'\377'
	assert_has "$output" "is no UTF-8"
	[ ! -e made ]
	mkdir app
	echo pass >app/main.py
	run -1 lr build app -o made --base $'localhost/\377'
	assert_has "$output" "is no UTF-8"
}

# ---- config.json --------------------------------------------------------------------------------------

@test "the process: Entrypoint and Cmd, or arguments, Env, WorkingDir, StopSignal; no label gets in" {
	image i '{"Entrypoint": ["sh", "-c", "echo $0 $1 $A; pwd"], "Cmd": ["first", "second"], "Env": ["A=b c", "PATH=/bin"],
		"WorkingDir": "/new/work", "StopSignal": "SIGQUIT", "Labels": {"org.lean-runtime.profile": "lean", "run.oci.hooks.stdout": "/x"}}'
	lr from oci:i -q -o made
	assert_eq "$(start made)" $'first second b c\n/new/work'
	assert_eq "$(config .annotations)" '{"org.opencontainers.image.stopSignal":"SIGQUIT"}'
	assert_eq "$(config '[.process.terminal, .root.readonly]')" '[false,false]'
	lr from oci:i -q -o made --force -- other words
	assert_eq "$(start made | head -n 1)" "other words b c"
	image none '{}'
	rm -rf made
	fails "names no program" "-- PROGRAM" -- from oci:none
	lr from oci:none -q -o made -- cat /etc/motd
	assert_eq "$(start made)" "busybox test image"
	assert_has "$(config .process.env)" '"PATH=/usr/local/sbin:'
}

@test "the user: by name, by number, with a group, with the groups of the image" {
	local user want
	while read -r user want; do
		rm -rf i made
		image i '{"Cmd": ["sh", "-c", "id -u; id -g; id -G; echo $HOME"], "User": "'"$user"'"}'
		lr from oci:i -q -o made
		assert_eq "$(start made | tr '\n' ' ')" "$want "
	done <<-'END'
		tester 1000 1000 1000 2000 /home/tester
		1000 1000 1000 1000 2000 /home/tester
		tester:daemon 1000 1 1 /home/tester
		77:88 77 88 88 /
		77 77 0 0 /
		daemon:2000 1 2000 2000 /usr/sbin
	END
	rm -rf made
	for user in nobody-there tester:nobody-there 4294967295 -1; do
		rm -rf i
		image i '{"Cmd": ["id"], "User": "'"$user"'"}'
		fails "User is" "does not have" "by number" -- from oci:i
	done
}

@test "volumes: a tmpfs each, with what the image has there, thrown away after the run" {
	image i '{"Cmd": ["sh", "-c", "cat /data/kept; stat -c %U:%a /data; echo >/data/x; mount | grep -c \"on /data\"; ls /data /data/sub/side"],
		"Volumes": {"/data/sub/side": {}, "/data/": {}, "/linked": {}}, "User": "tester"}' \
		'mkdir -p data; echo kept >data/kept; chown -R 1000:1000 data; chmod 700 data; mkdir target; ln -s ../../../target linked'
	lr from oci:i -q -o made
	local want=$'kept\ntester:700\n2\n/data:\nkept\nsub\nx\n\n/data/sub/side:'
	assert_eq "$(start made)" "$want"
	assert_eq "$(start made)" "$want"
	assert_eq "$(config '[.mounts[-3:][].destination]')" '["/data","/data/sub/side","/target"]'
}

@test "volumes: one that a link leads to a name that config.json cannot have" {
	image i '{"Cmd": ["true"], "Volumes": {"/v": {}}}' "mkdir \$'d\\377'; ln -s \$'d\\377' v"
	fails "the place of the volume /v is no UTF-8" -- from oci:i
}

@test "--read-only, --terminal, --cap-add" {
	image i '{"Cmd": ["sh", "-c", "touch /x; touch /tmp/x /run/x /var/tmp/x && grep CapBnd /proc/self/status"]}'
	run -0 lr from oci:i -o made --read-only --cap-add docker --cap-add sys_time
	run -0 start made
	assert_has "$output" "Read-only file system"
	local caps
	caps=$(sed -n 's/^CapBnd:\s*//p' <<<"$output")
	[ $((0x$caps >> 25 & 1)) = 1 ] && [ $((0x$caps & 1)) = 1 ] && [ $((0x$caps >> 21 & 1)) = 0 ] || fail "$output"
	run -0 start made --lean
	run -0 lr from oci:i -o made --force --terminal -- sh -c 'tty; echo $TERM'
	run -0 "$LR_LIB/on-pty" -- "$LEAN_RUNTIME" --root state run ./made
	assert_has "$output" /dev/pts/0
	assert_has "$output" xterm
}

@test "without root: a bundle that its maker runs" {
	mkdir home
	cp "$LEAN_RUNTIME" "$R_DIR/lean-runtime"
	cp "$TOOL" "$R_DIR/lean-rootfs"
	cp -r "$R_DIR/hello" home/i
	chown -R 1000:1000 home
	chmod 711 "$BATS_TEST_TMPDIR" "$R_DIR" "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR/test" 2>/dev/null || true
	chmod 666 "$R_DIR/calls"
	cd home
	local as=(setpriv --reuid 1000 --regid 1000 --clear-groups env -u CONTAINERS_STORAGE_CONF HOME="$PWD" XDG_CACHE_HOME="$PWD/c"
		LEAN_RUNTIME="$R_DIR/lean-runtime" PATH="/usr/bin:/bin")
	run -0 "${as[@]}" /usr/bin/python3 "$R_DIR/lean-rootfs" from oci:i -o made
	run -0 "${as[@]}" "$R_DIR/lean-runtime" --root "$PWD/state" run ./made
	assert_has "$output" hello
	run -0 "${as[@]}" /usr/bin/python3 "$R_DIR/lean-rootfs" clean
}

# ---- build --------------------------------------------------------------------------------------------

@test "build: a Dockerfile, again from the cache, from another base, by its name, one that fails" {
	mkdir app
	echo one >app/word
	printf 'FROM base\nCOPY word /word\nRUN echo ran >>/word\nUSER tester\nCMD ["cat", "/word"]\n' >app/Dockerfile
	run -0 lr build app --base "oci:$R_DIR/hello" -o made -t localhost/app
	assert_eq "$(start made)" $'one\nran'
	assert_has "$(buildah images)" localhost/app
	: >"$R_DIR/calls"
	run -0 lr build app --base "oci:$R_DIR/hello" -q -o again
	assert_eq "$output" ""
	assert_eq "$(start again)" $'one\nran'
	assert_hasnt "$(cat "$R_DIR/calls")" umoci
	assert_hasnt "$(cat "$R_DIR/calls")" push
	image other '{}' 'echo other >etc/motd'
	printf 'FROM scratch\nCMD ["cat", "/etc/motd"]\n' >app/second
	run -0 lr build app -f app/second --base oci:other -o third
	assert_eq "$(start third)" other
	printf 'FROM scratch\nCOPY nothing /\n' >app/broken
	rm -rf made
	fails "building $PWD/app: buildah failed" "nothing" "; the Dockerfile is app/broken" -- build app -f app/broken
	fails "no such file or directory" "nothing" -- build app -q -f app/broken
	assert_eq "$(buildah containers -q)" ""
}

@test "build: a directory is one, whatever its name" {
	local name
	for name in a,b 'a"b' $'a\nb' -rf 'a b'; do
		mkdir -p "in/$name"
		printf 'FROM base\nCMD ["true"]\n' >"in/$name/Dockerfile"
		run -0 lr build "in/$name" -q --base "oci:$R_DIR/hello" -o made
		run -0 start made
		rm -rf made
	done
}

@test "build: a step sees neither the host's processes nor its devices" {
	[ -z "${BUILDAH_ISOLATION-}" ] || skip "BUILDAH_ISOLATION says another"
	mkdir app
	sleep 300 3>&- &
	local pid=$!
	printf 'FROM base\nRUN for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline; done >/seen; ls /dev >/devices; echo >/dev/null\nCMD ["cat", "/devices", "/seen"]\n' >app/Dockerfile
	run -0 lr build app --base "oci:$R_DIR/hello" -o made
	run -0 start made
	assert_hasnt "$output" "sleep 300"
	assert_hasnt "$output" kmsg
	assert_has "$output" urandom
	kill $pid
	assert_eq "$(grep -c lean-rootfs /proc/self/mountinfo)" 0
}

@test "build: what cannot be built" {
	mkdir injected
	touch injected/main.py
	fails "is no image" -- build injected --base $'base\nRUN id'

	mkdir empty req
	fails "neither Dockerfile" "write a Dockerfile" -- build empty
	fails "is no directory" -- build not-there
	fails "No such file" "--file" -- build empty -f not-there
	touch req/requirements.txt
	fails "no main.py" "-- python3 PROGRAM" -- build req
	fails "No such file" -- build req --base oci:not-there
}

# The base is this machine's own Python, without pip; that is a program of the test's.
@test "build: a Python program without a Dockerfile" {
	local version
	"$BATS_TEST_DIRNAME/../lib/mkpython" base || skip "no python3 in /usr/bin"
	mkdir app
	echo wheel >app/requirements.txt
	tar -C base -cf base.tar .
	"$BATS_TEST_DIRNAME/mkimage" pipless base.tar '{"Env": ["PATH=/usr/bin:/bin"]}'
	touch app/main.py
	fails "No module named pip" "; it is taken for a Python program, on oci:pipless: --base names another" -- build app --base oci:pipless
	version=$(basename base/usr/lib/python3.*)
	mkdir -p "base/usr/lib/$version/pip"
	echo 'import sys; open("/installed", "w").write(" ".join(sys.argv[1:]))' >"base/usr/lib/$version/pip/__main__.py"
	tar -C base -cf base.tar .
	"$BATS_TEST_DIRNAME/mkimage" layout base.tar '{"Env": ["PATH=/usr/bin:/bin"]}'
	echo 'import json, sys; print(json.dumps([open("/installed").read(), __file__, sys.argv[1:]]))' >app/main.py
	run -0 lr build app --base oci:layout -o made
	assert_eq "$(start made)" '["install --no-cache-dir -r requirements.txt", "/app/main.py", []]'
	assert_eq "$(config .process.args)" '["python3","/app/main.py"]'
	run -0 lr build app --base oci:layout -o made --force -- python3 /app/main.py x
	assert_eq "$(start made)" '["install --no-cache-dir -r requirements.txt", "/app/main.py", ["x"]]'
}

# ---- cache --------------------------------------------------------------------------------------------

@test "cache: a second call exports nothing; --no-cache does; another directory; clean" {
	run -0 lr from "oci:$R_DIR/hello" -o a
	assert_has "$(cat "$R_DIR/calls")" "skopeo copy"
	: >"$R_DIR/calls"
	run -0 lr from "oci:$R_DIR/hello" -o b --format squashfs
	assert_has "$output" "in the cache"
	assert_eq "$(grep -c -E '^umoci|skopeo copy' "$R_DIR/calls")" 0
	# A bundle is a copy: what a container writes there is not the next one's.
	echo changed >a/rootfs/etc/motd
	run -0 lr from "oci:$R_DIR/hello" -o c
	assert_eq "$(cat c/rootfs/etc/motd)" "busybox test image"
	: >"$R_DIR/calls"
	run -0 lr from "oci:$R_DIR/hello" -o d --no-cache
	assert_has "$(cat "$R_DIR/calls")" umoci
	run -0 lr from "oci:$R_DIR/hello" -o e --cache-dir mine
	[ -n "$(ls mine)" ]
	run -0 lr clean -q --cache-dir mine
	assert_eq "$output$(ls mine)" ""
	assert_eq "$(stat -c %a "$XDG_CACHE_HOME/lean-rootfs")" 700
	chmod 777 "$XDG_CACHE_HOME/lean-rootfs"
	fails "others may write to it" --  from "oci:$R_DIR/hello"
	chmod 700 "$XDG_CACHE_HOME/lean-rootfs"
	# What others put there before the mode was repaired.
	local entry
	entry=$(find "$XDG_CACHE_HOME/lean-rootfs" -mindepth 1 -maxdepth 1 -type d)
	chown 1000 "$entry"
	fails "$entry: others may write to it" "lean-rootfs clean" -- from "oci:$R_DIR/hello"
	chown 0 "$entry"
	mkdir shared
	chmod 777 shared
	fails "cache $PWD/shared/c: others may exchange it" "--no-cache" -- from "oci:$R_DIR/hello" --cache-dir shared/c
	# The name alone makes no tree of ours: so are those of Docker's containers called.
	mkdir -p containers/"$(printf 'a%.0s' {1..64})"/precious
	run -0 lr clean --cache-dir containers
	assert_eq "$(ls containers/*)" precious
	# Not while another call reads it, and nothing that is not the cache's.
	touch "$XDG_CACHE_HOME/lean-rootfs/mine"
	run -1 flock -s "$XDG_CACHE_HOME/lean-rootfs" "$TOOL" clean
	assert_has "$output" "another lean-rootfs uses it"
	run -0 lr clean
	assert_eq "$(ls "$XDG_CACHE_HOME/lean-rootfs")" mine
}

# swapped NAME: the image hello's configuration with layers of its own: FILE...
swapped() {
	python3 - "$R_DIR/hello" "$@" <<-'END'
		import hashlib, json, os, shutil, sys
		hello, name, *files = sys.argv[1:]
		shutil.rmtree(name, ignore_errors=True)
		shutil.copytree(hello, name)
		def put(data):
		    digest = hashlib.sha256(data).hexdigest()
		    with open(f"{name}/blobs/sha256/{digest}", "wb") as f:
		        f.write(data)
		    return {"digest": "sha256:" + digest, "size": len(data)}
		with open(f"{name}/index.json") as f:
		    index = json.load(f)
		with open(f"{name}/blobs/sha256/" + index["manifests"][0]["digest"][7:]) as f:
		    manifest = json.load(f)
		kind = manifest["layers"][0]["mediaType"]
		manifest["layers"] = [{"mediaType": kind, **put(open(file, "rb").read())} for file in files]
		index["manifests"][0].update(put(json.dumps(manifest).encode()))
		with open(f"{name}/index.json", "w") as f:
		    json.dump(index, f)
	END
}

@test "cache: an image cannot take another's place in it: layers that are not its configuration's" {
	local by
	mkdir evil
	echo evil >evil/evil
	tar -C evil -cf evil.tar .
	: >empty.tar
	for by in "skopeo umoci" buildah "skopeo buildah"; do
		# shellcheck disable=SC2086 # words
		only $by
		for layers in evil.tar "$R_DIR/tree.tar evil.tar" ""; do
			# shellcheck disable=SC2086 # words
			swapped evil-image $layers
			PATH=$PATHS run -1 "$TOOL" from oci:evil-image -o made
			assert_hasnt "$output" Traceback
			[ ! -e made ] || fail "$by: $layers"
		done
		PATH=$PATHS run -0 "$TOOL" from "oci:$R_DIR/hello" -o made
		assert_hasnt "$output" "in the cache"
		[ ! -e made/rootfs/evil ] || fail "it was in the cache"
		rm -rf made "$XDG_CACHE_HOME"
	done
}

@test "cache: nor one that is changed while it is read" {
	image late '{"Cmd": ["echo", "late"]}' 'echo evil >evil'
	cp -r "$R_DIR/hello" changing
	cp -r "$R_DIR/bin" swap
	# After it was looked at, before it is copied.
	printf '#!/bin/sh\n[ "$1" != copy ] || { rm -rf "%s/changing"; cp -r "%s/late" "%s/changing"; }\nexec "%s" "$@"\n' "$PWD" "$PWD" "$PWD" \
		"$(command -v skopeo)" >swap/skopeo
	PATH=$PWD/swap:$PATH run -1 "$TOOL" from oci:changing -o made
	assert_has "$output" "the image was changed while it was read; call again"
	run -0 lr from "oci:$R_DIR/hello" -o made
	[ ! -e made/rootfs/evil ] || fail "it was in the cache"
}

@test "cache: one that is damaged is told, with what to do" {
	lr from "oci:$R_DIR/hello" -q -o a
	local entry
	entry=$(find "$XDG_CACHE_HOME/lean-rootfs" -mindepth 1 -maxdepth 1)
	cp "$entry/image.json" good.json
	: >"$entry/image.json"
	fails "cache $entry is damaged: " "lean-rootfs clean" -- from "oci:$R_DIR/hello"
	rm "$entry/image.json"
	fails "cache $entry is damaged: " "lean-rootfs clean" -- from "oci:$R_DIR/hello"
	cp good.json "$entry/image.json"
	rm -r "$entry/rootfs"
	fails "cache $entry is damaged: there is no rootfs" "lean-rootfs clean" -- from "oci:$R_DIR/hello"
	lr clean -q
	run -0 lr from "oci:$R_DIR/hello" -o made
}

@test "cache: what a clean that was killed half-way has left is no image" {
	local sig pid
	lr from "oci:$R_DIR/hello" -q -o a
	mkdir half
	# The first thing that it removes is gone, then it waits.
	printf '#!/bin/sh\nfor last; do :; done\nfind "$last" -name motd -delete\necho $$ >%s/slow\nexec sleep 300\n' "$R_DIR" >half/rm
	chmod +x half/rm
	for sig in KILL TERM; do
		rm -f "$R_DIR/slow"
		PATH=$PWD/half:$PATH "$TOOL" clean >log 2>&1 3>&- &
		pid=$!
		wait_until test -s "$R_DIR/slow" || fail "$(cat log)"
		kill -$sig "$pid"
		[ $sig = TERM ] || kill "$(cat "$R_DIR/slow")"
		wait "$pid" || true
		run -0 lr from "oci:$R_DIR/hello" -o made
		assert_hasnt "$output" "is in the cache"
		assert_eq "$(cat made/rootfs/etc/motd)" "busybox test image"
		rm -r made
	done
}

# ---- what goes wrong ----------------------------------------------------------------------------------

@test "errors: a source that is not there, is none, or is damaged" {
	fails "No such file or directory" "path is right" -- from oci:not-there
	fails "No such file or directory" -- from docker-archive:not-there.tar:x
	fails "is no image" "docker-archive" -- from not-an-image
	fails "no oci-layout" -- from oci:"$R_DIR/tree"
	fails "is no file" -- from oci-archive:"$R_DIR/hello"
	fails "skopeo failed" -- from containers-storage:localhost/not-there
	echo garbage >garbage.tar
	fails "skopeo failed" "fetch, save or build it again" -- from docker-archive:garbage.tar
	fails "skopeo failed" -- from oci-archive:garbage.tar
	skopeo copy -q "oci:$R_DIR/hello" oci-archive:whole.tar
	head -c 400000 whole.tar >half.tar
	fails "failed" -- from oci-archive:half.tar
	# One byte of the layer.
	cp -r "$R_DIR/hello" damaged
	local layer
	layer=$(find damaged/blobs -size +100k)
	printf X | dd of="$layer" bs=1 seek=5000 conv=notrunc status=none
	fails "failed" "image is whole" -- from oci:damaged
	truncate -s 1000 "$layer"
	fails "failed" -- from oci:damaged --no-cache
	cp -r "$R_DIR/hello" unreadable
	echo '{"schemaVersion": 2, "manifests": [' >unreadable/index.json
	fails "failed" -- from oci:unreadable
	run -2 lr from "oci:$R_DIR/hello"
	run -2 lr
}

@test "errors: a program that is missing, with the package that has it" {
	local way=(from "oci:$R_DIR/hello" -o made)
	only
	PATH=$PATHS run -1 "$TOOL" "${way[@]}"
	assert_has "$output" "not installed: skopeo, umoci; install the package skopeo and umoci"
	only skopeo
	PATH=$PATHS run -1 "$TOOL" "${way[@]}"
	assert_has "$output" "install the package umoci"
	only skopeo umoci
	PATH=$PATHS run -1 "$TOOL" "${way[@]}" --format squashfs
	assert_has "$output" "install the package squashfs-tools"
	PATH=$PATHS run -1 "$TOOL" build "$R_DIR" -o made
	assert_has "$output" "install the package buildah"
	LEAN_RUNTIME='' PATH=$PATHS run -1 "$TOOL" "${way[@]}"
	assert_has "$output" "lean-runtime is not there"
	PATH=$PATHS run -1 "$TOOL" "${way[@]}" --runtime /bin/false
	assert_has "$output" "is this lean-runtime?"
	[ ! -e made ]
}

@test "errors: a program that ends without an error and has done nothing" {
	local name
	lr from "oci:$R_DIR/hello" -q -o filled
	mkdir idle app
	printf 'FROM base\n' >app/Dockerfile
	idle() {
		rm -f idle/*
		printf '#!/bin/sh\n%s\n' "${2-}" >"idle/$1"
		chmod +x "idle/$1"
	}
	for name in "skopeo --no-cache" "umoci --no-cache" "cp -q" "mksquashfs --format=squashfs" "du --format=ext4"; do
		idle "${name% *}"
		PATH=$PWD/idle:$PATH run -1 "$TOOL" from "oci:$R_DIR/hello" "${name#* }" -o made
		assert_has "$output" "call it by hand"
		assert_hasnt "$output" Traceback
		[ ! -e made ] || fail "$name: there is an output"
	done
	idle du 'echo nonsense'
	PATH=$PWD/idle:$PATH run -1 "$TOOL" from "oci:$R_DIR/hello" --format ext4 -o made
	assert_has "$output" "du says no number, but 'nonsense'"
	idle buildah
	PATH=$PWD/idle:$PATH run -1 "$TOOL" build app -o made
	assert_has "$output" "buildah ended without an error, but has made nothing"
}

@test "errors: no space, for the output, for the cache, for a file" {
	mkdir small
	mount -t tmpfs -o size=1m,mode=700 tmpfs small
	run -1 lr from "oci:$R_DIR/hello" -o small/made --no-cache
	assert_has "$output" "no space left"
	run -1 lr from "oci:$R_DIR/hello" -o small/made
	assert_has "$output" "copying from the cache: cp failed"
	run -1 lr from "oci:$R_DIR/hello" -o made --cache-dir small/cache
	assert_has "$output" "space"
	local type
	for type in squashfs erofs ext4; do
		mount -o remount,size=256k small
		run -1 lr from "oci:$R_DIR/hello" -o small/made --format $type
		assert_hasnt "$output" Traceback
	done
	assert_eq "$(find . ! -path . ! -path './small*')" ""
	umount small
}

@test "stopped: nothing is left after TERM, INT and HUP in each step, nothing half made after KILL" {
	local step sig pid child
	lr from "oci:$R_DIR/hello" -q -o filled # the steps from the cache on
	for step in skopeo umoci cp mksquashfs; do
		for sig in TERM INT HUP KILL; do
			rm -f "$R_DIR"/slow*
			touch "$R_DIR/slow-$step"
			local options=()
			case $step in
			skopeo | umoci) options=(--no-cache) ;;
			mksquashfs) options=(--format squashfs) ;;
			esac
			# A child of a shell in the background would ignore INT.
			PATH=$R_DIR/bin:$PATH python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
				"$TOOL" from "oci:$R_DIR/hello" -o made "${options[@]}" >log 2>&1 3>&- &
			pid=$!
			wait_until test -s "$R_DIR/slow" || fail "$step: $(cat log)"
			child=$(cat "$R_DIR/slow")
			kill -$sig "$pid"
			local status=0
			wait "$pid" || status=$?
			assert_eq "$step $sig $status" "$step $sig $((128 + $(kill -l $sig)))"
			wait_until test ! -e "/proc/$child" || fail "$step is left after $sig"
			[ ! -e made ]
			[ $sig = KILL ] || assert_eq "$(find . -name '*.lean-rootfs-*')" ""
		done
	done
	rm -f "$R_DIR"/slow*
	# What KILL has left goes with the next call, and that of one that lives does not.
	mkdir .lean-rootfs-alive
	exec 8<.lean-rootfs-alive
	flock 8
	[ "$(find . -maxdepth 1 -name '.lean-rootfs-*' | wc -l)" -gt 1 ] || fail "KILL left nothing to see"
	run -0 lr from "oci:$R_DIR/hello" -o made
	assert_has "$output" "which an earlier call that was killed has left"
	assert_eq "$(find . -maxdepth 1 -name '.lean-rootfs-*')" ./.lean-rootfs-alive
	exec 8<&-
	rmdir .lean-rootfs-alive
}

@test "stopped: a build" {
	mkdir app
	printf 'FROM base\nRUN echo going on; sleep 300\n' >app/Dockerfile
	"$TOOL" build app --base "oci:$R_DIR/hello" -o made >log 2>&1 3>&- &
	local pid=$!
	wait_until grep -q '^going on' log || fail "$(cat log)"
	kill -TERM $pid
	local status=0
	wait $pid || status=$?
	assert_eq "$status" 143
	[ ! -e made ]
	# shellcheck disable=SC2009 # with the state: what is dead and not yet waited for does not count
	wait_until sh -c '! ps -eo stat,args | grep -v "^Z" | grep "[s]leep 300"' || fail "$(ps -ef)"
	buildah rm --all >/dev/null
}

@test "two at once: both have it whole, the second does not replace the first" {
	lr from "oci:$R_DIR/hello" -q -o a &
	lr from "oci:$R_DIR/hello" -q -o b &
	lr from "oci:$R_DIR/hello" -q -o c --no-cache &
	wait
	assert_eq "$(start a)$(start b)$(start c)" hellohellohello
	lr from "oci:$R_DIR/hello" -q -o same >one 2>&1 &
	lr from "oci:$R_DIR/hello" -q -o same >two 2>&1 &
	wait
	assert_eq "$(cat one two | grep -c 'File exists')" 1
	assert_eq "$(start same)" hello
}

# ---- hostile images -----------------------------------------------------------------------------------

@test "hostile: accounts that are links to the host's, a FIFO, a device, a directory, or too long" {
	# The host has an account that no image has.
	echo 'hostonly:x:4242:4242::/:/bin/sh' >>/etc/passwd
	local change
	for change in 'ln -sf /etc/passwd etc/passwd' 'ln -sf ../../../../../../../../etc/passwd etc/passwd' \
		'rm -r etc; ln -s /etc etc' 'rm -r etc; ln -s ../../../../../../../etc etc' "rm -r etc; ln -s $PWD/outside etc" \
		'rm etc/passwd; mkfifo etc/passwd' 'rm etc/passwd; mkdir etc/passwd' 'rm etc/passwd; mknod etc/passwd c 1 5' \
		'rm etc/passwd; ln -s /proc/self/root/etc/passwd etc/passwd' 'printf ":::\nhostonly\n\377:x:x:x\n" >etc/passwd'; do
		rm -rf i outside
		mkdir outside
		cp /etc/passwd outside/
		image i '{"Cmd": ["id"], "User": "hostonly"}' "$change"
		fails "hostonly" "does not have" -- from oci:i --no-cache
	done
	rm -rf i
	image i '{"Cmd": ["id"], "User": "hostonly"}' 'truncate -s 40M etc/passwd'
	fails "more than 4 MiB" -- from oci:i
	# A link inside of the image is one.
	rm -rf i
	image i '{"Cmd": ["id", "-u"], "User": "tester"}' 'mkdir deep; mv etc/passwd deep/p; ln -s ../../../deep/p etc/passwd'
	lr from oci:i -q -o made
	assert_eq "$(start made)" 1000
}

@test "hostile: working directories and volumes that lead out" {
	local out=$PWD/outside
	mkdir "$out"
	image i '{"Cmd": ["pwd"], "WorkingDir": "/../../../'"$out"'/../x", "Volumes": {"/../../'"$out"'": {}, "/proc": {}, "/": {}, "/dev/shm": {}, "/lp/x": {}}}' \
		'ln -s proc lp'
	run -0 lr from oci:i -o made
	assert_eq "$(grep -c 'left out' <<<"$output")" 4
	assert_eq "$(start made)" "$PWD/x"
	rm -rf i made
	image i '{"Cmd": ["pwd"], "WorkingDir": "/l/made-by-us", "Volumes": {"/m/also": {}}}' "ln -s $out l; ln -s ../../../../../../../..$out m"
	run -0 lr from oci:i -o made
	assert_eq "$(ls "$out")" ""
	assert_eq "$(start made)" "$out/made-by-us"
	rm -rf i made
	image i '{"Cmd": ["pwd"], "WorkingDir": "/a/l/x"}' "mkdir -p a t; ln -s /t a/l"
	lr from oci:i -q -o made
	[ -d made/rootfs/t/x ] || fail "a link of the image leads elsewhere"
	rm -rf i made
	image i '{"Cmd": ["pwd"], "WorkingDir": "/l/x"}' "ln -s l l"
	fails "cannot be a directory" -- from oci:i
	rm -rf i
	image i '{"Cmd": ["pwd"], "WorkingDir": "../x"}'
	fails "no absolute path" -- from oci:i
	rm -rf i
	image i '{"Cmd": ["pwd"]}' 'rmdir proc; ln -s /etc/motd proc'
	fails "/proc cannot be a directory" -- from oci:i
	assert_eq "$(ls "$out")" ""
}

@test "hostile: Env without '=', zero bytes, wrong types, a huge configuration, words for the terminal" {
	image i '{"Cmd": ["env"], "Env": ["NOTHING", "=x", "", "GOOD=1", "\u001b[2Jbad"]}'
	run -0 lr from oci:i -o made
	assert_eq "$(grep -c 'left out' <<<"$output")" 4
	assert_hasnt "$output" $'\e'
	assert_eq "$(config .process.env)" '["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","GOOD=1"]'
	rm -rf made
	local config
	for config in '{"Cmd": ["a\u0000b"]}' '{"Cmd": [1]}' '{"Cmd": "sh"}' '{"Cmd": ["x"], "Env": {}}' '{"Cmd": ["x"], "Volumes": []}' \
		'{"Cmd": ["x"], "Volumes": ["/x"]}' '[]' '"x"' '{"Cmd": ["\ud800"]}' '{"Cmd": ["x"], "User": 7}' '{"Cmd": ["x"], "WorkingDir": "x"}'; do
		rm -rf i
		image i "$config"
		case $config in
		*'"Volumes": []'*) continue ;; # as if there were none
		esac
		fails "lean-rootfs: " -- from oci:i
	done
	python3 -c 'print("{\"Cmd\": [\"" + "x" * 200000 + "\"]}")' >long
	rm -rf i
	image i @long
	fails "128 KiB" -- from oci:i
	python3 -c 'print("{\"Cmd\": [\"x\"], \"Env\": [" + ",".join("\"A%d=%s\"" % (i, "x" * 1000) for i in range(6000)) + "]}")' >huge
	rm -rf i
	image i @huge
	fails "size" -- from oci:i
	# What it says is told, but not all of it.
	python3 -c 'print("{\"Cmd\": [\"x\"], \"User\": \"" + "x" * 100000 + "\"}")' >user
	rm -rf i
	image i @user
	fails "does not have" -- from oci:i
	[ ${#output} -lt 5000 ] || fail "${#output} characters"
	python3 -c 'print("{\"Cmd\": [\"x\"], \"Env\": [" + ",".join("\"%d\"" % i for i in range(5000)) + "]}")' >bare
	rm -rf i
	image i @bare
	run -0 lr from oci:i -o made
	assert_has "$output" "4992 more"
	[ "${#lines[@]}" -lt 20 ] || fail "${#lines[@]} lines"
	rm -rf made
	python3 -c 'print("[" * 100000 + "]" * 100000)' >deep
	rm -rf i
	image i @deep
	fails "lean-rootfs: " -- from oci:i
}

# layer FILE < lines `TYPE NAME [TARGET]`: an archive with these, whatever their names. file, dir, link, hard, char, block,
# fifo. "-" for a blank target.
layer() {
	python3 -c '
import io, sys, tarfile
kinds = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
         "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE, "fifo": tarfile.FIFOTYPE}
with tarfile.open(sys.argv[1], "w") as tar:
    for line in sys.stdin:
        kind, name, *target = line.split()
        info = tarfile.TarInfo()
        info.name, info.type, info.mode = name, kinds[kind], 0o755
        info.linkname = target[0] if target else ""
        info.devmajor, info.devminor = 1, 1
        data = b"evil\n" if kind == "file" and "/.wh." not in "/" + name else b""
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))' "$1"
}

# unpack_hostile WHAT: oci:i by umoci and by buildah. It is made or not, but nothing outside changes or gets in.
unpack_hostile() {
	local by
	for by in umoci buildah; do
		if [ $by = buildah ]; then only buildah; else only skopeo umoci; fi
		rm -rf made
		PATH=$PATHS run "$TOOL" from oci:i -o made --no-cache --only-export
		assert_hasnt "$output" Traceback
		if [ "$status" = 0 ]; then
			[ -d made ]
		else
			assert_eq "$status" 1
			assert_has "$output" "$by failed"
			[ ! -e made ] || fail "it failed, and there is an output"
		fi
		assert_eq "$(find . -name '*.lean-rootfs-*')" ""
		listing outside | diff outside.list - || fail "$by has changed what is outside: $1"
		[ ! -d made ] || assert_eq "$(find made -samefile outside/precious)" ""
	done
}

listing() {
	find "$1" -printf '%p %y %m %U %s %n %T@\n' | sort
	cat "$1"/*
}

@test "hostile: layers whose names, links and whiteouts lead out: nothing of the host is written, read or removed" {
	local out=$PWD/outside up=../../../../../../../../../../../.. how
	mkdir outside
	echo precious >outside/precious
	listing outside >outside.list
	layer links.tar <<-END
		link l $out
		link r $up$out
		link etc /etc
		dir d
		link d/up ../..
		link d/self .
	END
	while IFS=: read -r how; do
		rm -rf i
		layer evil.tar <<<"$how"
		"$BATS_TEST_DIRNAME/mkimage" i "$R_DIR/tree.tar,links.tar,evil.tar" '{}'
		unpack_hostile "$how"
	done <<-END
		file $up$out/evil
		file $out/evil
		file l/evil
		file l/precious
		file d/up/up/evil
		link l/evil /etc/passwd
		hard hl $out/precious
		hard hl $up$out/precious
		hard l/evil bin/busybox
		file l/.wh.precious
		file r/.wh..wh..opq
		file $up$out/.wh.precious
		file d/.wh...
		file .wh...
		file .wh.l
	END
	# That was the last one, which leads nowhere.
	assert_eq "$status $(ls -d made/l made/r 2>/dev/null)" "0 made/r"
}

@test "hostile: devices of a layer are in a directory that nobody else enters, and no use to the container" {
	layer devices.tar <<-END
		char mem
		block disk
		fifo pipe
	END
	"$BATS_TEST_DIRNAME/mkimage" i "$R_DIR/tree.tar,devices.tar" '{"Cmd": ["sh", "-c", "cat /mem | head -c 1; cat /disk"]}'
	run -0 lr from oci:i -o made
	assert_eq "$(stat -c %a made)" 700
	run ! start made
	assert_eq "$(grep -c -i 'not permitted' <<<"$output")" 2
}

@test "hostile: a file that is much longer than what is stored of it" {
	mkdir small big
	truncate -s 1T big/file
	tar -C big --format=posix --sparse-version=1.0 -cSf sparse.tar file
	"$BATS_TEST_DIRNAME/mkimage" i "$R_DIR/tree.tar,sparse.tar" '{"Cmd": ["stat", "-c", "%s", "/file"]}'
	mount -t tmpfs -o size=20m,mode=700 tmpfs small
	run -1 lr from oci:i -o small/made --no-cache
	ls -A small >left
	umount small
	assert_has "$output" "no space left"
	assert_eq "$(cat left)" ""
}

@test "hostile: a tree that is deep, or that nobody may read, is removed all the same" {
	image i '{"Cmd": ["true"]}' 'python3 -c "
import os
for n in range(1200):
    os.mkdir(\"d\" * 100)
    os.chdir(\"d\" * 100)
"; mkdir -m 0 closed'
	run lr from oci:i -o made --no-cache
	assert_hasnt "$output" Traceback
	rm -rf made changed
	assert_eq "$(find . -name '*.lean-rootfs-*')" ""
}

# ---- the documents ------------------------------------------------------------------------------------

@test "--help, --version" {
	run -0 lr --help
	assert_has "$output" build
	run -0 lr build --help
	assert_has "$output" --base
	run -0 lr from --help
	assert_has "$output" containers-storage
	run -0 lr clean --help
	run -0 lr --version
	assert_eq "$output" "lean-rootfs $("$LEAN_RUNTIME" --version | head -n 1 | grep -o '[0-9][0-9.]*' | head -n 1)"
}
