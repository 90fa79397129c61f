#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Commands and options that no other file here is about; what runc and crun have between them.

load ../lib/helpers

setup() {
	common_setup
	needs_root
}
teardown() { common_teardown; }

# --- global options ---------------------------------------------------------------------------------

@test "--log-level: error, warning, info, debug" {
	lean_only "crun's option"
	cgroupfs_only "it warns of what they lack"
	cfg '.annotations["run.oci.systemd.subgroup"] = "x"'
	run -0 --separate-stderr rt --log-level error run -b "$BUNDLE" "$ID"
	assert_eq "$stderr" ""
	run -0 --separate-stderr rt --log-level warning run -b "$BUNDLE" "$ID"
	assert_match "$stderr" 'level=warning'
	assert_hasnt "$stderr" "level=debug"
	run -0 --separate-stderr rt --log-level debug run -b "$BUNDLE" "$ID"
	assert_match "$stderr" 'level=debug'
	run -0 --separate-stderr rt --log-level warning --log log.json --log-format json run -b "$BUNDLE" "$ID"
	jq -es 'map(.level) == ["warning"]' log.json
	run rt --log-level loud list
	assert_one_error
	assert_has "$output" log-level
}

# log_to DIR SOCKET ARG...: the runtime in a mount namespace with an empty DIR, in which a datagram socket
# is where the daemon's would be; the first message goes to the file `got`.
log_to() {
	cat >receive.py <<-'END'
		import os, socket, sys
		os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		open("ready", "w").close()
		s.settimeout(15)
		data = s.recv(65536)
		open("got", "wb").write(data)
	END
	cat >in-ns.sh <<-'END'
		dir=$1 socket=$2
		shift 2
		mount -t tmpfs tmpfs "$dir" || exit 99
		[ "$dir" != /dev ] || mknod -m 666 /dev/null c 1 3 || exit 99
		python3 receive.py "$socket" </dev/null >receive.log 2>&1 &
		for _ in $(seq 200); do [ -e ready ] && break; sleep 0.05; done
		"$LEAN_RUNTIME" "$@" </dev/null
		wait
	END
	run unshare -m --propagation private bash in-ns.sh "$@" 3>&-
	[ -s got ] || fail "nothing came: $output $(cat receive.log)"
}

@test "--log journald:NAME: journald's own protocol" {
	lean_only "crun's option"
	log_to /run /run/systemd/journal/socket --log journald:my-name --root "$ROOT" state no-such
	assert_match "$(cat got)" '^PRIORITY=3
SYSLOG_IDENTIFIER=my-name
MESSAGE=.*container "no-such" does not exist'
	assert_has "$output" "does not exist"
}

@test "--log syslog:NAME: a datagram as of syslog(3)" {
	lean_only "crun's option"
	log_to /dev /dev/log --log syslog:my-name --root "$ROOT" state no-such
	# 3 << 3 | 3: daemon, error
	assert_match "$(cat got)" '^<27>my-name\[[0-9]+\]: .*container "no-such" does not exist'
}

@test "--log journald: and syslog: without a daemon are errors" {
	lean_only "crun's option"
	[ ! -S /run/systemd/journal/socket ] || skip "journald runs here"
	run rt --log journald:x list
	assert_one_error
	assert_has "$output" /run/systemd/journal/socket
	[ ! -S /dev/log ] || return 0
	run rt --log syslog:x list
	assert_one_error
	assert_has "$output" /dev/log
}

@test "--log file:PATH" {
	lean_only "crun's option"
	run rt --log "file:$PWD/log.txt" state no-such
	assert_has "$(cat log.txt)" "does not exist"
}

