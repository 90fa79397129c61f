#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The systemd cgroup manager, with a systemd that really is the host's first process.

load ../lib/helpers.bash

SYSTEM=/sys/fs/cgroup/system.slice
USER_ROOT=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service

setup() {
	cgroup_v2 || skip "not a cgroup v2 host"
	[ -d /run/systemd/system ] || skip "systemd does not run here"
	common_setup
	UNIT=lr-$ID.scope
	cfg --arg p "system.slice:lr:$ID" '.linux.cgroupsPath = $p'
}

teardown() {
	local rc=0
	common_teardown || rc=1
	no_unit || rc=1
	return "$rc"
}

sd() { rt --systemd-cgroup "$@"; }
# Names of units that are still known, in whatever state.
units() { systemctl list-units --all --plain --no-legend "*$TAG*" | awk '{print $1}'; }
no_unit() {
	wait_until sh -c "[ -z \"\$(systemctl list-units --all --plain --no-legend '*$TAG*')\" ]" || fail "units are left: $(units)"
}
prop() { systemctl show "${2:-$UNIT}" -P "$1"; }

sleeper() {
	cfg '.process.args = ["/bin/sleep", "300"]'
	OUT=$BATS_TEST_TMPDIR/out
	ERR=$BATS_TEST_TMPDIR/err
	sd run -d -b "$BUNDLE" "$ID" </dev/null >"$OUT" 2>"$ERR" || fail "$(cat "$ERR")"
}

@test "systemd: run is in a scope, which is gone afterwards" {
	cfg '.process.args = ["cat", "/proc/self/cgroup"] | .linux.namespaces |= map(select(.type != "cgroup"))'
	run -0 sd run -b "$BUNDLE" "$ID"
	assert_eq "$output" "0::/system.slice/$UNIT"
	[ -z "$(units)" ] || fail "$(units)"
	[ ! -e "$SYSTEM/$UNIT" ]
}

# bats test_tags=ci
@test "systemd: create, start, kill, delete; later verbs need not say who made the cgroup" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	sd create -b "$BUNDLE" "$ID" </dev/null >"$BATS_TEST_TMPDIR/out" 2>&1
	assert_eq "$(prop ActiveState)" active
	assert_eq "$(cat "$SYSTEM/$UNIT/cgroup.procs")" "$(pid_of)"
	rt start "$ID"
	run -0 rt exec "$ID" cat /proc/self/cgroup
	assert_eq "$output" "0::/"
	rt pause "$ID"
	assert_eq "$(status_of)" paused
	rt resume "$ID"
	run -0 rt ps -f json "$ID"
	assert_eq "$output" "[$(pid_of)]"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
	[ -z "$(units)" ] || fail "$(units)"
}

# bats test_tags=ci
@test "systemd: limits are the unit's, and in its files as they were asked for" {
	cfg '.linux.resources.memory = {"limit": 67108864, "swap": 100663296, "reservation": 33554432}
		| .linux.resources.cpu = {"shares": 1024, "quota": 50500, "period": 200000, "burst": 10000, "cpus": "0-1", "mems": "0"}
		| .linux.resources.pids.limit = 50
		| .linux.resources.unified = {"memory.high": "50000000", "memory.min": "4096"}'
	sleeper
	assert_eq "$(prop MemoryMax)" 67108864
	assert_eq "$(prop MemorySwapMax)" 33554432
	assert_eq "$(prop MemoryLow)" 33554432
	assert_eq "$(prop MemoryHigh)" 50000000
	assert_eq "$(prop MemoryMin)" 4096
	assert_eq "$(prop CPUWeight)" 39
	assert_eq "$(prop CPUQuotaPerSecUSec)" 260ms
	assert_eq "$(prop CPUQuotaPeriodUSec)" 200ms
	assert_eq "$(prop AllowedCPUs)" 0-1
	assert_eq "$(prop AllowedMemoryNodes)" 0
	assert_eq "$(prop TasksMax)" 50
	assert_eq "$(prop Delegate)" yes
	assert_eq "$(prop Slice)" system.slice
	assert_eq "$(cat "$SYSTEM/$UNIT/cpu.max")" "50500 200000"
	assert_eq "$(cat "$SYSTEM/$UNIT/cpu.max.burst")" 10000
	assert_eq "$(cat "$SYSTEM/$UNIT/memory.max")" 67108864
}

