#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers whose programs watch files by inotify(7): their children watch the same, by the same numbers.

load ../lib/helpers.bash
load seeds.bash

# Masks: IN_MODIFY 2, IN_ATTRIB 4, IN_CREATE 100, IN_DELETE 200, IN_ALL_EVENTS fff, IN_EXCL_UNLINK 4000000,
# IN_ONESHOT 80000000.
setup() {
	seeds_setup
	needs_seedtool
	cp --remove-destination "$(dirname "$SEEDTOOL")/fork-watch" "$R/bin/watcher" # no name of an applet: that is a link to the host's
	mkdir "$R/d"
	echo 1 >"$R/d/file"
	chmod 755 "$BATS_TEST_TMPDIR"
}
teardown() {
	common_teardown
}

start() { # WHAT...
	cfg --arg a "$*" '.process.args = ["/bin/watcher"] + ($a | split(" "))'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	moves
}

# A child in files of its own, and nothing in /out.
child() { # NAME [OPTION...]
	local parent=$BUNDLE
	BUNDLE=$PWD/$1
	[ -e "$BUNDLE" ] || cp -a "$parent" "$BUNDLE"
	R=$BUNDLE/rootfs N=$R/n
	: >"$R/out"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	grow "$CHILD" "${@:2}"
	moves
}

no_seed() { # WORDS...
	local code=0 words
	rt_bg checkpoint --engine fork --image-path "$IMG" "$ID" >refused.out 2>&1 || code=$?
	[ "$code" -ne 0 ] || fail "there is a seed"
	for words; do
		assert_has "$(cat refused.out)" "$words"
	done
	moves
}

no_child() { # WORDS...
	local code=0 words
	new_id CHILD
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$CHILD" >refused.out 2>&1 || code=$?
	[ "$code" -ne 0 ] || fail "there is a child"
	for words; do
		assert_has "$(cat refused.out)" "$words"
	done
}

# Which inotify and number, and its mask, of all that the container's first process has.
watched() { # ID
	local fd pid
	pid=$(pid_of "$1")
	for fd in "/proc/$pid/fd"/*; do
		[ "$(readlink "$fd")" != anon_inode:inotify ] ||
			sed -n "s/^inotify wd:\([0-9a-f]*\) .* mask:\([0-9a-f]*\) .*/${fd##*/}:\1 \2/p" "/proc/$pid/fdinfo/${fd##*/}" | sort
	done
}

told() { # LINE
	wait_until grep -qxF "$1" "$R/out" || fail "it was told: $(cat "$R/out")"
}

@test "watches: a descriptor that is another file by the time it is held is that one in a child" {
	command -v strace >/dev/null || skip "strace is not installed"
	touch "$R/a" "$R/b"
	cfg --arg s 'exec >/dev/null; /bin/watcher /d=fff & exec 5</a; while [ ! -e /go ]; do :; done; exec 5</b; : >/done; exec sleep 1000' \
		'.process.args = ["/bin/sh", "-c", $s]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	moves
	late_begin # no process comes or goes meanwhile: it would be tried again
	touch "$R/go"
	wait_until test -e "$R/done"
	late_end
	assert_eq "$what" 0
	rt delete --force "$ID"
	grow "$ID"
	moves
	assert_eq "$(readlink "/proc/$(pid_of)/fd/5")" /b
}

@test "watches: a child is told what happens to its files, by the numbers that its parent knew" {
	ln -s /nowhere "$R/d/link"
	start /d=4000300@1 /d/file=2@17 /d/link=2000004 again /bin=80000100@300
	watched "$ID" >before
	assert_eq "$(wc -l <before)" 4
	seed "$ID"
	touch "$R/d/parents"
	told "0:1 100 parents"
	child one
	watched "$CHILD" >after
	diff before after
	# Nothing of how it was made, and nothing of the parent's.
	sleep 0.3
	assert_eq "$(cat "$R/out")" ""
	touch "$R/d/new"
	told "0:1 100 new"
	echo 2 >>"$R/d/file"
	told "0:17 2 -"
	touch -h "$R/d/link"
	told "0:18 4 -"
	# One event, and then it is over, as its number says.
	touch "$R/bin/first"
	told "1:300 100 first"
	told "1:300 8000 -"
	touch "$R/bin/second" "$R/d/last"
	told "0:1 100 last"
	assert_hasnt "$(cat "$R/out")" second
	# Once more, and its child's child.
	child two
	watched "$CHILD" >after
	diff before after
	IMG=$PWD/again
	seed "$CHILD"
	child three
	watched "$CHILD" >after
	diff before after
	touch "$R/d/new3"
	told "0:1 100 new3"
}

@test "watches: in a tmpfs that goes along, and in a volume" {
	mkdir -p "$R/t" "$R/v" vol/sub "vol/a b"
	cfg --arg v "$PWD/vol" '.mounts += [{destination: "/t", type: "tmpfs", source: "tmpfs"}, {destination: "/v", source: $v, options: ["bind"]}]'
	start /t=300 /v/sub=100 "/v=100"
	watched "$ID" >before
	seed "$ID"
	child one
	watched "$CHILD" >after
	diff before after
	rt exec "$CHILD" /bin/touch /t/new
	told "0:1 100 new"
	touch vol/sub/new
	told "0:2 100 new"
}

@test "watches: on an overlay mount, whose files have no handles" {
	mkdir -p "$R/o" low/deep/er layers
	echo 1 >low/deep/er/file
	cfg --arg d "$PWD" '.mounts += [{destination: "/o", type: "overlay", source: "overlay",
		options: ["lowerdir=\($d)/low:\($d)/layers"]}]'
	start /o/deep=100 /o/deep/er/file=fff /o=fff
	watched "$ID" >before
	assert_eq "$(wc -l <before)" 3
	seed "$ID"
	child one
	watched "$CHILD" >after
	diff before after
	rt exec "$CHILD" /bin/cat /o/deep/er/file
	told "0:2 20 -"
	assert_eq "$("$SEEDTOOL" dump "$IMG" | jq -r '.watches[].path' | sort)" "$(printf '/o\n/o/deep\n/o/deep/er/file')"
}