@test "--cgroup-manager: disabled makes no cgroup, systemd needs systemd" {
	lean_only "crun's option"
	cfg '.process.args = ["sleep", "100"] | .linux.resources = null'
	rt_bg --cgroup-manager disabled run -d -b "$BUNDLE" "$ID"
	assert_eq "$(left_cgroups)" ""
	assert_eq "$(cat "/proc/$(pid_of)/cgroup")" "$(cat /proc/self/cgroup)"
	run -0 rt exec "$ID" true
	run rt pause "$ID"
	assert_one_error
	assert_has "$output" "no cgroup"
	run -0 rt kill --all "$ID" KILL
	wait_for_status stopped "$ID"
	run -0 rt delete "$ID"
	cfg '.process.args = ["true"]'
	run -0 rt --cgroup-manager cgroupfs run -b "$BUNDLE" "$ID"
	run rt --cgroup-manager nonsense run -b "$BUNDLE" "$ID"
	assert_one_error
	[ ! -d /run/systemd/system ] || return 0
	for o in "--cgroup-manager systemd" --systemd-cgroup; do
		# shellcheck disable=SC2086
		run rt $o run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "systemd does not run here"
	done
}

@test "--cgroup-manager disabled: limits are refused by name" {
	lean_only "crun's option"
	cfg '.linux.resources.memory = {limit: 10000000}'
	run rt --cgroup-manager disabled run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" linux.resources
}

@test "--rootless: true, false, auto" {
	cgroupfs_only "root has no systemd of a user's"
	run -0 rt --rootless=true run -b "$BUNDLE" "$ID"
	run -0 rt --rootless=false run -b "$BUNDLE" "$ID"
	run -0 rt --rootless auto run -b "$BUNDLE" "$ID"
	run rt --rootless=maybe list
	assert_one_error
}

@test "--lean: a container runs with it as it does without" {
	lean_only "its own option"
	run -0 unshare -m --propagation private "$LEAN_RUNTIME" --root "$ROOT" --lean run -b "$BUNDLE" "$ID" # what is kept ready goes with the namespace
	assert_eq "$output" hello
}

@test "-v, -V and --version say the same" {
	run -0 "$LEAN_RUNTIME" -v
	local version=$output
	run -0 "$LEAN_RUNTIME" --version
	assert_eq "$output" "$version"
	lean_only "crun has -V"
	run -0 "$LEAN_RUNTIME" -V
	assert_eq "$output" "$version"
}

@test "help: every command by --help, -h and help COMMAND, and the verbs of runc and crun are all there" {
	lean_only "its own list"
	local v
	for v in run create start exec state list ps events kill pause resume update delete checkpoint restore spec features mounts help; do
		run -0 "$LEAN_RUNTIME" "$v" --help
		assert_has "$output" "Usage: lean-runtime"
		local text=$output
		run -0 "$LEAN_RUNTIME" "$v" -h
		assert_eq "$output" "$text"
		run -0 "$LEAN_RUNTIME" help "$v"
		assert_eq "$output" "$text"
	done
}

@test "options: every one of runc's and crun's is taken, with a value where theirs has one" {
	lean_only "compared with it"
	local peers
	peers=$(for p in runc crun; do command -v $p; done) || true
	[ -n "$peers" ] || skip "neither runc nor crun is installed"
	mkdir empty && cd empty
	# shellcheck disable=SC2086 # one word each
	run -0 "$LR_LIB/peer-options" "$LEAN_RUNTIME" $peers
	assert_eq "$output" ""
}

# --- create and run -----------------------------------------------------------------------------------

@test "create and run: --config, a file of another name, relative to the bundle or absolute" {
	lean_only "crun's option"
	jq '.process.args = ["echo", "other"]' "$BUNDLE/config.json" >"$BUNDLE/other.json"
	mv "$BUNDLE/config.json" "$PWD/absolute.json"
	run -0 rt run -b "$BUNDLE" --config other.json "$ID"
	assert_eq "$output" other
	run -0 rt run -b "$BUNDLE" -f "$PWD/absolute.json" "$ID"
	assert_eq "$output" hello
	rt_bg create --bundle "$BUNDLE" --config "$PWD/absolute.json" "$ID"
	assert_eq "$(status_of)" created
	rt delete --force "$ID"
	run rt create --bundle "$BUNDLE" --config no-such.json "$ID"
	assert_one_error
	assert_has "$output" no-such.json
}

