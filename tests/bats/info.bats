#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# list, ps, spec, features, events, --version, --help, and the option parser.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

@test "list: nothing there" {
	mkdir "$ROOT"
	run -0 rt list
	assert_match "${lines[0]}" '^ID +PID +STATUS +BUNDLE +CREATED +OWNER'
	assert_eq "${#lines[@]}" 1
	run -0 rt list -q
	assert_eq "$output" ""
	run -0 rt list -f json
	assert_eq "$(jq 'length' <<<"$output")" 0
}

@test "list: table, quiet and json" {
	rt_sleeper
	local second
	new_id second
	cfg --arg p "$(cgroups_path "$second")" '.linux.cgroupsPath = $p'
	rt_create "$second"
	run -0 --separate-stderr rt list
	assert_eq "$stderr" ""
	assert_match "${lines[0]}" '^ID +PID +STATUS +BUNDLE +CREATED +OWNER'
	assert_match "$output" "$ID +$(pid_of) +running +$BUNDLE +[0-9TZ:.-]+ +[a-z0-9#]+"
	assert_match "$output" "$second +[0-9]+ +created "
	run -0 rt list --quiet
	assert_eq "$(sort <<<"$output")" "$ID
$second"
	run -0 rt list --format json
	assert_eq "$(jq -r 'sort_by(.id) | map(.id + " " + .status) | join(",")' <<<"$output")" \
		"$ID running,$second created"
	assert_eq "$(jq -r '.[0] | has("ociVersion", "pid", "bundle", "created", "rootfs")' <<<"$output" | sort -u)" true
	run rt list --format xml
	assert_one_error
}

@test "list: a broken record does not hide the others" {
	rt_sleeper
	mkdir -p "$ROOT/$TAG-broken"
	run rt list -q
	assert_has "$output" "$ID"
	rmdir "$ROOT/$TAG-broken"
}

@test "ps: table and json" {
	sh_cfg 'sleep 301 & wait'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until eval 'rt ps "$ID" | grep -q "[0-9] sleep 301"'
	run -0 rt ps "$ID"
	assert_has "${lines[0]}" PID
	assert_eq "${#lines[@]}" 3
	assert_has "$output" "sleep 301"
	run -0 --separate-stderr rt ps --format json "$ID"
	assert_eq "$stderr" ""
	assert_eq "$(jq -r 'map(type) | unique | .[]' <<<"$output")" number
	assert_eq "$(jq length <<<"$output")" 2
	assert_eq "$(jq --argjson p "$(pid_of)" 'index($p) != null' <<<"$output")" true
	run -0 rt ps "$ID" -o pid,comm
	assert_match "${lines[0]}" 'PID +COMMAND'
	assert_has "$output" sleep
	# Nobody is left: none, and no error, as runc has it.
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	run -0 --separate-stderr rt ps --format json "$ID"
	assert_eq "$output" "[]"
	run -0 rt ps "$ID"
	assert_match "$output" '^UID +PID[^0-9]*$'
	run rt ps "$TAG-unknown"
	assert_one_error
	assert_has "$output" "does not exist"
}

@test "spec: writes a config.json that runs, and does not overwrite" {
	mkdir s
	cd s
	run -0 rt spec
	assert_eq "$output" ""
	jq -e '.ociVersion and .process.args == ["sh"] and .process.terminal == true and .root.path == "rootfs"
		and (.linux.namespaces | length) >= 5 and (.mounts | length) >= 6' config.json
	run rt spec
	assert_one_error
	assert_match "$output" "exist"
	cd ..
	mkdir t
	run -0 rt spec --bundle t
	[ -f t/config.json ]
}

@test "spec --rootless: user namespace with the caller's ids, no network namespace" {
	mkdir s
	rt spec --rootless --bundle s
	jq -e '(.linux.namespaces | map(.type) | index("user") != null and index("network") == null)
		and .linux.uidMappings[0].size == 1 and .linux.uidMappings[0].containerID == 0
		and .linux.resources == null' s/config.json
}

@test "features: valid JSON with what runtime-spec asks for" {
	run -0 --separate-stderr rt features
	assert_eq "$stderr" ""
	jq -e '.ociVersionMin and .ociVersionMax' <<<"$output"
	jq -e '.hooks == ["prestart","createRuntime","createContainer","startContainer","poststart","poststop"]' <<<"$output"
	jq -e '.mountOptions | contains(["bind","rbind","ro","rw","rro","nosuid","nodev","noexec","rprivate",
		"rshared","rslave","runbindable","relatime","strictatime","nosymfollow","rnosuid","iversion","lazytime",
		"silent","loud","tmpcopyup"])' <<<"$output"
	jq -e '.linux.namespaces | contains(["cgroup","ipc","mount","network","pid","user","uts"])' <<<"$output"
	jq -e '.linux.capabilities | contains(["CAP_SYS_ADMIN","CAP_CHECKPOINT_RESTORE"])' <<<"$output"
	jq -e '.linux.cgroup.v1 and .linux.cgroup.v2' <<<"$output"
	jq -e '.linux.seccomp.enabled and (.linux.seccomp.actions | contains(["SCMP_ACT_ERRNO","SCMP_ACT_NOTIFY"]))
		and (.linux.seccomp.archs | index("SCMP_ARCH_X86_64"))' <<<"$output"
}

