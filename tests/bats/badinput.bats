#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Wrong input of every kind: one clear line, an exit code, nothing left behind.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

refused() { # what to run is `run -b BUNDLE ID`
	run timeout 60 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null
	[ "$status" -ne 124 ] || fail "took more than 60 s"
	assert_one_error
	run ! rt state "$ID"
	assert_nothing_left
}

bad() { # JQ-FILTER [WORD THAT OUR ERROR NAMES]
	cp "$BUNDLE/config.json" good.json
	cfg "$1"
	run timeout 20 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null
	mv good.json "$BUNDLE/config.json"
	[ "$status" -ne 0 ] || fail "accepted: $1"
	[ "$status" -ne 124 ] && [ "$status" -lt 128 ] || fail "exit code $status for $1: $output"
	is_lean || return 0
	[ "$(grep -c . <<<"$output")" = 1 ] || fail "for $1, more than one line: $output"
	[ -z "${2-}" ] || assert_has "$output" "$2"
}

@test "config.json: missing" {
	rm "$BUNDLE/config.json"
	refused
}

@test "config.json: empty, a directory, not JSON, truncated" {
	: >"$BUNDLE/config.json"
	refused
	echo 'not json' >"$BUNDLE/config.json"
	refused
	rm "$BUNDLE/config.json"
	mkdir "$BUNDLE/config.json"
	refused
	rmdir "$BUNDLE/config.json"
}

@test "config.json: cut off at every tenth" {
	cp "$BUNDLE/config.json" whole
	local size i
	size=$(stat -c %s whole)
	for i in 1 2 3 4 5 6 7 8 9; do
		head -c $((size * i / 10)) whole >"$BUNDLE/config.json"
		run rt run -b "$BUNDLE" "$ID" </dev/null
		assert_one_error
	done
	head -c $((size - 3)) whole >"$BUNDLE/config.json"
	refused
}

@test "config.json: 15 MiB are taken, 17 are refused with the bound" {
	lean_only "the bound is ours"
	local n
	for n in 15 17; do
		head -c ${n}M /dev/zero | tr '\0' x >text
		jq --rawfile text text '.annotations.x = $text' "$BUNDLE/config.json" >big.json
		mkdir "b$n"
		mv "$BUNDLE/rootfs" "b$n/rootfs"
		mv big.json "b$n/config.json"
		run rt run -b "b$n" "$ID"
		[ "$n" = 17 ] || assert_eq "$status $output" "0 hello"
		mv "b$n/rootfs" "$BUNDLE/rootfs"
	done
	assert_one_error
	assert_has "$output" "is larger than 16 MiB"
}

@test "config.json: 60000 rules of seccomp are refused with the bound" {
	lean_only "the bound is ours"
	jq '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", architectures: ["SCMP_ARCH_X86_64"], syscalls:
		[range(60000) | {names: ["read"], action: "SCMP_ACT_ERRNO", args: [{index: 0, value: ., op: "SCMP_CMP_EQ"}]}]}' \
		"$BUNDLE/config.json" >many.json
	mv many.json "$BUNDLE/config.json"
	run timeout 60 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	assert_has "$output" "60000 different conditions"
	assert_has "$output" "at most 4096 instructions"
	assert_has "$output" "linux.seccomp.syscalls"
}

@test "config.json: trailing rubbish" {
	lean_only "does not look"
	echo '}' >>"$BUNDLE/config.json"
	refused
}

@test "config.json: huge (17 MB)" {
	python3 - "$BUNDLE/config.json" <<-'END'
		import json, sys
		c = json.load(open(sys.argv[1]))
		c["annotations"] = {"big": "x" * (17 << 20)}
		json.dump(c, open(sys.argv[1], "w"))
	END
	lean_only "reads it"
	refused
}

