#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An ordinary user's containers, and root's in user namespaces where the host's directories are closed.

load ../lib/helpers

setup() {
	common_setup
	needs_root
	HOMEDIR=$(mktemp -d "/tmp/lr-rootless-$TAG.XXXX")
	chmod 755 "$HOMEDIR"
}

teardown() {
	cd /
	if [ -n "${HOMEDIR-}" ]; then
		for id in $(as_user list -q 2>/dev/null); do
			as_user delete --force "$id" >/dev/null 2>&1
		done
		grep -qF "$HOMEDIR" /proc/self/mountinfo && echo "mounts left below $HOMEDIR" && return 1
		rm -rf "$HOMEDIR"
	fi
	common_teardown
}

# as_user ARG...: the runtime as uid 1234, who has a home and a runtime directory and nothing else.
as_user() {
	setpriv --reuid 1234 --regid 1234 --clear-groups env -i PATH="$PATH" LR_TEST_TAG="$TAG" \
		HOME="$HOMEDIR" XDG_RUNTIME_DIR="$HOMEDIR/run" timeout -k 2 30 "$HOMEDIR/lr" "$@" 3>&-
}

# A bundle of the user's own, by the user's own `spec --rootless`.
user_bundle() {
	local tools
	cp "$LEAN_RUNTIME" "$HOMEDIR/lr"
	mkdir -p "$HOMEDIR/run" "$HOMEDIR/bundle"
	tools=$(shared_rootfs)
	cp -a "$tools" "$HOMEDIR/bundle/rootfs"
	chown -R 1234:1234 "$HOMEDIR"
	chmod 700 "$HOMEDIR/run"
	cd "$HOMEDIR/bundle" || return 1
	as_user spec --rootless
	BUNDLE=$HOMEDIR/bundle
	cfg '.process.terminal = false | .process.env += ["LR_TEST_TAG='"$TAG"'"]'
}

@test "rootless: spec --rootless and run, by an ordinary user" {
	user_bundle
	sh_cfg 'id -u; id -g; cat /proc/self/uid_map; cat /proc/self/setgroups; hostname; echo $$'
	run -0 as_user run "$ID"
	assert_match "$output" '^0
0
 +0 +1234 +1
deny
lean-runtime
1$'
	run -0 as_user list -q
	assert_eq "$output" ""
}

@test "rootless: no groups are asked for, so that they cannot be dropped is no error" {
	user_bundle
	sh_cfg 'grep ^Groups: /proc/self/status'
	run -0 as_user run "$ID"
	cfg '.process.user.additionalGids = [5]'
	run as_user run "$ID"
	assert_one_error
	assert_has "$output" "process.user.additionalGids"
	assert_has "$output" "setgroups is denied"
}

@test "rootless: run --detach, state, ps, exec, kill, delete" {
	user_bundle
	cfg '.process.args = ["sleep", "100"]'
	as_user run -d "$ID" </dev/null >/dev/null 2>&1
	run -0 as_user state "$ID"
	assert_eq "$(jq -r .status <<<"$output")" running
	run -0 as_user exec "$ID" sh -c 'id -u; readlink /proc/self/ns/pid; readlink /proc/1/ns/pid; cat /proc/self/uid_map'
	assert_eq "${lines[0]}" 0
	assert_eq "${lines[1]}" "${lines[2]}"
	assert_match "${lines[3]}" '0 +1234 +1'
	run -3 as_user exec "$ID" sh -c 'exit 3'
	run -255 as_user exec "$ID" no-such-program
	assert_has "$output" "executable file not found in \$PATH"
	run -0 as_user ps --format json "$ID"
	assert_eq "$(jq length <<<"$output")" 1
	as_user exec --detach --pid-file "$HOMEDIR/pid" "$ID" sleep 50 </dev/null >/dev/null 2>&1
	wait_until sh -c "grep -q sleep /proc/$(cat "$HOMEDIR/pid")/cmdline" # exec(2) fills it in late
	run -0 as_user exec "$ID" ps
	assert_has "$output" "sleep 50"
	assert_eq "$(stat -c %u "/proc/$(cat "$HOMEDIR/pid")")" 1234
	local init
	init=$(as_user state "$ID" | jq .pid)
	run -0 as_user kill "$ID" KILL
	wait_until sh -c "! kill -0 $init"
	run ! kill -0 "$(cat "$HOMEDIR/pid")" # what init left in its pid namespace ended before it
	run -0 as_user delete "$ID"
}

