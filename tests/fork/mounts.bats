#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint --engine=fork: what a container has mounted, and which cgroups it has made, is refused by name; and what
# the runtime, its managers, hooks and the host have mounted is not.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	mkdir -p "$R"/{own,own2,var,run,t,proc,sys}
}
teardown() {
	umount -R host/vol 2>/dev/null || true
	common_teardown
}

# As managers make them: all rights, nothing masked, nothing read-only.
privileged() {
	cfg --argjson caps "$(caps)" '.process.capabilities = ({bounding: $caps, effective: $caps, permitted: $caps})
		| del(.linux.maskedPaths, .linux.readonlyPaths, .linux.seccomp)
		| .process.noNewPrivileges = false
		| .linux.resources.devices = [{allow: true, access: "rwm"}]'
}

caps() {
	"$LEAN_RUNTIME" features | jq .linux.capabilities
}

# A shell that has done SCRIPT, and then says so again and again.
begin() { # SCRIPT [OPTION...]
	sh_cfg "{ $1; } 2>/err || echo failed >>/err
		exec >/dev/null; i=0
		while sleep 0.02; do i=\$((i + 1)); echo \$i >/n; done"
	start "${@:2}"
	[ ! -s "$R/err" ] || fail "it says: $(cat "$R/err")"
}

carried() {
	seed "$ID"
	moves
	rt delete --force "$ID"
	grow "$ID"
	moves
	seed "$ID" # as a child, which has been made in another way
	rt delete --force "$ID"
}

@test "mounts: a tmpfs, a bind and one on another are refused by name; unmounted, they are no matter" {
	privileged
	begin 'mount -t tmpfs own /own; mount --bind /t "/own2"; mount -t tmpfs on /dev/shm; mkdir -p "/own/a b"
		mount -t tmpfs deep "/own/a b"'
	refused "a mount that config.json does not have (tmpfs on /own)" "a mount that config.json does not have (tmpfs on /dev/shm)" \
		"a mount that config.json does not have ($(findmnt -n -o FSTYPE -T "$R") on /own2)" \
		"a mount that config.json does not have (tmpfs on /own/a b)"
	rt exec "$ID" /bin/sh -c 'umount "/own/a b" /own /own2 /dev/shm'
	carried
}

@test "mounts: with masked and read-only paths, too" {
	privileged
	cfg '.linux.maskedPaths = ["/proc/keys", "/proc/none", "/proc/scsi", "/sys/firmware"] | .linux.readonlyPaths = ["/proc/sys", "/proc/bus"]'
	begin 'mount -t tmpfs own /own'
	refused "a mount that config.json does not have (tmpfs on /own)"
	rt exec "$ID" /bin/umount /own
	carried
}

@test "mounts: what is mounted, or a cgroup made, between the look and the hold is refused as well" {
	command -v strace >/dev/null || skip "strace is not installed"
	privileged
	begin true
	local at=/sys/fs/cgroup/$ID name="cgroup v2"
	cgroup_v2 || { at=/sys/fs/cgroup/pids/$ID name=pids; }
	late_begin
	mkdir "$at/late"
	nsenter -t "$(pid_of)" -m mount -t tmpfs late "/own" || fail "it could not be mounted"
	late_end
	assert_eq "$what" 1
	assert_has "$(cat said)" "a mount that config.json does not have (tmpfs on /own)"
	assert_has "$(cat said)" "a cgroup below the container's own ($name: /late)"
	moves
}

@test "mounts: what config.json mounts and is gone, or can be written to, is refused by name" {
	privileged
	mkdir -p host "$R/ro"
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/ro", type: "bind", source: $h, options: ["bind", "ro", "nosuid"]},
		{destination: "/t", type: "tmpfs", source: "tmpfs"}]'
	begin 'umount /t; mount -o remount,bind,rw /ro'
	refused "a mount of config.json that has lost flags (/ro: ro)" "a mount of config.json that is gone (/t)"
}