@test "features: spec 1.3's additions" {
	lean_only "newer than it"
	run -0 rt features
	jq -e '.linux.namespaces | index("time")' <<<"$output"
	jq -e '.ociVersionMax | startswith("1.3")' <<<"$output"
	jq -e '.linux.seccomp.knownFlags and .linux.seccomp.supportedFlags and .linux.seccomp.operators' <<<"$output"
	jq -e '.linux.mountExtensions.idmap.enabled == true' <<<"$output"
	jq -e '.linux.intelRdt | has("enabled")' <<<"$output"
	jq -e '.linux.cgroup | has("rdma", "systemd")' <<<"$output"
	jq -e '.potentiallyUnsafeConfigAnnotations | type == "array"' <<<"$output"
	jq -e '.linux.netDevices.enabled == true' <<<"$output"
}

@test "features: needs neither --root nor root's directory" {
	run -0 "$LEAN_RUNTIME" features
	jq -e .ociVersionMax <<<"$output"
}

@test "--version: the form Docker parses" {
	run -0 "$LEAN_RUNTIME" --version
	assert_match "${lines[0]}" '^[a-z-]+ version [0-9]+\.[0-9]+'
	assert_eq "$(grep -c version <<<"$output")" 1
	assert_match "$output" $'\nspec: 1\\.'
	! is_lean || assert_match "$output" $'\ncommit: '
	run -0 "$LEAN_RUNTIME" -v
}

@test "--help lists every command, and each has help" {
	run -0 "$LEAN_RUNTIME" --help
	local c help=$output
	for c in create delete events exec features kill list pause ps resume run spec start state update; do
		assert_has "$help" "$c"
		run -0 "$LEAN_RUNTIME" "$c" --help
		assert_has "$output" "$c"
	done
}

@test "options: unknown ones, unknown commands, missing and spare arguments" {
	run rt nonsense
	[ "$status" -ne 0 ]
	! is_lean || assert_has "$output" nonsense
	run rt --nonsense state "$ID"
	[ "$status" -ne 0 ]
	assert_has "$output" nonsense
	run rt run --nonsense "$ID"
	[ "$status" -ne 0 ]
	assert_has "$output" nonsense
	local c
	for c in create start state kill delete exec pause resume ps; do
		run rt $c
		[ "$status" -ne 0 ] || fail "$c without an id succeeded"
	done
	run rt state "$ID" spare
	[ "$status" -ne 0 ]
	run rt run -b
	[ "$status" -ne 0 ]
}

@test "options: --name=value, --name value, single dash, joined short ones" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run -detach -bundle="$BUNDLE" --pid-file="$BATS_TEST_TMPDIR/p" "$ID"
	[ -s p ]
	run -0 rt list -format=json
	assert_eq "$(jq -r '.[0].id' <<<"$output")" "$ID"
	run -0 rt exec -eONE=1 -e TWO=2 -u0:0 "$ID" sh -c 'echo $ONE$TWO'
	assert_eq "$output" 12
	run -0 rt list -qfjson
	run rt exec -tZ "$ID" true
	assert_has "$output" "flag provided but not defined"
	run rt list -qf
	assert_has "$output" "flag needs an argument"
	run -0 "$LEAN_RUNTIME" --root="$ROOT" --debug=false state "$ID"
	run -0 "$LEAN_RUNTIME" -root "$ROOT" --rootless=auto --log-format=json --systemd-cgroup=false state "$ID"
	jq -e . <<<"$output"
}

@test "options: podman's probes" {
	run -0 "$LEAN_RUNTIME" checkpoint --help
	run "$LEAN_RUNTIME" restore --lsm-mount-context
	[ "$status" -ne 0 ]
	assert_match "$output" "flag needs an argument|requires an argument"
}

@test "events --stats: one object with the container's figures" {
	cfg '.linux.resources.memory.limit = 67108864 | .linux.resources.pids.limit = 20'
	rt_sleeper
	run -0 --separate-stderr rt events --stats "$ID"
	assert_eq "$stderr" ""
	jq -e --arg id "$ID" '.type == "stats" and .id == $id' <<<"$output"
	jq -e '.data.memory.usage.usage > 0 and .data.memory.usage.limit == 67108864' <<<"$output"
	jq -e '.data.pids.current == 1 and .data.pids.limit == 20' <<<"$output"
	jq -e '.data.cpu.usage.total > 0' <<<"$output"
}

@test "events: repeats by --interval until the container is gone" {
	rt_sleeper
	timeout 20 "$LEAN_RUNTIME" --root "$ROOT" events --interval 1s "$ID" >ev 2>&1 </dev/null 3>&- &
	local pid=$! rc=0
	wait_until eval '[ "$(grep -c stats ev)" -ge 2 ]'
	rt delete --force "$ID"
	wait "$pid" || rc=$?
	assert_eq "$rc" 0
	jq -e . ev
}