@test "rootless: create and start, hooks and --pid-file" {
	user_bundle
	cfg --arg f "$HOMEDIR/hook" '.process.args = ["sleep", "100"]
		| .hooks.createRuntime = [{path: "/bin/sh", args: ["sh", "-c", ("cat >" + $f)]}]'
	as_user create --pid-file "$HOMEDIR/pid" "$ID" </dev/null >/dev/null 2>&1
	assert_eq "$(jq .pid "$HOMEDIR/hook")" "$(cat "$HOMEDIR/pid")"
	run -0 as_user start "$ID"
	assert_eq "$(as_user state "$ID" | jq -r .status)" running
	run -0 as_user delete --force "$ID"
}

@test "rootless: a terminal" {
	user_bundle
	cfg '.process.terminal = true | .process.args = ["tty"]'
	run -0 "$LR_LIB/on-pty" setpriv --reuid 1234 --regid 1234 --clear-groups env \
		XDG_RUNTIME_DIR="$HOMEDIR/run" "$HOMEDIR/lr" run "$ID"
	assert_has "$output" "/dev/pts/0"
}

@test "rootless: /sys/fs/cgroup shows nothing of the host's cgroups" {
	user_bundle
	cgroup_v2 && skip "a v1 or hybrid host"
	sh_cfg 'ls /sys/fs/cgroup/memory | wc -l; touch /sys/fs/cgroup/x || echo read-only'
	run -0 as_user run "$ID"
	assert_eq "${lines[0]}" 0
	assert_has "$output" "read-only"
}

@test "rootless: limits that cannot be set are named" {
	user_bundle
	cfg '.linux.resources = {memory: {limit: 10000000}} | .process.args = ["true"]'
	run as_user run "$ID"
	assert_one_error
	assert_has "$output" "linux.resources.memory"
	assert_has "$output" "permission"
}

@test "rootless: pause, update and events say that there is no cgroup" {
	user_bundle
	cfg '.process.args = ["sleep", "100"]'
	as_user run -d "$ID" </dev/null >/dev/null 2>&1
	for verb in "pause" "update --memory 10m" "events --stats"; do
		# shellcheck disable=SC2086
		run as_user $verb "$ID"
		assert_one_error
		assert_has "$output" "has no cgroup"
	done
	run -0 as_user kill --all "$ID" KILL
	run -0 as_user delete --force "$ID"
}

@test "rootless: a cgroup of the same name that is root's is nobody's business" {
	cgroup_v2 && skip "a v1 or hybrid host"
	user_bundle
	cfg '.process.args = ["true"]'
	mkdir "/sys/fs/cgroup/pids/$ID"
	sleep 100 3>&- &
	echo $! >"/sys/fs/cgroup/pids/$ID/cgroup.procs"
	run as_user run "$ID"
	kill $!
	wait $! || true
	wait_until rmdir "/sys/fs/cgroup/pids/$ID"
	assert_eq "$status $output" "0 "
}

@test "rootless: without XDG_RUNTIME_DIR the error says what to set" {
	user_bundle
	run setpriv --reuid 1234 --regid 1234 --clear-groups env -i "$HOMEDIR/lr" list
	assert_one_error
	assert_has "$output" "XDG_RUNTIME_DIR"
}

@test "rootless: a user namespace without mappings has the user as its root" {
	user_bundle
	cfg 'del(.linux.uidMappings, .linux.gidMappings)'
	sh_cfg 'cat /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups; id -u'
	run -0 as_user run "$ID"
	assert_match "$output" $'^ +0 +1234 +1\n +0 +1234 +1\ndeny\n0$'
}

@test "rootless: ids of other users need newuidmap's grant" {
	user_bundle
	cfg '.linux.uidMappings[0].size = 2'
	run as_user run "$ID"
	assert_one_error
	assert_has "$output" "uidMappings"
}

