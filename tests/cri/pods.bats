#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods by containerd's CRI plug-in: their life, streams, statistics and namespaces. What both runtimes are
# able to do, both do by the same test.

load cri.bash

setup_file() { cri_setup_file; }
teardown_file() { cri_teardown_file; }
teardown() { cri_teardown; }

@test "CRI: a pod and a container from beginning to end" {
	for HANDLER in $HANDLERS; do
		pod
		assert_eq "$(cri PodSandboxStatus "$POD" false | jq -r '.status.state, .status.runtimeHandler')" $'SANDBOX_READY\n'"$HANDLER"
		assert_match "$(cri PodSandboxStatus "$POD" false | jq -r .status.network.ip)" '^10\.98\.0\.[0-9]+$'
		create one 'echo begun; sleep 300'
		assert_eq "$(state_of)" CONTAINER_CREATED
		cri StartContainer "$BOX"
		assert_eq "$(state_of)" CONTAINER_RUNNING
		wait_until eval '[ "$(log_of one)" = begun ]'
		assert_eq "$(inside hostname)" a-pod
		cri StopContainer "$BOX" 0
		assert_eq "$(state_of) $(exit_of)" "CONTAINER_EXITED 137"
		cri RemoveContainer "$BOX"
		assert_eq "$(cri ListContainers '{}')" ""
		cri StopPodSandbox "$POD"
		assert_eq "$(cri ListPodSandbox | jq -r .state)" SANDBOX_NOTREADY
		cri RemovePodSandbox "$POD"
		assert_eq "$(cri ListPodSandbox)" ""
	done
}

@test "CRI: it is this runtime that runs" {
	HANDLER=logged pod
	sleeper
	inside true
	cri StopPodSandbox "$POD"
	cri RemovePodSandbox "$POD"
	local calls
	calls=$(cat "$CD_DIR/calls")
	assert_match "$calls" "--log-format json create --bundle [^ ]+/$POD "
	assert_match "$calls" "--log-format json create --bundle [^ ]+/$BOX "
	assert_match "$calls" " start $BOX"
	assert_match "$calls" " exec --process [^ ]+ .*$BOX"
	assert_match "$calls" " delete $BOX"
	assert_match "$calls" " delete $POD"
}

@test "CRI: exit codes" {
	for HANDLER in $HANDLERS; do
		pod
		start three 'exit 3'
		wait_until ended
		assert_eq "$(cri ContainerStatus "$BOX" false | jq -r '.status.reason, .status.exitCode')" $'Error\n3'
		start zero true
		wait_until ended
		assert_eq "$(cri ContainerStatus "$BOX" false | jq -r '.status.reason')" Completed
	done
}

@test "CRI: a program that can't be started" {
	for HANDLER in $HANDLERS; do
		pod
		create missing '' '.command = ["no-such-program"]'
		run ! cri StartContainer "$BOX"
		assert_has "$output" "executable file not found in"
		assert_hasnt "$output" "unable to retrieve OCI runtime error"
		assert_eq "$(cri ContainerStatus "$BOX" false | jq -r '.status.state, .status.reason, .status.exitCode')" \
			$'CONTAINER_EXITED\nStartError\n128'
		create denied '' '.command = ["/bin/not-executable"]'
		run ! cri StartContainer "$BOX"
		assert_has "$output" "permission denied"
		# The pod can still be used.
		assert_eq "$(says 'echo well')" well
	done
}

@test "CRI: ExecSync" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper one '.working_dir = "/srv" | .envs = [{key: "A", value: "b c"}]'
		run -7 --separate-stderr inside sh -c 'echo "$A $PWD"; echo error >&2; exit 7'
		assert_eq "$output" "b c /srv"
		# shellcheck disable=SC2154 # run sets it
		assert_eq "$stderr" error
		run -125 inside no-such-program
		assert_has "$output" "executable file not found in"
		run -125 cri ExecSync "$BOX" '["sleep", "200"]' 1s
		assert_match "$output" 'DeadlineExceeded|timed out'
		# What took too long has been killed.
		assert_eq "$(inside sh -c 'pidof sleep; ps -o args | grep -c "[s]leep 200"; true')" $'1\n0'
	done
}