@test "create: --no-pivot, --no-new-keyring, --no-subreaper, --no-mount-fallback, --preserve-fds" {
	# A session keyring belongs to who makes it: with the option the container has ours.
	sh_cfg 'cat /proc/keys >/dev/null; readlink /proc/self/fd/3; echo done'
	rt_bg create --no-pivot --no-new-keyring -b "$BUNDLE" --preserve-fds 1 "$ID" 3<"$BUNDLE/config.json" || true
	rt delete --force "$ID"
	exec 7<"$BUNDLE/config.json"
	(exec 3<&7 && "$LEAN_RUNTIME" --root "$ROOT" create --preserve-fds 1 --no-pivot -b "$BUNDLE" "$ID" </dev/null >out 2>&1)
	exec 7<&-
	rt start "$ID"
	wait_until grep -q "done" out
	assert_has "$(cat out)" config.json
	rt delete --force "$ID"
	lean_only "runc 1.2"
	rt_bg create --no-mount-fallback --no-subreaper -b "$BUNDLE" "$ID"
	rt delete --force "$ID"
}

@test "create and run: --no-new-keyring makes no session keyring" {
	[ -e /proc/keys ] || skip "the kernel has no keyrings"
	cfg '.linux.maskedPaths = [] | .process.args = ["cat", "/proc/keys"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "_ses.$ID"
	new_id
	run -0 rt run --no-new-keyring -b "$BUNDLE" "$ID"
	assert_hasnt "$output" "_ses.$ID"
}

@test "create: --pidfd-socket gets a pidfd of init" {
	lean_only "runc 1.2"
	cat >agent.py <<-'END'
		import array, os, socket
		s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		s.bind("pidfd.tmp")
		s.listen(1)
		os.rename("pidfd.tmp", "pidfd.sock")
		s.settimeout(15)
		c, _ = s.accept()
		_, anc, _, _ = c.recvmsg(100, socket.CMSG_SPACE(4))
		fd = array.array("i", anc[0][2])[0]
		print([l.split()[1] for l in open("/proc/self/fdinfo/%d" % fd) if l.startswith("Pid:")][0])
	END
	python3 agent.py </dev/null >got.txt 2>&1 3>&- &
	local agent=$!
	wait_until test -S pidfd.sock
	rt_bg create --pidfd-socket "$PWD/pidfd.sock" -b "$BUNDLE" "$ID"
	wait "$agent"
	assert_eq "$(cat got.txt)" "$(pid_of)"
}

# --- on containers that are there ---------------------------------------------------------------------

@test "kill and delete --regex: all that match, the others stay" {
	lean_only "crun's option"
	local a=$TAG-a1 b=$TAG-a2 c=$TAG-b1 id
	for id in "$a" "$b" "$c"; do
		cfg --arg c "$(cgroups_path "$id")" '.linux.cgroupsPath = $c'
		rt_sleeper "$id"
	done
	run -0 rt kill --regex "$TAG-a[0-9]" KILL
	wait_for_status stopped "$a"
	wait_for_status stopped "$b"
	assert_eq "$(status_of "$c")" running
	run -0 rt delete --regex "^$TAG-a"
	assert_eq "$(rt list -q)" "$c"
	run -0 rt kill -r "$TAG-.1" KILL
	run -0 rt delete -r -f ".*"
	assert_eq "$(rt list -q)" ""
	run rt kill --regex '(' KILL
	assert_one_error
	assert_has "$output" "regular expression"
}

@test "kill --all: a container without a pid namespace of its own, to the last process" {
	without_ns pid
	sh_cfg 'sleep 301 & sleep 302 & exec sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until eval '[ "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)" 2>/dev/null | wc -l)" = 3 ]'
	run -0 rt kill --all "$ID" 9
	wait_for_status stopped "$ID"
	wait_until eval '[ "$(cat "$(cgroup_file pids cgroup.procs cgroup.procs)" 2>/dev/null | wc -l)" = 0 ]'
	run -0 rt kill -a "$ID" 9
}

