#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint with --engine=fork: this machine's Node.js, Java, Go and Python, each with threads, what it has allocated,
# and code that it has made. A program says in /n how often it has seen all of that as it shall be, else why not in /bad.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	rm -rf "$R"
	mkdir -p "$R"/{usr,etc,proc,dev,sys,tmp}
	for dir in bin sbin lib lib64; do
		ln -s "usr/$dir" "$R/$dir"
	done
	cfg '.mounts += [("/usr", "/etc") | {destination: ., source: ., options: ["rbind", "ro"]}]'
	cp -r "$BATS_TEST_DIRNAME/programs" "$R/programs"
}
teardown() {
	common_teardown
}

# becomes_a_seed PROGRAM ARGUMENT...: and goes on, here and in a child.
becomes_a_seed() {
	local child
	cfg --arg a "$*" '.process.args = ($a | split(" "))'
	start
	wait_until eval '[ "$(count)" -gt 20 ]'
	seed "$ID"
	moves
	rt delete --force "$ID"
	new_id child
	cfg --arg id "$child" '.linux.cgroupsPath = "/" + $id'
	reached=$(count)
	echo 1 >"$N"
	grow "$child"
	came_back
	wait_until eval '[ "$(count)" -gt '$((reached + 20))' ]'
	[ ! -e "$R/bad" ] || fail "$(cat "$R/bad")"
	rt delete --force "$child"
}

# V8 withholds its memory from forks (MADV_DONTFORK).
@test "programs: Node.js, with a worker" {
	command -v node >/dev/null || skip "Node.js is not installed"
	becomes_a_seed "$(command -v node)" /programs/node.js
}

@test "programs: Java, with threads and compiled methods" {
	command -v javac >/dev/null || skip "there is no JDK"
	javac -d "$R/programs" "$R/programs/Counts.java"
	becomes_a_seed "$(command -v java)" -Xmx256m -XX:-UsePerfData -cp /programs Counts
}

@test "programs: Go, with goroutines" {
	command -v go >/dev/null || skip "Go is not installed"
	(cd "$R/programs" && GOTOOLCHAIN=local GO111MODULE=off CGO_ENABLED=0 go build -o counts counts.go)
	becomes_a_seed /programs/counts
}

@test "programs: Python, with threads and processes of its own" {
	becomes_a_seed /usr/bin/python3 /programs/counts.py
}

@test "programs: C, with a protection key, beside memory that can only be executed" {
	grep -qw ospke /proc/cpuinfo || skip "the processor has no protection keys"
	cc -static -o "$R/programs/keys" "$R/programs/keys.c"
	becomes_a_seed /programs/keys
}
