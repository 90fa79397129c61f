#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The likeliest failures, each provoked: one line that names the cause, the place in config.json and what to do.
# docs/errors.md has a row for each test here.

load ../lib/helpers

setup() {
	common_setup
	needs_root
	lean_only "its own words"
}
teardown() { common_teardown; }

# told CAUSE PLACE REMEDY: what the failed command said. "-": the failure has no place in config.json.
told() {
	assert_one_error
	assert_has "$output" "$1"
	[ "$2" = - ] || assert_has "$output" "(at $2)"
	assert_has "$output" "$3"
	# The remedy is behind the cause.
	[ "$3" = "$1" ] || assert_has "${output#*"$1"}" "$3"
}

# fails FILTER: the container of that config, which must not start.
fails() {
	cp "$BUNDLE/config.json" saved.json
	cfg "$1"
	run rt run -b "$BUNDLE" "$ID"
	mv saved.json "$BUNDLE/config.json"
}

# --- the bundle -------------------------------------------------------------------------------------

@test "error: the bundle is missing" {
	run rt run -b /no/such/bundle "$ID"
	told "bundle /no/such/bundle: no such file or directory" - "--bundle names a directory"
}

@test "error: config.json is missing" {
	mkdir empty
	run rt run -b empty "$ID"
	told "config.json\": no such file or directory" - "\`lean-runtime spec\` makes one"
}

@test "error: config.json is not JSON" {
	printf '{\n  "ociVersion": "1.0.0",\n  "process": {,}\n}\n' >"$BUNDLE/config.json"
	run rt run -b "$BUNDLE" "$ID"
	told "config.json: line 3, column" - "parse error"
}

@test "error: a property has the wrong type" {
	fails '.process.cwd = 5'
	told "expected a string, got a number" process.cwd "expected a string, got a number"
}

@test "error: a required property is missing" {
	fails 'del(.root)'
	told "the required property \"root\" is missing" - "the required property \"root\" is missing"
}

@test "error: the specification's version is not supported" {
	fails '.ociVersion = "2.0.0"'
	told "version 2.0.0 of the specification is not supported" ociVersion "any 1.x is"
}

@test "error: the root file system is missing" {
	fails '.root.path = "no-such-rootfs"'
	told "no-such-rootfs: no such file or directory" root.path "taken from the bundle"
}

# --- the program ------------------------------------------------------------------------------------

@test "error: no such program in PATH" {
	fails '.process.args = ["no-such-program"] | .process.env = ["PATH=/bin:/opt"]'
	told 'exec: "no-such-program": executable file not found in $PATH' "process.args[0]" "the image has none in /bin:/opt"
}

@test "error: no program at a path" {
	fails '.process.args = ["/no/such"]'
	told 'exec: "/no/such": stat /no/such: no such file or directory' "process.args[0]" "no program of that path"
}

@test "error: the program may not be executed" {
	fails '.process.args = ["/etc/passwd"]'
	told 'exec: "/etc/passwd": permission denied' "process.args[0]" "see its mode"
}

@test "error: the program is a directory" {
	fails '.process.args = ["/etc"]'
	told 'exec: "/etc": is a directory' "process.args[0]" "name a program in it"
}

@test "error: the program is for another architecture" {
	# an ELF header of a machine that nobody has
	printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\376\376\001\000\000\000' >"$BUNDLE/rootfs/bin/alien"
	chmod +x "$BUNDLE/rootfs/bin/alien"
	fails '.process.args = ["alien"]'
	told "exec /bin/alien: exec format error" "process.args[0]" "another architecture"
}

@test "error: the program's interpreter is missing" {
	printf '#!/no/interpreter\n' >"$BUNDLE/rootfs/bin/script"
	chmod +x "$BUNDLE/rootfs/bin/script"
	fails '.process.args = ["script"]'
	told "exec /bin/script: no such file or directory" "process.args[0]" "its interpreter"
}

@test "error: the working directory is no directory" {
	fails '.process.cwd = "/etc/passwd"'
	told 'chdir to cwd ("/etc/passwd"): not a directory' process.cwd "it must be a directory"
}

