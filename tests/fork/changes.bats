#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --with-changes: what a container has changed in its root, where that is an overlay mount.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_seedtool
	mv "$R" lower
	mkdir "$R" layers
	chmod 755 "$BATS_TEST_TMPDIR"
	SEEDTOOL_RUNTIME=$LEAN_RUNTIME
	apart
	CHILD=$PWD/child
}
teardown() {
	local rc=0
	[ -z "${DAEMON-}" ] || { signal_remembered TERM "$DAEMON"; wait "$DAEMON" || true; }
	common_teardown || rc=1
	signal_remembered TERM
	return "$rc"
}

# All mounts are of a mount namespace of the test's own, where the runtime is called, too.
apart() {
	unshare --mount --propagation private sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
	HOLDER=$!
	remember "$HOLDER"
	wait_until eval '[ "$(readlink "/proc/$HOLDER/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] && [ "$(cat "/proc/$HOLDER/comm")" = sleep ]'
	printf '#!/bin/sh\nexec nsenter --target %s --mount sh -c '"'cd \"\$0\" && exec \"\$@\"'"' "$PWD" %q "$@"\n' "$HOLDER" "$LEAN_RUNTIME" >apart
	chmod +x apart
	LEAN_RUNTIME=$PWD/apart
	# The host's file system may be an overlay itself, which is no upper layer.
	inside mount -t tmpfs tmpfs layers
}