@test "rootless: network, time, cgroup namespaces, sysctl, seccomp, overlay, devices, hooks" {
	user_bundle
	mkdir "$HOMEDIR/upper" "$HOMEDIR/work"
	chown 1234:1234 "$HOMEDIR/upper" "$HOMEDIR/work"
	cfg --arg h "$HOMEDIR" '.linux.namespaces += [{type: "network"}, {type: "time"}]
		| if any(.linux.namespaces[]; .type == "cgroup") then . else .linux.namespaces += [{type: "cgroup"}] end
		| .linux.timeOffsets = {boottime: {secs: 100000}} | .linux.sysctl = {"net.ipv4.ip_forward": "1"}
		| .process.noNewPrivileges = false | .process.oomScoreAdj = 100 | .process.rlimits = [{type: "RLIMIT_NOFILE", soft: 100, hard: 100}]
		| .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 28}]}
		| .mounts += [{destination: "/ov", type: "overlay", source: "overlay", options: ["lowerdir=" + $h + "/bundle/rootfs/etc,upperdir=" + $h + "/upper,workdir=" + $h + "/work"]},
			{destination: "/etc-of-host", type: "bind", source: "/etc", options: ["rbind", "ro", "nosuid", "nodev"]}]
		| .linux.devices = [{path: "/dev/full", type: "c", major: 1, minor: 7}]
		| .hooks = {createContainer: [{path: "/bin/true"}], startContainer: [{path: "/bin/true"}], poststop: [{path: "/bin/true"}]}'
	sh_cfg 'cut -d. -f1 /proc/uptime; cat /proc/sys/net/ipv4/ip_forward /proc/self/oom_score_adj; ulimit -n; mkdir /tmp/x 2>&1
		echo new >/ov/new; ls /ov/passwd; test -e /etc-of-host/passwd && test -c /dev/full && ip link show lo | grep -o "UP,"'
	run -0 as_user run "$ID"
	[ "${lines[0]}" -ge 100000 ]
	assert_eq "$(tail -n +2 <<<"$output")" "1
100
100
mkdir: can't create directory '/tmp/x': No space left on device
/ov/passwd
UP,"
	assert_eq "$(cat "$HOMEDIR/upper/new")" new
}

@test "rootless: a range of ids by newuidmap and newgidmap" {
	lean_changes rootfs
	command -v newuidmap >/dev/null || skip "needs newuidmap (package uidmap)"
	user_bundle
	cfg '.linux.uidMappings = [{containerID: 0, hostID: 1234, size: 1}, {containerID: 1, hostID: 200000, size: 1000}]
		| .linux.gidMappings = .linux.uidMappings | .process.user.additionalGids = [7] | .root.readonly = false
		| .process.capabilities |= with_entries(.value += ["CAP_CHOWN"])'
	sh_cfg 'touch /tmp/file; chown 5:6 /tmp/file; id -G; stat -c %u:%g /tmp/file; cat /proc/self/setgroups'
	cat >"$HOMEDIR/ranges.sh" <<-'END'
		cd "$1"
		echo "lr-user:200000:65536" >sub
		{ cat /etc/passwd; echo "lr-user:x:1234:1234::/:/bin/sh"; } >passwd
		mount --bind sub /etc/subuid && mount --bind sub /etc/subgid && mount --bind passwd /etc/passwd || exit 99
		cd bundle
		exec setpriv --reuid 1234 --regid 1234 --clear-groups env XDG_RUNTIME_DIR="$1/run" "$1/lr" run "$2"
	END
	run -0 unshare -m --propagation private bash "$HOMEDIR/ranges.sh" "$HOMEDIR" "$ID"
	assert_eq "$output" $'0 7\n5:6\nallow'
	assert_eq "$(stat -c %u:%g "$HOMEDIR/bundle/rootfs/tmp/file")" 200004:200005
}

# in_userns SCRIPT: by an ordinary user, as root of a user namespace, which is where Podman runs a
# runtime. $KEPT is a process there whose namespaces are its own, but the mount namespace.
in_userns() {
	cat >"$HOMEDIR/in_userns.sh" <<-'END'
		cd "$HOME/bundle"
		unshare --net --pid --fork --uts --ipc sleep 300 </dev/null >/dev/null 2>&1 &
		trap 'kill -KILL $KEPT; wait 2>/dev/null' EXIT # as the first of its pid namespace it heeds no other; some bash tells of it
		for _ in $(seq 200); do
			KEPT=$(pgrep -P $! sleep) && break
			sleep 0.05
		done
		. ./script
	END
	cat >"$HOMEDIR/bundle/script"
	setpriv --reuid 1234 --regid 1234 --clear-groups env -i PATH="$PATH" LR_TEST_TAG="$TAG" ID="$ID" \
		HOME="$HOMEDIR" XDG_RUNTIME_DIR="$HOMEDIR/run" LR="$HOMEDIR/lr" timeout -k 2 120 \
		unshare --user --map-root-user bash "$HOMEDIR/in_userns.sh" </dev/null 3>&-
}