@test "ps: options of ps(1) choose the columns, json is an array of pids" {
	rt_sleeper
	run -0 rt ps "$ID" -o pid,comm
	assert_match "${lines[0]}" 'PID +COMMAND'
	assert_match "${lines[1]}" "$(pid_of) +sleep"
	assert_eq "${#lines[@]}" 2
	run -0 rt ps "$ID" aux
	assert_match "${lines[0]}" '^USER'
	run -0 rt ps --format json "$ID"
	assert_eq "$output" "[$(pid_of)]"
	run -0 rt ps -f table "$ID"
	assert_match "${lines[0]}" '^UID +PID'
	run rt ps "$ID" -o comm
	[ "$status" != 0 ]
	is_lean || return 0
	assert_has "$output" "no PID column"
}

@test "update: every option of limits" {
	cgroup_v2 && skip "v1 files"
	rt_sleeper
	v() { cat "/sys/fs/cgroup/$1/$ID/$2"; }
	run -0 rt update --memory-reservation 32M --memory 64M --memory-swap 128M "$ID"
	assert_eq "$(v memory memory.soft_limit_in_bytes)" 33554432
	assert_eq "$(v memory memory.memsw.limit_in_bytes)" 134217728
	run -0 rt update --memory 16M --memory-swap 16M "$ID" # both down: in the order the kernel takes
	run -0 rt update --memory 256M --memory-swap 512M "$ID" # both up
	assert_eq "$(v memory memory.memsw.limit_in_bytes)" 536870912
	run -0 rt update --memory -1 "$ID"
	[ "$(v memory memory.limit_in_bytes)" -gt 1000000000000 ]
	run -0 rt update --cpuset-cpus 0 --cpuset-mems 0 "$ID"
	assert_eq "$(v cpuset cpuset.cpus) $(v cpuset cpuset.mems)" "0 0"
	if compgen -G "/sys/fs/cgroup/blkio/$ID/*weight*" >/dev/null; then
		run -0 rt update --blkio-weight 300 "$ID"
	else
		run rt update --blkio-weight 300 "$ID"
		assert_has "$output" blkio
	fi
	run rt update --blkio-weight 5 "$ID"
	[ "$status" != 0 ]
	is_lean || return 0
	assert_has "$output" blkio-weight
	run -0 rt update --pids-limit 0 "$ID"
	assert_eq "$(v pids pids.max)" 0
	run -0 rt update --pids-limit -1 "$ID"
	assert_eq "$(v pids pids.max)" max
}

@test "update: --l3-cache-schema and --mem-bw-schema need resctrl" {
	[ ! -d /sys/fs/resctrl ] || skip "this CPU has it: see the unit tests of rdt"
	rt_sleeper
	run rt update --l3-cache-schema "L3:0=f" "$ID"
	assert_one_error
	run rt update --mem-bw-schema "MB:0=50" "$ID"
	assert_one_error
	! is_lean || assert_has "$output" resctrl
}

@test "update: values with units, and what is none" {
	rt_sleeper
	local f
	f=$(cgroup_file memory memory.limit_in_bytes memory.max)
	for v in 67108864 65536k 64m 64M; do
		run -0 rt update --memory "$v" "$ID"
		assert_eq "$(cat "$f")" 67108864
	done
	for v in 10X 1e3 "" -5 99999999999999999999; do
		run rt update --memory "$v" "$ID"
		[ "$status" != 0 ] || fail "--memory '$v' was taken"
	done
}

@test "events: --stats, --interval, and an oom line" {
	cgroup_v2 && skip "v1 files"
	cfg '.linux.resources.memory = {limit: 16777216, swap: 16777216} | .process.args = ["sleep", "100"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	run -0 rt events --stats "$ID"
	jq -e --arg id "$ID" '.type == "stats" and .id == $id and .data.memory.usage.limit == 16777216 and .data.pids.current == 1
		and (.data.cpu.usage.total | type) == "number"' <<<"$output"
	rt events --interval 200ms "$ID" </dev/null >events.txt 2>&1 3>&- &
	wait_until test -s events.txt
	# Were the container's first process what the kernel kills, there would be nobody to tell of.
	rt exec "$ID" sh -c 'echo 1000 >/proc/self/oom_score_adj && head -c 60000000 /dev/zero | tail -c 60000000 >/dev/null' </dev/null >/dev/null 2>&1 || true
	wait_until grep -q '"type":"oom"' events.txt
	rt kill "$ID" KILL
	wait
	jq -es 'map(.type) | contains(["stats", "oom"])' events.txt
	run rt events --interval 0 "$ID"
	[ "$status" != 0 ]
}

