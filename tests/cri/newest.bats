#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What containerd's CRI plug-in does since version 2, for which it asks the runtime's `features`.

load cri.bash

setup_file() {
	cri_setup_file
	MAJOR=$(containerd_major)
	export MAJOR
}
teardown_file() { cri_teardown_file; }
teardown() { cri_teardown; }

needs_containerd2() {
	[ "$MAJOR" -ge 2 ] || skip "containerd is older than 2"
}

# feature NAME: does containerd say that the handler has it?
feature() {
	[ "$(cri Status false | jq -r --arg h "$HANDLER" --arg f "$1" '.runtimeHandlers[] | select(.name == $h) | .features[$f]')" = true ]
}

@test "CRI: containerd learns from features what the handler is able to do" {
	needs_containerd2
	HANDLER=lean
	feature recursiveReadOnlyMounts
	feature userNamespaces
}

@test "CRI: a recursively read-only mount" {
	needs_containerd2
	local d=$BATS_TEST_TMPDIR/d
	mkdir "$d"
	mount -t tmpfs upper "$d"
	mkdir "$d/below"
	mount -t tmpfs below "$d/below"
	for HANDLER in $HANDLERS; do
		feature recursiveReadOnlyMounts || continue
		pod
		assert_eq "$(says 'touch /m/x 2>/dev/null || echo refused; touch /m/below/x && echo writable' ".mounts = [$(mount_of /m "$d" '{"readonly": true}')]")" \
			$'refused\nwritable'
		run -0 says 'touch /m/x 2>/dev/null || echo refused; touch /m/below/x 2>/dev/null || echo refused below' \
			".mounts = [$(mount_of /m "$d" '{"readonly": true, "recursive_read_only": true, "propagation": "PROPAGATION_PRIVATE"}')]"
		assert_eq "$output" $'refused\nrefused below'
		start shown 'exec sleep 300' ".mounts = [$(mount_of /m "$d" '{"readonly": true, "recursive_read_only": true}')]"
		assert_eq "$(cri ContainerStatus "$BOX" false | jq -r '.status.mounts[] | select(.containerPath == "/m") | .recursiveReadOnly')" true
	done
	umount -R "$d"
}

USERNS='.linux.security_context.namespace_options.userns_options = {mode: "POD",
	uids: [{container_id: 0, host_id: 100000, length: 65536}], gids: [{container_id: 0, host_id: 200000, length: 65536}]}'

@test "CRI: a pod with a user namespace" {
	needs_containerd2
	local d=$BATS_TEST_TMPDIR/volume
	mkdir "$d"
	touch "$d/of-root"
	chown 1000:1000 "$d"
	for HANDLER in $HANDLERS; do
		feature userNamespaces || continue
		pod "$USERNS"
		assert_eq "$(says 'cat /proc/self/uid_map /proc/self/gid_map | tr -s " "; id -u; touch /x && stat -c %u:%g /x; stat -c %u:%g /etc')" \
			$' 0 100000 65536\n 0 200000 65536\n0\n0:0\n0:0'
		# A volume has the pod's ids, too.
		assert_eq "$(says 'stat -c %u:%g /v /v/of-root; touch /v/made; stat -c %u:%g /v/made; id -u' \
			".mounts = [$(mount_of /v "$d" "$(jq -n -c "$USERNS"' | .linux.security_context.namespace_options.userns_options | {uidMappings: .uids, gidMappings: .gids}')")]
			| $(security run_as_user '{value: 1000}')")" $'1000:1000\n0:0\n1000:1000\n1000'
		assert_eq "$(stat -c %u:%g "$d/made")" 1000:1000
		rm "$d/made"
		sleeper
		assert_eq "$(stat -c %u "/proc/$(cri ContainerStatus "$BOX" true | jq -r '.info.info | fromjson | .pid')")" 100000
		assert_eq "$(inside sh -c 'id -u; hostname; ip addr show eth0 | grep -c 10.98.0.')" $'0\na-pod\n1'
		# Root there may do to its own network what root here may do to ours, and nothing to ours.
		assert_eq "$(says 'ip link set lo down && echo own; mount -t tmpfs none /mnt && echo mounted; echo 1 2>/dev/null >/proc/sys/vm/overcommit_memory || echo refused' \
			"$(security capabilities.add_capabilities '["SYS_ADMIN", "NET_ADMIN"]')")" $'own\nmounted\nrefused'
		# Two containers of the pod are in one user namespace, two pods are not.
		local first
		first=$(inside readlink /proc/self/ns/user)
		sleeper second
		assert_eq "$(inside readlink /proc/self/ns/user)" "$first"
		[ "$first" != "$(readlink /proc/self/ns/user)" ]
		pod "$USERNS"
		sleeper
		[ "$(inside readlink /proc/self/ns/user)" != "$first" ]
	done
}

@test "CRI: a pod with a user namespace and one pid namespace, and the lean profile" {
	needs_containerd2
	HANDLER=lean
	pod "$USERNS"' | .linux.security_context.namespace_options.pid = "POD"'
	sleeper
	assert_eq "$(inside cat /proc/1/comm)" pause
	pod "$USERNS"' | .annotations = {"org.lean-runtime.profile": "lean"}'
	assert_has "$(says 'touch /x 2>&1; head -n 1 /proc/self/uid_map | tr -s " "')" $'Read-only file system\n 0 100000 65536'
}

@test "CRI: an image is a volume" {
	needs_containerd2
	for HANDLER in $HANDLERS; do
		pod
		run -0 says 'cat /image/etc/motd; touch /image/x 2>&1; true' ".mounts = [{container_path: \"/image\", readonly: true, image: {image: \"$BB\"}}]"
		assert_has "$output" 'busybox test image'
		assert_has "$output" 'Read-only file system'
	done
}

@test "CRI: supplementary groups that the image's are not merged with" {
	needs_containerd2
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(says 'id -G' "$(security run_as_user '{value: 1000}' run_as_group '{value: 1000}' supplemental_groups '[4000]' \
			supplemental_groups_policy '"Strict"')")" '1000 4000'
	done
}

@test "CRI: a checkpoint of a container" {
	needs_containerd2
	command -v criu >/dev/null || skip "criu is not installed"
	HANDLER=lean
	pod
	start counts 'i=0; while :; do i=$((i + 1)); echo $i >/n; sleep 0.1; done'
	wait_until eval '[ "$(inside cat /n)" -gt 3 ]'
	run cri CheckpointContainer "{\"container_id\": \"$BOX\", \"location\": \"$BATS_TEST_TMPDIR/checkpoint.tar\"}"
	[[ $output != *"not implemented"* && $output != *Unimplemented* ]] || skip "containerd has no checkpoints by CRI"
	assert_eq "$status $output" "0 "
	run -0 tar -tf "$BATS_TEST_TMPDIR/checkpoint.tar"
	assert_match "$output" 'checkpoint/(inventory.img|core-1.img)'
	# It goes on.
	local at
	at=$(inside cat /n)
	wait_until eval "[ \"\$(inside cat /n)\" -gt $at ]"
}