@test "error: an environment variable without a value" {
	fails '.process.env = ["A=b", "NOVALUE"]'
	told '"NOVALUE" is not NAME=value' "process.env[1]" "give it a value"
}

@test "error: the seccomp profile denies the program's start" {
	fails '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["execve"], action: "SCMP_ACT_ERRNO"}]}'
	told "operation not permitted" "process.args[0]" "linux.seccomp must allow execve"
}

@test "error: a seccomp action that there is not" {
	fails '.linux.seccomp = {defaultAction: "SCMP_ACT_PERHAPS"}'
	told 'unknown seccomp action "SCMP_ACT_PERHAPS"' linux.seccomp.defaultAction "features"
}

@test "error: the seccomp agent does not listen" {
	fails '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", listenerPath: "/no/agent.sock", syscalls: [{names: ["mkdir"], action: "SCMP_ACT_NOTIFY"}]}'
	told "cannot connect to the seccomp agent at /no/agent.sock" linux.seccomp.listenerPath "is the agent running"
}

# --- mounts -----------------------------------------------------------------------------------------

@test "error: a mount's source is missing" {
	fails '.mounts += [{destination: "/mnt/a", type: "bind", source: "/no/such/source", options: ["bind"]}] | .mounts |= .[-1:]'
	told "/no/such/source: no such file or directory" "mounts[0].source" "create it"
}

@test "error: a file system type that the kernel lacks" {
	fails '.mounts = [{destination: "/mnt/a", type: "nosuchfs", source: "x"}]'
	told "mount nosuchfs: no such device" "mounts[0]" "/proc/filesystems"
}

@test "error: an option that a file system does not take" {
	fails '.mounts = [{destination: "/mnt/a", type: "tmpfs", source: "x", options: ["size=much"]}]'
	told "Bad value for 'size'" "mounts[0]" "handed to tmpfs as it is"
}

@test "error: a mount that the user namespace may not make" {
	chown 100000:100000 "$BUNDLE/rootfs"
	fails '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings | .mounts = [{destination: "/mnt", type: "ext4", source: "/dev/no-disk"}]'
	told "mount ext4" "mounts[0]" "user namespace"
}

@test "error: a mount into /proc" {
	fails '.mounts = [{destination: "/proc/kcore", type: "tmpfs", source: "x"}]'
	told "it is inside /proc" "mounts[0].destination" "linux.maskedPaths"
}

@test "error: a missing mount point on a read-only root" {
	cfg '.mounts = [{destination: "/no/such", type: "tmpfs", source: "x"}] | .process.args = ["true"]'
	run unshare -m --propagation private bash -c 'mount --bind "$1/rootfs" "$1/rootfs" && mount -o remount,bind,ro "$1/rootfs" &&
		exec "$LEAN_RUNTIME" --root "$2" run -b "$1" "$3"' bash "$BUNDLE" "$ROOT" "$ID"
	told "read-only file system" "mounts[0].destination" "create it in the image"
}

@test "error: a directory bound over a file" {
	mkdir dir
	fails '.mounts = [{destination: "/etc/passwd", type: "bind", source: "'"$PWD"'/dir", options: ["bind"]}]'
	told "on /etc/passwd: invalid argument" "mounts[0]" "the source is a directory and the destination is not"
}

# --- namespaces and ids -----------------------------------------------------------------------------

@test "error: the path of a namespace is missing" {
	fails 'del(.hostname) | .linux.namespaces = [{type: "mount"}, {type: "network", path: "/no/such/netns"}]'
	told "open the network namespace /no/such/netns" "linux.namespaces[1].path" "does the process it belongs to still run?"
}

@test "error: an id that is not mapped" {
	chown -R 100000:100000 "$BUNDLE/rootfs"
	fails '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 10}]
		| .linux.gidMappings = .linux.uidMappings | .process.user.uid = 500 | (.mounts[] | select(.type == "devpts")).options |= map(select(startswith("gid") | not))'
	told "cannot become user 500" process.user.uid "must be mapped by linux.uidMappings"
}

