#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What every option becomes in criu's request, as protoc(1) reads it by criu's own rpc.proto; and how
# answers are taken that criu would not give. By a criu that is none.

load helpers.bash

setup() {
	checkpoint_setup
	export FAKE_DIR=$PWD/fake
	mkdir fake
	cfg '.process.args = ["/bin/sleep", "300"]'
}
teardown() {
	common_teardown
}

# The last request, decoded; without protoc the test is none.
request() {
	command -v protoc >/dev/null || skip "protoc is not installed"
	[ -e "$LR_CRIU/rpc.proto" ] || skip "criu's rpc.proto is not installed"
	local last
	last=$(find fake -name 'request.*' | sort -V | tail -n 1)
	protoc --proto_path="$(dirname "$(realpath "$LR_CRIU/rpc.proto")")" --decode=criu_req rpc.proto <"$last"
}

images() {
	mkdir -m 700 "$IMG"
	(umask 077 && "$LR_HERE/fake-criu" images "$IMG")
}

fake() {
	rt --criu "$LR_HERE/fake-criu" "$@"
}

# asks VERB "OPTION..." WORDS...: they are in the request that these options make.
asks() {
	local verb=$1
	shift
	"asks_$verb" "$@"
}

asks_checkpoint() {
	local options=$1 word got
	shift
	# shellcheck disable=SC2086 # one word each
	fake checkpoint --leave-running --image-path "$IMG" $options "$ID" || return 1
	got=$(request | tr -s ' \n' ' ')
	for word; do assert_has "$got" "$word"; done
}

asks_restore() {
	local options=$1 word got
	shift
	# shellcheck disable=SC2086 # one word each
	run fake restore --detach --image-path "$IMG" --bundle "$BUNDLE" $options "$TAG-r" </dev/null
	assert_one_error
	assert_has "$output" "the fake says no"
	got=$(request | tr -s ' \n' ' ')
	for word; do assert_has "$got" "$word"; done
	assert_eq "$(list_ids | grep -x "$TAG-r" || true)" ""
}

@test "checkpoint: our table of criu's options is that of its rpc.proto" {
	[ -e "$LR_CRIU/rpc.proto" ] || skip "criu's rpc.proto is not installed"
	python3 - "$LR_CRIU/rpc.proto" "$LR_HERE/../../src/criu/message.c" <<-'END'
		import re, sys
		proto = re.search(r'message criu_opts \{(.*?)\n\}', open(sys.argv[1]).read(), re.S)[1]
		theirs = {m[2]: (m[1], m[3]) for m in re.finditer(r'(?:optional|required|repeated)\s+(\w+)\s+(\w+)\s*=\s*(\d+)', proto)}
		source = open(sys.argv[2]).read()
		ours = re.findall(r'\tFIELD(?:_AS)?\((\w+), (\d+), ([A-Z_]+)', source)
		kinds = {'BOOL': {'bool'}, 'INT': {'int32', 'uint32', 'criu_cg_mode', 'criu_network_lock_method'}, 'STRING': {'string'},
		         'KEYS': {'string'}, 'FDS': {'inherit_fd'}, 'ROOTS': {'cgroup_root'},
		         'PAGE_SERVER': {'criu_page_server_info'}}
		assert len(ours) > 30, ours
		for name, number, kind in ours:
		    assert theirs[name][1] == number and theirs[name][0] in kinds[kind], (name, number, kind, theirs[name])
	END
}

