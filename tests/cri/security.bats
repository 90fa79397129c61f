#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a pod's security contexts, mounts and devices become, by containerd's CRI plug-in.

load cri.bash

setup_file() { cri_setup_file; }
teardown_file() { cri_teardown_file; }
teardown() { cri_teardown; }

# status_of FIELD...: a script that prints these of /proc/self/status, without tabs.
status_of() {
	printf 'sed -n -E "s/^(%s):\\s*/\\1 /p" /proc/self/status' "$(IFS='|' && echo "$*")"
}

@test "CRI: user, group and supplementary groups" {
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says 'id -u; id -g; id -G')" $'0\n0\n0'
		assert_eq "$(says 'id -u; id -g; id -G; pwd; touch /x 2>&1' "$(security run_as_user '{value: 1000}' \
			run_as_group '{value: 3000}' supplemental_groups '[4000, 5000]')" | sed 's/^touch.*/denied/')" \
			$'1000\n3000\n3000 2000 4000 5000\n/\ndenied'
		assert_eq "$(says 'id -un; id -g' "$(security run_as_username '"tester"')")" $'tester\n1000'
		# A user whom the image doesn't know.
		assert_eq "$(says 'id -u; id -G' "$(security run_as_user '{value: 4321}')")" $'4321\n0'
		# exec has the same.
		sleeper one "$(security run_as_user '{value: 1000}' run_as_group '{value: 3000}')"
		assert_eq "$(inside sh -c 'id -u; id -g')" $'1000\n3000'
	done
}

@test "CRI: capabilities are added and dropped" {
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says "$(status_of CapEff CapBnd)")" $'CapEff 00000000a80425fb\nCapBnd 00000000a80425fb'
		assert_eq "$(says "$(status_of CapEff CapBnd)" "$(security capabilities.drop_capabilities '["ALL"]' \
			capabilities.add_capabilities '["NET_ADMIN"]')")" $'CapEff 0000000000001000\nCapBnd 0000000000001000'
		assert_eq "$(says "$(status_of CapEff)" "$(security capabilities.drop_capabilities '["KILL", "CHOWN"]')")" 'CapEff 00000000a80425da'
		# Another user has none in effect.
		assert_eq "$(says "$(status_of CapEff CapBnd)" "$(security run_as_user '{value: 1000}')")" \
			$'CapEff 0000000000000000\nCapBnd 00000000a80425fb'
		run -0 says 'ip link set lo down && echo set' "$(security capabilities.add_capabilities '["NET_ADMIN"]')"
		assert_eq "$output" set
	done
}