@test "error: the limit on user namespaces is reached" {
	# In a user namespace the limit is one's own.
	cfg '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 0, size: 1}] | .linux.gidMappings = .linux.uidMappings
		| .mounts |= map(select(.type != "devpts")) | .linux.resources = null | .process.args = ["true"]'
	run unshare --user --map-root-user bash -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$LEAN_RUNTIME" --root "$1" run -b "$2" "$3"' \
		bash "$ROOT" "$BUNDLE" "$ID"
	told "a limit on namespaces is reached" - "user.max_*_namespaces"
}

@test "error: an ordinary user without a user namespace" {
	cp "$LEAN_RUNTIME" "$PWD/lr" && chmod 755 "$PWD" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" 2>/dev/null
	mkdir user-root && chown 1234 user-root
	cfg '.process.args = ["true"] | .linux.resources = null'
	run setpriv --reuid 1234 --regid 1234 --clear-groups "$PWD/lr" --root "$PWD/user-root" run -b "$BUNDLE" "$ID"
	told "operation not permitted" - "a user namespace in linux.namespaces"
}

# --- limits -----------------------------------------------------------------------------------------

@test "error: a cgroup controller is missing" {
	[ ! -d /sys/fs/cgroup/hugetlb ] || skip "hugetlb is mounted here"
	cgroup_v2 && skip "a v1 or hybrid host"
	fails '.linux.resources.hugepageLimits = [{pageSize: "2MB", limit: 1048576}]'
	told 'the cgroup controller "hugetlb" is not mounted' "linux.resources.hugepageLimits[0]" "mount -t cgroup -o hugetlb"
}

@test "error: the cgroup file system is read-only" {
	cfg '.process.args = ["true"]'
	run unshare -m --propagation private bash -c 'for m in $(awk "\$3 ~ /^cgroup/ {print \$2}" /proc/mounts); do mount -o remount,bind,ro "$m" || exit 99; done
		exec "$LEAN_RUNTIME" --root "$1" run -b "$2" "$3"' bash "$ROOT" "$BUNDLE" "$ID"
	told "read-only file system" linux.cgroupsPath "make the cgroup file system writable"
}

@test "error: the cgroup belongs to another container" {
	local other=$ID
	rt_sleeper
	new_id
	cfg --arg c "$(cgroups_path "$other")" '.linux.cgroupsPath = $c'
	run rt run -b "$BUNDLE" "$ID"
	if by_systemd; then
		told "exists" linux.cgroupsPath "systemctl status"
	else
		told "exists and has processes" linux.cgroupsPath "cgroup.procs"
	fi
}

@test "error: a limit that the kernel does not take" {
	cgroup_v2 && skip "v1 files"
	fails '.linux.resources.cpu = {period: 5, quota: 5}'
	told "invalid argument" linux.resources.cpu.period "periods are 1000 to 1000000"
}

@test "error: a memory limit below what is in use" {
	cgroup_v2 && skip "the kernel reclaims before it kills"
	rt_sleeper
	run rt update --memory 4096 "$ID"
	told "device or resource busy" linux.resources.memory.limit "bytes are in use"
}

@test "error: too little memory to start in" {
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized program needs more"
	cgroup_v2 && skip "the kernel reclaims before it kills"
	cfg '.linux.resources.memory = {limit: 4096} | .process.args = ["true"]'
	run rt create -b "$BUNDLE" "$ID" </dev/null
	told "out of memory before the program could start" linux.resources.memory.limit "raise the limit"
}

@test "error: out of processes" {
	cp "$LEAN_RUNTIME" "$PWD/lr" && chmod 755 "$PWD" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" 2>/dev/null
	mkdir user-root && chown 1234 user-root
	chown -R 1234:1234 "$BUNDLE"
	cfg '.linux.namespaces = [{type: "user"}, {type: "mount"}, {type: "pid"}] | .linux.uidMappings = [{containerID: 0, hostID: 1234, size: 1}]
		| .linux.gidMappings = .linux.uidMappings | .linux.resources = null | .mounts = [] | del(.hostname) | .process.args = ["true"]'
	run setpriv --reuid 1234 --regid 1234 --clear-groups prlimit --nproc=0 "$PWD/lr" --root "$PWD/user-root" run -b "$BUNDLE" "$ID"
	told "resource temporarily unavailable" - "RLIMIT_NPROC, pids.max"
}