@test "exec: --apparmor and --process-label" {
	rt_sleeper
	if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ]; then
		run -255 rt exec --apparmor some-profile "$ID" true
		assert_match "$output" '[aA]pp[aA]rmor'
	fi
	if [ ! -d /sys/fs/selinux ]; then
		run -255 rt exec --process-label system_u:system_r:x:s0 "$ID" true
		assert_match "$output" '[sS][eE][lL]inux'
	fi
}

@test "exec: --no-subreaper" {
	rt_sleeper
	run -0 rt exec --no-subreaper "$ID" echo fine
	assert_eq "$output" fine
}

@test "spec: --bundle, --file and --file -" {
	mkdir d
	run -0 rt spec --bundle d
	jq -e .ociVersion d/config.json
	lean_only "crun's option"
	run -0 rt spec -b d -f other.json
	cmp d/config.json d/other.json
	run -0 rt spec --file -
	assert_eq "$output" "$(cat d/config.json)"
	run rt spec --file other.json --bundle d
	assert_one_error
	assert_has "$output" "exists"
}

@test "list: --format json and table, --quiet" {
	rt_sleeper
	run -0 rt list --format json
	jq -e --arg id "$ID" '.[0].id == $id and .[0].status == "running" and .[0].owner == "root"' <<<"$output"
	run -0 rt list -f table
	assert_match "${lines[0]}" '^ID +PID +STATUS +BUNDLE +CREATED +OWNER'
	run -0 rt list --quiet
	assert_eq "$output" "$ID"
	run rt list --format xml
	[ "$status" != 0 ]
}

@test "features: complete, and of one mind with what the commands take" {
	lean_only "its own list"
	run -0 rt features
	jq -e '
		.ociVersionMin == "1.0.0" and .ociVersionMax == "1.3.0"
		and .hooks == ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
		and (.linux.namespaces | sort) == ["cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts"]
		and (.linux.capabilities | length) >= 38
		and .linux.cgroup == {v1: true, v2: true, systemd: .linux.cgroup.systemd, systemdUser: .linux.cgroup.systemdUser, rdma: true}
		and .linux.seccomp.enabled and (.linux.seccomp.actions | length) == 9 and (.linux.seccomp.operators | length) == 7
		and (.linux.seccomp.archs | length) >= 19
		and .linux.seccomp.knownFlags == ["SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"]
		and (.linux.seccomp.supportedFlags - .linux.seccomp.knownFlags) == []
		and .linux.apparmor.enabled and .linux.selinux.enabled
		and .linux.intelRdt == {enabled: true, schemata: true, monitoring: true}
		and (.linux.memoryPolicy.modes | length) == 7 and (.linux.memoryPolicy.flags | length) == 3
		and .linux.mountExtensions.idmap.enabled and .linux.netDevices.enabled
		and (.annotations["org.lean-runtime.version"] | length) > 0
		and (.potentiallyUnsafeConfigAnnotations | contains(["run.oci.", "org.systemd.property."]))' <<<"$output"
	# each mount option that is named is taken
	local o
	for o in $(jq -r '.mountOptions[]' <<<"$output"); do
		case $o in
		bind | rbind | remount | *idmap | *symlink | *nofollow | tmpcopyup | acl | noacl | mand | iversion | *unbindable) continue ;;
		esac
		cfg --arg o "$o" '.mounts |= map(select(.destination != "/mnt/o")) | .mounts += [{destination: "/mnt/o", type: "tmpfs", source: "tmpfs", options: [$o]}]'
		run -0 rt run -b "$BUNDLE" "$ID"
	done
}