@test "CRI: privileged" {
	local all
	all=$(sed -n 's/^CapEff:\t//p' /proc/self/status)
	for HANDLER in $HANDLERS; do
		pod '.linux.security_context.privileged = true'
		assert_eq "$(says "$(status_of CapEff Seccomp); mount -t tmpfs none /mnt && echo mounted; ls /dev/loop-control /dev/kmsg 2>/dev/null | grep -c .;
			mkdir /sys/fs/cgroup/*/x 2>/dev/null; grep -c ' /proc/[a-z]' /proc/self/mounts" "$(security privileged true)" | grep -v -E '^[1-9]$')" \
			"CapEff $all"$'\nSeccomp 0\nmounted\n0'
		# The pod next to it is not.
		pod
		assert_has "$(says 'mount -t tmpfs none /mnt 2>&1; true')" "ermission denied"
	done
}

@test "CRI: a read-only root, and no new privileges" {
	for HANDLER in $HANDLERS; do
		pod
		assert_has "$(says 'touch /x 2>&1; touch /dev/shm/y && echo shm' "$(security readonly_rootfs true)")" $'Read-only file system\nshm'
		assert_eq "$(says "$(status_of NoNewPrivs)" "$(security no_new_privs true)")" "NoNewPrivs 1"
		assert_eq "$(says "$(status_of NoNewPrivs)")" "NoNewPrivs 0"
	done
}

@test "CRI: seccomp: none, the default and one of the host's" {
	echo '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}' \
		>"$BATS_TEST_TMPDIR/no-mkdir.json"
	local try
	try="$(status_of Seccomp); mkdir /d 2>&1 && echo made; unshare -m true 2>&1 | sed 's/.*: //'"
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says "$try" "$(security seccomp '{profile_type: "Unconfined"}')")" $'Seccomp 0\nmade\nOperation not permitted'
		assert_eq "$(says "$try" "$(security seccomp '{profile_type: "RuntimeDefault"}')")" $'Seccomp 2\nmade\nOperation not permitted'
		assert_eq "$(says "$try" "$(security seccomp "{profile_type: \"Localhost\", localhost_ref: \"$BATS_TEST_TMPDIR/no-mkdir.json\"}")")" \
			$'Seccomp 2\nmkdir: can\'t create directory \'/d\': No space left on device\nOperation not permitted'
		# Only the filter can refuse that to somebody with every capability in a user namespace of his own.
		run -0 says 'unshare -U true && echo unshared; true' "$(security seccomp '{profile_type: "RuntimeDefault"}')"
		assert_hasnt "$output" unshared
	done
}

@test "CRI: masked and read-only paths" {
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says 'cat /proc/kcore 2>/dev/null | wc -c; cat /proc/timer_list | wc -l; ls /proc/acpi /sys/firmware 2>/dev/null | grep -v : | grep -c .;
			echo 1 2>&1 >/proc/sys/vm/overcommit_memory' \
			"$(security masked_paths '["/proc/kcore", "/proc/timer_list", "/proc/acpi", "/sys/firmware"]' readonly_paths '["/proc/sys"]')" |
			sed 's/^sh: //')" $'0\n0\n0\ncan\'t create /proc/sys/vm/overcommit_memory: Read-only file system'
		# Neither is named: nothing is covered.
		assert_eq "$(says 'grep -c " /proc/" /proc/self/mounts' "$(security masked_paths '[]' readonly_paths '[]')")" 0
	done
}

# A directory on the host that is a shared mount.
shared_dir() {
	mkdir -p "$1"
	mount -t tmpfs "${2:-shared}" "$1"
	mount --make-shared "$1"
}

@test "CRI: mounts: read-only, writable, and files" {
	local d=$BATS_TEST_TMPDIR/d
	mkdir "$d"
	echo text >"$d/file"
	for HANDLER in $HANDLERS; do
		pod
		run -0 says 'cat /rw/file /single; echo new >/rw/new; touch /ro/x 2>&1; touch /single 2>&1; echo more >>/ro/file; true' \
			".mounts = [$(mount_of /rw "$d"), $(mount_of /ro "$d" '{"readonly": true}'), $(mount_of /single "$d/file" '{"readonly": true}')]"
		assert_has "$output" $'text\ntext'
		assert_has "$output" "/ro/x: Read-only file system"
		assert_has "$output" "/single: Read-only file system"
		assert_eq "$(cat "$d/new" "$d/file")" $'new\ntext'
		rm "$d/new"
		# What isn't there is made.
		says 'touch /made/x' ".mounts = [$(mount_of /made "$d/made")]"
		[ -e "$d/made/x" ]
		rm -r "$d/made"
		# A link on the host is followed there, none in the image.
		ln -s d "$BATS_TEST_TMPDIR/link"
		assert_eq "$(says 'cat /a/b/c/file' ".mounts = [$(mount_of /a/b/c "$BATS_TEST_TMPDIR/link")]")" text
		rm "$BATS_TEST_TMPDIR/link"
	done
}

@test "CRI: mounts are propagated as they are asked to" {
	local d=$BATS_TEST_TMPDIR/shared
	shared_dir "$d"
	mkdir "$d/host" "$d/container"
	for HANDLER in $HANDLERS; do
		pod '.linux.security_context.privileged = true'
		sleeper private "$(security privileged true) | .mounts = [$(mount_of /s "$d")]"
		local private=$BOX
		sleeper slave "$(security privileged true) | .mounts = [$(mount_of /s "$d" '{"propagation": "PROPAGATION_HOST_TO_CONTAINER"}')]"
		local slave=$BOX
		sleeper shared "$(security privileged true) | .mounts = [$(mount_of /s "$d" '{"propagation": "PROPAGATION_BIDIRECTIONAL"}')]"
		mount -t tmpfs of-host "$d/host"
		touch "$d/host/f"
		assert_eq "$(BOX=$private inside ls /s/host)$(BOX=$slave inside ls /s/host)$(inside ls /s/host)" ff
		inside sh -c 'mount -t tmpfs of-container /s/container && touch /s/container/g'
		assert_eq "$(ls "$d/container")$(BOX=$slave inside ls /s/container)" gg
		assert_eq "$(BOX=$private inside ls /s/container)" ""
		inside umount /s/container
		umount "$d/host"
		assert_eq "$(inside ls /s/host /s/container | grep -v -E '^(/.*|)$')" ""
		cri StopPodSandbox "$POD"
	done
	umount "$d"
}

@test "CRI: bidirectional propagation of what is private on the host is refused" {
	local d=$BATS_TEST_TMPDIR/private
	mkdir "$d"
	mount -t tmpfs private "$d"
	mount --make-private "$d"
	for HANDLER in $HANDLERS; do
		pod '.linux.security_context.privileged = true'
		run ! sleeper one "$(security privileged true) | .mounts = [$(mount_of /s "$d" '{"propagation": "PROPAGATION_BIDIRECTIONAL"}')]"
		assert_match "$output" 'not a shared( or slave)? mount'
	done
	umount "$d"
}

@test "CRI: devices" {
	# One that nobody has a driver for, as those that every container has may be written to in any case.
	mknod "$BATS_TEST_TMPDIR/device" c 240 77
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says 'head -c 1 /dev/of-nobody; echo x >/dev/of-nobody' \
			".devices = [{host_path: \"$BATS_TEST_TMPDIR/device\", container_path: \"/dev/of-nobody\", permissions: \"r\"}]" | sed 's/.*: //')" \
			$'No such device or address\nOperation not permitted'
		# Others may be made, but not opened.
		assert_has "$(says 'mknod /dev/own c 1 1 && head -c 1 /dev/own; true')" "Operation not permitted"
	done
}

@test "CRI: environment, arguments, working directory, and the score for the out-of-memory killer" {
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says '' '.command = ["sh", "-c"] | .args = ["echo $0 $1 $V; pwd'"$SAID"'", "zero", "one"] | .working_dir = "/made/by/runtime" | .envs = [{key: "V", value: "v=w"}]')" \
			$'zero one v=w\n/made/by/runtime'
		# The image's entry point.
		assert_eq "$(says '' 'del(.command) | .args = ["-c", "echo by the image'"$SAID"'"]')" "by the image"
		assert_eq "$(says 'cat /proc/self/oom_score_adj' '.linux.resources.oom_score_adj = 900')" 900
	done
}