@test "config.json: deeply nested" {
	python3 - "$BUNDLE/config.json" <<-'END'
		import sys
		n = 100000
		open(sys.argv[1], "w").write('{"ociVersion": "1.0.2", "x": ' + "[" * n + "]" * n + "}")
	END
	refused
	python3 - "$BUNDLE/config.json" <<-'END'
		import sys
		open(sys.argv[1], "w").write('{"a":' * 100000)
	END
	refused
}

@test "config.json: binary rubbish" {
	head -c 100000 /dev/urandom >"$BUNDLE/config.json"
	refused
}

@test "config.json: a NUL in a string, a key twice" {
	lean_only "takes it"
	python3 - "$BUNDLE/config.json" <<-'END'
		import sys
		s = open(sys.argv[1]).read()
		open(sys.argv[1], "w").write(s.replace('"hello"', '"he\\u0000llo"'))
	END
	refused
	make_bundle b2
	BUNDLE=$BATS_TEST_TMPDIR/b2
	sed -i '0,/"ociVersion"/s//"ociVersion": "1.0.2", "ociVersion"/' "$BUNDLE/config.json"
	refused
}

@test "config.json: a fifo or endless device does not hang" {
	lean_only "waits"
	rm "$BUNDLE/config.json"
	mkfifo "$BUNDLE/config.json"
	run timeout 30 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null
	[ "$status" -ne 124 ]
	assert_one_error
	rm "$BUNDLE/config.json"
	ln -s /dev/zero "$BUNDLE/config.json"
	run timeout 20 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID" </dev/null
	[ "$status" -ne 124 ]
	assert_one_error
	rm "$BUNDLE/config.json"
}

@test "config.json: wrong types, the place is named" {
	bad '.process = "x"' process
	bad '.process.args = "x"' args
	bad '.process.args = [1]' args
	bad '.process.env = {}' env
	bad '.process.user = []' user
	bad '.process.user.uid = -1' uid
	bad '.process.user.uid = 4294967296' uid
	bad '.process.user.uid = "0"' uid
	bad '.process.terminal = "no"' terminal
	bad '.root = []' root
	bad '.root.path = 3' path
	bad '.mounts = {}' mounts
	bad '.mounts[1].options = "x"' options
	bad '.mounts[1].destination = {}' destination
	bad '.linux = 1' linux
	bad '.linux.namespaces = "x"' namespaces
	bad '.linux.namespaces[0] = "x"' namespaces
	bad '.linux.resources.memory = []' memory
	bad '.linux.resources.memory.limit = "1G"' limit
	bad '.linux.resources.memory.limit = 1e30' limit
	bad '.linux.devices = [1]' devices
	bad '.linux.seccomp = "x"' seccomp
	bad '.hooks = []' hooks
	bad '.hooks.poststart = {}' poststart
	bad '.annotations = []' annotations
	bad '.annotations = {"a": 1}' annotations
	bad '.process.rlimits = [{"type": 3}]' rlimits
	bad '.linux.sysctl = {"a": 3}' sysctl
	bad '. = []'
	bad '. = 3'
}

@test "config.json: what is required" {
	bad '.process.args = []' args
	bad 'del(.root)' root
	bad 'del(.process)' process
	bad '.process.cwd = "relative"'
	bad '.root.path = "/no/such/rootfs"' /no/such/rootfs
	bad '.root.path = "config.json"'
	bad '.linux.rootfsPropagation = "nonsense"' nonsense
	is_lean || return 0
	bad 'del(.ociVersion)' ociVersion
	bad '.ociVersion = "2.0.0"' 2.0.0
	bad '.ociVersion = "nonsense"' nonsense
	bad '.root.path = ""' root.path
	bad '.process.env = ["NOEQUALS"] | .process.cwd = ""' cwd
	bad '.mounts += [{"type": "tmpfs"}]' destination
	bad '.hooks.poststart = [{}]' path
	bad '.linux.namespaces = [{"path": "/proc/self/ns/net"}]' type
	bad '.linux.uidMappings = [{"containerID": 0, "hostID": 0, "size": 1}]' user
	bad '.linux.namespaces += [{"type": "user"}]' apping
}