@test "CRI: streaming exec, also on a terminal, and attach" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper
		run -5 --separate-stderr cri stream Exec "$(jq -n --arg i "$BOX" '{container_id: $i, stdout: true, stderr: true,
			cmd: ["sh", "-c", "echo out; echo err >&2; exit 5"]}')"
		assert_eq "$output $stderr" "out err"
		run -0 cri stream Exec "$(jq -n --arg i "$BOX" '{container_id: $i, stdin: true, stdout: true, stderr: true,
			cmd: ["sh", "-c", "read x; echo got $x"]}')" <<<'typed in'
		assert_eq "$output" "got typed in"
		run -6 cri stream Exec "$(jq -n --arg i "$BOX" '{container_id: $i, stdin: true, stdout: true, tty: true,
			cmd: ["sh", "-c", "tty; read x; exit $x"]}')" <<<6
		assert_match "$output" /dev/pts/0
		# containerd passes input on before it takes output, and lets go of output when the container ends: each
		# answer is waited for.
		start reads 'until read -t 1 x; do echo waits; done; echo "read $x"; read x; echo "read $x"; read x' '.stdin = true'
		cri stream Attach "$(jq -n --arg i "$BOX" '{container_id: $i, stdin: true, stdout: true, stderr: true}')" \
			< <(for line in waits:one 'read one:two' 'read two:end'; do
				wait_until grep -q "${line%:*}" "$LOGS/heard" && echo "${line#*:}"
			done) >"$LOGS/heard"
		wait_until ended
	done
}

@test "CRI: the log" {
	for HANDLER in $HANDLERS; do
		pod
		# Until containerd reads; see SAID.
		start talks 'sleep 1; echo to stdout; echo to stderr >&2; printf "no newline"; sleep 1'
		wait_until ended
		assert_match "$(cat "$LOGS/talks.log")" 'stdout F to stdout'
		assert_match "$(cat "$LOGS/talks.log")" 'stderr F to stderr'
		assert_match "$(cat "$LOGS/talks.log")" 'stdout P no newline'
		# A long line comes in parts.
		start long 'sleep 1; head -c 40000 /dev/zero | tr "\0" x; echo; sleep 1'
		wait_until ended
		assert_match "$(cut -c 1-60 "$LOGS/long.log")" 'stdout P x'
		assert_eq "$(log_of long | tr -d '\n' | wc -c)" 40000
		# The log is rotated.
		start turns 'trap "exit 0" TERM; i=0; while :; do echo "line $i"; i=$((i + 1)); sleep 0.1; done'
		wait_until grep -q 'line 1' "$LOGS/turns.log"
		mv "$LOGS/turns.log" "$LOGS/turns.log.1"
		cri ReopenContainerLog "$BOX"
		wait_until grep -q 'line' "$LOGS/turns.log"
		start terminal 'sleep 1; tty; [ -t 2 ] && echo also stderr; sleep 1' '.tty = true'
		wait_until ended
		assert_match "$(log_of terminal)" '/dev/(pts/0|console)'
		assert_has "$(log_of terminal)" 'also stderr'
	done
}

@test "CRI: statistics of containers and of pods" {
	for HANDLER in $HANDLERS; do
		pod
		start busy 'x=$(head -c 3000000 /dev/zero | tr "\0" x); while :; do :; done' '.metadata.attempt = 2 | .labels = {a: "b"}'
		wait_until eval '[ "$(cri ContainerStats "$BOX" | jq -r ".cpu.usageCoreNanoSeconds.value // 0")" -gt 1000000 ]'
		run -0 cri ContainerStats "$BOX"
		assert_eq "$(jq -r '.attributes.metadata.name, .attributes.metadata.attempt, .attributes.labels.a' <<<"$output")" $'busy\n2\nb'
		[ "$(jq -r .memory.workingSetBytes.value <<<"$output")" -gt 3000000 ]
		run -0 cri ListContainerStats '{}'
		assert_eq "$(jq -r .attributes.id <<<"$output")" "$BOX"
		run -0 cri ListPodSandboxStats '{}'
		assert_eq "$(jq -r .attributes.id <<<"$output")" "$POD"
		[ "$(jq -r '.linux.process.processCount.value' <<<"$output")" -ge 1 ]
		[ "$(jq -r '.linux.containers[0].memory.workingSetBytes.value' <<<"$output")" -gt 3000000 ]
		cri StopPodSandbox "$POD"
		cri RemovePodSandbox "$POD"
	done
}

