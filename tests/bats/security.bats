#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the field paid for in CVEs: a hostile image, a hostile process inside, and what may leak.

load ../lib/helpers.bash

setup() { common_setup; }
teardown() { common_teardown; }

mnt() {
	cfg --argjson m "$1" '.mounts += [$m]'
}

# The container's program is /proc/self/exe, that is, the runtime itself is executed inside: in the container it must not be
# the file on the host.
overwrite_the_runtime() {
	local before
	cp "$LEAN_RUNTIME" victim
	before=$(sha256sum <victim)
	sh_cfg_attack
	./victim --root "$ROOT" run -d -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&-
	attacked out ./victim --root "$ROOT"
	assert_hasnt "$(cat out)" WROTE
	assert_eq "$(sha256sum <victim)" "$before"
}

@test "CVE-2019-5736: the runtime's file can't be written through /proc/self/exe" {
	overwrite_the_runtime
}

@test "CVE-2019-5736: the same with a sealed copy" {
	lean_only "its own switch"
	export LEAN_RUNTIME_SELF=copy
	overwrite_the_runtime
}

@test "CVE-2019-5736: the same from a read-only mount" {
	lean_only "its own switch"
	export LEAN_RUNTIME_SELF=mount
	overwrite_the_runtime
}

@test "CVE-2019-5736: run executes the program by a sealed one of a page" {
	lean_only "its own way"
	# The interpreter is what /proc/self/exe is when the script is executed: not our file, and it does nothing.
	printf '#!/proc/self/exe\n' >"$BUNDLE/rootfs/script"
	chmod 755 "$BUNDLE/rootfs/script"
	local program
	for program in /script /proc/self/exe; do
		cfg --arg p $program '.process.args = [$p, "--version"]'
		run -126 rt run -b "$BUNDLE" "$ID"
		assert_eq "$output" ""
	done
	assert_nothing_left
}

# What the runtime that stays in the foreground was executed as.
foreground_exe() {
	rt run -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&- &
	local runtime=$!
	wait_for_status running "$ID"
	readlink "/proc/$(awk '/^PPid/ { print $2 }' "/proc/$(pid_of)/status")/exe"
	rt kill "$ID" KILL
	wait $runtime || true
}

@test "CVE-2019-5736: run does without its protected view only where nobody can come between" {
	lean_only "its own way"
	needs_root
	local change holder
	unshare -m --propagation private sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
	holder=$!
	sh_cfg 'exec sleep 300'
	cp "$BUNDLE/config.json" plain.json
	assert_eq "$(foreground_exe)" "$LEAN_RUNTIME"
	for change in '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW"}' \
		'.annotations["run.oci.seccomp_bpf_data"] = "BgAAAAAA/38="' \
		'.linux.namespaces |= map(if .type == "ipc" then .path = "/proc/self/ns/ipc" else . end)'; do
		cp plain.json "$BUNDLE/config.json"
		cfg "$change"
		assert_eq "$(foreground_exe)" "$LEAN_RUNTIME"
	done
	for change in '.linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
			{"names": ["prctl"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 99, "op": "SCMP_CMP_EQ"}]}]}' \
		'.linux.namespaces |= map(select(.type != "pid")) | .mounts |= map(select(.type != "proc"))' \
		'.linux.namespaces |= map(if .type == "mount" then .path = "/proc/'$holder'/ns/mnt" else . end)
			| .mounts = [] | .linux.maskedPaths = [] | .linux.readonlyPaths = []' \
		'.hooks.createContainer = [{"path": "/bin/true"}]' \
		'.hooks.startContainer = [{"path": "/bin/true"}]'; do
		cp plain.json "$BUNDLE/config.json"
		cfg "$change"
		assert_eq "$(foreground_exe) after $change" "/lean-runtime after $change"
	done
	kill "$holder"
}

@test "CVE-2019-5736: the program is seen through a mount that nobody can change" {
	lean_only "its copy is made otherwise"
	needs_root
	cfg '.process.args = ["/bin/sleep", "300"]'
	export LEAN_RUNTIME_SELF=mount
	rt_create
	local exe
	exe=/proc/$(pid_of)/exe
	assert_eq "$(stat -L -c %i "$exe")" "$(stat -L -c %i "$LEAN_RUNTIME")"
	run ! bash -c "echo x >$exe"
	assert_has "$output" "Read-only file system"
}

