#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hooks: six kinds, their order, their namespaces, what they are told, and what their failure does.

load ../lib/helpers.bash

setup() {
	common_setup
	LOG=$BATS_TEST_TMPDIR/hooklog
	# One script for all: appends "kind" and the state it got. Container-side hooks find the same
	# file through a bind mount; createContainer resolves paths in the runtime's mount view.
	cat >hook.sh <<-END
		#!/bin/sh
		kind=\$1
		state=\$(cat)
		log=$LOG
		[ -d /hooks ] && [ ! -e \$log ] && log=/hooks/hooklog
		echo "\$kind" >>\$log
		echo "\$state" >\${log%/*}/state.\$kind
		readlink /proc/self/ns/mnt /proc/self/ns/pid >\${log%/*}/ns.\$kind 2>/dev/null
		pwd >\${log%/*}/cwd.\$kind
		[ "\$2" = "" ] || exit \$2
	END
	chmod 755 hook.sh
	: >"$LOG"
	mkdir "$BUNDLE/rootfs/hooks"
	cfg --arg d "$BATS_TEST_TMPDIR" '.mounts += [{"destination": "/hooks", "type": "bind", "source": $d, "options": ["bind", "rw"]}]'
}
teardown() { common_teardown; }

hook_cfg() { # KIND [EXIT]
	local path=$BATS_TEST_TMPDIR/hook.sh
	[ "$1" != startContainer ] || path=/hooks/hook.sh
	cfg --arg k "$1" --arg p "$path" --arg e "${2-}" \
		'.hooks[$k] += [{"path": $p, "args": ["hook", $k, $e], "env": ["PATH=/usr/bin:/bin", "LR_TEST_TAG='"$TAG"'"]}]'
}

all_hooks() {
	local k
	for k in poststop poststart startContainer createContainer createRuntime prestart; do
		hook_cfg $k
	done
}

@test "hooks: all six kinds in the spec's order" {
	all_hooks
	sh_cfg 'echo program >>/hooks/hooklog; sleep 300'
	rt_create
	# Before 1.2 the stand-in ran poststart here.
	assert_eq "$(is_lean && cat "$LOG" || grep -v poststart "$LOG")" $'prestart\ncreateRuntime\ncreateContainer'
	rt start "$ID"
	wait_until grep -q program "$LOG"
	assert_eq "$(grep -v -e program -e poststart "$LOG" | tr '\n' ' ')" "prestart createRuntime createContainer startContainer "
	[ "$(grep -n startContainer "$LOG" | cut -d: -f1)" -lt "$(grep -n program "$LOG" | cut -d: -f1)" ]
	wait_until grep -q poststart "$LOG"
	hook_absent poststop
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	hook_absent poststop
	rt delete "$ID"
	assert_eq "$(grep -c poststop "$LOG")" 1
	assert_eq "$(tail -n 1 "$LOG")" poststop
}

hook_absent() {
	! grep -q "$1" "$LOG" || fail "$1 ran too early: $(cat "$LOG")"
}

# Where each hook of the last container began.
began() {
	local k
	for k in prestart createRuntime createContainer startContainer poststart poststop; do
		echo "$k $(cat cwd.$k)"
	done
}

# crun begins createContainer hooks in the bundle, and is the same otherwise.
@test "hooks: they begin in the bundle, the root file system and the process's directory, as runc's" {
	is_lean || skip "stand-in runtime: is what this one is compared with"
	for_peers
	all_hooks
	cfg '.process.cwd = "/srv"'
	local expected="prestart $BUNDLE
createRuntime $BUNDLE
createContainer $BUNDLE/rootfs
startContainer /srv
poststart $BUNDLE
poststop $BUNDLE"
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(began)" "$expected"
	local p
	for p in $(peers); do
		rm cwd.*
		run -0 peer_run "$p"
		[ "$p" != crun ] || expected=${expected/"createContainer $BUNDLE/rootfs"/"createContainer $BUNDLE"}
		assert_eq "$p: $(began)" "$p: $expected"
	done
}

@test "hooks: poststop of delete begins where delete was called, as runc's" {
	is_lean || skip "stand-in runtime: is what this one is compared with"
	mkdir elsewhere
	hook_cfg poststart
	hook_cfg poststop
	rt_create
	(cd elsewhere && rt start "$ID")
	wait_for_status stopped "$ID"
	(cd elsewhere && rt delete "$ID")
	assert_eq "$(cat cwd.poststart)" "$BUNDLE"
	assert_eq "$(cat cwd.poststop)" "$PWD/elsewhere"
	if [[ $(peers) == *runc* ]]; then
		rm cwd.poststop
		peer runc create -b "$BUNDLE" "$ID" </dev/null >out 2>&1
		(cd elsewhere && peer runc delete --force "$ID")
		assert_eq "$(cat cwd.poststop)" "$PWD/elsewhere"
	fi
}

@test "hooks: poststop runs also when the bundle is gone" {
	hook_cfg poststop
	cfg --arg b "$BUNDLE" '.hooks.poststart = [{"path": "/bin/mv", "args": ["mv", $b, $b + ".gone"]}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_eq "$(cat "$LOG")" poststop
}

@test "hooks: the umask in the container's mounts is 022" {
	echo 'umask >umask' >>hook.sh
	hook_cfg createContainer
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(cat "$BUNDLE/rootfs/umask")" 0022
}

@test "hooks: run in the foreground runs them all too" {
	all_hooks
	sh_cfg 'echo program >>/hooks/hooklog'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(sort "$LOG" | tr '\n' ' ')" "createContainer createRuntime poststart poststop prestart program startContainer "
	assert_eq "$(tail -n 1 "$LOG")" poststop
}

@test "hooks: state on standard input" {
	all_hooks
	cfg '.annotations = {"org.test": "yes"} | .process.args = ["/bin/sleep", "300"]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -s state.poststart
	local k pid
	pid=$(pid_of)
	for k in prestart createRuntime createContainer startContainer poststart; do
		jq -e --arg id "$ID" --arg b "$BUNDLE" '.id == $id and .bundle == $b and .annotations["org.test"] == "yes"
			and (.ociVersion | startswith("1."))' "state.$k" || fail "state.$k: $(cat state.$k)"
	done
	for k in prestart createRuntime poststart; do
		assert_eq "$(jq .pid state.$k)" "$pid"
	done
	assert_eq "$(jq -r .status state.createRuntime)" creating
	! is_lean || assert_eq "$(jq -r .status state.poststart)" running
	rt delete --force "$ID"
	assert_eq "$(jq -r .status state.poststop)" stopped
	! is_lean || assert_eq "$(jq -r .status state.startContainer)" created
}

@test "hooks: namespaces they run in" {
	all_hooks
	sh_cfg 'readlink /proc/self/ns/mnt /proc/self/ns/pid >/hooks/ns.program; sleep 300'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_until test -s ns.poststart
	local k host
	host=$(readlink /proc/self/ns/mnt /proc/self/ns/pid)
	for k in prestart createRuntime poststart; do
		assert_eq "$(cat ns.$k)" "$host"
	done
	assert_eq "$(cat ns.startContainer)" "$(cat ns.program)"
}

@test "hooks: createContainer mounts into the container, before pivot_root, and not on the host" {
	cfg --arg r "$BUNDLE/rootfs/srv" '.hooks.createContainer = [{"path": "/bin/sh", "args": ["sh", "-c",
		"mount -t tmpfs hook-was-here " + $r], "env": ["PATH=/usr/bin:/bin"]}]'
	cfg '.process.args = ["grep", "hook-was-here", "/proc/mounts"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$output" '^hook-was-here /srv tmpfs'
	assert_hasnt "$(cat /proc/self/mountinfo)" hook-was-here
}

@test "hooks: several of one kind in their order" {
	local n
	for n in 1 2 3; do
		cfg --arg n "$n" --arg log "$LOG" '.hooks.createRuntime += [{"path": "/bin/sh", "args": ["sh", "-c", "echo " + $n + " >>" + $log]}]'
	done
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(tr '\n' ' ' <"$LOG")" "1 2 3 "
}

@test "hooks: environment is the hook's own" {
	cfg --arg o "$BATS_TEST_TMPDIR/env" '.hooks.createRuntime = [{"path": "/bin/sh", "args": ["sh", "-c", "/usr/bin/env >" + $o], "env": ["A=b"]}]'
	SECRET=leaked run -0 rt run -b "$BUNDLE" "$ID"
	assert_has "$(cat env)" A=b
	assert_hasnt "$(cat env)" SECRET
	# An empty one is one.
	cfg '.hooks.createRuntime[0].env = [] | .hooks.poststop = [.hooks.createRuntime[0] | .args[2] += "2"]'
	SECRET=leaked run -0 rt run -b "$BUNDLE" "$ID"
	[ -e env2 ]
	assert_hasnt "$(cat env env2)" A=b
	assert_hasnt "$(cat env env2)" SECRET
}

@test "hooks: one that ends without reading what it is told is no failure" {
	local i
	cfg '.hooks = {createRuntime: [{path: "/bin/true"}], poststop: [{path: "/bin/true"}]} | .process.args = ["true"]'
	# It may end before it is written to, or after that.
	for i in {1..20}; do
		run -0 rt run -b "$BUNDLE" "$ID"
		assert_eq "$output" ""
	done
}

# hook_envs RUNTIME...: what each kind without `env` finds, called with an environment of its own.
hook_envs() {
	rm -f env.*
	env -i PATH=/usr/bin:/bin OF=caller SECRET=caller LR_TEST_TAG="$TAG" "$@" run -b "$BUNDLE" "$ID" </dev/null 3>&-
	local k
	for k in prestart createRuntime createContainer startContainer poststart poststop; do
		echo "$k: $(grep -v -e '^PWD=' -e '^SHLVL=' -e '^_=' -e '^_LIBCONTAINER_' -e '^LR_TEST_TAG=' env.$k | tr '\n' ' ')"
	done
}

# crun gives createContainer hooks the caller's.
@test "hooks: without env they have the runtime's, in the container the process's, as runc's" {
	# It reads its input: crun 1.8 fails where a hook ends before that.
	cat >hookenv <<-END
		#!/bin/sh
		cat >/dev/null
		out=$BATS_TEST_TMPDIR
		[ ! -d /hooks ] || out=/hooks
		env | sort >\$out/env.\$1
	END
	chmod 755 hookenv
	local k
	for_peers
	for k in prestart createRuntime createContainer startContainer poststart poststop; do
		cfg --arg k "$k" --arg p "$BATS_TEST_TMPDIR/hookenv" '.hooks[$k] = [{"path": (if $k == "startContainer" then "/hooks/hookenv" else $p end), "args": ["hookenv", $k]}]'
	done
	cfg '.process.env = ["PATH=/bin", "OF=process", "LR_TEST_TAG='"$TAG"'"] | .process.args = ["true"]'
	local callers="OF=caller PATH=/usr/bin:/bin SECRET=caller "
	local expected="prestart: $callers
createRuntime: $callers
createContainer: OF=process PATH=/bin 
startContainer: HOME=/root OF=process PATH=/bin 
poststart: $callers
poststop: $callers"
	run -0 hook_envs "$LEAN_RUNTIME" --root "$ROOT"
	assert_eq "$output" "$expected"
	if [[ $(peers) == *runc* ]]; then
		run -0 hook_envs runc --root "$BATS_TEST_TMPDIR/runc-root"
		# Newer ones give createContainer hooks nothing.
		[ "$output" = "${expected/"createContainer: OF=process PATH=/bin "/"createContainer: "}" ] ||
			assert_eq "$output" "$expected"
	fi
	if [[ $(peers) == *crun* ]]; then
		run -0 hook_envs unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "$@"' sh --root "$BATS_TEST_TMPDIR/crun-root"
		assert_eq "$output" "${expected/"createContainer: OF=process PATH=/bin "/"createContainer: $callers"}"
	fi
}

@test "hooks: no descriptor of the runtime reaches them" {
	cfg --arg o "$BATS_TEST_TMPDIR/fds" '.hooks.createRuntime = [{"path": "/bin/sh", "args": ["sh", "-c", "for f in /proc/$$/fd/*; do echo $f $(readlink $f); done >" + $o]}]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_hasnt "$(cat fds)" memfd
	[ "$(wc -l <fds)" -le 5 ] || fail "$(cat fds)"
}

@test "hooks: a failing one before start fails create and leaves nothing" {
	local k
	for k in prestart createRuntime createContainer; do
		cfg 'del(.hooks)'
		hook_cfg "$k" 9
		run rt create -b "$BUNDLE" "$ID" </dev/null
		assert_one_error
		! is_lean || assert_has "$output" hook
		run ! rt state "$ID"
		assert_nothing_left
	done
}

@test "hooks: a failing startContainer fails start" {
	hook_cfg startContainer 9
	rt_create
	run rt start "$ID"
	if is_lean; then
		assert_one_error
		assert_has "$output" startContainer
	fi
	wait_for_status stopped "$ID"
}

@test "hooks: a failing poststart is an error and ends the container" {
	# runtime.md, lifecycle step 10 (in 1.0 it was a warning only)
	hook_cfg poststart 9
	cfg '.process.args = ["/bin/sleep", "300"]'
	run rt run -d -b "$BUNDLE" "$ID" </dev/null
	assert_one_error
	! is_lean || assert_has "$output" poststart
	run rt state "$ID"
	[ "$status" -ne 0 ] || assert_eq "$(jq -r .status <<<"$output")" stopped
}

@test "hooks: a failing poststop does not stop the others" {
	lean_only "stops there"
	hook_cfg poststop 9
	cfg --arg log "$LOG" '.hooks.poststop += [{"path": "/bin/sh", "args": ["sh", "-c", "echo second >>" + $log]}]'
	rt_bg run -d -b "$BUNDLE" "$ID"
	wait_for_status stopped "$ID"
	run rt delete "$ID"
	assert_has "$(cat "$LOG")" second
	run rt delete --force "$ID"
}

@test "hooks: timeout" {
	cfg '.hooks.createRuntime = [{"path": "/bin/sleep", "args": ["sleep", "100"], "timeout": 1}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	[ "$status" -ne 124 ] # rt has not ended it
	! is_lean || assert_match "$output" "timed out|timeout|time"
	# and it is not left running
	assert_nothing_left
}

@test "hooks: a path that does not exist, or is not absolute" {
	cfg '.hooks.createRuntime = [{"path": "/no/such/hook"}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" /no/such/hook
	lean_only "takes any"
	cfg '.hooks.createRuntime = [{"path": "hook.sh"}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "hooks.createRuntime[0]"
}

@test "hooks: createRuntime sees init's network namespace, as Docker's does" {
	cfg --arg o "$BATS_TEST_TMPDIR/ns" '.hooks.prestart = [{"path": "/bin/sh", "args": ["sh", "-c",
		"p=$(sed -n \"s/.*\\\"pid\\\": *\\([0-9]*\\).*/\\1/p\"); readlink /proc/$p/ns/net >" + $o]}]'
	cfg '.process.args = ["readlink", "/proc/self/ns/net"]'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$(cat ns)" "$output"
}

