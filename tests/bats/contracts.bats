#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What Docker, containerd, Podman, conmon, Buildah and BuildKit call, parse and rely on: one test a line of
# docs/callers.md, named by it. The managers' own suites are in tests/docker, containerd, podman and buildah; these
# here say which promise was broken.

load ../lib/helpers

setup() {
	common_setup
	needs_root
	lean_only "its promises are its own"
}
teardown() { common_teardown; }

# As go-runc calls: everything in front, the log in the bundle.
shim() {
	timeout -k 2 30 "$LEAN_RUNTIME" --root "$ROOT" --log "$BUNDLE/log.json" --log-format json "$@" 3>&-
}

shim_bg() {
	shim "$@" </dev/null >out.txt 2>err.txt || { cat err.txt && return 1; }
}

# Without a variable but XDG_RUNTIME_DIR, and above all without PATH.
bare() {
	env -i XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR" "$LEAN_RUNTIME" "$@" 3>&-
}

# The last error that the shim reads out of the log.
last_error() {
	jq -rs 'map(select(.level == "error")) | last | .msg' "$BUNDLE/log.json"
}

# --- Docker -----------------------------------------------------------------------------------------

@test "Docker: features, with the runtimeArgs in front, is JSON on standard output and nothing else" {
	run -0 --separate-stderr "$LEAN_RUNTIME" --debug=false --root "$ROOT" features
	jq -es 'length == 1 and .[0].ociVersionMax' <<<"$output"
	assert_eq "$stderr" ""
}

@test "Docker: --version names program, version, commit and spec, and no other line has the word" {
	run -0 "$LEAN_RUNTIME" --version
	assert_match "${lines[0]}" '^lean-runtime version [0-9]+\.[0-9]+\.[0-9]+$'
	assert_match "${lines[1]}" '^commit: [0-9a-f]+|^commit: unknown'
	assert_match "${lines[2]}" '^spec: 1\.[0-9]+\.[0-9]+$'
	assert_eq "$(grep -c version <<<"$output")" 1
}

@test "Docker: a --root several directories deep is made" {
	ROOT=$BATS_TEST_TMPDIR/exec-root/runtime-runc/moby
	rt_create
	assert_eq "$(status_of)" created
	rt delete --force "$ID"
}