@test "CRI: resources, and their update" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper one '.linux.resources = {memory_limit_in_bytes: 67108864, cpu_shares: 512, cpu_period: 100000, cpu_quota: 50000}'
		assert_eq "$(cat "$(cgroup_file memory memory.limit_in_bytes memory.max)")" 67108864
		assert_match "$(cat "$(cgroup_file cpu cpu.cfs_quota_us cpu.max)")" '^50000( 100000)?$'
		cri UpdateContainerResources "$BOX" '{"linux": {"memory_limit_in_bytes": 134217728, "cpu_shares": 1024, "cpu_period": 100000, "cpu_quota": 20000}}'
		assert_eq "$(cat "$(cgroup_file memory memory.limit_in_bytes memory.max)")" 134217728
		assert_match "$(cat "$(cgroup_file cpu cpu.cfs_quota_us cpu.max)")" '^20000( 100000)?$'
		inside true
	done
}

@test "CRI: stop gives a container time, but not for ever" {
	for HANDLER in $HANDLERS; do
		pod
		start obeys 'trap "echo bye; exit 4" TERM; echo ready; while :; do sleep 0.1; done'
		wait_until eval '[ "$(log_of obeys)" = ready ]'
		cri StopContainer "$BOX" 20
		assert_eq "$(exit_of)" 4
		assert_has "$(log_of obeys)" bye
		start deaf 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
		wait_until eval '[ "$(log_of deaf)" = ready ]'
		cri StopContainer "$BOX" 1
		assert_eq "$(exit_of)" 137
	done
}

@test "CRI: an out-of-memory kill is the reason" {
	for HANDLER in $HANDLERS; do
		pod
		start greedy 'awk "BEGIN { s = \"xxxxxxxxxxxxxxxx\"; while (1) s = s s }"; exit $?' '.linux.resources.memory_limit_in_bytes = 33554432'
		wait_until ended
		assert_eq "$(cri ContainerStatus "$BOX" false | jq -r '.status.reason, .status.exitCode')" $'OOMKilled\n137'
	done
}

# namespaces KIND...: of BOX, as /proc/self/ns has them.
namespaces() {
	inside sh -c 'cd /proc/self/ns; for n; do readlink $n; done' sh "$@"
}

@test "CRI: two containers share the pod's network, ipc and host name, not their processes" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper one
		local one=$BOX
		assert_eq "$(inside sh -c 'ip addr show eth0 | grep -c 10.98.0.')" 1
		local first
		first=$(namespaces net ipc uts)
		sleeper two
		assert_eq "$(namespaces net ipc uts)" "$first"
		[ "$(namespaces pid mnt)" != "$(BOX=$one namespaces pid mnt)" ]
		assert_eq "$(inside sh -c 'ps -o args | grep -c "[s]leep 300"')" 1
		inside sh -c 'touch /dev/shm/of-the-pod; nc -l -p 7 -e echo reached >/dev/null 2>&1 &'
		assert_eq "$(BOX=$one inside sh -c 'ls /dev/shm; for i in 1 2 3 4 5 6 7 8 9; do nc 127.0.0.1 7 </dev/null && exit; sleep 0.3; done')" \
			$'of-the-pod\nreached'
		[ "$(namespaces net)" != "$(readlink /proc/self/ns/net)" ]
		[ "$(namespaces ipc)" != "$(readlink /proc/self/ns/ipc)" ]
		# Another pod has none of it.
		pod
		sleeper
		[ "$(namespaces net ipc uts)" != "$first" ]
	done
}

@test "CRI: two containers of a pod with one pid namespace" {
	for HANDLER in $HANDLERS; do
		pod '.linux.security_context.namespace_options.pid = "POD"'
		sleeper one
		local one=$BOX
		sleeper two
		assert_eq "$(namespaces pid)" "$(BOX=$one namespaces pid)"
		assert_eq "$(inside sh -c 'ps -o args | grep -c "[s]leep 300"')" 2
		assert_eq "$(inside cat /proc/1/comm)" pause
		# Its first process is not the namespace's, so a signal ends it.
		local two=$BOX
		start three 'kill -SEGV $$'
		wait_until ended
		assert_eq "$(exit_of)" 139
		BOX=$two
		# A container that ends takes its own processes along, and no others.
		inside sh -c 'sleep 301 >/dev/null 2>&1 &'
		cri StopContainer "$BOX" 0
		BOX=$one
		wait_until eval '[ "$(inside sh -c "ps -o args | grep -c \"[s]leep 30[01]\"")" = 1 ]'
	done
}

@test "CRI: a container in the pid namespace of another" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper target
		local target=$BOX
		sleeper debug ".linux.security_context.namespace_options = {pid: \"TARGET\", target_id: \"$target\"}"
		assert_eq "$(namespaces pid)" "$(BOX=$target namespaces pid)"
		assert_eq "$(inside sh -c 'ps -o args | grep -c "[s]leep 300"')" 2
	done
}