@test "systemd: update changes the unit, and daemon-reload keeps what it changed" {
	sleeper
	rt update --memory 50003968 --pids-limit 44 --cpu-share 512 "$ID"
	rt update --cpu-quota 30000 "$ID"
	rt update -r - "$ID" <<<'{"unified": {"memory.high": "40001536"}, "blockIO": {}}'
	assert_eq "$(prop MemoryMax)" 50003968
	assert_eq "$(prop CPUQuotaPerSecUSec)" 300ms
	systemctl daemon-reload
	assert_eq "$(cat "$SYSTEM/$UNIT/memory.max")" 50003968
	assert_eq "$(cat "$SYSTEM/$UNIT/memory.high")" 40001536
	assert_eq "$(cat "$SYSTEM/$UNIT/pids.max")" 44
	assert_eq "$(cat "$SYSTEM/$UNIT/cpu.weight")" 20
	assert_eq "$(cat "$SYSTEM/$UNIT/cpu.max")" "30000 100000"
	# None again.
	rt update --memory -1 --pids-limit -1 "$ID"
	assert_eq "$(prop MemoryMax) $(prop TasksMax)" "infinity infinity"
}

# bats test_tags=ci
@test "systemd: devices stay as they were allowed over daemon-reload" {
	with_caps CAP_MKNOD
	cfg '.linux.resources.devices = [{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "major": 1, "minor": 11, "access": "w"}]'
	sleeper
	rt exec "$ID" sh -c 'mknod /tmp/kmsg c 1 11; mknod /tmp/vda b 254 0'
	systemctl daemon-reload
	run -0 rt exec "$ID" sh -c ': >/tmp/kmsg'
	run ! rt exec "$ID" head -c 1 /tmp/vda
	assert_has "$output" "Operation not permitted"
}

@test "systemd: the process is born in its scope, under a limit of one" {
	cfg '.linux.resources.pids.limit = 1 | .process.args = ["cat", "/sys/fs/cgroup/pids.peak", "/sys/fs/cgroup/pids.current"]'
	run strace -f -e trace=clone3 -o trace "$LEAN_RUNTIME" --root "$ROOT" --systemd-cgroup run -b "$BUNDLE" "$ID"
	[ "$status" = 0 ] || fail "$output"
	assert_eq "${lines[-1]}" 1
	# A process that may not be the second one is born outside and moves in.
	cfg '.linux.resources.pids.limit = 2'
	run -0 strace -f -e trace=clone3 -o trace "$LEAN_RUNTIME" --root "$ROOT" --systemd-cgroup run -b "$BUNDLE" "$ID"
	grep -q 'clone3.*CLONE_INTO_CGROUP.*= [0-9]' trace || fail "$(cat trace)"
}

@test "systemd: hooks in the container have the whole limit to themselves" {
	cfg '.linux.resources.pids.limit = 2 | .hooks.createContainer = [{"path": "/bin/sh", "args": ["sh", "-c", "exec cat /sys/fs/cgroup/system.slice/*'"$ID"'*/pids.current >'"$BATS_TEST_TMPDIR"'/n"]}]'
	run sd run -b "$BUNDLE" "$ID"
	[ "$status" = 0 ] || fail "$output"
	assert_eq "$(cat n)" 2
}