@test "checkpoint: every option in the request, one by one" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	mkdir -m 700 parent
	asks checkpoint "--tcp-established" "type: DUMP" "leave_running: true" "tcp_established: true" "pid: $(pid_of)"
	asks checkpoint "--ext-unix-sk" "ext_unix_sk: true"
	asks checkpoint "--shell-job" "shell_job: true"
	asks checkpoint "--file-locks" "file_locks: true"
	asks checkpoint "--auto-dedup" "auto_dedup: true"
	asks checkpoint "--link-remap" "link_remap: true"
	asks checkpoint "--tcp-skip-in-flight" "tcp_skip_in_flight: true"
	asks checkpoint "--tcp-close" "tcp_close: true"
	asks checkpoint "--lazy-pages" "lazy_pages: true"
	asks checkpoint "--lazy-pages --status-fd 9" "status_fd: 6" 9>status
	asks checkpoint "--page-server 192.0.2.7:1234" 'ps { address: "192.0.2.7" port: 1234 }'
	asks checkpoint "--page-server [::1]:1234" 'ps { address: "::1" port: 1234 }'
	asks checkpoint "--empty-ns network" "empty_ns: 1073741824"
	asks checkpoint "--manage-cgroups-mode full" "manage_cgroups_mode: FULL" "manage_cgroups: true"
	asks checkpoint "--manage-cgroups-mode strict" "manage_cgroups_mode: STRICT"
	asks checkpoint "--manage-cgroups-mode soft" "manage_cgroups_mode: SOFT"
	asks checkpoint "--manage-cgroups-mode ignore" "manage_cgroups_mode: IGNORE"
	asks checkpoint "" "manage_cgroups_mode: SOFT" "notify_scripts: true" "orphan_pts_master: true" 'log_file: "dump.log"'
	asks checkpoint "--network-lock nftables" "network_lock: NFTABLES"
	asks checkpoint "--network-lock skip" "network_lock: SKIP"
	asks checkpoint "--network-lock iptables" "network_lock: IPTABLES"
	asks checkpoint "--pre-dump --parent-path ../parent" "type: PRE_DUMP" "track_mem: true" 'parent_img: "../parent"'
	asks checkpoint "--parent-path ../parent" "type: DUMP" "track_mem: true" 'parent_img: "../parent"'
	assert_eq "$(status_of)" running
}

@test "restore: every option in the request, one by one" {
	images
	echo '["pipe:[11]","/dev/null","pipe:[12]"]' >"$IMG/descriptors.json"
	asks restore "--tcp-established" "type: RESTORE" "tcp_established: true" "rst_sibling: true"
	asks restore "--tcp-close" "tcp_close: true"
	asks restore "--ext-unix-sk" "ext_unix_sk: true"
	asks restore "--shell-job" "shell_job: true"
	asks restore "--file-locks" "file_locks: true"
	asks restore "--auto-dedup" "auto_dedup: true"
	asks restore "--lazy-pages" "lazy_pages: true"
	asks restore "--empty-ns network" "empty_ns: 1073741824"
	asks restore "--manage-cgroups-mode ignore" "manage_cgroups_mode: IGNORE"
	asks restore "--network-lock skip" "network_lock: SKIP"
	asks restore "--lsm-profile selinux:container_t" 'lsm_profile: "selinux:container_t"'
	asks restore "--lsm-mount-context system_u:c:d:s0" 'lsm_mount_context: "system_u:c:d:s0"'
	asks restore "--no-pivot --no-subreaper" "type: RESTORE"
	asks restore "-no-subreaper" 'inherit_fd { key: "pipe:[11]" fd: 4 }' 'inherit_fd { key: "pipe:[12]" fd: 6 }'
	asks restore "" 'log_file: "restore.log"' 'external: "mnt[/dev/null]:' 'cg_root { '
}

@test "restore: images without descriptors.json, as crun's, have nothing of the caller's to attach" {
	images
	asks restore "" "type: RESTORE"
	assert_hasnt "$(request)" inherit_fd
}