# What a hook of the container's may do, by its own word.
confinement() { # FILE
	grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' "$1"
}

confined_cfg() {
	cfg '.process.user = {uid: 1000, gid: 1001, additionalGids: [1002]}
		| .process.capabilities = ({bounding: ["CAP_KILL", "CAP_CHOWN"], permitted: ["CAP_KILL"], effective: ["CAP_KILL"], inheritable: ["CAP_KILL"], ambient: ["CAP_KILL"]})
		| .linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO", errnoRet: 28}]}
		| .hooks.startContainer = [{path: "/bin/sh", args: ["sh", "-c", "cat /proc/self/status >/hooks/status.hook; mkdir /hooks/made"], env: ["PATH=/bin"]}]'
	chmod 1777 "$BATS_TEST_TMPDIR"
	sh_cfg 'cat /proc/self/status >/hooks/status.program'
}

# VERB: the container's hook succeeds, and its program runs.
by_verb() {
	if [ "$1" = run ]; then
		run -0 rt run -b "$BUNDLE" "$ID"
	else
		rt_create
		run -0 rt start "$ID"
		wait_for_status stopped "$ID"
		rt delete "$ID"
	fi
}

@test "hooks: startContainer has the process' ids, capabilities and filter, as with runc and crun" {
	lean_changes bounding
	for_peers
	confined_cfg
	local nnp verb p
	for nnp in true false; do
		cfg --argjson n "$nnp" '.process.noNewPrivileges = $n'
		for verb in run create; do
			if [ $verb = run ]; then
				run -1 rt run -b "$BUNDLE" "$ID"
			else
				rt_create
				run -1 rt start "$ID"
				wait_for_status stopped "$ID"
				rt delete "$ID"
			fi
			# It could not make its directory, and said so.
			! is_lean || assert_has "$output" "No space left on device"
			rm status.*
			cfg '.hooks.startContainer[0].args[2] += "; true"'
			by_verb $verb
			assert_match "$(confinement status.hook)" 'Seccomp:.2'
			assert_eq "$(confinement status.hook)" "$(confinement status.program)"
			confinement status.hook >"mine.$verb"
			[ $verb = run ] || assert_eq "$(cat mine.create)" "$(cat mine.run)"
			for p in $(peers); do
				rm status.*
				run -0 peer_run "$p"
				assert_eq "$p: $(confinement status.hook)" "$p: $(cat mine.run)"
			done
			cfg '.hooks.startContainer[0].args[2] |= rtrimstr("; true")'
		done
	done
}

@test "hooks: startContainer as root, whose capabilities come from the bounding set" {
	confined_cfg
	cfg '.process.user = {uid: 0, gid: 0} | .process.noNewPrivileges = false | .process.capabilities |= (del(.ambient, .inheritable)) | .hooks.startContainer[0].args[2] += "; true"'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_match "$(confinement status.hook)" 'CapEff:.0000000000000021'
	assert_eq "$(confinement status.hook)" "$(confinement status.program)"
}

@test "hooks: a filter that refuses execve is the startContainer hook's failure" {
	lean_only "Go needs more"
	confined_cfg
	cfg '.linux.seccomp.syscalls += [{names: ["execve"], action: "SCMP_ACT_ERRNO"}]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "startContainer"
	assert_has "$output" "linux.seccomp"
}