@test "systemd: properties by annotation" {
	cfg '.annotations = {"org.systemd.property.TimeoutStopSec": "uint64 7", "org.systemd.property.CollectMode": "'"'inactive'"'",
		"org.systemd.property.Documentation": "['"'https://example.org'"']", "org.systemd.property.ManagedOOMPreference": "\"avoid\"",
		"org.systemd.property.SendSIGHUP": "true"}'
	sleeper
	assert_eq "$(prop TimeoutStopUSec)" 7s
	assert_eq "$(prop CollectMode)" inactive
	assert_eq "$(prop Documentation)" https://example.org
	assert_eq "$(prop ManagedOOMPreference)" avoid
	assert_eq "$(prop SendSIGHUP)" yes
	rt delete --force "$ID"
	cfg '.annotations = {"org.systemd.property.NoSuchThing": "true"}'
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" 'annotations["org.systemd.property.NoSuchThing"]'
	cfg '.annotations = {"org.systemd.property.SendSIGHUP": "perhaps"}'
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" 'annotations["org.systemd.property.SendSIGHUP"]'
	cfg '.annotations = {"org.systemd.property.SendSIGHUP": "5"}'
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	no_unit
}

@test "systemd: slices in slices, one with an escaped dash" {
	cfg --arg p "$TAG-a-b\\x2dc.slice:lr:$ID" '.linux.cgroupsPath = $p'
	sleeper
	[ -d "/sys/fs/cgroup/$TAG.slice/$TAG-a.slice/$TAG-a-b\\x2dc.slice/$UNIT" ]
	assert_eq "$(prop Slice)" "$TAG-a-b\\x2dc.slice"
	rt delete --force "$ID"
	systemctl stop "$TAG.slice"
}

@test "systemd: a container that is a slice" {
	cfg --arg p "system.slice:lr:$TAG-a.slice" '.linux.cgroupsPath = $p | .linux.resources.memory.limit = 67108864'
	sleeper
	assert_eq "$(cat "/sys/fs/cgroup/$TAG.slice/$TAG-a.slice/cgroup.procs")" "$(pid_of)"
	assert_eq "$(prop MemoryMax "$TAG-a.slice")" 67108864
	rt delete --force "$ID"
	systemctl stop "$TAG.slice"
}

@test "systemd: a sub-cgroup" {
	cfg '.annotations["run.oci.systemd.subgroup"] = "container" | .linux.resources.memory.limit = 67108864 | .linux.resources.cpu.cpus = "0"'
	sleeper
	assert_eq "$(cat "$SYSTEM/$UNIT/container/cgroup.procs")" "$(pid_of)"
	assert_eq "$(cat "$SYSTEM/$UNIT/cgroup.procs")" ""
	assert_eq "$(cat "$SYSTEM/$UNIT/memory.max")" 67108864
	assert_eq "$(cat "$SYSTEM/$UNIT/container/memory.max")" 67108864
	rt update --memory 50003968 "$ID"
	assert_eq "$(prop MemoryMax)" 50003968
	rt delete --force "$ID"
	no_unit
}

@test "systemd: a delegated cgroup" {
	cfg '.annotations["run.oci.delegate-cgroup"] = "own" | .linux.resources.memory.limit = 67108864'
	sleeper
	assert_eq "$(cat "$SYSTEM/$UNIT/own/cgroup.procs")" "$(pid_of)"
	assert_eq "$(cat "$SYSTEM/$UNIT/cgroup.procs")" ""
	assert_eq "$(prop MemoryMax)" 67108864
	run -0 rt exec "$ID" cat /proc/self/cgroup
	rt delete --force "$ID"
	[ -z "$(units)" ] || fail "$(units)"
}

@test "systemd: without a cgroupsPath; empty slice" {
	cfg 'del(.linux.cgroupsPath)'
	sleeper
	[ -d "$SYSTEM/lean-runtime-$ID.scope" ]
	rt delete --force "$ID"
	cfg --arg p ":lr:$ID" '.linux.cgroupsPath = $p'
	sleeper
	[ -d "$SYSTEM/$UNIT" ]
}

@test "systemd: a cgroupsPath that names no unit is one clear error" {
	local p
	for p in "/$ID" "$ID" "a:b:c" "a.slice:$ID" "a--b.slice:lr:$ID"; do
		cfg --arg p "$p" '.linux.cgroupsPath = $p'
		run sd run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "linux.cgroupsPath"
		assert_has "$output" "slice:prefix:name"
	done
}