@test "error: out of file descriptors" {
	cfg '.process.args = ["true"]'
	run bash -c 'ulimit -n 12; exec "$LEAN_RUNTIME" --root "$1" run -b "$2" "$3"' bash "$ROOT" "$BUNDLE" "$ID"
	told "too many open files" - "ulimit -n"
}

@test "error: a resource limit that may not be raised" {
	cfg '.process.rlimits = [{type: "RLIMIT_NOFILE", soft: 4000, hard: 4000}]'
	# bit 24: CAP_SYS_RESOURCE
	run setpriv --bounding-set -sys_resource --inh-caps -sys_resource prlimit --nofile=3000:3000 "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	told "cannot set RLIMIT_NOFILE to 4000:4000" "process.rlimits[0]" "needs CAP_SYS_RESOURCE"
}

@test "error: an OOM score that may not be lowered" {
	cfg '.process.oomScoreAdj = -900'
	run setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	told "cannot set oom_score_adj to -900" process.oomScoreAdj "CAP_SYS_RESOURCE"
}

@test "error: a realtime scheduler without realtime in the cgroup" {
	[ -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ] || skip "only with RT_GROUP_SCHED and cgroup v1"
	fails '.process.scheduler = {policy: "SCHED_FIFO", priority: 5}'
	told "cannot set scheduling policy SCHED_FIFO" process.scheduler "cpu.realtimeRuntime"
}

@test "error: a sysctl of the host's" {
	fails '.linux.sysctl = {"kernel.panic": "1"}'
	told "kernel.panic belongs to no namespace" 'linux.sysctl["kernel.panic"]' "can be set per container"
}

