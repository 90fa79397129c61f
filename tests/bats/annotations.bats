#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Annotations that mean something to the runtime: crun's run.oci.* and what belongs to systemd.

load ../lib/helpers

setup() {
	common_setup
	needs_root
	lean_only "annotations of newer versions"
}
teardown() { common_teardown; }

annotate() {
	cfg --arg k "$1" --arg v "$2" '.annotations[$k] = $v'
}

# agent.py: takes one connection, writes what came to agent.json, and answers every system call that
# it is notified of with "no space left" (struct seccomp_notif is 80 bytes, _resp 24).
start_agent() {
	cat >agent.py <<-'END'
		import array, fcntl, json, os, socket, struct
		s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		s.bind("agent.tmp")
		s.listen(1)
		os.rename("agent.tmp", "agent.sock")
		s.settimeout(20)
		c, _ = s.accept()
		data, anc, _, _ = c.recvmsg(1 << 20, socket.CMSG_SPACE(64))
		fds = array.array("i")
		for _, _, p in anc:
		    fds.frombytes(p[: len(p) - len(p) % 4])
		out = {"links": [os.readlink("/proc/self/fd/%d" % f) for f in fds], "data": data.decode(errors="replace")}
		for line in open("/proc/self/fdinfo/%d" % fds[0]):
		    if line.startswith("Pid:"):
		        out["pid"] = int(line.split()[1])
		json.dump(out, open("agent.out", "w"))
		os.rename("agent.out", "agent.json")
		while "seccomp" in out["links"][0]:
		    buf = bytearray(80)
		    try:
		        fcntl.ioctl(fds[0], 0xC0502100, buf)
		        nid = struct.unpack_from("Q", buf)[0]
		        fcntl.ioctl(fds[0], 0xC0182101, struct.pack("QqiI", nid, 0, -28, 0))
		    except OSError:
		        break
	END
	python3 agent.py </dev/null >agent.log 2>&1 3>&- &
	AGENT=$!
	remember "$AGENT"
	wait_until test -S agent.sock
}

stop_agent() {
	signal_remembered TERM "$AGENT" # it may have ended by itself
	wait "$AGENT" || true
}

@test "annotation run.oci.pidfd_receiver: gets a pidfd of init" {
	start_agent
	annotate run.oci.pidfd_receiver "$PWD/agent.sock"
	rt_create
	wait_until test -e agent.json
	stop_agent
	assert_eq "$(jq .pid agent.json)" "$(pid_of)"
	rt delete --force "$ID"
	annotate run.oci.pidfd_receiver /no/such.sock
	run rt create -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" /no/such.sock
}

@test "annotation run.oci.pidfd_receiver: --pidfd-socket comes first" {
	start_agent
	annotate run.oci.pidfd_receiver /no/such.sock
	run -0 rt run --pidfd-socket "$PWD/agent.sock" -b "$BUNDLE" "$ID"
	wait_until test -e agent.json
	stop_agent
	jq -e '.pid > 0' agent.json
}

@test "--pidfd-socket: exec" {
	rt_sleeper
	start_agent
	run -0 rt exec --pidfd-socket "$PWD/agent.sock" --pid-file p "$ID" true
	wait_until test -e agent.json
	stop_agent
	jq -e --argjson p "$(cat p)" '.pid == $p or .pid == -1' agent.json
}

@test "annotation run.oci.seccomp.receiver: gets the notification descriptor" {
	start_agent
	annotate run.oci.seccomp.receiver "$PWD/agent.sock"
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["mkdir", "mkdirat"], action: "SCMP_ACT_NOTIFY"}]}
		| .process.args = ["mkdir", "/tmp/x"]'
	run timeout 20 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	stop_agent
	assert_has "$output" "No space left"
	jq -e '.links[0] | contains("seccomp")' agent.json
}

@test "annotation run.oci.seccomp_fail_unknown_syscall: an unknown name is an error" {
	cfg '.linux.seccomp = {defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: ["no_such_call"], action: "SCMP_ACT_ERRNO"}]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	annotate run.oci.seccomp_fail_unknown_syscall 1
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" no_such_call
	assert_has "$output" linux.seccomp
}

