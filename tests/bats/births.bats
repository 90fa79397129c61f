#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The order in which each birth gives up its rights and loses sight of the host (src/init/child.c has the
# table), held against tests/data/births. A change there is a change of the security argument: look at
# it, then write the files anew by LR_BIRTHS_WRITE=1 bats tests/bats/births.bats.

load ../lib/helpers.bash

setup() {
	common_setup
	lean_only "its own order of calls"
	needs_root
	command -v strace >/dev/null || skip "strace is not installed"
	export LEAN_RUNTIME_PROFILE=none # which has an order of its own
	[ -z "${LR_SANITIZED-}" ] || skip "the sanitizer has births of its own"
}
teardown() { common_teardown; }

# What a birth is made of, by the processes that take part, in the order in which they are cloned: the
# runtime is 0. Numbers of descriptors and processes are left out, and what it closes of its own files.
order() { # TRACE
	python3 - "$1" <<-'END'
		import re, sys
		shown = {
		    "setns": lambda a: re.search(r"CLONE_NEW\w+(\|CLONE_NEW\w+)*|0$", a[1]).group(),
		    "prctl": lambda a: " ".join(a[:2]) if a[0] in ("PR_SET_DUMPABLE", "PR_SET_NO_NEW_PRIVS", "PR_SET_KEEPCAPS") else None,
		    "pivot_root": lambda a: "", "setsid": lambda a: "", "setgroups": lambda a: a[0],
		    "setresuid": lambda a: a[0], "setresgid": lambda a: a[0], "setuid": lambda a: a[0], "setgid": lambda a: a[0],
		    "capset": lambda a: "", "seccomp": lambda a: a[0] if "SET_MODE" in a[0] else None,
		    "umount2": lambda a: a[-1], "close_range": lambda a: "",
		    "execveat": lambda a: "the page" if re.match(r'\["\d+(:\d+)?"', a[2]) else "itself again",
		    "execve": lambda a: re.sub(r'.*/', "", a[0].strip('"')),
		    "clone": lambda a: flags(a), "clone3": lambda a: flags(a), "vfork": lambda a: "CLONE_VFORK|CLONE_VM",
		    "mount": lambda a: "", "move_mount": lambda a: "", "mount_setattr": lambda a: "",
		}
		names = {"clone3": "clone", "vfork": "clone", "move_mount": "mount", "mount_setattr": "mount"}
		def flags(a):
		    return "|".join(sorted(f for f in set(re.findall(r"CLONE_(?:NEW\w+|VM|VFORK|PARENT)\b", ", ".join(a))) if f)) or "-"
		numbers, pending, lines = {}, {}, {}
		for line in open(sys.argv[1], errors="replace"):
		    pid, rest = line.split(maxsplit=1)
		    numbers.setdefault(pid, len(numbers))
		    if rest.rstrip().endswith("<unfinished ...>"):
		        pending[pid] = rest.split(" <unfinished", 1)[0]
		    m = re.match(r"<\.\.\. \w+ resumed>(.*)", rest)
		    if m:
		        rest = pending.pop(pid, "") + m.group(1)
		    elif pid in pending:
		        # It may not come back: execve, or the child of the clone goes on before.
		        rest = pending[pid] + ") = 0"
		    m = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", rest)
		    if not m or m.group(1) not in shown or m.group(3) == "-1":
		        continue
		    what = shown[m.group(1)](m.group(2).split(", "))
		    if what is None or (pid in pending and m.group(1) not in ("clone", "clone3", "vfork")):
		        continue
		    if pid not in pending and line.split(maxsplit=1)[1].startswith("<... clone"):
		        continue
		    lines.setdefault(pid, []).append(f"{names.get(m.group(1), m.group(1))} {what}".strip())
		for pid, number in sorted(numbers.items(), key=lambda i: i[1]):
		    last = None
		    for text in lines.get(pid, []):
		        if text != last and (number or text != "close_range"):
		            print(f"{number} {text}")
		        last = text
		        if text == "execve true":
		            break
	END
}