@test "config.json: properties of other platforms and unknown ones are ignored" {
	cfg '.x = {"y": [1, 2, {"z": null}]} | .process.x = 1 | .windows = {} | .solaris = {} | .linux.x = "y" | .mounts[0].x = 3'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" hello
}

@test "rootfs: missing, a file, empty" {
	mv "$BUNDLE/rootfs" gone
	refused
	: >"$BUNDLE/rootfs"
	refused
	rm "$BUNDLE/rootfs"
	mkdir "$BUNDLE/rootfs"
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "executable file not found"
	rmdir "$BUNDLE/rootfs" 2>/dev/null || rm -rf "$BUNDLE/rootfs"
	mv gone "$BUNDLE/rootfs"
}

@test "bundle: missing, a file, unreadable path" {
	run rt run -b /no/such/bundle "$ID"
	assert_one_error
	! is_lean || assert_has "$output" /no/such/bundle
	: >plain
	run rt run -b plain "$ID"
	assert_one_error
	run rt create -b "" "$ID"
	[ "$status" -ne 0 ] || rt delete --force "$ID"
}

@test "root directory: a file, below a file, read-only" {
	: >plain
	run "$LEAN_RUNTIME" --root "$BATS_TEST_TMPDIR/plain" run -b "$BUNDLE" "$ID"
	assert_one_error
	run "$LEAN_RUNTIME" --root "$BATS_TEST_TMPDIR/plain/below" run -b "$BUNDLE" "$ID"
	assert_one_error
	mkdir ro
	run unshare -m sh -c 'mount -t tmpfs -o ro none "$1/ro" && exec "$0" --root "$1/ro/x" run -b "$2" "$3"' "$LEAN_RUNTIME" "$BATS_TEST_TMPDIR" "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" "read-only file system"
	assert_nothing_left
}

@test "root directory: full" {
	mkdir full
	run unshare -m sh -c 'mount -t tmpfs -o size=4k,nr_inodes=2 none "$1/full" && exec "$0" --root "$1/full/x" run -b "$2" "$3"' "$LEAN_RUNTIME" "$BATS_TEST_TMPDIR" "$BUNDLE" "$ID"
	assert_one_error
	! is_lean || assert_match "$output" "no space left|No space left"
	assert_nothing_left
}

@test "pid file: in a directory that does not exist, container is not left" {
	run rt run -d --pid-file /no/such/dir/pid -b "$BUNDLE" "$ID"
	assert_one_error
	run ! rt state "$ID"
	assert_nothing_left
}

@test "a record that is broken: state fails, delete --force clears it" {
	rt_sleeper
	local pid f
	pid=$(pid_of)
	remember "$pid"
	for f in "$ROOT/$ID"/*; do
		[ ! -f "$f" ] || : >"$f"
	done
	run rt state "$ID"
	[ "$status" -ne 0 ]
	run rt delete --force "$ID"
	is_lean || { kill -KILL "$pid"; rm -rf "${ROOT:?}/$ID"; remove_empty_cgroups; return 0; }
	[ ! -e "$ROOT/$ID" ]
	# It could not know the process any more: that is ours to end.
	signal_remembered KILL "$pid"
	wait_until eval "! kill -0 $pid"
	remove_empty_cgroups
}

@test "a very long argument list and environment" {
	cfg '.process.args = ["true"] + [range(2000) | "argument number \(.)"] | .process.env += [range(1000) | "V\(.)=x"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	cfg '.process.args = ["true", ("x" * 200000)]'
	run rt run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_match "$output" "rgument list too long"
}

@test "a very long id" {
	local long
	long=$TAG$(printf 'x%.0s' $(seq 2000))
	run rt create -b "$BUNDLE" "$long"
	assert_one_error
	assert_nothing_left
}
