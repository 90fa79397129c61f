#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --log, --log-format, --debug: what managers read errors from.

load ../lib/helpers.bash

setup() {
	common_setup
	LOGF=$BATS_TEST_TMPDIR/log.json
}
teardown() { common_teardown; }

logged() {
	rt --log "$LOGF" --log-format json "$@"
}

@test "log: exactly one JSON error object, also on stderr" {
	cfg '.process.args = ["no-such-program"]'
	run --separate-stderr logged run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(jq -s length "$LOGF")" 1
	jq -e '.level == "error" and (.msg | contains("exec: \"no-such-program\": executable file not found in $PATH"))' "$LOGF"
	assert_match "$(jq -r .time "$LOGF")" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$'
	assert_has "$stderr" "executable file not found"
	assert_eq "$output" ""
	assert_eq "$(wc -l <"$LOGF")" 1
}

@test "log: one error object for every kind of failure" {
	local verb
	for verb in "state $ID" "start $ID" "kill $ID TERM" "delete $ID" "pause $ID" "resume $ID" "ps $ID" "exec $ID true" "update --pids-limit 3 $ID" \
		"create -b /no/such/bundle $ID" "run -b /no/such/bundle $ID"; do
		rm -f "$LOGF"
		# shellcheck disable=SC2086
		run logged $verb
		[ "$status" -ne 0 ] || fail "$verb succeeded"
		assert_eq "$verb: $(jq -s 'map(.level) | join(",")' "$LOGF")" "$verb: \"error\""
	done
}

@test "log: success writes nothing at the default level" {
	run -0 logged run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	[ ! -s "$LOGF" ]
}

@test "log: is appended to" {
	run logged state "$ID"
	run logged state "$ID"
	assert_eq "$(jq -s length "$LOGF")" 2
}

@test "log: text form" {
	run rt --log "$LOGF" state "$ID"
	[ "$status" -ne 0 ]
	assert_match "$(cat "$LOGF")" 'level=error'
	assert_match "$(cat "$LOGF")" 'msg='
	assert_eq "$(wc -l <"$LOGF")" 1
	run rt --log "$LOGF.2" --log-format text state "$ID"
	assert_match "$(cat "$LOGF.2")" 'level=error'
}

@test "log: an unknown form is refused" {
	run rt --log "$LOGF" --log-format yaml state "$ID"
	[ "$status" -ne 0 ]
	assert_has "$output" yaml
}

@test "log: is open before anything else can fail" {
	lean_only "opens it later"
	# a wrong option of the command, a root that cannot be made, a wrong global option after it
	run rt --log "$LOGF" --log-format json run --nonsense "$ID"
	[ "$status" -ne 0 ]
	jq -e '.level == "error" and (.msg | contains("nonsense"))' "$LOGF"
	rm "$LOGF"
	: >plain
	run "$LEAN_RUNTIME" --log "$LOGF" --log-format json --root "$BATS_TEST_TMPDIR/plain/x" run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(jq -s 'map(.level) | join(",")' "$LOGF")" '"error"'
	rm "$LOGF"
	run rt --log "$LOGF" --log-format json nosuchcommand
	[ "$status" -ne 0 ]
	jq -e '.level == "error"' "$LOGF"
}

@test "log: failures inside the container's birth are told once, by their cause" {
	cfg '.mounts += [{"destination": "/mnt/x", "type": "bind", "source": "/no/such/source", "options": ["bind"]}]'
	run logged create -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(jq -s length "$LOGF")" 1
	assert_has "$(jq -r .msg "$LOGF")" /no/such/source
}

@test "log: special characters in messages stay JSON" {
	cfg --arg n $'no"such\\prog\tram\n\x01ä' '.process.args = [$n]'
	run logged run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(jq -s length "$LOGF")" 1
	assert_has "$(jq -r .msg "$LOGF")" 'no"such'
}

@test "log: an exec's failure, as conmon and the shim ask for it" {
	rt_sleeper
	jq '.process | .args = ["/no/such"]' "$BUNDLE/config.json" >p.json
	run -255 logged exec --process p.json --detach --pid-file pid "$ID"
	jq -e '.level == "error" and (.msg | test("no such file or directory"))' "$LOGF"
	assert_eq "$(jq -s length "$LOGF")" 1
}

@test "log: --debug adds lines below error level" {
	run -0 rt --debug --log "$LOGF" --log-format json run -b "$BUNDLE" "$ID"
	[ "$(jq -s 'map(select(.level == "debug")) | length' "$LOGF")" -gt 0 ]
	assert_eq "$(jq -s 'map(select(.level == "error")) | length' "$LOGF")" 0
	jq -e '.msg and .time and .level' "$LOGF"
}

@test "log: a log file that can't be opened is an error" {
	run rt --log /no/such/dir/log run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	assert_has "$output" /no/such/dir/log
}

@test "log: --debug traces every stage, of create, start, exec, kill and delete" {
	lean_only "its own stages"
	cfg '.process.args = ["sleep", "100"] | .hooks.createRuntime = [{path: "/bin/true"}]
		| .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["kexec_load"], action: "SCMP_ACT_ERRNO"}]}'
	debug() {
		rt --log "$LOGF" --log-format json --debug "$@" </dev/null >/dev/null 2>&1
	}
	debug create -b "$BUNDLE" "$ID"
	local all stage
	all=$(jq -r .msg "$LOGF")
	for stage in compiled recorded "cgroup $(cgroup_of)" "seccomp: " "init: process" signals cgroup procfs mapped early user hidden namespaces names root mounts \
		joined devices sysctl terminal hooks finish protect pivot files process "wait, then program /bin/sleep" "hook: createRuntime" "mounts[0]: proc on /proc" "is ready"; do
		assert_has "$all" "$stage"
	done
	assert_eq "$(grep -c '^init: stage' <<<"$all")" 21 # three more come when the log is closed
	rm "$LOGF"
	debug start "$ID"
	assert_has "$(jq -r .msg "$LOGF")" "start: the program runs"
	debug exec "$ID" true
	assert_has "$(jq -r .msg "$LOGF")" "exec: joining process"
	debug pause "$ID"
	debug resume "$ID"
	assert_has "$(jq -r .msg "$LOGF")" "pause: cgroup $(cgroup_of)"
	debug kill "$ID" KILL
	assert_has "$(jq -r .msg "$LOGF")" "kill: signal 9"
	debug delete --force "$ID"
	assert_has "$(jq -r .msg "$LOGF")" "delete: the record of $ID is gone"
	# nothing but debug lines
	assert_eq "$(jq -rs 'map(.level) | unique | join(",")' "$LOGF")" debug
}