@test "Docker: a wrapper script that adds runtimeArgs does not matter" {
	printf '#!/bin/sh\nexec "%s" --log-level error "$@"\n' "$LEAN_RUNTIME" >wrapper
	chmod +x wrapper
	LEAN_RUNTIME=$PWD/wrapper
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

@test "Docker: exit code 126 by the words permission denied and is a directory" {
	cfg '.process.args = ["/etc/passwd"]'
	run shim create -b "$BUNDLE" "$ID"
	assert_eq "$status" 1
	assert_has "$(last_error)" 'exec: "/etc/passwd": permission denied'
	cfg '.process.args = ["/etc"]'
	run shim create -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" 'exec: "/etc": is a directory'
}

@test "Docker: exit code 127 by the words not a directory, not found and no such file" {
	cfg '.process.args = ["no-such"]'
	run shim create -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" 'exec: "no-such": executable file not found in $PATH'
	cfg '.process.args = ["/no/such"]'
	run shim create -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" 'exec: "/no/such": stat /no/such: no such file or directory'
	cfg '.process.args = ["/etc/passwd/x"]'
	run shim create -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" 'not a directory'
}

@test "Docker: a time namespace in the default spec" {
	cfg '.linux.namespaces += [{type: "time"}] | .process.args = ["readlink", "/proc/self/ns/time"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	[ "$output" != "$(readlink /proc/self/ns/time)" ]
}

@test "Docker: BuildKit's run --keep, exec, kill, state and delete, under the name runc" {
	mkdir bin
	ln -s "$LEAN_RUNTIME" bin/runc
	cfg '.process.args = ["sleep", "100"]'
	PATH=$PWD/bin:$PATH runc --root "$ROOT" run --bundle "$BUNDLE" --no-pivot --keep "$ID" </dev/null >out.txt 2>&1 3>&- &
	wait_for_status running "$ID"
	echo '{"cwd": "/", "args": ["echo", "from exec"], "env": ["PATH=/bin"]}' >p.json
	PATH=$PWD/bin:$PATH run -0 runc --root "$ROOT" exec --process p.json "$ID"
	assert_eq "$output" "from exec"
	PATH=$PWD/bin:$PATH run -0 runc --root "$ROOT" kill "$ID" 9
	wait || true
	# kept
	assert_eq "$(status_of)" stopped
	PATH=$PWD/bin:$PATH run -0 runc --root "$ROOT" delete "$ID"
	run ! rt state "$ID"
}

# --- containerd's shim and go-runc ------------------------------------------------------------------

@test "containerd: the options in front, in go-runc's order" {
	run -0 "$LEAN_RUNTIME" --root "$ROOT" --log "$BUNDLE/log.json" --log-format json --debug --rootless=false run -b "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" hello
	run -0 "$LEAN_RUNTIME" --root "$ROOT" --log "$BUNDLE/log.json" --log-format json --rootless=auto list
	# --systemd-cgroup may stand there too; only who makes a cgroup needs systemd
	run -0 "$LEAN_RUNTIME" --root "$ROOT" --log "$BUNDLE/log.json" --log-format json --systemd-cgroup list
}

@test "containerd: create, start, state, kill by number, delete" {
	cfg '.process.args = ["sleep", "100"]'
	shim_bg create --bundle "$BUNDLE" --pid-file "$PWD/init.pid" "$ID"
	assert_eq "$(cat init.pid)" "$(pid_of)"
	run -0 shim start "$ID"
	assert_eq "$output" ""
	assert_eq "$(status_of)" running
	run -0 shim kill "$ID" 15
	assert_eq "$output" ""
	run -0 shim kill --all "$ID" 9
	wait_for_status stopped "$ID"
	run -0 shim delete "$ID"
	assert_eq "$output" ""
	[ ! -s "$BUNDLE/log.json" ]
}

@test "containerd: create with --console-socket, --no-pivot and --no-new-keyring" {
	cfg '.process.terminal = true | .process.args = ["tty"]'
	"$LR_LIB/recv-console" "$PWD/console.sock" "$PWD/console.out" </dev/null >/dev/null 2>&1 3>&- &
	wait_until test -S console.sock
	shim_bg create --bundle "$BUNDLE" --pid-file "$PWD/init.pid" --console-socket "$PWD/console.sock" --no-pivot --no-new-keyring "$ID"
	run -0 shim start "$ID"
	wait
	assert_has "$(cat console.out)" /dev/pts/0
}

@test "containerd: pause and resume" {
	rt_sleeper
	run -0 shim pause "$ID"
	assert_eq "$(status_of)" paused
	run -0 shim resume "$ID"
	assert_eq "$(status_of)" running
}

@test "containerd: exec --process --detach --pid-file returns at once, and the process lives on" {
	rt_sleeper
	echo '{"cwd": "/", "args": ["sleep", "50"], "env": ["PATH=/bin", "LR_TEST_TAG='"$TAG"'"]}' >p.json
	shim_bg exec --process "$PWD/p.json" --detach --pid-file "$PWD/exec.pid" "$ID"
	wait_until grep -q sleep "/proc/$(cat exec.pid)/cmdline"
	assert_eq "$(readlink "/proc/$(cat exec.pid)/ns/pid")" "$(readlink "/proc/$(pid_of)/ns/pid")"
}

@test "containerd: exec --process with --console-socket" {
	rt_sleeper
	echo '{"terminal": true, "cwd": "/", "args": ["tty"], "env": ["PATH=/bin:/usr/bin"]}' >p.json
	"$LR_LIB/recv-console" "$PWD/console.sock" "$PWD/console.out" </dev/null >/dev/null 2>&1 3>&- &
	wait_until test -S console.sock
	shim_bg exec --process "$PWD/p.json" --console-socket "$PWD/console.sock" --detach --pid-file "$PWD/exec.pid" "$ID"
	wait
	assert_has "$(cat console.out)" /dev/pts/
}

@test "containerd: update --resources=- and --resources -, from standard input" {
	rt_sleeper
	local f
	f=$(cgroup_file pids pids.max pids.max)
	run -0 shim update --resources=- "$ID" <<<'{"pids": {"limit": 44}}'
	assert_eq "$(cat "$f")" 44
	run -0 shim update --resources - "$ID" <<<'{"pids": {"limit": 45}}'
	assert_eq "$(cat "$f")" 45
}

@test "containerd: ps --format json is an array of whole numbers" {
	rt_sleeper
	run -0 --separate-stderr shim ps --format json "$ID"
	jq -e --argjson p "$(pid_of)" '. == [$p]' <<<"$output"
	assert_eq "$stderr" ""
}

@test "containerd: -no-subreaper with one dash, as go-runc has it for restore" {
	run shim restore --image-path /no/such --work-path "$PWD" -no-subreaper --detach --pid-file "$PWD/p" --bundle "$BUNDLE" "$ID"
	assert_hasnt "$output" "flag provided but not defined"
	run -0 shim run -no-subreaper -b "$BUNDLE" "$ID"
}

@test "containerd: who made the cgroup, and where, is in the record: later calls need not say it" {
	cfg '.process.args = ["sleep", "100"] | .linux.resources = null'
	rt_bg --cgroup-manager disabled run -d -b "$BUNDLE" "$ID"
	run -0 rt state "$ID"
	run -0 rt exec "$ID" true
	assert_eq "$(left_cgroups)" ""
	run -0 rt delete --force "$ID"
	new_id
	cfg --arg c "$(cgroups_path "$ID")" '.linux.cgroupsPath = $c'
	rt_sleeper
	[ -n "$(left_cgroups)" ]
	cfg '.linux.cgroupsPath = "/somewhere/else"'
	run -0 rt delete --force "$ID"
	assert_eq "$(left_cgroups)" ""
}

@test "containerd: the log is a stream of level, msg and time, and the last error is the cause" {
	cfg '.process.args = ["no-such"]'
	run shim create -b "$BUNDLE" "$ID"
	run shim --debug create -b "$BUNDLE" "$ID"
	jq -es 'all(has("level") and has("msg") and has("time"))' "$BUNDLE/log.json"
	assert_match "$(jq -rs 'last | .time' "$BUNDLE/log.json")" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$'
	assert_has "$(last_error)" "executable file not found"
}

@test "containerd: the log is there before anything else can fail" {
	run shim create -b /no/such/bundle "$ID"
	assert_has "$(last_error)" /no/such/bundle
	rm "$BUNDLE/log.json"
	run shim create --no-such-option -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" no-such-option
	rm "$BUNDLE/log.json"
	run shim --root /proc/no-such-root create -b "$BUNDLE" "$ID"
	assert_has "$(last_error)" no-such-root
}

@test "containerd: an error goes to standard error, too" {
	run --separate-stderr shim state no-such
	[ "$status" != 0 ]
	assert_has "$stderr" "does not exist"
	assert_eq "$output" ""
}

@test "containerd: delete of an unknown container says does not exist" {
	run shim delete no-such
	assert_eq "$status" 1
	assert_has "$output" "does not exist"
}

@test "containerd: kill of a stopped or unknown container says container not running, does not exist" {
	cfg '.process.args = ["true"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	run shim kill "$ID" 9
	assert_eq "$status" 1
	assert_match "$output" 'container not running|os: process already finished|no such process'
	run shim kill no-such 9
	assert_has "$output" "does not exist"
}

@test "containerd: state prints its JSON and nothing else, both streams together" {
	rt_sleeper
	run -0 bash -c '"$@" 2>&1' bash "$LEAN_RUNTIME" --root "$ROOT" state "$ID"
	jq -es 'length == 1' <<<"$output"
}

@test "containerd: a shim thread that dies takes the runtime along, and delete --force clears up" {
	cat >shim.py <<-'END'
		import ctypes, os, signal, subprocess, sys, threading, time
		libc = ctypes.CDLL(None)
		p = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: libc.prctl(1, signal.SIGKILL),
		    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		time.sleep(float(sys.argv[1]))
		os._exit(0)
	END
	cfg '.process.args = ["sleep", "100"] | .hooks.createRuntime = [{path: "/bin/sleep", args: ["sleep", "0.2"]}]'
	local t
	for t in 0.01 0.05 0.15 0.3; do
		python3 shim.py "$t" "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create -b "$BUNDLE" "$ID" 3>&-
		run -0 rt delete --force "$ID"
		assert_nothing_left
	done
}

@test "containerd: kill --all without a private pid namespace reaches all, and succeeds when all are gone" {
	without_ns pid
	sh_cfg 'sleep 301 & exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until eval '[ "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)" 2>/dev/null | wc -l)" = 2 ]'
	run -0 shim kill --all "$ID" 15 # with 9 we would do so unasked
	wait_for_status stopped "$ID"
	wait_until eval '[ "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)" 2>/dev/null | wc -l)" = 0 ]'
	run -0 shim kill --all "$ID" 9
}

@test "containerd: init's cgroup is final when create returns" {
	sh_cfg 'sleep 300'
	rt_create
	local cg
	cg=$(cat "/proc/$(pid_of)/cgroup")
	assert_has "$cg" "$(cgroup_of)"
	rt start "$ID"
	assert_eq "$(cat "/proc/$(pid_of)/cgroup")" "$cg"
}

@test "containerd: events --stats is one object of type, id and data" {
	rt_sleeper
	run -0 --separate-stderr shim events --stats "$ID"
	jq -es --arg id "$ID" 'length == 1 and .[0].type == "stats" and .[0].id == $id and (.[0].data | has("cpu") and has("memory") and has("pids"))' <<<"$output"
}

# --- Podman, conmon, Buildah ------------------------------------------------------------------------

@test "Podman: conmon's create" {
	cfg '.process.args = ["sleep", "100"]'
	"$LEAN_RUNTIME" --root "$ROOT" --log-format=json --log="$PWD/oci-log" create --bundle "$BUNDLE" \
		--pid-file "$PWD/pidfile" --no-pivot --no-new-keyring "$ID" </dev/null >out.txt 2>&1 3>&-
	assert_eq "$(cat pidfile)" "$(pid_of)"
	[ ! -s oci-log ]
}

@test "Podman: conmon's exec, which leaves --systemd-cgroup out" {
	rt_sleeper
	echo '{"cwd": "/", "args": ["sh", "-c", "exit 7"], "env": ["PATH=/bin"]}' >p.json
	run -0 "$LEAN_RUNTIME" --root "$ROOT" --log-format=json --log="$PWD/oci-log" exec --pid-file "$PWD/pidfile" --process "$PWD/p.json" --detach "$ID"
	[ -s pidfile ] && [ ! -s oci-log ]
}

@test "Podman: state, start, kill, pause, resume, update and delete without any option in front" {
	cat >calls.sh <<-'END'
		set -e
		mount -t tmpfs tmpfs /run
		r=$1 bundle=$2 id=$3
		"$r" create --bundle "$bundle" "$id" </dev/null >/dev/null 2>&1
		"$r" state "$id" | jq -r .status
		"$r" start "$id"
		"$r" pause "$id"
		"$r" state "$id" | jq -r .status
		"$r" resume "$id"
		"$r" update --resources="$4" "$id"
		"$r" kill "$id" 15
		"$r" kill --all "$id" 9
		"$r" delete --force "$id"
		"$r" state "$id" 2>&1 | grep -o 'does not exist'
	END
	cfg '.process.args = ["sleep", "100"]'
	echo '{"pids": {"limit": 30}}' >r.json
	run -0 unshare -m --propagation private bash calls.sh "$LEAN_RUNTIME" "$BUNDLE" "$ID" "$PWD/r.json" 3>&-
	assert_eq "$output" $'created\npaused\ndoes not exist'
}

@test "Podman: calls with XDG_RUNTIME_DIR and no PATH at all" {
	rt_create
	run -0 bare --root "$ROOT" state "$ID"
	cfg '.process.args = ["sleep", "100"]'
	run -0 bare --root "$ROOT" delete --force "$ID"
	env -i XDG_RUNTIME_DIR="$PWD" LR_TEST_TAG="$TAG" "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" create --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&-
	run -0 bare --root "$ROOT" start "$ID"
	run -0 bare --root "$ROOT" exec "$ID" echo found
	assert_eq "$output" found
	run -0 bare --root "$ROOT" kill "$ID" 9
	wait_for_status stopped "$ID"
	run -0 bare --root "$ROOT" delete "$ID"
}

@test "Podman: state.status is created, running, paused or stopped" {
	cfg '.process.args = ["sleep", "100"]'
	rt_create
	assert_eq "$(status_of)" created
	rt start "$ID"
	assert_eq "$(status_of)" running
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
}

@test "Podman: containers.conf names the runtime among those with JSON errors and without cgroups" {
	local conf
	conf=$(grep -rl runtime_supports_json "$BATS_TEST_DIRNAME/../../contrib" | head -n 1)
	[ -n "$conf" ] || fail "no configuration for Podman in contrib"
	assert_match "$(cat "$conf")" 'runtime_supports_json *= *\[[^]]*"lean(-runtime)?"'
	assert_match "$(cat "$conf")" 'runtime_supports_nocgroups? *= *\[[^]]*"lean(-runtime)?"'
}

@test "Podman: the log as a whole is one JSON object, whatever fails" {
	local n=0
	one() {
		n=$((n + 1))
		run "$LEAN_RUNTIME" --root "$ROOT" --log-format=json --log="$PWD/oci-log.$n" "$@" 3>&-
		[ "$status" != 0 ] || fail "$* succeeded"
		python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["level"] == "error" and d["msg"]' "oci-log.$n" || fail "$*: $(cat "oci-log.$n")"
	}
	one state no-such
	one delete no-such
	cfg '.process.args = ["no-such"]'
	one create -b "$BUNDLE" "$ID"
	cfg '.process.args = ["true"] | .mounts += [{destination: "/x", type: "bind", source: "/no/such"}]'
	one run -b "$BUNDLE" "$ID"
	cfg '.mounts |= .[:-1] | .annotations["run.oci.systemd.subgroup"] = "a warning" | .process.cwd = "relative"'
	one run -b "$BUNDLE" "$ID"
	echo "{" >"$BUNDLE/config.json"
	one run -b "$BUNDLE" "$ID"
	one no-such-command
}

@test "Podman: its classifier's words, permission denied and operation not permitted, not found, no such file" {
	cfg '.process.args = ["/etc/passwd"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_match "$output" 'permission denied'
	cfg '.process.args = ["no-such"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" 'executable file not found in $PATH'
	cfg '.process.args = ["/no/such"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "no such file or directory"
	assert_hasnt "$output" "permission denied"
	rt_sleeper
	run -255 rt exec "$ID" /etc/passwd
	assert_has "$output" "permission denied"
	run -255 rt exec "$ID" no-such
	assert_has "$output" "executable file not found in"
}

@test "Podman: the probes checkpoint --help and restore --lsm-mount-context" {
	run -0 rt checkpoint --help
	run rt restore --lsm-mount-context
	[ "$status" != 0 ]
	assert_match "$output" 'flag needs an argument|requires an argument'
}

# --- what everyone does as runc does ---------------------------------------------------------------

@test "Buildah: create, start, state and delete without any option in front" {
	# Its ids are long and have dots and dashes of the temporary directory's name.
	new_id
	ID=buildah-$ID
	cfg '.process.args = ["sh", "-c", "echo built; exit 3"]'
	rt_bg create --bundle "$BUNDLE" --pid-file "$PWD/pid" "$ID"
	run -0 rt start "$ID"
	wait_for_status stopped "$ID"
	assert_eq "$(rt state "$ID" | jq -r .status)" stopped
	run -0 rt delete "$ID"
	assert_eq "$output" ""
	assert_eq "$(cat "$OUT")" built
}

@test "Buildah: an empty mount option is none" {
	mkdir volume
	cfg --arg s "$PWD/volume" '.mounts += [{destination: "/v", type: "bind", source: $s, options: ["", "rbind", "rprivate", "rw"]}]
		| .process.args = ["touch", "/v/x"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	[ -e volume/x ]
}

@test "runc: exit codes: 1 for a failure, 255 for exec's, the program's own, 128 and the signal" {
	run -1 rt run -b /no/such "$ID"
	run -1 rt start no-such
	sh_cfg 'exit 42'
	run -42 rt run -b "$BUNDLE" "$ID"
	sh_cfg 'kill -9 $$; sleep 1'
	without_ns pid
	run -137 rt run -b "$BUNDLE" "$ID"
	rt_sleeper
	run -255 rt exec "$ID" no-such
	run -42 rt exec "$ID" sh -c 'exit 42'
	run -143 rt exec "$ID" sh -c 'kill -15 $$; sleep 1'
	run -255 rt exec no-such-container true
}

@test "runc: delete --force of an unknown container succeeds and says nothing" {
	run -0 rt delete --force no-such
	assert_eq "$output" ""
}

@test "runc: delete takes created and stopped containers, and no running one" {
	cfg '.process.args = ["sleep", "100"]'
	rt_create
	run -0 rt delete "$ID"
	rt_sleeper
	run rt delete "$ID"
	assert_one_error
	assert_eq "$(status_of)" running
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	run -0 rt delete "$ID"
}

@test "runc: ids of letters, digits and _ + - ., not beginning with a dot" {
	cfg '.process.args = ["true"] | del(.linux.cgroupsPath)'
	local id
	for id in "$TAG" "$TAG-A_b+c.d" "_$TAG" "+$TAG"; do
		run -0 rt run -b "$BUNDLE" "$id"
	done
	for id in ".$TAG" "$TAG/x" "$TAG x" "" "$TAG:x" ".."; do
		run rt run -b "$BUNDLE" "$id"
		[ "$status" != 0 ] || fail "'$id' was taken"
	done
}

@test "runc: the fields of state, with pid 0 once it is stopped" {
	cfg '.process.args = ["sleep", "100"] | .annotations = {"a.b": "c"}'
	rt_bg run -d -b "$BUNDLE" "$ID"
	run -0 rt state "$ID"
	jq -e --arg id "$ID" --arg b "$BUNDLE" '.ociVersion and .id == $id and .pid > 0 and .status == "running" and .bundle == $b
		and .rootfs == $b + "/rootfs" and (.created | test("^[0-9]{4}-.*Z$")) and .annotations == {"a.b": "c"} and has("owner")' <<<"$output"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt state "$ID" | jq -e '.pid == 0 and .status == "stopped"'
}

@test "runc: LISTEN_FDS, LISTEN_PID and NOTIFY_SOCKET reach the container" {
	sh_cfg 'echo "$LISTEN_FDS $LISTEN_PID $NOTIFY_SOCKET"; cat <&3'
	echo content >file
	run -0 env LISTEN_FDS=1 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID" 3<file
	assert_eq "$output" $'1 1 \ncontent'
	sh_cfg 'echo "$NOTIFY_SOCKET"'
	run -0 env NOTIFY_SOCKET="$PWD/none" "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_match "$output" '/run/notify/'
}