@test "systemd: another container's unit is left alone" {
	local first=$ID
	sleeper
	new_id
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "$UNIT exists"
	assert_has "$output" "linux.cgroupsPath"
	run rt state "$ID"
	[ "$status" -ne 0 ]
	assert_eq "$(status_of "$first")" running
	assert_eq "$(prop ActiveState)" active
}

@test "systemd: a unit that failed under the same name is no obstacle" {
	# One that is kept: no CollectMode.
	systemd-run --quiet --scope --unit "$UNIT" -p RuntimeMaxSec=1 sleep 300 || true
	wait_until sh -c "[ \"\$(systemctl show $UNIT -P ActiveState)\" = failed ]"
	run -0 sd run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	no_unit
}

@test "systemd: the unit was stopped behind our back" {
	# A first process that ignores SIGTERM.
	cfg '.annotations["org.systemd.property.TimeoutStopSec"] = "1"'
	sleeper
	systemctl stop "$UNIT"
	wait_for_status stopped "$ID"
	run rt update --memory 50003968 "$ID"
	assert_one_error
	rt delete "$ID"
	# And again, forced, with the container still young.
	sleeper
	systemctl kill --signal=KILL "$UNIT"
	rt delete --force "$ID"
	no_unit
}

@test "systemd: out of memory is no unit left in state failed" {
	cfg '.linux.resources.memory = {"limit": 8388608, "swap": 8388608} | .annotations["org.systemd.property.CollectMode"] = "'"'inactive'"'"'
	sh_cfg 'tail /dev/zero'
	run sd run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	[ -z "$(units)" ] || fail "$(systemctl status --no-pager "$UNIT")"
}

@test "systemd: what fails after the unit was started takes it along" {
	cfg '.linux.resources.unified = {"memory.nonsense": "1"}'
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" memory.nonsense
	[ -z "$(units)" ] || fail "$(units)"
	cfg 'del(.linux.resources.unified) | .process.args = ["/no/such/program"]'
	run sd run -b "$BUNDLE" "$ID"
	assert_one_error
	[ -z "$(units)" ] || fail "$(units)"
	assert_nothing_left
}

@test "systemd: the runtime is killed at any step: no unit stays, and delete finds the rest" {
	local call killed=0
	# Before systemd was asked; between the unit and the process; with the process; while limits are written.
	for call in fork:1 clone3:1 clone3:2 sendto:9 recvfrom:30 pidfd_open:1 waitid:1 wait4:1 mount_setattr:1; do
		run strace -f -o /dev/null -e trace="${call%:*}" -e inject="${call%:*}:signal=KILL:when=${call#*:}" \
			"$LEAN_RUNTIME" --root "$ROOT" --systemd-cgroup run -b "$BUNDLE" "$ID"
		[ "$status" -eq 0 ] || killed=$((killed + 1))
		rt delete --force "$ID"
		no_unit
		assert_nothing_left
	done
	# Not each kernel and systemd has all of these calls.
	[ "$killed" -ge 5 ] || fail "it was killed $killed times only"
	echo "# killed $killed times" >&3
	cfg '.hooks.createRuntime = [{"path": "/bin/sh", "args": ["sh", "-c", "kill -9 $PPID"]}]'
	run sd run -b "$BUNDLE" "$ID"
	[ "$status" -ne 0 ]
	rt delete --force "$ID"
	no_unit
}

@test "systemd: without a bus its own socket does" {
	run -0 unshare -m sh -c 'mount -t tmpfs none /run/dbus && exec "$@"' - \
		"$LEAN_RUNTIME" --root "$ROOT" --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	[ -z "$(units)" ] || fail "$(units)"
	# Neither of them.
	run unshare -m sh -c 'mount -t tmpfs none /run/dbus && mount --bind /dev/null /run/systemd/private && exec "$@"' - \
		"$LEAN_RUNTIME" --root "$ROOT" --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "/run/dbus/system_bus_socket"
	assert_has "$output" "systemctl status dbus"
}