@test "CVE-2019-5736: the running image is a sealed copy" {
	lean_only "its copy is made otherwise"
	export LEAN_RUNTIME_SELF=copy
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_create
	local exe
	exe=$(readlink "/proc/$(pid_of)/exe")
	[ "$exe" != "$LEAN_RUNTIME" ] || fail "init runs from $exe"
	assert_has "$exe" memfd
	# Nobody may write to what is executed: so when that has ended.
	exec 5<"/proc/$(pid_of)/exe"
	rt delete --force "$ID"
	run ! bash -c 'echo x >/proc/self/fd/5'
	exec 5<&-
	assert_has "$output" "Operation not permitted"
}

# After a start in a working directory that may lead out: an error that names it, or a program that
# found itself inside.
refused_or_inside() {
	assert_hasnt "$output" LEAKED
	case $output in
	*started*) assert_has "$output" "No such file" ;;
	*) assert_one_error && assert_has "$output" "/proc/self/fd" ;;
	esac
}

@test "CVE-2024-21626: a working directory outside the root is refused" {
	local n
	echo LEAKED >secret
	sh_cfg 'echo started; cat ../../../../../../../'"$BATS_TEST_TMPDIR"'/secret'
	for n in 3 4 5 6 7 8 9 10 11 12; do
		cfg --arg c "/proc/self/fd/$n" '.process.cwd = $c'
		run rt run -b "$BUNDLE" "$ID"
		refused_or_inside
	done
	cfg '.process.cwd = "/tmp"'
	run rt run -b "$BUNDLE" "$ID"
	assert_has "$output" started
}

# A caller may hold a directory of the host open. It is not the container's, also where it is handed on.
@test "CVE-2024-21626: a working directory that the caller holds open is refused" {
	lean_only "checks by other means"
	mkdir held
	sh_cfg 'echo started'
	cfg '.process.cwd = "/proc/self/fd/3"'
	run bash -c 'exec 3<held; "$0" --root "$1" run --preserve-fds 1 -b "$2" "$3"' "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" process.cwd
	cfg '.process.cwd = "/"'
	rt_sleeper
	run bash -c 'exec 3<held; "$0" --root "$1" exec --preserve-fds 1 --cwd /proc/self/fd/3 "$2" echo started' \
		"$LEAN_RUNTIME" "$ROOT" "$ID"
	assert_one_error
	assert_has "$output" "outside of the container"
}

@test "CVE-2024-21626: exec with a working directory outside the root is refused" {
	local n
	echo LEAKED >secret
	rt_sleeper
	for n in 3 4 5 6 7 8 9 10 11 12; do
		run rt exec --cwd "/proc/self/fd/$n" "$ID" sh -c "echo started; cat ../../../../../../../$BATS_TEST_TMPDIR/secret"
		refused_or_inside
	done
	run -0 rt exec --cwd /tmp "$ID" pwd
	assert_eq "$output" /tmp
}

# bats test_tags=ci
@test "CVE-2024-21626: no descriptor of the host is open in init while it waits" {
	local fd target pid
	# One that would survive an execve, too.
	rt_create 17<"$BATS_TEST_TMPDIR"
	pid=$(pid_of)
	assert_eq "$(status_of)" created
	assert_eq "$(readlink "/proc/$pid/fd/0")" /dev/null
	for fd in /proc/"$pid"/fd/*; do
		target=$(readlink "$fd")
		case $target in
		/sys/fs/cgroup*) fail "init holds $target" ;;
		esac
		# A directory that leads out of the container's root.
		if [ -d "$fd/" ] && is_lean; then
			fail "init holds the directory $target"
		fi
	done
}

@test "CVE-2024-21626: nor is one in the gaps of what --preserve-fds passes" {
	lean_only "runc 1.1.5 passes its /sys/fs/cgroup there"
	local fd target pid list self
	# Where a page waits, its execve has closed ours; where we wait, nothing else closes them.
	for self in "" mount; do
		# A log: one more descriptor of ours, opened early.
		(
			for fd in $(seq 3 62); do eval "exec $fd>&-"; done
			LEAN_RUNTIME_SELF=$self exec "$LEAN_RUNTIME" --root "$ROOT" --log log --debug create \
				--preserve-fds 60 -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3</etc/passwd 40</etc/group
		)
		pid=$(pid_of)
		list=
		for fd in /proc/"$pid"/fd/*; do
			target=$(readlink "$fd")
			case ${fd##*/}:$target in
			[012]:* | *"/$ID/start" | *"/$ID/answer") ;;
			*) list+="${fd##*/}:$target " ;;
			esac
		done
		assert_eq "$self: $list" "$self: 3:/etc/passwd 40:/etc/group "
		rt delete --force "$ID"
	done
}