@test "error: AppArmor or SELinux is asked for and not there" {
	[ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" != Y ] || skip "AppArmor is enabled"
	fails '.process.apparmorProfile = "some-profile"'
	told "AppArmor is not enabled on this host" process.apparmorProfile "leave the profile out"
}

@test "error: a network device that is not there" {
	fails '.linux.netDevices = {nodevice0: {}}'
	told "network device nodevice0: no such device" linux.netDevices.nodevice0 "ip link"
}

@test "error: a hook fails" {
	fails '.hooks.createRuntime = [{path: "/bin/sh", args: ["sh", "-c", "echo the reason >&2; exit 3"]}]'
	told "hook #1 of createRuntime (/bin/sh) exited with status 3" "hooks.createRuntime[0]" "the reason"
}

@test "error: a hook takes too long" {
	fails '.hooks.createRuntime = [{path: "/bin/sleep", args: ["sleep", "10"], timeout: 1}]'
	told "timed out after 1 s" "hooks.createRuntime[0]" "give it more time"
}

# --- around the container ---------------------------------------------------------------------------

@test "error: the id is taken" {
	rt_sleeper
	run rt run -b "$BUNDLE" "$ID"
	told "container with id $ID already exists" - "take another id"
}

@test "error: there is no such container" {
	run rt kill no-such
	told 'container "no-such" does not exist' - "lean-runtime list"
}

@test "error: delete of a running container" {
	rt_sleeper
	run rt delete "$ID"
	told "cannot delete container $ID that is not stopped: running" - "use --force"
}

@test "error: exec in a paused container" {
	rt_sleeper
	rt pause "$ID"
	run -255 rt exec "$ID" true
	told "cannot exec in a paused container" - "--ignore-paused"
}

@test "error: a terminal without a console socket" {
	cfg '.process.terminal = true'
	run rt create -b "$BUNDLE" "$ID"
	told "without setting console socket" process.terminal "--console-socket"
}

@test "error: nobody listens on the console socket" {
	cfg '.process.terminal = true'
	run rt create --console-socket /no/console.sock -b "$BUNDLE" "$ID"
	told "cannot connect to socket /no/console.sock" - "has to listen first"
}

@test "error: the pid file's directory is missing" {
	run rt run --pid-file /no/such/pid -b "$BUNDLE" "$ID"
	told "create the pid file /no/such/pid" - "must exist and be writable"
}

@test "error: the log cannot be opened" {
	run rt --log /no/such/log run -b "$BUNDLE" "$ID"
	told "open log file /no/such/log" - "must exist and be writable"
}

@test "error: the state directory is full" {
	cfg '.process.args = ["true"]'
	run unshare -m --propagation private bash -c 'mkdir full && mount -t tmpfs -o size=4k,mode=700 tmpfs full && { head -c 8192 /dev/zero >full/.filler; } 2>/dev/null
		exec "$LEAN_RUNTIME" --root "$PWD/full" run -b "$1" "$2"' bash "$BUNDLE" "$ID"
	told "no space left on device" - "free some space"
}

@test "error: the state directory cannot be made" {
	ROOT=/proc/no-such
	run rt run -b "$BUNDLE" "$ID"
	told "make the runtime's root directory /proc/no-such" - "give another one by --root"
}

@test "error: others may write to the state directory" {
	mkdir -m 0777 "$ROOT"
	run rt run -b "$BUNDLE" "$ID"
	chmod 0755 "$ROOT"
	told "may be written to by others (mode 0777), who could forge containers" - "chmod go-w"
}

@test "error: systemd is asked for and does not run" {
	[ ! -d /run/systemd/system ] || skip "systemd runs here"
	run rt --systemd-cgroup run -b "$BUNDLE" "$ID"
	told "systemd does not run here" - "use the cgroupfs manager"
}

# A host that looks as if systemd ran there; sockets there are none.
with_systemd() {
	unshare -m sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec "$@"' - "$LEAN_RUNTIME" --root "$ROOT" "$@"
}

@test "error: systemd runs and nobody listens" {
	cfg '.linux.cgroupsPath = ":lr:x"'
	run with_systemd --systemd-cgroup run -b "$BUNDLE" "$ID"
	told "cannot reach the host's systemd by unix:path=/run/dbus/system_bus_socket" - "is the D-Bus daemon running"
}

@test "error: systemd of a user without a session" {
	cfg '.linux.cgroupsPath = ":lr:x"'
	run with_systemd --rootless=true --systemd-cgroup run -b "$BUNDLE" "$ID"
	told "there is no way to the systemd of this user" - "XDG_RUNTIME_DIR=/run/user/UID"
}

@test "error: a path where systemd wants a unit" {
	cfg '.linux.cgroupsPath = "/x"'
	run with_systemd --systemd-cgroup run -b "$BUNDLE" "$ID"
	told 'not the name of a systemd unit: "/x"' linux.cgroupsPath "slice:prefix:name"
}

@test "error: an option that there is not" {
	run rt run --no-such-option -b "$BUNDLE" "$ID"
	told "flag provided but not defined: -no-such-option" - "see 'lean-runtime run --help'"
}

@test "error: an inheritable capability outside the bounding set" {
	cfg '.process.capabilities.inheritable = ["CAP_SYS_BOOT"]'
	run rt run -b "$BUNDLE" "$ID"
	told "CAP_SYS_BOOT is not in the bounding set" process.capabilities.inheritable "add it to process.capabilities.bounding"
}

@test "error: an effective capability that is not permitted" {
	cfg '.process.capabilities.effective += ["CAP_SYS_BOOT"]'
	run rt run -b "$BUNDLE" "$ID"
	told "CAP_SYS_BOOT is not in the permitted set" process.capabilities.effective "add it to process.capabilities.permitted"
}

@test "error: run, or start, without a process" {
	cfg 'del(.process)'
	run rt run -b "$BUNDLE" "$ID"
	told "the process is missing" process "config.json has no program to start"
	rt_create
	run rt start "$ID"
	told "the process is missing" process "config.json has no program to start"
}

@test "error: exec in a container without a process" {
	cfg 'del(.process)'
	rt_create
	run rt exec "$ID" true
	told "the container has no process whose user and environment to take" process "give all of it by --process FILE"
}