@test "watches: in a user namespace, and by a user without rights" {
	cfg '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .process.user = {uid: 7, gid: 7} | .process.capabilities = {}'
	chown -R 100000:100000 "$R"
	chmod 777 "$R" "$R/d"
	start /d=100@5
	watched "$ID" >before
	seed "$ID"
	rt delete --force "$ID"
	child one
	watched "$CHILD" >after
	diff before after
	touch "$R/d/new"
	told "0:5 100 new"
	# What that user may not read is not watched for it.
	rt delete --force "$CHILD"
	chmod 700 "$R/d"
	no_child "watch /d" "may not read it"
}

@test "watches: events that are not read yet are refused, and the container is left alone" {
	start later /d=100
	touch "$R/d/waits"
	no_seed "events that are not read yet"
	: >"$R/read"
	told "0:1 100 waits"
	seed "$ID"
}

@test "watches: what has no name any more is refused by name" {
	echo 1 >"$R/d/open"
	inode=$(stat -c %i "$R/d/open")
	start /d/open=2 open=/d/open later
	no_seed "watches what has no name in the container" "inode $inode of device"
}

@test "watches: who is told who reads a tmpfs would be told of checkpoint" {
	mkdir "$R/t"
	cfg '.mounts += [{destination: "/t", type: "tmpfs", source: "tmpfs"}]'
	start /t=fff
	no_seed "is told who reads a tmpfs" /t
}

@test "watches: numbers are as high as can be come by in a moment" {
	start /d=100@65536
	seed "$ID"
	child one
	assert_eq "$(watched "$CHILD" | sed 's/.*:\(.*\) .*/\1/')" 10000
	rt delete --force "$CHILD"
	rt delete --force "$ID"
	"$SEEDTOOL" forge "$IMG" watches 0 number 65537
	no_child "too high a number"
}

@test "watches: a child watches by its own root, through no link, and never what it watches already" {
	mkdir "$R/e"
	start /d=100 /e=200
	seed "$ID"
	rt delete --force "$ID"
	for link in / /proc/1/root /../../etc; do
		rm -rf "$R/d"
		ln -sfn "$link" "$R/d"
		no_child "watch /d, as the seed did"
	done
	rm "$R/d"
	no_child "watch /d, as the seed did"
	mkdir "$R/d"
	"$SEEDTOOL" forge "$IMG" watches 1 path "$(text_at /d)"
	no_child "the same file here"
}

@test "watches: limits of the host's are told by name" {
	start /d=100
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	for case in inotify_add_watch:ENOSPC:max_user_watches inotify_init1:EMFILE:max_user_instances; do
		IFS=: read -r call error limit <<<"$case"
		timeout 60 strace -f -o trace -e "trace=$call" -e "inject=$call:error=$error" "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork \
			--detach --image-path "$IMG" --bundle "$BUNDLE" "$CHILD" </dev/null >refused.out 2>&1 3>&- && fail "there is a child"
		assert_has "$(cat refused.out)" "fs.inotify.$limit"
	done
}