@test "checkpoint: the administrator's options for criu: the annotation, or one of three files" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	cfg '.annotations["org.criu.config"] = "/etc/criu/mine.conf"'
	asks checkpoint "" 'config_file: "/etc/criu/mine.conf"'
	cfg '.annotations["org.criu.config"] = ""'
	asks checkpoint ""
	assert_hasnt "$(request)" config_file
	cfg 'del(.annotations["org.criu.config"])'
	# An /etc with nothing in it but these.
	cat >script <<-'END'
		set -eu
		mount -t tmpfs none /etc
		mkdir /etc/criu
		for name in none crun.conf runc.conf lean-runtime.conf; do
			touch "/etc/criu/$name"
			"$LEAN_RUNTIME" --root "$ROOT" --criu "$LR_HERE/fake-criu" checkpoint --leave-running --image-path "$IMG" "$ID"
		done
	END
	rm fake/*
	export ROOT ID IMG
	run -0 timeout 60 unshare -m bash script </dev/null 3>&-
	assert_eq "$(grep -ao '/etc/criu/[a-z-]*.conf' fake/* | sort -V | cut -d : -f 2 | tr '\n' ' ')" \
		"/etc/criu/crun.conf /etc/criu/runc.conf /etc/criu/lean-runtime.conf "
}

@test "checkpoint: criu is found where systems have it when the caller has no PATH" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	cat >script <<-'END'
		mount -t tmpfs none /usr/local/sbin
		cp "$LR_HERE/fake-criu" /usr/local/sbin/criu
		env -i FAKE_DIR="$FAKE_DIR" "$LEAN_RUNTIME" --root "$ROOT" checkpoint --leave-running --image-path "$IMG" "$ID"
	END
	export ROOT ID IMG
	run -0 timeout 60 unshare -m bash script </dev/null 3>&-
	[ -e fake/request.1 ]
}

@test "checkpoint: what the kernel lacks, as criu says, is refused before anything is done" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	mkdir -m 700 parent
	FAKE_FEATURES=mem run fake checkpoint --image-path "$IMG" --lazy-pages "$ID"
	assert_one_error
	assert_has "$output" userfaultfd
	for options in "--pre-dump" "--parent-path ../parent"; do
		# shellcheck disable=SC2086 # words
		FAKE_FEATURES=lazy run fake checkpoint --image-path "$IMG" $options "$ID"
		assert_one_error
		assert_has "$output" CONFIG_MEM_SOFT_DIRTY
	done
	[ ! -e "$IMG" ]
	# Lazy pages are not asked for where there are none.
	FAKE_FEATURES=mem fake checkpoint --image-path "$IMG" --pre-dump --lazy-pages "$ID"
	rt delete --force "$ID"
	FAKE_FEATURES=mem run fake restore --detach --image-path "$IMG" --lazy-pages --bundle "$BUNDLE" "$TAG-r" </dev/null
	assert_one_error
	assert_has "$output" userfaultfd
}

@test "checkpoint: the parent directory has to be there, a directory, and nobody else's" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	mkdir -m 777 open
	touch file
	while read -r parent words; do
		run fake checkpoint --leave-running --image-path "$IMG" --parent-path "../$parent" "$ID"
		assert_one_error
		assert_has "$output" "$words"
	done <<-END
		none no such file
		file is no directory
		open could change the images
	END
}

@test "restore: what covers masked paths has to be the null device" {
	images
	touch none
	cat >script <<-'END'
		exec 9>/dev/null
		mount --bind none /dev/null
		"$LEAN_RUNTIME" --root "$ROOT" --criu "$LR_HERE/fake-criu" restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$TAG-r"
	END
	export ROOT TAG BUNDLE IMG
	run timeout 60 unshare -m bash script </dev/null 3>&-
	assert_one_error
	assert_has "$output" "is not the null device"
	assert_eq "$(list_ids)" ""
}

@test "checkpoint and restore: a rootless runtime is told that it cannot" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	run fake --rootless=true checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "cannot checkpoint a rootless container"
	run fake --rootless=true restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$TAG-r" </dev/null
	assert_one_error
	assert_has "$output" "cannot restore a container as rootless"
	assert_eq "$(find fake -type f)" ""
}

@test "checkpoint: a container without a mount namespace of its own is refused" {
	without_ns mount
	cfg 'del(.mounts, .linux.maskedPaths, .linux.readonlyPaths)'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "mount namespace"
}

@test "checkpoint: a dump that fails leaves a paused container paused" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	rt pause "$ID"
	FAKE_FAIL=1 run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_eq "$(status_of)" paused
}

# Writes all the time that it runs.
writer() {
	cfg '.process.args = ["/bin/sh", "-c", "while :; do echo; done >/runs"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$BUNDLE/rootfs/runs"
	rt pause "$ID"
}
written() { stat -c %s "$BUNDLE/rootfs/runs"; }

@test "checkpoint: a paused container does not run when nothing of it is saved" {
	local before
	writer
	before=$(written)
	mkdir -m 777 open
	for options in "--engine=fork" "--image-path open" "--page-server nowhere" "--empty-ns mount"; do
		# shellcheck disable=SC2086 # one word each
		run fake checkpoint $options "$ID"
		assert_one_error
	done
	run rt --criu /nonexistent checkpoint "$ID"
	assert_one_error
	assert_eq "$(written)" "$before"
}

@test "checkpoint: a paused container whose runtime is killed while it is saved is paused again" {
	writer
	export FAKE_DOES='kill -KILL "$(sed -n "s/^PPid:\t//p" /proc/$PPID/status)"'
	run fake checkpoint --image-path "$IMG" "$ID"
	assert_eq "$status" 137
	wait_until eval '[ "$(status_of)" = paused ]'
	# Its lock is free.
	rt resume "$ID"
	rt delete --force "$ID"
}

@test "checkpoint: options that cannot work are refused, with the reason" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	run fake checkpoint --image-path "$IMG" --empty-ns mount "$ID"
	assert_one_error
	assert_has "$output" "no other"
	run fake checkpoint --image-path "$IMG" --empty-ns nothing "$ID"
	assert_one_error
	run fake checkpoint --image-path "$IMG" --page-server nowhere "$ID"
	assert_one_error
	assert_has "$output" "ADDRESS:PORT"
	run fake checkpoint --image-path "$IMG" --status-fd 1 "$ID"
	assert_one_error
	assert_has "$output" "lazy-pages"
	assert_eq "$(status_of)" running
}

@test "checkpoint: a criu that is too old, and answers that are none" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	FAKE_VERSION=31602 run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "criu 3.16.2 is too old"
	for answer in ff 0801 "08ffffffffffffffffffff01" "0a05" "5205ffffffff"; do
		FAKE_ANSWER=$answer run fake checkpoint --image-path "$IMG" "$ID"
		assert_one_error
	done
	# Cut off, it would be understood.
	FAKE_ANSWER=08011001 FAKE_TIMES=20000 run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "criu answers at too great a length"
	FAKE_FAIL=1 run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "the fake says no"
	assert_eq "$(status_of)" running
}

@test "checkpoint: a mount that is not in config.json is refused by its name" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	mkdir extra
	jq -n --arg d "$PWD/extra" '[{destination: "/tmp/extra", type: "bind", source: $d, options: ["bind"]}]' >mounts.json
	rt mounts add "$ID" mounts.json
	run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "/tmp/extra"
	assert_has "$output" "is not in config.json"
}

# late NAME=SHELL: what `fake checkpoint` comes to when criu does that at its end, and has taken its time before.
late() {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	run env FAKE_DOES='sleep 11' "${1//PID/$(pid_of)}" timeout 90 \
		"$LEAN_RUNTIME" --root "$ROOT" --criu "$LR_HERE/fake-criu" checkpoint --image-path "$IMG" "$ID" 3>&-
}

@test "checkpoint: a criu that does not answer, or does not end, when all is written and the container has ended is killed" {
	late "FAKE_DUMPED=kill -KILL PID; sleep 300"
	assert_one_error
	assert_has "$output" "criu has not answered"
	assert_has "$output" "its images may be good"
	rt delete --force "$ID"
	rm -r "$IMG"
	# It has answered.
	late "FAKE_LATE=kill -KILL PID; sleep 300"
	assert_eq "$status $output" "0 "
	run ! rt state "$ID"
	assert_eq "$(left_processes)" ""
}

@test "checkpoint: a criu that dies, or has written nothing, does not cost the container its life" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	mkdir -m 700 "$IMG"
	echo '(00.000001) Error (criu/old.c:1): of another day' >"$IMG/dump.log"
	FAKE_DOES='kill -KILL $PPID' run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "it ended without an answer"
	assert_eq "$(status_of)" running
	FAKE_LACKS=inventory.img run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "inventory.img"
	assert_eq "$(status_of)" running
	for lacking in pstree.img ids-1.img mountpoints-7.img; do
		rm -f "$IMG"/*.img
		FAKE_LACKS=$lacking run fake checkpoint --image-path "$IMG" "$ID"
		assert_one_error
		assert_has "$output" "$lacking"
		assert_eq "$(status_of)" running
	done
}

@test "checkpoint: what a criu has saved without a word before its end is no checkpoint" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	FAKE_SILENT=1 run fake checkpoint --image-path "$IMG" "$ID"
	assert_one_error
	assert_has "$output" "criu did not wait for what it saved to be checked"
	[ -e "$IMG/pstree.img" ]
	[ ! -e "$IMG/inventory.img" ]
}

@test "checkpoint: what is paused is thawed for criu, and paused again when that has died (v2)" {
	counter
	cat >script <<-END
		set -eu
		if [ "\$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
			mount --make-rprivate /
			mount -t cgroup2 none /sys/fs/cgroup
		fi
		rt() { timeout 60 "$LEAN_RUNTIME" --root "$ROOT" "\$@"; }
		rt run --detach --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1
		rt pause "$ID"
		export FAKE_DOES='cat /sys/fs/cgroup/$ID/cgroup.freeze >seen; kill -KILL \$PPID'
		rt --criu "$LR_HERE/fake-criu" checkpoint --image-path "$IMG" "$ID" && exit 3
		cat seen
		rt state "$ID" | jq -r .status
		rt delete --force "$ID"
	END
	grep -q cgroup2 /proc/filesystems || skip "no v2 tree"
	run -0 --separate-stderr unshare --mount timeout 120 bash script </dev/null 3>&-
	assert_eq "$output" "$(printf '0\npaused')"
}

# hierarchies DIRECTORY: "name device:inode" of each in it, as the shell that criu's child is can see them.
hierarchies() {
	local d
	for d in "$1"/*; do echo "${d##*/} $(stat -Lc %d:%i "$d/")"; done | sort
}