# Podman's default network: the runtime's own belongs to the host, and there is no way back to it.
@test "rootless: joined namespaces that belong to the user's, from a runtime whose own do not" {
	user_bundle
	without_ns user
	cfg 'del(.linux.uidMappings, .linux.gidMappings) | del(.hostname)'
	run -0 in_userns <<-'END'
		mv config.json plain.json
		change() { # JQ...
			jq "$@" config.json >c && mv c config.json
		}
		join() { # TYPE...
			jq '.process.args = ["sh", "-c", "for n in net pid uts ipc; do readlink /proc/self/ns/$n; done"]' plain.json >config.json
			for t; do
				f=$t; [ $t != network ] || f=net
				change --arg t $t --arg p /proc/$KEPT/ns/$f '.linux.namespaces |= map(select(.type != $t)) + [{type: $t, path: $p}]'
			done
		}
		is_kept() { # WHAT NAMES
			for n in $2; do
				grep -qxF "$(readlink /proc/$KEPT/ns/$n)" got || { echo "$1: not in the $n namespace:"; cat got; }
			done
		}
		try() { # WHAT NAMES
			"$LR" run "$ID" >got 2>&1 || { echo "$1: run: $?"; cat got; }
			is_kept "$1, run" "$2"
			"$LR" create "$ID" >got 2>&1 && "$LR" start "$ID" || { echo "$1: create: $?"; cat got; }
			for _ in $(seq 200); do
				[ "$("$LR" state "$ID" | jq -r .status)" != stopped ] || break
				sleep 0.05
			done
			is_kept "$1, create" "$2"
			"$LR" delete --force "$ID"
		}
		join network
		try network net
		join network uts ipc
		try "as in a pod" "net uts ipc"
		join network uts ipc pid
		try "with its pid namespace" "net uts ipc pid"
		join network
		change '.linux.namespaces += [{type: "time"}]'
		try "a new time namespace" net
		# As with --userns: one more user namespace, which has no right to join them.
		deeper() {
			change '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 0, size: 1}]
				| .linux.gidMappings = .linux.uidMappings | .mounts |= map(select(.type != "mqueue"))'
		}
		join network uts ipc
		deeper
		try "and a user namespace" "net uts ipc"
	END
	assert_eq "$output" ""
}

# --- root, with a user namespace ----------------------------------------------------------------

userns_bundle() {
	chown -R 100000:100000 "$BUNDLE/rootfs"
	cfg '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings'
}

@test "user namespace: the rootfs below a directory that only root may search" {
	lean_changes rootfs
	userns_bundle
	mkdir -m 700 "$HOMEDIR/closed"
	mkdir "$HOMEDIR/closed/volume"
	echo from-volume >"$HOMEDIR/closed/volume/file"
	mv "$BUNDLE" "$HOMEDIR/closed/bundle"
	BUNDLE=$HOMEDIR/closed/bundle
	cfg --arg v "$HOMEDIR/closed/volume" '.mounts += [{destination: "/volume", type: "bind", source: $v, options: ["rbind", "ro"]}]'
	sh_cfg 'id -u; cat /volume/file; touch /file; stat -c %u /file; awk "\$5 == \"/\"" /proc/self/mountinfo | wc -l'
	run -0 rt run --bundle "$BUNDLE" "$ID"
	assert_eq "$output" "0
from-volume
0
1"
	assert_eq "$(stat -c %u "$BUNDLE/rootfs/file")" 100000
}

@test "user namespace: the same with every rootfsPropagation, --no-pivot, and a read-only root" {
	lean_changes rootfs
	userns_bundle
	mkdir -m 700 "$HOMEDIR/closed"
	mv "$BUNDLE" "$HOMEDIR/closed/bundle"
	BUNDLE=$HOMEDIR/closed/bundle
	sh_cfg 'touch /x 2>/dev/null && echo writable; grep -c . /proc/self/mountinfo'
	for p in private rprivate slave rslave shared rshared unbindable runbindable; do
		cfg --arg p "$p" '.linux.rootfsPropagation = $p'
		run -0 rt run --bundle "$BUNDLE" "$ID"
		assert_eq "${lines[0]}" writable
	done
	cfg 'del(.linux.rootfsPropagation)'
	run -0 rt run --no-pivot --bundle "$BUNDLE" "$ID"
	assert_eq "${lines[0]}" writable
	cfg '.root.readonly = true'
	run -0 rt run --bundle "$BUNDLE" "$ID"
	assert_hasnt "$output" writable
}

@test "user namespace: create, start, exec, update, pause, delete" {
	userns_bundle
	cfg '.process.args = ["sleep", "100"]'
	rt_create
	run -0 rt start "$ID"
	run -0 rt exec "$ID" id -u
	assert_eq "$output" 0
	run -0 rt exec -u 1000:1000 "$ID" sh -c 'id -u; cat /proc/self/uid_map'
	assert_eq "${lines[0]}" 1000
	run -0 rt update --pids-limit 50 "$ID"
	run -0 rt pause "$ID"
	assert_eq "$(status_of)" paused
	run -0 rt resume "$ID"
	run -0 rt delete --force "$ID"
}