@test "systemd: delete when systemd cannot be reached any more" {
	local i
	for i in 1 2 3 4 5; do
		sleeper
		run -0 unshare -m sh -c 'mount -t tmpfs none /run/dbus && mount --bind /dev/null /run/systemd/private && exec "$@"' - \
			"$LEAN_RUNTIME" --root "$ROOT" delete --force "$ID"
		no_unit
	done
}

@test "systemd: a bus that is something else is one clear error" {
	local sock=$BATS_TEST_TMPDIR/bus answer
	for answer in 'REJECTED EXTERNAL\r\n' 'OK 1\r\n' 'What is this?\r\n'; do
		rm -f "$sock"
		python3 - "$sock" "$answer" 3>&- <<-'PY' &
			import socket, sys
			s = socket.socket(socket.AF_UNIX)
			s.bind(sys.argv[1])
			s.listen(1)
			c = s.accept()[0]
			c.recv(100)
			c.send(sys.argv[2].encode().decode("unicode_escape").encode())
			c.recv(4096)
			c.send(b"garbage, and certainly no message\0\0\0\0")
			c.close()
		PY
		wait_until test -S "$sock"
		DBUS_SYSTEM_BUS_ADDRESS=unix:path=$sock run sd run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "talking to systemd"
		wait
	done
	assert_nothing_left
}

# --- an ordinary user -----------------------------------------------------------------------------

# user ARG...: the runtime as the user "tester", whose systemd runs (he lingers).
as_tester() {
	setpriv --reuid 1000 --regid 1000 --init-groups env -i PATH="$PATH" HOME=/home/tester LR_TEST_TAG="$TAG" \
		XDG_RUNTIME_DIR=/run/user/1000 "$@" 3>&-
}
tester() { as_tester "$HOMEDIR/lr" --root "$HOMEDIR/root" "$@"; }
his_units() { as_tester systemctl --user list-units --all --plain --no-legend "*$TAG*"; }

user_bundle() {
	HOMEDIR=$BATS_TEST_TMPDIR/home
	mkdir -p "$HOMEDIR"
	chmod 755 "$BATS_TEST_TMPDIR"
	cp "$LEAN_RUNTIME" "$HOMEDIR/lr"
	mv "$BUNDLE/rootfs" "$HOMEDIR/rootfs"
	chown -R 1000:1000 "$HOMEDIR"
	chmod a+x /var/tmp/bats-run-* "${BATS_TEST_TMPDIR%/*}" "${BATS_TEST_TMPDIR%/*/*}" 2>/dev/null || true
	(cd "$HOMEDIR" && tester spec --rootless)
	BUNDLE=$HOMEDIR
	cfg --arg p ":lr:$ID" --arg tag "$TAG" '.process.terminal = false | .linux.cgroupsPath = $p | .process.env += ["LR_TEST_TAG=" + $tag]
		| .linux.resources = {"memory": {"limit": 67108864}, "pids": {"limit": 20}}'
}

@test "systemd: rootless, from a cgroup that is not the user's" {
	user_bundle
	cfg '.process.args = ["cat", "/proc/self/cgroup"] | .linux.namespaces |= map(select(.type != "cgroup"))'
	run -0 tester --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_has "$output" "user@1000.service/user.slice/$UNIT"
	cfg '.process.args = ["/bin/sleep", "300"]'
	tester --systemd-cgroup run -d -b "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
	assert_eq "$(cat "$USER_ROOT/user.slice/$UNIT/memory.max")" 67108864
	run -0 tester exec "$ID" cat /proc/self/cgroup
	assert_has "$output" "user@1000.service/user.slice/$UNIT"
	tester update --memory 50003968 "$ID"
	assert_eq "$(as_tester systemctl --user show "$UNIT" -P MemoryMax)" 50003968
	tester delete --force "$ID"
	[ -z "$(his_units)" ] || fail "$(his_units)"
	# A limit that he was not given the controller for is named.
	cfg '.linux.resources = {"hugepageLimits": [{"pageSize": "2MB", "limit": 0}]}'
	run tester --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" hugetlb
	[ -z "$(his_units)" ] || fail "$(his_units)"
}