@test "checkpoint and restore: criu is shown each cgroup hierarchy of the host, and need not mount one" {
	local v2=/sys/fs/cgroup expected
	[ ! -d $v2/unified ] || v2=$v2/unified
	[ "$(stat -f -c %T $v2)" = cgroup2fs ] || skip "no v2 tree"
	[ "$(stat -Lc %i /proc/self/ns/cgroup)" = 4026531835 ] || skip "in a cgroup namespace of its own"
	expected=$(
		while IFS=: read -r _ name _; do
			dir=/sys/fs/cgroup/${name#name=}
			[ -n "$name" ] || dir=$v2
			[ -n "$name" ] || name=unified
			echo "${name#name=} $(stat -Lc %d:%i "$dir")"
		done </proc/self/cgroup | sort
	)
	assert_has "$expected" "unified "
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	FAKE_DOES="$(declare -f hierarchies); hierarchies /proc/\$PPID/fd/6 >yard" fake checkpoint --leave-running --image-path "$IMG" "$ID"
	assert_eq "$(cat yard)" "$expected"
	asks checkpoint "" 'cgroup_yard: "/proc/self/fd/6"'
	asks checkpoint "--lazy-pages --status-fd 9" 'cgroup_yard: "/proc/self/fd/7"' 9>status
	rt delete --force "$ID"
	rm yard
	FAKE_DOES="$(declare -f hierarchies); hierarchies '$ROOT/$TAG-r/cgroups' >yard" asks restore "" "cgroup_yard: \"$ROOT/$TAG-r/cgroups\""
	assert_eq "$(cat yard)" "$expected"
	# Who sees paths that begin elsewhere is shown none, and changes nothing of the host's by a mount.
	rm fake/*
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	run -0 unshare --cgroup "$LEAN_RUNTIME" --root "$ROOT" --criu "$LR_HERE/fake-criu" checkpoint --leave-running --image-path "$IMG" "$ID" 3>&-
	assert_hasnt "$(request)" cgroup_yard
}

@test "checkpoint: a criu that is killed is not waited for, and its helpers end with it" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	# One that has the socket as the real one's helpers have.
	FAKE_DOES='sleep 300 & echo $! >helper; kill -KILL $PPID' run timeout 60 "$LEAN_RUNTIME" --root "$ROOT" \
		--criu "$LR_HERE/fake-criu" checkpoint --image-path "$IMG" "$ID" </dev/null 3>&-
	assert_eq "$status" 1
	assert_has "$output" "it ended without an answer"
	wait_until eval '! kill -0 "$(cat helper)" 2>/dev/null'
	assert_eq "$(status_of)" running
}

@test "restore: a process that criu names, and has not made, is neither recorded nor killed" {
	images
	sleep 300 3>&- &
	other=$!
	FAKE_NAMES=$other run fake restore --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null
	assert_one_error
	kill $other
	assert_has "$output" "names process $other"
	assert_eq "$(list_ids)" ""
}

@test "checkpoint and restore: too few descriptors are an error, and nothing is left" {
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	images
	echo '["","",""]' >"$IMG/descriptors.json"
	export TAG ROOT ID IMG BUNDLE
	export FAKE=$LR_HERE/fake-criu
	for n in $(seq 3 24); do
		run timeout 60 bash -c 'ulimit -n '"$n"'; exec "$LEAN_RUNTIME" --root "$ROOT" --criu "$FAKE" checkpoint --leave-running --image-path "$IMG" "$ID"' </dev/null 3>&-
		[ "$status" -lt 2 ] || fail "$n: $status: $output"
		run timeout 60 bash -c 'ulimit -n '"$n"'; exec "$LEAN_RUNTIME" --root "$ROOT" --criu "$FAKE" restore --image-path "$IMG" --bundle "$BUNDLE" "$ID-r"' </dev/null 3>&-
		[ "$status" = 1 ] || fail "$n: $status: $output"
		assert_eq "$(status_of)" running
		# There may be none left to clean up with, which is a warning.
		rt delete --force "$ID-r"
		assert_eq "$(ls "$ROOT")" "$ID"
	done
}