@test "CRI: the host's network, processes and ipc" {
	for HANDLER in $HANDLERS; do
		pod 'del(.hostname) | .linux.security_context.namespace_options = {network: "NODE", pid: "NODE", ipc: "NODE"}'
		sleeper
		assert_eq "$(namespaces net pid ipc)" "$(cd /proc/self/ns && for n in net pid ipc; do readlink $n; done)"
		assert_eq "$(inside cat "/proc/$(cut -d: -f1 "$CD_DIR/daemon")/comm")" containerd
		# All of its processes are found and ended without a pid namespace, too.
		inside sh -c 'sleep 302 >/dev/null 2>&1 &'
		cri StopContainer "$BOX" 0
		wait_until eval '! pgrep -f -x "sleep 302"'
	done
}

@test "CRI: sysctls and name servers" {
	for HANDLER in $HANDLERS; do
		pod '.linux.sysctls = {"kernel.shm_rmid_forced": "1", "net.ipv4.ip_local_port_range": "40000 41000"} |
			.dns_config = {servers: ["192.0.2.1"], searches: ["example.test"]}'
		assert_eq "$(says 'cat /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/ip_local_port_range | tr "\t" " "')" $'1\n40000 41000'
		# The kubelet mounts what containerd wrote for the pod.
		assert_has "$(cat "$CD_DIR/root/io.containerd.grpc.v1.cri/sandboxes/$POD/resolv.conf")" "nameserver 192.0.2.1"
		assert_has "$(says 'cat /etc/resolv.conf')" "search example.test"
	done
}

# All of a pod's shims: one for a pod in most versions.
shims() {
	pgrep -f "containerd-shim-runc-v2 .*-id $POD "
}

@test "CRI: the shim is killed: the pod can be removed, and nothing is left" {
	for HANDLER in $HANDLERS; do
		pod
		start one 'exec sleep 303'
		# shellcheck disable=SC2046 # one word each
		kill -KILL $(shims)
		wait_until ended
		wait_until eval '! pgrep -f -x "sleep 303"'
		wait_until eval '[ "$(cri ListPodSandbox | jq -r .state)" = SANDBOX_NOTREADY ]'
		cri StopPodSandbox "$POD"
		cri RemovePodSandbox "$POD"
		run -0 assert_clean "$CD_DIR/state/io.containerd.runtime"
		assert_eq "$(find "$CD_DIR/state" -name "$POD")" ""
	done
}

@test "CRI: containerd is killed and starts again: pods live on" {
	for HANDLER in $HANDLERS; do
		pod
		sleeper
		signal_process "$(cat "$CD_DIR/daemon")" KILL
		start_containerd
		wait_until cri_ready
		assert_eq "$(state_of)" CONTAINER_RUNNING
		assert_eq "$(inside echo alive)" alive
		cri StopContainer "$BOX" 0
		assert_eq "$(exit_of)" 137
	done
}

@test "CRI: eight pods at once" {
	local i pids=()
	for i in 0 1 2 3 4 5 6 7; do
		{ pod && says "echo out $i"; } >"$BATS_TEST_TMPDIR/o$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	assert_eq "$(cat "$BATS_TEST_TMPDIR"/o?)" "$(for i in 0 1 2 3 4 5 6 7; do echo "out $i"; done)"
}

@test "CRI: a pod's annotation asks for the lean profile, a container's for an exception" {
	local asks='.annotations = {"org.lean-runtime.profile": "lean", "org.lean-runtime.tmpfs": "/scratch"}'
	pod
	assert_eq "$(says 'touch /x && echo writable')" writable
	pod "$asks"
	assert_has "$(says 'touch /x; true')" "Read-only file system"
	assert_eq "$(says 'touch /scratch/x && echo writable')" writable
	# Its network, which somebody configured, is the pod's; so are its limits its own.
	sleeper
	assert_eq "$(inside sh -c 'ip addr show eth0 | grep -c 10.98.0.')" 1
	[ "$(cri ListPodSandboxStats "{\"id\": \"$POD\"}" | jq -r '.linux.containers[0].memory.workingSetBytes.value')" -gt 0 ]
	assert_eq "$(says 'touch /x && echo writable' '.annotations = {"org.lean-runtime.rootfs": "config"}')" writable
	# Without containerd's leave, an annotation does not reach the runtime.
	pod '.annotations = {"com.example.profile": "lean"}'
	assert_eq "$(says 'touch /x && echo writable')" writable
}