@test "systemd: rootless, from a unit of the user's" {
	user_bundle
	cfg '.process.args = ["echo", "hello"]'
	run -0 as_tester systemd-run --user --quiet --wait --pipe "$HOMEDIR/lr" --root "$HOMEDIR/root" --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	[ -z "$(his_units)" ] || fail "$(his_units)"
}

@test "systemd: rootless without a way to the user's systemd says what to do" {
	user_bundle
	run as_tester env -u XDG_RUNTIME_DIR "$HOMEDIR/lr" --root "$HOMEDIR/root" --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" XDG_RUNTIME_DIR
	assert_has "$output" enable-linger
	run as_tester env XDG_RUNTIME_DIR="$HOMEDIR" "$HOMEDIR/lr" --root "$HOMEDIR/root" --systemd-cgroup run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "$HOMEDIR/bus"
}

# --- managers ---------------------------------------------------------------------------------------

@test "systemd: Podman with its default cgroup manager" {
	command -v podman >/dev/null || skip "no podman"
	pod() { podman --root "$BATS_TEST_TMPDIR/store" --runroot "$BATS_TEST_TMPDIR/run" --runtime "$LEAN_RUNTIME" "$@" 3>&-; }
	tar -C "$BUNDLE/rootfs" -c . | pod import -q - "$TAG" >/dev/null
	assert_eq "$(pod info --format '{{.Host.CgroupManager}}')" systemd
	run -0 pod run --rm --network none "$TAG" echo hello
	assert_eq "$output" hello
	pod run -d --name "$TAG" --network none --memory 64m --cpus 0.5 --pids-limit 33 "$TAG" sleep 300
	local unit
	unit=libpod-$(pod inspect "$TAG" --format '{{.Id}}').scope
	assert_eq "$(prop Slice "$unit")" machine.slice
	assert_eq "$(prop MemoryMax "$unit") $(prop TasksMax "$unit") $(prop CPUQuotaPerSecUSec "$unit")" "67108864 33 500ms"
	run -0 pod exec "$TAG" echo hi
	assert_eq "$output" hi
	pod update --memory 80m "$TAG"
	assert_eq "$(prop MemoryMax "$unit")" 83886080
	pod pause "$TAG"
	pod unpause "$TAG"
	run -0 pod stats --no-stream "$TAG"
	pod rm -f -t 0 "$TAG"
	assert_eq "$(prop LoadState "$unit")" not-found
}

@test "systemd: rootless Podman with its default cgroup manager" {
	command -v podman >/dev/null || skip "no podman"
	user_bundle
	# Without the tag: a process that keeps the user's namespaces stays.
	pod() {
		setpriv --reuid 1000 --regid 1000 --init-groups env -i PATH="$PATH" HOME=/home/tester XDG_RUNTIME_DIR=/run/user/1000 \
			DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus podman --root "$HOMEDIR/store" --runtime "$HOMEDIR/lr" "$@" 3>&-
	}
	tar -C "$BUNDLE/rootfs" -c . | pod import -q - "$TAG" >/dev/null
	assert_eq "$(pod info --format '{{.Host.CgroupManager}}')" systemd
	pod run -d --name "$TAG" --network none --memory 64m --pids-limit 33 "$TAG" sleep 300
	local unit
	unit=libpod-$(pod inspect "$TAG" --format '{{.Id}}').scope
	assert_eq "$(as_tester systemctl --user show "$unit" -P MemoryMax)" 67108864
	run -0 pod exec "$TAG" echo hi
	assert_eq "$output" hi
	pod update --memory 80m "$TAG"
	assert_eq "$(as_tester systemctl --user show "$unit" -P MemoryMax)" 83886080
	pod rm -f -t 0 "$TAG"
	assert_eq "$(as_tester systemctl --user show "$unit" -P LoadState)" not-found
	pod system migrate
	rm -rf "$HOMEDIR/store"
}