@test "annotation run.oci.seccomp_bpf_data: a ready program instead of linux.seccomp" {
	[ "$(uname -m)" = x86_64 ] || skip "the program is for x86_64"
	local bpf
	# ld nr; mkdir (83) or mkdirat (258): EMLINK (31), else allow
	bpf=$(python3 -c '
import base64, struct
p = [(0x20, 0, 0, 0), (0x15, 1, 0, 83), (0x15, 0, 1, 258), (0x06, 0, 0, 0x5001F), (0x06, 0, 0, 0x7FFF0000)]
print(base64.b64encode(b"".join(struct.pack("HBBI", *i) for i in p)).decode())')
	annotate run.oci.seccomp_bpf_data "$bpf"
	cfg '.process.args = ["mkdir", "/tmp/x"]'
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "Too many links"
	annotate run.oci.seccomp_bpf_data "no base64!"
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" run.oci.seccomp_bpf_data
}

@test "annotation run.oci.keep_original_groups: the caller's groups stay" {
	cfg '.process.args = ["grep", "^Groups:", "/proc/self/status"]'
	run -0 setpriv --groups 0,4321 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" 4321
	annotate run.oci.keep_original_groups 1
	run -0 setpriv --groups 0,4321 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_has "$output" 4321
	annotate run.oci.keep_original_groups 0
	run -0 setpriv --groups 0,4321 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" run -b "$BUNDLE" "$ID"
	assert_hasnt "$output" 4321
	annotate run.oci.keep_original_groups 1
	cfg '.process.user.additionalGids = [7]'
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" run.oci.keep_original_groups
}

@test "annotation run.oci.hooks.stdout and .stderr: files for the hooks' words" {
	annotate run.oci.hooks.stdout "$PWD/out.txt"
	annotate run.oci.hooks.stderr "$PWD/err.txt"
	cfg '.hooks = {createRuntime: [{path: "/bin/sh", args: ["sh", "-c", "echo one; echo bad >&2"]}],
		createContainer: [{path: "/bin/sh", args: ["sh", "-c", "echo two"]}],
		startContainer: [{path: "/bin/sh", args: ["sh", "-c", "echo three"]}],
		poststart: [{path: "/bin/sh", args: ["sh", "-c", "echo four"]}],
		poststop: [{path: "/bin/sh", args: ["sh", "-c", "echo five"]}]}'
	run -0 rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_eq "$(cat out.txt)" $'one\ntwo\nthree\nfour\nfive'
	assert_eq "$(cat err.txt)" bad
	annotate run.oci.hooks.stdout /no/such/dir/file
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" /no/such/dir/file
}

@test "annotation run.oci.mount_context_type: a word of the four" {
	annotate run.oci.mount_context_type fscontext
	run -0 rt run -b "$BUNDLE" "$ID"
	annotate run.oci.mount_context_type nonsense
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" run.oci.mount_context_type
	assert_has "$output" rootcontext
}

@test "annotations run.oci.systemd.subgroup and .force_cgroup_v1: ignored without systemd and always, and told so" {
	cgroupfs_only "systemd has sub-cgroups"
	annotate run.oci.systemd.subgroup sub
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_match "$stderr" 'level=warning .*run.oci.systemd.subgroup is ignored.*--systemd-cgroup'
	cfg 'del(.annotations)'
	annotate run.oci.systemd.force_cgroup_v1 /sys/fs/cgroup/systemd
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_match "$stderr" 'run.oci.systemd.force_cgroup_v1 is ignored'
	# What a manager parses stays clean.
	run -0 --separate-stderr rt --log "$PWD/log.json" --log-format json run -b "$BUNDLE" "$ID"
	assert_eq "$stderr" ""
	[ ! -s log.json ]
}

@test "annotation run.oci.delegate-cgroup: needs cgroup v2, and tells so" {
	cgroup_v2 && skip "tests/vm/conformance.bats tests it"
	annotate run.oci.delegate-cgroup sub
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_match "$stderr" 'run.oci.delegate-cgroup is ignored: it needs cgroup v2'
}

@test "annotation run.oci.handler: refused" {
	annotate run.oci.handler wasm
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" 'run.oci.handler'
	assert_has "$output" binfmt_misc
	annotate run.oci.handler ""
	run -0 rt run -b "$BUNDLE" "$ID"
}

@test "annotation run.oci.seccomp.plugins: ignored, and told what to do instead" {
	annotate run.oci.seccomp.plugins /no/such/plugin.so
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	assert_match "$stderr" 'run.oci.seccomp.plugins is ignored: .*listenerPath'
}

@test "annotation run.oci.timens_offset: ignored, and told what to do instead" {
	annotate run.oci.timens_offset "monotonic 1000 0"
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_match "$stderr" 'run.oci.timens_offset is ignored: .*linux.timeOffsets'
}

@test "annotations org.systemd.property.*: no word about them but with --debug" {
	cgroupfs_only "a unit has these properties"
	annotate org.systemd.property.CollectMode "'inactive-or-failed'"
	run -0 --separate-stderr rt run -b "$BUNDLE" "$ID"
	assert_eq "$stderr" ""
	run -0 --separate-stderr rt --debug run -b "$BUNDLE" "$ID"
	assert_has "$stderr" org.systemd.property.CollectMode
}

@test "annotations: any other is kept, for state and hooks" {
	annotate com.example.key 'a "value"'
	rt_create
	assert_eq "$(rt state "$ID" | jq -r '.annotations["com.example.key"]')" 'a "value"'
}