# bats test_tags=ci
@test "a container that unmounts its root finds nothing of the host's below" {
	with_caps CAP_SYS_ADMIN
	sh_cfg 'umount -l /; exec /bin/sleep 300'
	rt_bg --debug --log log run -d -b "$BUNDLE" "$ID"
	local pid
	pid=$(pid_of)
	wait_until sh -c "! grep -q . /proc/$pid/mountinfo"
	# Who enters the mount namespace stands on what is left of it.
	run -0 python3 - "$pid" "$BATS_TEST_TMPDIR" <<-'END'
		import ctypes, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		ns = os.open(f"/proc/{sys.argv[1]}/ns/mnt", os.O_RDONLY)
		assert libc.setns(ns, 0x20000) == 0, os.strerror(ctypes.get_errno())
		print(*(d + "/" + name for d, _, names in os.walk("/") for name in names))
		print("host" if os.path.exists(sys.argv[2]) or os.path.exists("/etc/passwd") else "nothing")
	END
	assert_eq "${lines[-1]}" nothing
	# What the kernel began with has directories of its own, where the namespace was a copy.
	! grep -q 'alone in its mount namespace' log || assert_eq "$(grep . <<<"$output")" nothing
}

@test "a symbolic link as /proc, /sys or /dev of the image is refused or stays inside" {
	local d
	# Which would refuse the start, too, as there is no procfs in its place then.
	cfg '.linux.maskedPaths = [] | .linux.readonlyPaths = []'
	for d in proc sys dev; do
		rm -rf "${BUNDLE:?}/rootfs/$d"
		mkdir -p "$BUNDLE/rootfs/elsewhere"
		ln -s elsewhere "$BUNDLE/rootfs/$d"
		run rt run -b "$BUNDLE" "$ID"
		if [ "$d" != dev ] || is_lean; then
			assert_one_error
			! is_lean || assert_has "$output" "/$d"
		else
			assert_eq "$output" hello
		fi
		rm "$BUNDLE/rootfs/$d"
		mkdir "$BUNDLE/rootfs/$d"
		[ -z "$(ls -A "$BUNDLE/rootfs/elsewhere")" ] || [ "$d" = dev ]
		assert_nothing_left
	done
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

@test "a /dev that links out of the image touches nothing on the host (CVE-2026-41579)" {
	lean_only "is open to it"
	mkdir host
	rm -rf "$BUNDLE/rootfs/dev"
	ln -s "$BATS_TEST_TMPDIR/host" "$BUNDLE/rootfs/dev"
	cfg '.mounts |= map(select(.destination | startswith("/dev") | not))'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "/dev"
	assert_has "$output" "link"
	assert_eq "$(ls -A host)" ""
}

@test "image links in mount destinations, device paths and masked paths never reach the host" {
	mkdir host
	echo precious >host/file
	ln -s "$BATS_TEST_TMPDIR/host" "$BUNDLE/rootfs/a"
	ln -s /../../../../../../../../"$BATS_TEST_TMPDIR/host/file" "$BUNDLE/rootfs/b"
	mnt '{"destination": "/a/x", "type": "tmpfs", "source": "tmpfs"}'
	cfg '.linux.maskedPaths += ["/b"] | .linux.readonlyPaths += ["/a"]
		| .linux.devices = [{"path": "/a/dev", "type": "c", "major": 1, "minor": 3}]'
	# The links are followed, below the container's root: that is where the mount and the device are.
	sh_cfg 'grep -q "/host/x tmpfs rw" /proc/mounts && echo mounted; stat -c %t:%T /a/dev'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" "mounted"$'\n'"1:3"
	assert_eq "$(ls -A host)" file
	assert_eq "$(cat host/file)" precious
	echo still writable >>host/file
}

# With the lean profile, /dev is made in a template before.
refused_or_no_node() {
	run rt run -b "$BUNDLE" "$ID"
	assert_eq "$(ls -A host)" ""
	if ! lean_profile; then
		assert_one_error
		assert_has "$output" "/dev is covered by another mount of config.json"
	fi
}

@test "a volume that a link of the image leads to /dev gets no device nodes of the container's" {
	lean_only "is open to it"
	mkdir host
	ln -s /dev "$BUNDLE/rootfs/data"
	cfg --arg d "$PWD/host" '.mounts += [{"destination": "/data", "type": "bind", "source": $d, "options": ["bind"]}]
		| .linux.devices = [{"path": "/dev/mine", "type": "c", "major": 1, "minor": 3}]'
	refused_or_no_node
	# Nor where config.json has nothing on /dev.
	cfg '.mounts |= map(select(.destination | startswith("/dev") | not))'
	refused_or_no_node
	# A link that leads elsewhere is nobody's business.
	ln -sfn /proc/../srv "$BUNDLE/rootfs/data"
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
}

# bats test_tags=ci
@test "no path climbs over the root: masked and read-only paths, the working directory" {
	lean_only "is open to it"
	mkdir "$BUNDLE/rootfs/writable"
	echo secret >"$BUNDLE/rootfs/secret"
	ln -s ../../../../secret "$BUNDLE/rootfs/a"
	ln -s ../../../../writable "$BUNDLE/rootfs/b"
	cfg --arg d "/../../../..$BATS_TEST_TMPDIR/made" '.linux.maskedPaths = ["/a"] | .linux.readonlyPaths = ["/b"]
		| .process.cwd = $d'
	sh_cfg 'pwd; cat /secret; touch /writable/x && echo written; echo started'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" started
	[ ! -e made ] || fail "the working directory was made on the host"
	assert_has "$output" "$BATS_TEST_TMPDIR/made"
	assert_hasnt "$output" secret
	assert_hasnt "$output" written
}

@test "a mount point renamed by who shares the rootfs does not unmask what is mounted there" {
	lean_only "is open to it"
	local dir
	# The hook stands for a process of another container, and comes when all is mounted and nothing masked.
	cat >swap.sh <<-'END'
		mv "$1" "$1.old" && mkdir "$1"
	END
	for dir in proc sys; do
		cfg --arg s "$PWD/swap.sh" --arg d "$BUNDLE/rootfs/$dir" \
			'.hooks.createRuntime = [{path: "/bin/sh", args: ["sh", $s, $d]}]
			| .linux.maskedPaths = ["/sys/kernel"] | .linux.readonlyPaths = ["/proc/sys"]'
		new_id
		run -1 rt run -b "$BUNDLE" "$ID"
		assert_has "$output" "/$dir is no longer what mounts of config.json put there"
		rmdir "$BUNDLE/rootfs/$dir"
		mv "$BUNDLE/rootfs/$dir.old" "$BUNDLE/rootfs/$dir"
	done
}

@test "masked paths: /dev/null as a link in the image does not unmask (CVE-2025-31133)" {
	lean_only "is open to it"
	# A tmpfs over /dev hides the image's; without it the image's own /dev counts.
	mkdir -p "$BUNDLE/rootfs/dev"
	cfg '.mounts |= map(select(.destination | startswith("/dev") | not))'
	ln -sf /proc/sys/kernel/core_pattern "$BUNDLE/rootfs/dev/null"
	echo secret >"$BUNDLE/rootfs/masked"
	cfg '.linux.maskedPaths = ["/masked"]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "/dev/null exists and is a symbolic link"
	# A /dev that is the caller's is left as it is, so this link is still there when paths are masked.
	mkdir dev
	mv "$BUNDLE/rootfs/dev/null" dev/null
	mnt '{"destination": "/dev", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/dev", "options": ["bind"]}'
	sh_cfg 'stat -c %t:%T /masked; cat /masked; echo started'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" "1:3"$'\n'started
}

@test "a mount over /proc is refused but for what container managers do" {
	lean_only "checks less"
	mnt '{"destination": "/proc", "type": "tmpfs", "source": "tmpfs"}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "mount on /proc is refused: only a procfs may be mounted there"
	cfg '.mounts |= .[:-1]'
	mkdir src
	mnt '{"destination": "/proc/sys/kernel", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/src", "options": ["bind"]}'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "mount on /proc/sys/kernel is refused: it is inside /proc"
	cfg '.mounts |= .[:-1]'
	echo "fake 1 2 3" >uptime
	mnt '{"destination": "/proc/uptime", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/uptime", "options": ["bind", "ro"]}'
	cfg '.process.args = ["cat", "/proc/uptime"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" fake
}

@test "a sysctl or an LSM label is never written to a file that the image offers (CVE-2025-52881)" {
	# /proc of the container is another container's directory with plain files.
	mkdir -p fake/self/attr fake/sys/net/ipv4
	echo unchanged | tee fake/sys/net/ipv4/ip_forward fake/self/oom_score_adj >fake/self/attr/exec
	cfg '.mounts |= map(select(.destination != "/proc"))'
	mnt '{"destination": "/proc", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/fake", "options": ["rbind"]}'
	cfg '.linux.sysctl = {"net.ipv4.ip_forward": "1"} | .process.oomScoreAdj = 321 | .linux.maskedPaths = [] | .linux.readonlyPaths = []'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "not the root of a procfs"
	assert_eq "$(sort -u fake/sys/net/ipv4/ip_forward fake/self/oom_score_adj fake/self/attr/exec)" unchanged
}

# bats test_tags=ci
@test "what a container mounts does not spread to the host" {
	needs_root
	with_caps CAP_SYS_ADMIN
	sh_cfg 'mount --bind /bin/busybox /proc/keys || echo "no mount on /proc/keys"
		for path in /proc/acpi /proc /dev /sys /; do mount -t tmpfs over $path || echo "no mount on $path"; done'
	# A host whose mounts are all shared, as systemd leaves them. Its list of mounts is the same afterwards.
	run -0 unshare --mount --propagation private sh -c 'mount --make-rshared /; cat /proc/self/mountinfo >before
		"$0" --root "$1" run -b "$2" "$3" && "$0" --root "$1" run --no-pivot -b "$2" "$3"; cat /proc/self/mountinfo >after' \
		"$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID" 3>&-
	assert_hasnt "$output" "no mount on"
	# But for what the lean profile keeps, also of tests that ran before, whose keepers end in their own time.
	assert_eq "$(grep -v "/root/.lean/" after)" "$(grep -v "/root/.lean/" before)"
	# Nothing that it has is a peer of the host's.
	new_id
	sh_cfg 'cat /proc/self/mountinfo'
	run -0 unshare --mount --propagation private sh -c 'mount --make-rshared /; exec "$0" --root "$1" run -b "$2" "$3"' \
		"$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID" 3>&-
	assert_has "$output" " /proc/keys "
	assert_hasnt "$output" "shared:"
}

@test "exec: a hostile /proc in the container is not believed" {
	with_caps CAP_SYS_ADMIN
	cfg '.process.oomScoreAdj = 321'
	rt_sleeper
	run -0 rt exec "$ID" sh -c 'mount -t tmpfs none /proc && mkdir -p /proc/self/attr /proc/self/fd /proc/thread-self/attr
		touch /proc/self/oom_score_adj /proc/self/attr/exec /proc/thread-self/attr/exec'
	# What it has of /proc it has from one of its own: the score is set, the planted file is not written.
	rt_bg exec --detach --pid-file "$PWD/p" "$ID" sleep 300
	assert_eq "$(cat "/proc/$(cat p)/oom_score_adj")" 321
	run -0 rt exec "$ID" cat /proc/self/oom_score_adj /proc/self/attr/exec
	assert_eq "$output" ""
}

# What a process of the same user and without capabilities may read of another.
peek() {
	setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all cat "/proc/$1/environ"
}

@test "init hides from the container's processes while it waits" {
	needs_root
	cfg '.process.capabilities = {} | .process.args = ["/bin/sleep", "300"]'
	rt_create
	run ! peek "$(pid_of)"
	assert_has "$output" "Permission denied"
	# The program itself is to be seen: what hid was the runtime.
	rt start "$ID"
	wait_until peek "$(pid_of)"
}

# Every process that enters a mount, network or user namespace has hidden itself before, or was born hidden.
hidden_before_setns() { # TRACE
	awk '/PR_SET_DUMPABLE, (0|SUID_DUMP_DISABLE)/ { hidden[$1] = 1 }
		/(clone3?|fork)\(.*= [0-9]+$/ && hidden[$1] { hidden[$NF] = 1 }
		/setns\(.*CLONE_NEW(NS|NET|USER|IPC)/ { n++; if (!hidden[$1]) { print; bad = 1 } }
		END { if (!n) print "nobody entered anything"; exit bad || !n }' "$1"
}

@test "the runtime hides before it enters a container's namespaces, in exec and run" {
	lean_only "its own order of calls"
	needs_root
	command -v strace >/dev/null || skip "strace is not installed"
	rt_sleeper
	run -0 strace -f -e trace=setns,prctl,clone,clone3 -o exec.trace "$LEAN_RUNTIME" --root "$ROOT" exec "$ID" true
	run -0 hidden_before_setns exec.trace
	# A user namespace that is joined is entered by a process in between.
	new_id
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
	unshare --user --map-root-user sleep 300 3>&- &
	local holder=$!
	wait_until grep -q . "/proc/$holder/uid_map"
	wait_until eval '[ "$(readlink /proc/'$holder'/ns/user)" != "$(readlink /proc/self/ns/user)" ]'
	cfg --arg p "/proc/$holder/ns/user" '.process.args = ["true"] | .linux.cgroupsPath += "-b" | .mounts |= map(select(.type != "devpts"))
		| .linux.namespaces += [{"type": "user", "path": $p}]'
	run strace -f -e trace=setns,prctl,clone,clone3 -o run.trace "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	kill "$holder"
	wait "$holder" || true
	[ "$status" = 0 ] || fail "$output"
	run -0 hidden_before_setns run.trace
}

@test "signals go to the recorded process only: a stale record never kills" {
	rt_sleeper
	local pid
	pid=$(pid_of)
	kill -KILL "$pid"
	wait_for_status stopped "$ID"
	run rt kill "$ID" KILL
	[ "$status" -ne 0 ]
	rt delete "$ID"
}

@test "the environment of the caller never reaches the container, or a hook that runs in it" {
	lean_changes rootfs
	local host='/usr/bin/env >>'$BATS_TEST_TMPDIR/host
	cfg --arg h "$host" '.process.args = ["sh", "-c", "cat /started; env"]
		| .process.env += ["OF=process"]
		| .hooks = {"createContainer": [{"path": "/bin/sh", "args": ["sh", "-c", $h]}],
			"startContainer": [{"path": "/bin/sh", "args": ["sh", "-c", "env >/started"]}]}'
	VERY_SECRET=leaked LD_PRELOAD='' run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "PATH="
	assert_hasnt "$output" VERY_SECRET
	assert_hasnt "$(cat host)" VERY_SECRET
	assert_eq "$(grep -c OF=process <<<"$output") $(grep -c OF=process host)" "2 1"
}

@test "devices: mknod through a link of the image makes nothing outside" {
	# The same path in the image and on the host.
	mkdir -p "$BUNDLE/rootfs$BATS_TEST_TMPDIR"
	ln -s "$BATS_TEST_TMPDIR" "$BUNDLE/rootfs/d"
	cfg '.linux.devices = [{"path": "/d/made", "type": "c", "major": 1, "minor": 3}] | .process.args = ["stat", "-c", "%t:%T", "/d/made"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" 1:3
	[ ! -e made ]
}

@test "a container can't reach another's root through its own" {
	lean_changes rootfs
	with_caps CAP_SYS_CHROOT CAP_SYS_ADMIN
	sh_cfg 'mkdir -p /tmp/j; cat >/tmp/e.sh <<E
cd /; i=0; while [ \$i -lt 40 ]; do cd ..; i=\$((i + 1)); done; ls -di . /
E
sh /tmp/e.sh'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(grep -c '^ *[0-9][0-9]* ' <<<"$output")" 2
	assert_eq "$(awk '{print $1}' <<<"$output" | sort -u | wc -l)" 1
}

@test "read-only paths: a magic link in the image does not bring the host in" {
	lean_only "follows it"
	# Standard input is the host's file: /proc/self/fd/0 leads out of the container while it is set up.
	echo precious >host
	ln -s /proc/self/fd/0 "$BUNDLE/rootfs/ro"
	cfg '.linux.readonlyPaths = ["/ro"] | .process.args = ["cat", "/proc/mounts"]'
	run bash -c '"$0" --root "$1" run -b "$2" "$3" <host' "$LEAN_RUNTIME" "$ROOT" "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "linux.readonlyPaths[0]"
	assert_has "$output" "symbolic link"
}

@test "standard descriptors that the caller has closed are /dev/null, and no file of the runtime's" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	local closed fd
	for closed in 0 1 2 012; do
		bash -c 'for fd in $(fold -w 1 <<<"$1"); do eval "exec $fd>&-"; done; shift; exec "$@"' bash "$closed" \
			"$LEAN_RUNTIME" --root "$ROOT" run -d -b "$BUNDLE" "$ID" </dev/null >out 2>&1 3>&-
		for fd in $(fold -w 1 <<<"$closed"); do
			assert_eq "$closed: $(readlink "/proc/$(pid_of)/fd/$fd")" "$closed: /dev/null"
		done
		rt delete --force "$ID"
	done
}

# keeper [forge]: a container whose process takes what the runtime, called $TAG, talks to its
# children by. In the host's pid namespace, where it meets those of other containers, too.
keeper() {
	lean_only "its own rendezvous"
	needs_root
	command -v gcc >/dev/null || skip "gcc is not installed"
	gcc -D_GNU_SOURCE -static -o "$BUNDLE/rootfs/bin/keeps-sync" "$LR_LIB/keeps-sync.c"
	cp "$LEAN_RUNTIME" "$TAG"
	without_ns pid
	new_id KEEPER
	cfg --arg s "keeps-sync $TAG${1:+ $1}" '.process.args = ($s | split(" ")) | .linux.cgroupsPath += "-keeper"'
	with_caps CAP_SYS_PTRACE
	rt_bg run -d -b "$BUNDLE" "$KEEPER"
	wait_until grep -q ready "$OUT"
}

as_tag() {
	timeout -k 2 "$patience" "./$TAG" --root "$ROOT" "$@" </dev/null 3>&-
}

@test "a process that may trace and keeps the rendezvous open does not hang exec and start" {
	local i
	keeper
	for i in $(seq 10); do
		run -0 as_tag exec "$KEEPER" true
	done
	cfg '.process.args = ["/bin/sleep", "300"] | .linux.cgroupsPath |= rtrimstr("-keeper")'
	as_tag create -b "$BUNDLE" "$ID" >out 2>&1
	run -0 as_tag start "$ID"
	assert_eq "$(status_of)" running
	rt kill "$KEEPER" TERM
	wait_until grep -q '^[1-9]' "$OUT"
}

@test "nor does it choose their exit status: an error is none of 0" {
	local i
	keeper forge
	for i in $(seq 50); do
		run as_tag exec "$KEEPER" true
		[[ $output != *forged* ]] || break
	done
	assert_has "$output" forged
	assert_one_error
}

@test "the CPU affinity is reset with a mask for more than 1024 CPUs" {
	lean_only "its own call"
	command -v strace >/dev/null || skip "strace is not installed"
	run -0 strace -f -e trace=sched_setaffinity -o trace "$LEAN_RUNTIME" --root "$ROOT" run -b "$BUNDLE" "$ID"
	awk -F'[ ,(]+' '/sched_setaffinity/ && $4 * 8 > 1024 { n++ } END { exit !n }' trace || fail "$(cat trace)"
}

@test "the personality is set before the filter that may forbid it" {
	lean_only "came with 1.2"
	cfg '.linux.personality = {"domain": "LINUX32"} | .process.args = ["uname", "-m"]
		| .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["personality"], "action": "SCMP_ACT_ERRNO"}]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" "^i[3-6]86$"
}

@test "the lean profile is off unless asked for, and features shows what it relaxes" {
	lean_only "its own profile"
	unset LEAN_RUNTIME_PROFILE # of a run of the suite with the profile on
	run -0 rt --debug run -b "$BUNDLE" "$ID"
	assert_has "$output" hello
	assert_hasnt "$output" "lean: "
	run -0 rt features
	jq -e '.potentiallyUnsafeConfigAnnotations | any(startswith("org.lean-runtime."))' <<<"$output"
}