traced() { # ARGUMENT...
	timeout 60 strace -f -q -o trace \
		-e trace=setns,prctl,pivot_root,setsid,setgroups,setresuid,setresgid,setuid,setgid,capset,seccomp,umount2,close_range,execveat,execve,clone,clone3,vfork,mount,move_mount,mount_setattr \
		"$LEAN_RUNTIME" --root "$ROOT" "$@" </dev/null >out 2>&1 3>&- || fail "$(cat out)"
}

# From Linux 7.0 on, a container's mount namespace begins with its root, and not as a copy of the host's.
as_written() { # NAME
	local golden=$BATS_TEST_DIRNAME/../data/births/$1
	if [[ $(uname -r) =~ ^([0-9]+)\. && ${BASH_REMATCH[1]} -ge 7 ]] && { [ -e "$golden-7.0" ] || [ -n "${LR_BIRTHS_WRITE-}" ]; }; then
		golden+=-7.0
	fi
	order trace >now
	[ -z "${LR_BIRTHS_WRITE-}" ] || cp now "$golden"
	run -0 diff -u "$golden" now
}

FILTER='{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}'

@test "birth: run" {
	cfg '.process.args = ["true"]'
	traced run -b "$BUNDLE" "$ID"
	as_written run
}

@test "birth: run, another user with a filter, with and without no-new-privileges" {
	cfg --argjson f "$FILTER" '.process.args = ["true"] | .process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = false | .linux.seccomp = $f'
	traced run -b "$BUNDLE" "$ID"
	as_written run-user-filter
	cfg '.process.noNewPrivileges = true'
	traced run -b "$BUNDLE" "$ID"
	as_written run-user-filter-nnp
}

@test "birth: run, with a hook, which needs a process of its own" {
	cfg '.process.args = ["true"] | .hooks.createContainer = [{path: "/bin/true"}]'
	traced run -b "$BUNDLE" "$ID"
	as_written run-hook
}

@test "birth: run, in a user namespace that is joined, by a process in between" {
	chmod 755 "$BATS_TEST_TMPDIR" "$BUNDLE"
	unshare --user --map-root-user sleep 300 3>&- &
	local holder=$!
	wait_until eval '[ "$(readlink /proc/'$holder'/ns/user)" != "$(readlink /proc/self/ns/user)" ] && grep -q . /proc/'$holder'/uid_map'
	cfg --arg p "/proc/$holder/ns/user" '.process.args = ["true"] | .mounts |= map(select(.type != "devpts"))
		| .linux.namespaces += [{"type": "user", "path": $p}]'
	traced run -b "$BUNDLE" "$ID"
	kill "$holder"
	wait "$holder" || true
	as_written run-joined-user
}

@test "birth: create, and start" {
	cfg '.process.args = ["true"]'
	traced create -b "$BUNDLE" "$ID" &
	local tracer=$!
	wait_for_status created "$ID"
	rt start "$ID"
	wait "$tracer"
	as_written create
}

@test "birth: exec" {
	cfg 'del(.linux.namespaces[] | select(.type == "cgroup"))' # with cgroup v2
	rt_sleeper
	traced exec "$ID" true
	as_written exec
}

# A seed's program goes on until it is killed.
traced_restore() {
	traced restore --engine fork --detach --image-path "$PWD/seed" -b "$BUNDLE" "$ID" &
	local tracer=$!
	wait_for_status running "$ID"
	wait_until eval 'grep -q "^State:.S" "/proc/$(pid_of)/status" && [ "$(readlink "/proc/$(pid_of)/exe")" = /bin/busybox ]'
	rt kill "$ID" KILL
	wait "$tracer"
	rt delete --force "$ID"
}

@test "birth: restore, which continues a seed: another user, with a filter, with and without no-new-privileges" {
	cfg --argjson f "$FILTER" '.process.args = ["sleep", "300"] | .process.user = {uid: 1000, gid: 1000} | .process.capabilities = {}
		| .process.noNewPrivileges = false | .linux.seccomp = $f'
	rt_bg run --detach -b "$BUNDLE" "$ID"
	rt_bg checkpoint --engine fork --stop --image-path "$PWD/seed" "$ID"
	traced_restore
	as_written restore-user-filter
	cfg '.process.noNewPrivileges = true'
	traced_restore
	as_written restore-user-filter-nnp
}