@test "mounts: links, volumes with mounts of the host in them, and the whole of cgroups are no container's own" {
	privileged
	mkdir -p host/vol && mount -t tmpfs vol host/vol
	ln -s ../run "$R/var/run"
	: >"$R/run/s" && : >host/file
	cfg --arg h "$PWD/host" --arg f "$PWD/host/file" '.mounts += [
		{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["nosuid", "noexec", "nodev", "rw"]},
		{destination: "/t", type: "bind", source: $h, options: ["rbind", "rslave"]},
		{destination: "/var/run/s", type: "bind", source: $f, options: ["rbind", "ro", "rprivate"]}]'
	begin true
	# What the host mounts later comes along.
	mkdir -p host/vol/late
	mount -t tmpfs late host/vol/late
	carried
}

@test "mounts: what the container mounts below such a volume is its own" {
	privileged
	mkdir -p host/vol && mount -t tmpfs vol host/vol && mkdir host/vol/x
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/t", type: "bind", source: $h, options: ["rbind"]}]'
	begin 'mount -t tmpfs own /t/vol/x'
	refused "a mount that config.json does not have (tmpfs on /t/vol/x)"
}

@test "mounts: in a user namespace, where devices are bound, and in a network namespace that is the host's" {
	privileged
	mkdir -p host && touch host/file
	chmod 755 "$BATS_TEST_TMPDIR"
	chown -R 100000:100000 "$R" host
	cfg --arg h "$PWD/host" '.linux.namespaces += [{type: "user"}]
		| .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] | .linux.gidMappings = .linux.uidMappings
		| .linux.devices = [{path: "/dev/fuse", type: "c", major: 10, minor: 229}]
		| .mounts += [{destination: "/t", type: "bind", source: $h, options: ["rbind", "ro", "nodev"]}]'
	begin 'mount -t tmpfs own /own'
	refused "a mount that config.json does not have (tmpfs on /own)"
	rt exec "$ID" /bin/umount /own
	carried
	cfg '.linux.namespaces |= map(select(.type != "network"))
		| .mounts |= map(if .type == "sysfs" then {destination: "/sys", type: "bind", source: "/sys", options: ["rbind", "ro", "nosuid", "nodev", "noexec"]} else . end)'
	begin true
	carried
}

@test "mounts: of hooks and with hooks" {
	privileged
	cat >hook <<-'END'
		#!/bin/sh
		pid=$(jq .pid)
		nsenter -t "$pid" -m mount -t tmpfs hook "$1/run"
	END
	chmod +x hook
	cfg --arg h "$PWD/hook" --arg r "$(realpath "$R")" '.hooks.createRuntime = [{path: $h, args: ["hook", $r], env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]'
	begin 'grep -q " /run " /proc/self/mountinfo && mount -t tmpfs own /own'
	# Nobody knows whose it is.
	carried
	cfg '.linux.readonlyPaths = ["/proc/sys"]'
	begin 'mount -t tmpfs own /own'
	refused "a mount that config.json does not have (tmpfs on /own)"
}

@test "mounts: a container that may not mount, and who is sent in that may" {
	begin true
	rt exec --cap CAP_SYS_ADMIN "$ID" /bin/mount -t tmpfs own /own
	refused "a mount that config.json does not have (tmpfs on /own)"
	rt exec --cap CAP_SYS_ADMIN "$ID" /bin/umount /own
	rt mounts add "$ID" /dev/stdin <<<'[{"destination": "/own2", "type": "tmpfs", "source": "tmpfs"}]'
	refused "a mount that config.json does not have (tmpfs on /own2)"
}

@test "cgroups: those that the container has made below its own are refused by name" {
	privileged
	cfg '.mounts += [{destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["nosuid", "noexec", "nodev", "rw"]}]
		| .linux.namespaces += [{type: "cgroup"}] | .linux.namespaces |= unique'
	local at=/sys/fs/cgroup name="cgroup v2"
	cgroup_v2 || { at=/sys/fs/cgroup/pids name=pids; }
	begin "mkdir -p $at/sub/deep"
	refused "a cgroup below the container's own ($name: /sub)"
	rt exec "$ID" /bin/rmdir $at/sub/deep $at/sub
	carried
}

@test "cgroups: of a container that may do nothing, where somebody else has made one" {
	begin true
	local at=/sys/fs/cgroup/$ID name="cgroup v2"
	cgroup_v2 || { at=/sys/fs/cgroup/pids/$ID name=pids; }
	mkdir "$at/a" "$at/b"
	refused "a cgroup below the container's own ($name: /a)" "a cgroup below the container's own ($name: /b)"
	rmdir "$at/a" "$at/b"
	carried
}