inside() { # COMMAND...
	nsenter --target "$HOLDER" --mount sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

# overlay NAME BUNDLE [OPTION,...]: its root is the image and a layer of its own.
overlay() {
	inside mkdir "layers/$1" "layers/$1/up" "layers/$1/work"
	inside chmod 755 "layers/$1/up"
	inside mount -t overlay overlay -o "lowerdir=${IMAGE-$PWD/lower},upperdir=$PWD/layers/$1/up,workdir=$PWD/layers/$1/work${3+,$3}" "$2/rootfs" ||
		skip "no overlay mount to be had here"
}

upper() { # NAME PATH
	echo "/proc/$HOLDER/root$PWD/layers/$1/up/$2"
}

root() { # [ID]
	echo "/proc/$(pid_of "${1-}")/root"
}

N() { # [ID]: what the program has counted
	local text at
	at=$(root "${1-}")
	for _ in $(seq 100); do
		text=$(cat "$at/n" 2>/dev/null) && [ -n "$text" ] && break
	done
	echo "${text:-0}"
}

goes_on() { # MORE-THAN [ID]
	wait_until eval '[ "$(N '"${2-}"')" -gt '"$1"' ]'
}

# What it has counted may have come with the seed: it has to go on from there.
counts() { # [ID]
	goes_on "$(N "${1-}")" "${1-}"
}

# A container that does SCRIPT in its own layer, and counts.
start() { # SCRIPT
	overlay parent "$BUNDLE"
	sh_cfg "$1
		i=0
		while sleep 0.02; do i=\$((i + 1)); echo \$i >/n; done"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
}

its_own() { # BUNDLE
	jq --arg p "/$ID-${1##*/}" '.linux.cgroupsPath = $p' "$BUNDLE/config.json" >"$1/config.json"
}

# The bundle of a child: the same image, and a layer of its own.
new_child() { # [NAME]
	CHILD=$PWD/${1-child}
	mkdir -p "$CHILD/rootfs"
	its_own "$CHILD"
	overlay "${1-child}" "$CHILD"
}

seed() { # [OPTION...]
	rt_bg checkpoint --engine fork --image-path "$IMG" "$@" "$ID"
}

grow() { # ID [OPTION...]
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$CHILD" "${@:2}" "$1"
}

try() { # ID [OPTION...]: what it says is in a file, as a child that there is would keep a pipe
	rt restore --engine fork --detach --image-path "$IMG" --bundle "$CHILD" "${@:2}" "$1" </dev/null >grow.out 2>&1
}

no_child() { # ID WORD...: it is refused, with that
	run try "$1"
	assert_eq "$status" 1
	for word in "${@:2}"; do
		assert_has "$(cat grow.out)" "$word"
	done
	assert_hasnt "$(rt list -q)" "$1"
}

no_seed() { # OPTION... -- WORD...
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	run rt checkpoint --engine fork --image-path "$IMG" "${options[@]}" "$ID"
	assert_eq "$status" 1
	for word; do
		assert_has "$output" "$word"
	done
}

# All that can be seen of its root, from outside; what it goes on writing left out.
listing() { # ID
	(cd "$(root "$1")" && find . -xdev \( -path ./n -o -path ./dev -o -path ./proc -o -path ./sys \) -prune -o \
		\( -type d -printf '%p %y %m %U:%G %T@\0' -o -printf '%p %y %m %U:%G %s %n %l %T@\0' \) | sort -z | tr '\0\n' '\n?' &&
		find . -xdev \( -path ./n -o -path ./dev -o -path ./proc -o -path ./sys \) -prune -o -type f -print0 | sort -z | xargs -0r md5sum)
}

image() { # what containers find
	mkdir -p lower/etc lower/old/sub lower/gone/sub lower/swap lower/opt/a
	echo old >lower/etc/file
	echo gone >lower/etc/removed
	echo sub >lower/old/sub/f
	echo a >lower/gone/sub/f
	echo b >lower/opt/a/f
	echo s >lower/swap/f
	echo w >lower/paws
	chmod 755 lower lower/*
}

CHANGES='
	echo new >/etc/file
	rm /etc/removed
	rm -r /gone
	rm -r /old; mkdir /old; chmod 711 /old; echo hides >/old/only
	chmod 700 /opt/a
	rm -r /swap; echo now a file >/swap
	rm /paws; mkdir /paws; echo in >/paws/f
	mkdir -p /made/deep; echo x >/made/deep/x; ln /made/deep/x /made/y; ln -s ../nowhere /made/link
	mkfifo /made/fifo
	echo odd >"/made/two
lines"
	truncate -s 5M /made/hole; echo end >>/made/hole
	touch -d "2001-02-03 04:05:06" /made/deep/x
	chmod 6751 /made/y'

# In place of the parent, with an upper layer of its own.
another() { # NUMBER OVERLAY-OPTION SCRIPT
	inside umount bundle/rootfs
	rt delete --force "$ID"
	ID=$ID-$1
	inside rm -r layers/parent
	overlay parent "$BUNDLE" "$2"
	sh_cfg "$3"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
}

@test "changes: with --with-changes a child's root is what its parent's was, and the parent goes on" {
	image
	start "$CHANGES
		exec 3>>/made/log; echo line >&3"
	python3 -c 'import os, sys; os.setxattr(sys.argv[1] + "/made/log", "user.x", b"value"); os.setxattr(sys.argv[1] + "/opt/a", "user.d", b"dir")' "$(root)" || skip "no user attributes"
	listing "$ID" >parent.list
	seed --with-changes
	at=$(N "$ID")
	goes_on "$at"
	new_child
	grow "$ID-c"
	goes_on "$at" "$ID-c"
	listing "$ID-c" >child.list
	diff parent.list child.list
	assert_eq "$(python3 -c 'import os, sys; print(os.getxattr(sys.argv[1] + "/made/log", "user.x"), os.getxattr(sys.argv[1] + "/opt/a", "user.d"))' "$(root "$ID-c")")" "b'value' b'dir'"
	# They are its own, in its own layer.
	[ ! -e "$(root "$ID-c")/gone" ]
	[ -c "$(upper child gone)" ]
	[ ! -e "$(root "$ID-c")/old/sub" ]
	assert_eq "$(stat -c %h "$(root "$ID-c")/made/y")" 2
	echo more >>"$(root "$ID-c")/made/log"
	assert_eq "$(cat "$(root)/made/log")" line
	# And again from there: a seed of a child has what the child has.
	rt_bg checkpoint --engine fork --image-path "$IMG" --with-changes "$ID-c"
	listing "$ID-c" >child.list
	new_child grandchild
	grow "$ID-g"
	listing "$ID-g" >grandchild.list
	diff child.list grandchild.list
}

# attributes COMMAND PATH...: what they have, and what gives them some or takes them away.
attributes() {
	python3 -c 'import os, struct, sys
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in ((1, 7, 0xffffffff), (2, 7, 1000), (4, 5, 0xffffffff), (16, 7, 0xffffffff), (32, 5, 0xffffffff)))
for p in sys.argv[2:]:
    if sys.argv[1] == "give":
        os.setxattr(p, "user.x", b"value")
        os.setxattr(p, "system.posix_acl_access", acl)
        os.setxattr(p, "system.posix_acl_default", acl)
    for a in sorted(os.listxattr(p)):
        if sys.argv[1] == "take":
            os.removexattr(p, a)
        elif sys.argv[1] == "show":
            print(os.path.basename(p), a)' "$@"
}

# They may have let others in.
@test "changes: attributes and access lists that the container took away do not come back with the image" {
	image
	attributes give lower/opt/a || skip "no attributes"
	overlay parent "$BUNDLE"
	sh_cfg 'exec >/dev/null; echo x >/opt/a/new; echo y >/opt/a/f; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
	assert_eq "$(attributes show "$(root)/opt/a" "$(root)/opt/a/new")" $'a system.posix_acl_access\na system.posix_acl_default\na user.x\nnew system.posix_acl_access'
	attributes take "$(root)/opt/a" "$(root)/opt/a/new" "$(root)/opt/a/f" || skip "no attributes in an overlay mount"
	seed --with-changes
	new_child
	grow "$ID-c"
	goes_on 3 "$ID-c"
	assert_eq "$(attributes show "$(root "$ID-c")/opt/a" "$(root "$ID-c")/opt/a/new" "$(root "$ID-c")/opt/a/f")" ""
	assert_eq "$(stat -c %a "$(root "$ID-c")/opt/a/new")" "$(stat -c %a "$(root)/opt/a/new")"
}

@test "changes: a child may have a root without layers, too: what it had there itself goes" {
	image
	start "$CHANGES"
	listing "$ID" >parent.list
	seed --with-changes --stop
	mkdir -p child
	cp -a lower child/rootfs
	its_own child
	grow "$ID-c"
	counts "$ID-c"
	listing "$ID-c" >child.list
	diff parent.list child.list
}

@test "changes: a program and a file that the container had changed: named without --with-changes, and carried with it" {
	image
	start ': >/etc/added; mkdir /own; cp /bin/busybox /own/sh
		exec 4>>/etc/file 5</etc/added
		exec /own/sh -c "i=0; while sleep 0.02; do i=\$((i + 1)); echo \$i >/n; done"'
	seed
	new_child
	no_child "$ID-c" "/own/sh" "its container had changed /own/sh" "checkpoint --with-changes"
	# Nor is a file opened that is not there.
	inside sh -c 'mkdir child/rootfs/own && cp -a lower/bin/busybox child/rootfs/own/sh'
	no_child "$ID-c" "open /etc/added, which the seed had open" "its container had changed /own/sh" /etc/added
	# Of a layer that is carried nothing has to be said.
	seed --with-changes
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq -c '.changed // []')" '[]'
	new_child other
	at=$(N "$ID")
	grow "$ID-c"
	goes_on "$at" "$ID-c"
	cmp "$(root "$ID-c")/own/sh" lower/bin/busybox
}

@test "changes: nothing of them is in a seed without --with-changes" {
	image
	start "$CHANGES"
	seed
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq '[.tmpfs[]? | select(.path == "/")] | length')" 0
	new_child
	grow "$ID-c"
	counts "$ID-c"
	assert_eq "$(cat "$(root "$ID-c")/etc/file" "$(root "$ID-c")/etc/removed")" $'old\ngone'
}

@test "changes: more than --changes-bytes or --changes-files is refused by name, and nothing is touched" {
	start 'mkdir /d; dd if=/dev/zero of=/d/big bs=1k count=600 2>/dev/null; for i in $(seq 50); do : >/d/$i; done'
	no_seed --with-changes --changes-bytes 500k -- "more than 512000 bytes among what it changed in its root"
	run rt checkpoint --engine fork --image-path "$IMG" --with-changes --changes-files 50 "$ID"
	assert_eq "$status" 1
	assert_has "$output" "more than 50 files among what it changed in its root"
	no_seed --changes-files 50 -- "go with --with-changes"
	no_seed --changes-bytes 50 -- "go with --with-changes"
	run rt checkpoint --engine criu --with-changes --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "--with-changes goes with --engine=fork"
	assert_eq "$(ls -A "$IMG")" ""
	counts
	seed --with-changes --changes-bytes 700k --changes-files 60
	seed --with-changes --changes-bytes -1 --changes-files -1
}

@test "changes: extended attributes count, and take no more memory than they have" {
	start 'mkdir /d; for i in $(seq 100); do : >/d/$i; done'
	python3 -c 'import os, sys
for i in range(1, 101):
    for k in range(400): os.setxattr("%s/d/%d" % (sys.argv[1], i), "user.%d" % k, b"v" * 60)' "$(root)" || skip "no user attributes"
	no_seed --with-changes --changes-bytes 500k -- "more than 512000 bytes among"
	prlimit --as=300000000 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" --with-changes --changes-bytes 5M "$ID"
	counts
}

@test "changes: what can't be carried is refused by name: devices, rights of programs, renamed directories" {
	image
	with_caps CAP_MKNOD CAP_SETFCAP
	start 'mknod /node c 1 3; cp /bin/busybox /able'
	setcap cap_net_raw+ep "$(root)/able" || skip "no setcap"
	no_seed --with-changes -- "a device in its root (node)" "a program with capabilities in its root (able)" "cannot carry 2 of"
	rt exec "$ID" /bin/rm /node /able
	seed --with-changes
	another 2 redirect_dir=on 'mv /old /new; while sleep 0.02; do echo 9 >/n; done'
	no_seed --with-changes -- "a directory that was renamed" "(new)"
	# What has its contents in a lower layer still, as only its mode was changed, has them.
	another 3 metacopy=on 'exec >/dev/null; chmod 600 /etc/file; i=3; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	[ "$(stat -c %b "$(upper parent etc/file)")" = 0 ] || skip "no metacopy"
	seed --with-changes
	new_child
	grow "$ID-c"
	counts "$ID-c"
	assert_eq "$(stat -c %a "$(root "$ID-c")/etc/file") $(cat "$(root "$ID-c")/etc/file")" "600 old"
}

@test "changes: a root without an upper layer that is known is refused, and nothing is touched" {
	inside mount --bind lower bundle/rootfs
	sh_cfg 'exec >/dev/null; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
	no_seed --with-changes -- "the container's root is no overlay mount"
	assert_eq "$(ls -A "$IMG")" ""
	counts
	seed
}

@test "changes: a root that is read-only, or that somebody else has, is refused before anything is made" {
	image
	start "$CHANGES"
	seed --with-changes
	listing "$ID" >before
	# The parent's own.
	CHILD=$BUNDLE
	no_child "$ID-c" "the seed changes files of its root, which container $ID has, too" root.path
	listing "$ID" | diff before -
	# A directory below an overlay, by another mount of it.
	new_child
	inside umount child/rootfs
	inside mount --bind bundle/rootfs child/rootfs
	no_child "$ID-c" "which container $ID has, too"
	inside umount child/rootfs
	inside rm -r layers/child
	new_child
	# Of whom nothing is known, it may be the root.
	mkdir -m 700 "$ROOT/$ID-odd"
	cp "$ROOT/$ID/record" "$ROOT/$ID-odd"
	no_child "$ID-c" "which container $ID-odd may have, too"
	rm -r "${ROOT:?}/$ID-odd"
	cfg -b "$CHILD" '.root.readonly = true'
	no_child "$ID-c" "this one is read-only" root.readonly
	cfg -b "$CHILD" '.root.readonly = false'
	run try "$ID-c" -n 2
	assert_eq "$status" 1
	assert_has "$(cat grow.out)" "which several containers would share"
	# The host's.
	cfg -b "$CHILD" '.root.path = "/"'
	no_child "$ID-c" "which is the host's here"
	cfg -b "$CHILD" '.root.path = "rootfs"'
	inside mount -o remount,ro,bind child/rootfs
	no_child "$ID-c" "the seed changes files"
	inside mount -o remount,rw,bind child/rootfs
	assert_eq "$(inside find layers/child/up -mindepth 1)" ""
	grow "$ID-c"
	counts "$ID-c"
	# Once the parent is gone it may have its root.
	rt delete --force "$ID"
	CHILD=$BUNDLE
	grow "$ID"
	counts "$ID"
}

@test "changes: of two that are made at once in one root, one is there at the most" {
	image
	start "$CHANGES"
	seed --with-changes
	new_child
	mkdir again
	jq --arg r "$CHILD/rootfs" --arg p "/$ID-again" '.root.path = $r | .linux.cgroupsPath = $p' "$CHILD/config.json" >again/config.json
	for i in $(seq 5); do
		rt restore --engine fork --detach --image-path "$IMG" --bundle "$CHILD" "$ID-a$i" </dev/null >a.out 2>&1 &
		a=$!
		rt restore --engine fork --detach --image-path "$IMG" --bundle again "$ID-b$i" </dev/null >b.out 2>&1 &
		b=$!
		there=0
		wait "$a" && there=$((there + 1))
		wait "$b" && there=$((there + 1))
		[ "$there" -lt 2 ] || fail "both are there"
		assert_has "$(cat a.out b.out)" "which container $ID-"
		rt delete --force "$ID-a$i" || true
		rt delete --force "$ID-b$i" || true
	done
}

@test "changes: a read-only parent has changed nothing: what its manager has put there does not go along" {
	cfg '.root.readonly = true'
	overlay parent "$BUNDLE"
	inside sh -c 'echo manager >bundle/rootfs/managers'
	mkdir -p host
	cfg --arg o "$PWD/host" '.mounts += [{destination: "/out", source: $o, options: ["bind", "rw"]}]'
	sh_cfg 'while sleep 0.02; do echo 1 >/out/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s host/n
	seed --with-changes
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq '[.tmpfs[]? | select(.path == "/")] | length')" 0
}

@test "changes: what the bundle mounts stays what it is, wherever the seed has something else there" {
	image
	mkdir -p vol lower/vol lower/out
	echo host >vol/f
	start 'mkdir -p /vol/in; echo mine >/vol/f; rm -r /out; echo file >/out; rm /etc/removed'
	seed --with-changes
	new_child
	cfg -b "$CHILD" --arg v "$PWD/vol" '.mounts += [{destination: "/vol", source: $v, options: ["bind", "rw"]},
		{destination: "/etc/removed", source: ($v + "/f"), options: ["bind", "rw"]}]'
	grow "$ID-c"
	counts "$ID-c"
	assert_eq "$(cat vol/f) $(ls vol)" "host f"
	assert_eq "$(cat "$(root "$ID-c")/etc/removed" "$(root "$ID-c")/out")" $'host\nfile'
}

@test "changes: links of a child's image lead a seed's files nowhere, and are not followed" {
	image
	mkdir target
	echo safe >target/f
	start 'mkdir -p /d/e; echo x >/d/f; echo y >/d/e/f; rm -r /gone /opt/a; mkdir /opt/a'
	seed --with-changes
	for to in "$PWD/target" /proc/1/root/target ../../../../../../../../../../../../../../../../../../../../"$PWD/target" /; do
		cp -a lower image
		ln -sfn "$to" image/d
		rm -rf image/gone image/opt
		ln -sfn "$to" image/gone
		ln -sfn "$to" image/opt
		IMAGE=$PWD/image new_child
		grow "$ID-c"
		counts "$ID-c"
		assert_eq "$(cat target/f) $(ls target)" "safe f"
		[ -d "$(root "$ID-c")/d" ]
		[ ! -L "$(root "$ID-c")/d" ]
		assert_eq "$(cat "$(root "$ID-c")/d/f" "$(root "$ID-c")/d/e/f")" $'x\ny'
		[ ! -L "$(root "$ID-c")/gone" ]
		[ ! -L "$(root "$ID-c")/opt" ]
		rt delete --force "$ID-c"
		inside umount child/rootfs
		inside rm -r layers/child
		rm -rf image
	done
}

# An ordinary user, who can become nobody else.
@test "changes: a seed changes nothing that the container's own process could not change" {
	image
	mkdir -p lower/home
	chown 1000:1000 lower/home
	: >lower/n
	chmod 666 lower/n
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = true'
	start 'echo mine >/home/f; mkdir /home/d; chmod 2755 /home/d; echo x >/home/d/x; ln /home/d/x /home/y'
	seed --with-changes
	cp -a "$IMG" plain
	new_child
	grow "$ID-c"
	counts "$ID-c"
	assert_eq "$(cat "$(root "$ID-c")/home/f") $(stat -c '%u %h' "$(root "$ID-c")/home/y")" "mine 1000 2"
	rt delete --force "$ID-c"
	node() { "$SEEDTOOL" dump "$IMG" | jq -e --arg n "$1" '[.nodes[].name] | index($n)'; }
	# forged NODE MEMBER VALUE WORD...
	forged() {
		rm -rf "$IMG"
		cp -a plain "$IMG"
		"$SEEDTOOL" forge "$IMG" nodes "$1" "$2" "$3"
		no_child "$ID-c" "${@:4}"
	}
	f=$(node f) d=$(node d) home=$(node home)
	forged "$f" uid 0 "in the root again: operation not permitted" "could not do that itself"
	forged "$f" gid 0 "in the root again: operation not permitted"
	forged "$home" uid 0 "in the root again: operation not permitted"
	forged "$d" gid 7 "in the root again: operation not permitted"
}

@test "changes: by lean-forkd they come with the seed" {
	image
	needs_forkd "$SEEDTOOL_RUNTIME"
	env -u LR_TEST_TAG unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$forkd" --control "$PWD/control" serve --listen 127.0.0.1:7411 </dev/null >forkd.out 2>&1 3>&- &
	DAEMON=$!
	remember "$DAEMON"
	wait_until "$forkd" --control "$PWD/control" list
	start "$CHANGES"
	listing "$ID" >parent.list
	for how in "" --background; do
		rt_bg checkpoint --remote --forkd "$PWD/control" --with-changes $how "$ID"
		cp "$OUT" ticket
		chmod 600 ticket
		new_child "child$how"
		rt_bg restore --remote "file:$PWD/ticket" --forkd "$PWD/control" --detach --bundle "$CHILD" "$ID-c"
		counts "$ID-c"
		listing "$ID-c" >child.list
		diff parent.list child.list
		rt delete --force "$ID-c"
	done
}

@test "changes: owners are those inside a user namespace, and stand for others outside of the child's" {
	image
	mkdir -p lower/home
	chown -R 100000:100000 lower
	user() { # BUNDLE HOST-ID
		cfg -b "$1" --argjson id "$2" '.linux.uidMappings = [{containerID: 0, hostID: $id, size: 65536}] | .linux.gidMappings = [{containerID: 0, hostID: $id, size: 65536}]'
	}
	cfg '.linux.namespaces += [{type: "user"}]'
	user "$BUNDLE" 100000
	with_caps CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE
	overlay parent "$BUNDLE"
	inside chown 100000:100000 bundle/rootfs
	sh_cfg 'exec >/dev/null; echo mine >/home/f; chown 7:8 /home/f; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
	seed --with-changes
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq -c '.nodes[] | select(.name == "f") | [.uid, .gid]')" '[7,8]'
	cp -a lower image
	chown -R 300000:300000 image
	IMAGE=$PWD/image new_child
	inside chown 300000:300000 child/rootfs
	user "$CHILD" 300000
	grow "$ID-c"
	counts "$ID-c"
	assert_eq "$(stat -c '%u:%g' "$(root "$ID-c")/home/f")" 300007:300008
}

# Its manager's, perhaps, or what lay there before: the container could not read it.
@test "changes: what lies in the upper layer below a mount of the container's is in no seed" {
	image
	mkdir -p lower/vol/below vol
	echo shown >vol/f
	cfg --arg v "$PWD/vol" '.mounts += [{destination: "/vol", source: $v, options: ["bind", "rw"]},
		{destination: "/etc/file", source: ($v + "/f"), options: ["bind", "ro"]}]'
	overlay parent "$BUNDLE"
	inside sh -c 'echo secret >bundle/rootfs/vol/hidden; echo secret >bundle/rootfs/etc/file; rm -r bundle/rootfs/vol/below; echo mine >bundle/rootfs/etc/other'
	sh_cfg 'exec >/dev/null; i=0; while sleep 0.02; do i=$((i + 1)); echo $i >/n; done'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_on 3
	seed --with-changes
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq -c '[.nodes[] | .name | select(. == ("vol", "hidden", "below", "file", "other"))]')" '["other"]'
	[ "$(grep -c secret "$IMG/pages" || true)" = 0 ] || fail "it is among the pages"
	[ "$(grep -c mine "$IMG/pages" || true)" != 0 ]
}

@test "changes: a mark of the upper layer that can't be read is an error: what it hides would be there again" {
	command -v strace >/dev/null || skip "no strace"
	image
	start 'rm -r /old; mkdir /old; echo only >/old/only'
	for n in $(seq 8); do
		rm -rf "$IMG"
		inside strace -o trace -e trace=getxattr -e "inject=getxattr:error=EIO:when=$n" "$SEEDTOOL_RUNTIME" --root "$ROOT" \
			checkpoint --engine fork --image-path "$IMG" --with-changes "$ID" </dev/null >said 2>&1 3>&- && continue
		assert_has "$(cat said)" "list its root: input/output error"
		failed=$((${failed:-0} + 1))
	done
	# Each directory, when it is looked at and when all is held.
	[ "${failed:-0}" -ge 4 ] || fail "only ${failed:-0}"
	# Whatever came of the others, a seed has the mark.
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq -c '[.nodes[] | select(.name == "old") | .flags]')" '["0x1"]'
}

@test "changes: a Unix socket that listens in a directory of the container's own, and a deleted file" {
	rm -rf lower
	"$LR_LIB/mkpython" "$PWD/lower" || skip "no python3 to copy"
	overlay parent "$BUNDLE"
	cfg --arg p 'import os, socket
os.makedirs("/run/app")
os.chmod("/run/app", 0o711)
f = os.open("/run/app/gone", os.O_RDWR | os.O_CREAT)
os.write(f, b"kept")
os.unlink("/run/app/gone")
s = socket.socket(socket.AF_UNIX)
s.bind("/run/app/s")
os.chmod("/run/app/s", 0o606)
s.listen()
open("/n", "w").write("1")
while True:
    a, _ = s.accept()
    a.send(os.pread(f, 9, 0))
    a.close()' '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until eval '[ "$(N)" = 1 ]'
	hears() { # ID
		timeout 20 python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(100).decode())' "$(root "$1")/run/app/s"
	}
	seed --with-changes
	new_child
	grow "$ID-b"
	assert_eq "$(hears "$ID-b")" kept
	assert_eq "$(stat -c '%a %F' "$(root "$ID-b")/run/app" "$(root "$ID-b")/run/app/s")" "711 directory
606 socket"
	assert_eq "$(hears "$ID")" kept
	# It runs on, and its changes are another layer's: nothing there to listen in.
	IMG=$PWD/without
	seed
	new_child second
	no_child "$ID-c" "open the directory of the socket /run/app" "--with-changes"
}
