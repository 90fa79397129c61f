#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Podman as root, with the runtime in its table of runtimes.

load podman.bash

setup_file() {
	start_podman
}

setup() {
	NAME=c$BATS_TEST_NUMBER
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	remove_all
	assert_clean "$POD_DIR/root/overlay/"
}

# Without a network unless the test is about one: that is what most of the time would go to.
prun() {
	pm run --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" "$@"
}

cgroup_of() { # CONTROLLER FILE
	local p
	p=$(pm inspect -f '{{.State.Pid}}' "$NAME")
	cat "/sys/fs/cgroup/$1$(sed -n "s/^[0-9]*:$1://p" "/proc/$p/cgroup")/$2"
}

v1_only() {
	[ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ] || skip "looks at cgroup v1 files; this machine has v2"
}

@test "podman info names the runtime" {
	run -0 pm info --format '{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}'
	assert_eq "$output" "lean $LEAN_RUNTIME"
}

@test "podman --runtime PATH" {
	run -0 pm --runtime "$LEAN_RUNTIME" run --cgroup-parent "/$LR_SANDBOX_TAG" --rm --network none bb echo by path
	assert_eq "$output" "by path"
}

@test "podman run: output, input, exit code" {
	run -0 prun bb echo hello
	assert_eq "$output" hello
	# Podman 5.8 says "stopped" until it has cleaned up.
	wait_until eval '[ "$(pm inspect -f "{{.OCIRuntime}} {{.State.Status}}" "$NAME")" = "lean exited" ]'
	pm rm "$NAME"
	run -0 prun --rm -i bb cat <<<"typed in"
	assert_eq "$output" "typed in"
	run -42 prun bb sh -c 'exit 42'
	assert_eq "$(pm inspect -f '{{.State.ExitCode}}' "$NAME")" 42
}

@test "podman run: no such program is 127, a directory or no x bit is 126" {
	run -127 prun --rm bb /no/such
	assert_has "$output" "no such file or directory"
	run -127 prun --rm bb no-such-program
	assert_has "$output" "executable file not found in"
	run -126 prun --rm bb /bin
	run -126 prun --rm bb /bin/not-executable
	assert_match "$output" "[Pp]ermission denied"
	assert_hasnt "$output" "unable to retrieve OCI runtime error"
}

@test "podman run -it, and the window's size follows" {
	run -5 on_pty_pm --again --size 31x91 --step "# =>$(until_size 31 91)" --step 'sized-31x91=>resize 40x132' \
		--step "# =>$(until_size 40 132)" --step 'sized-40x132=>tty; exit 5\n' -- \
		run -it --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" bb sh
	assert_match "$output" "/dev/(pts/0|console)"
}

@test "podman run -d, logs, stop, start, kill, rm" {
	prun -d bb sh -c 'echo out; echo err >&2; trap "exit 3" TERM; while :; do sleep 0.1; done'
	wait_until eval 'pm logs "$NAME" 2>&1 | grep -q err'
	pm stop -t 10 "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Status}} {{.State.ExitCode}}' "$NAME")" "exited 3"
	pm start "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Running}}' "$NAME")" true
	pm kill "$NAME"
	run pm wait "$NAME"
	assert_has "$output" 137
	pm rm "$NAME"
}

@test "podman create, start, attach" {
	pm create --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" bb sh -c 'echo attached; exit 4'
	run -4 pm start -a "$NAME"
	assert_has "$output" attached
}

@test "podman exec" {
	prun -d bb sleep 300
	run -0 pm exec "$NAME" sh -c 'echo inside; cat /proc/1/comm'
	assert_eq "$output" $'inside\nsleep'
	run -9 pm exec "$NAME" sh -c 'exit 9'
	run -0 pm exec -i "$NAME" cat <<<"typed in"
	assert_eq "$output" "typed in"
	run -0 pm exec -u 1000:2000 -w /usr -e A=b "$NAME" sh -c 'id -u; id -g; pwd; echo $A'
	assert_eq "$output" $'1000\n2000\n/usr\nb'
	run -127 pm exec "$NAME" no-such-program
	assert_has "$output" "executable file not found in"
	run -126 pm exec "$NAME" /bin/not-executable
	pm exec -d "$NAME" sh -c 'echo detached >/tmp/d'
	wait_until pm exec "$NAME" grep -q detached /tmp/d
}

@test "podman exec -it" {
	prun -d bb sleep 300
	run -4 on_pty_pm --size 28x77 --step "# =>$(until_size 28 77)" --step 'sized-28x77=>exit 4\n' -- exec -it "$NAME" sh
}

@test "podman pause and unpause" {
	prun -d bb sleep 300
	pm pause "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Status}}' "$NAME")" paused
	run ! pm exec "$NAME" true
	pm unpause "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Status}}' "$NAME")" running
	run -0 pm exec "$NAME" true
}

@test "podman stats" {
	prun -d --memory 64m bb sleep 300
	run -0 pm stats --no-stream --format '{{.MemUsage}} {{.PIDs}}' "$NAME"
	assert_match "$output" '^[0-9.]+[kM]?B / 67\.11MB 1'
}

@test "podman top" {
	prun -d bb sleep 300
	run -0 pm top "$NAME"
	assert_has "$output" "sleep 300"
}

@test "podman cp, diff, commit" {
	prun -d bb sleep 300
	echo content >"$BATS_TEST_TMPDIR/f"
	pm cp "$BATS_TEST_TMPDIR/f" "$NAME:/tmp/f"
	run -0 pm exec "$NAME" cat /tmp/f
	assert_eq "$output" content
	run -0 pm diff "$NAME"
	assert_has "$output" "A /tmp/f"
	pm commit -q "$NAME" bb2 >/dev/null
	run -0 pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network none bb2 cat /tmp/f
	assert_eq "$output" content
	remove_all
	pm rmi bb2 >/dev/null
}

@test "--memory, --cpus, --pids-limit, --cpuset-cpus reach the cgroup" {
	v1_only
	prun -d --memory 64m --memory-reservation 32m --cpus 0.5 --pids-limit 33 --cpuset-cpus 0 --cpu-shares 512 bb sleep 300
	assert_eq "$(cgroup_of memory memory.limit_in_bytes)" 67108864
	assert_eq "$(cgroup_of memory memory.soft_limit_in_bytes)" 33554432
	assert_eq "$(cgroup_of cpu cpu.cfs_quota_us)" 50000
	assert_eq "$(cgroup_of cpu cpu.shares)" 512
	assert_eq "$(cgroup_of pids pids.max)" 33
	assert_eq "$(cgroup_of cpuset cpuset.cpus)" 0
	remove_all
	prun -d --pids-limit -1 bb sleep 300
	assert_eq "$(cgroup_of pids pids.max)" max
}

@test "an out-of-memory kill is noticed" {
	# conmon learns of it by an event of init's cgroup and makes a file `oom`: Debian 12's in the
	# directory it was started from, where Podman 4.3 does not look for it. Newer ones do.
	# Init outlives the victim, so that conmon is still there when the event comes.
	prun -d --memory 32m --memory-swap 32m bb sh -c 'awk "BEGIN { s = \"xxxxxxxxxxxxxxxx\"; while (1) s = s s }"; rc=$?; sleep 1; exit $rc'
	run pm wait "$NAME"
	assert_has "$output" 137
	[ -e oom ] || [ "$(pm inspect -f '{{.State.OOMKilled}}' "$NAME")" = true ]
}

@test "--read-only, --tmpfs, --shm-size" {
	run -0 prun --read-only --tmpfs /scratch:size=1m,mode=1770 --shm-size 3m bb sh -c 'touch /x; touch /scratch/y && echo scratch; df -k /dev/shm | tail -n 1; grep /scratch /proc/mounts'
	assert_has "$output" "Read-only file system"
	assert_has "$output" scratch
	assert_match "$output" " 3072 "
	assert_match "$output" "size=1024k,mode=1770"
}

@test "-v and --mount: bind, read-only, named volume, tmpfs" {
	mkdir "$BATS_TEST_TMPDIR/src"
	echo in >"$BATS_TEST_TMPDIR/src/f"
	run -0 prun --rm -v "$BATS_TEST_TMPDIR/src:/a" -v "$BATS_TEST_TMPDIR/src:/b:ro" -v vol:/v \
		--mount type=tmpfs,target=/t,tmpfs-size=65536 bb sh -c 'cat /a/f /b/f; echo out >/a/g; touch /b/h || echo ro; touch /v/x /t/y && ls /v /t'
	assert_has "$output" $'in\nin'
	assert_eq "$(cat "$BATS_TEST_TMPDIR/src/g")" out
	assert_has "$output" ro
	run -0 prun --rm -v vol:/v bb ls /v
	assert_eq "$output" x
	pm volume rm vol
}

@test "--user, --group-add, -w, -e, --hostname, --entrypoint, --umask" {
	run -0 prun --user 1000:1000 --group-add 3000 -w /usr -e A=b --hostname thehost --umask 0027 --entrypoint sh bb -c 'id; pwd; echo $A; hostname; echo $HOME; umask'
	assert_match "$output" "uid=1000\(tester\) gid=1000\(tester\) groups=1000\(tester\),.*3000"
	assert_has "$output" $'/usr\nb\nthehost\n/home/tester\n0027'
}

@test "--cap-drop, --cap-add, no-new-privileges, seccomp" {
	run -0 prun --rm --cap-drop all bb grep CapEff /proc/self/status
	assert_has "$output" 0000000000000000
	run -0 prun --rm --cap-drop all --cap-add net_admin bb grep CapEff /proc/self/status
	assert_has "$output" 0000000000001000
	run -0 prun --rm --security-opt no-new-privileges bb grep -E 'NoNew|Seccomp:' /proc/self/status
	assert_match "$output" 'NoNewPrivs:.1'
	assert_match "$output" 'Seccomp:.2'
	run -0 prun --rm --security-opt seccomp=unconfined bb grep Seccomp: /proc/self/status
	assert_match "$output" ':.0'
	echo '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}' >"$BATS_TEST_TMPDIR/s.json"
	run prun --rm --security-opt "seccomp=$BATS_TEST_TMPDIR/s.json" bb mkdir /x
	assert_has "$output" "Operation not permitted"
}

@test "--network host, container, none" {
	run -0 prun --rm bb sh -c 'ip -o link | wc -l'
	assert_eq "$output" 1
	run -0 pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network host bb readlink /proc/self/ns/net
	assert_eq "$output" "$(readlink /proc/self/ns/net)"
	prun -d bb sleep 300
	run -0 pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network "container:$NAME" bb readlink /proc/self/ns/net
	assert_eq "$output" "$(pm exec "$NAME" readlink /proc/self/ns/net)"
}

@test "--network bridge with a published port" {
	has_bridge || skip "neither netavark nor containernetworking-plugins is installed"
	mkdir "$BATS_TEST_TMPDIR/www"
	echo served >"$BATS_TEST_TMPDIR/www/index.html"
	pm run -d --cgroup-parent "/$LR_SANDBOX_TAG" --name "$NAME" --network bridge -p 127.0.0.1:18081:80 -v "$BATS_TEST_TMPDIR/www:/www:ro" bb httpd -f -p 80 -h /www
	local ip
	ip=$(pm inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$NAME")
	wait_until busybox wget -q -O /dev/null "http://$ip/"
	run -0 busybox wget -q -O - "http://$ip/"
	assert_eq "$output" served
	run -0 busybox wget -q -O - http://127.0.0.1:18081/
	assert_eq "$output" served
}

@test "--init" {
	[ -x /usr/libexec/podman/catatonit ] || [ -x /usr/bin/catatonit ] || skip "catatonit is not installed"
	run -0 prun --rm --init bb cat /proc/1/comm
	assert_match "$output" "catatonit|podman-init"
}

@test "--rm removes; restart policy restarts" {
	run -0 prun --rm bb true
	run ! pm inspect "$NAME"
	prun -d --restart on-failure:2 bb sh -c 'exit 1'
	wait_until eval '[ "$(pm inspect -f "{{.RestartCount}} {{.State.Status}}" "$NAME")" = "2 exited" ]'
}

@test "podman restart" {
	prun -d bb sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done'
	local before
	before=$(pm inspect -f '{{.State.Pid}}' "$NAME")
	pm restart -t 5 "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Running}}' "$NAME")" true
	[ "$(pm inspect -f '{{.State.Pid}}' "$NAME")" != "$before" ]
}

@test "health check" {
	prun -d --health-cmd 'test -e /tmp/healthy' --health-interval disable bb sleep 300
	run ! pm healthcheck run "$NAME"
	pm exec "$NAME" touch /tmp/healthy
	run -0 pm healthcheck run "$NAME"
	assert_eq "$(pm inspect -f '{{.State.Health.Status}}' "$NAME")" healthy
}

@test "--privileged" {
	lean_only "fails where CAP_SYS_RESOURCE is missing"
	run -0 prun --rm --privileged bb sh -c 'grep Seccomp: /proc/self/status; mount -t tmpfs none /mnt && echo mounted; grep " /sys " /proc/mounts'
	assert_match "$output" 'Seccomp:.0'
	assert_has "$output" mounted
	assert_match "$output" "/sys sysfs rw"
}

@test "--device, --device-cgroup-rule" {
	run -0 prun --rm --device /dev/zero:/dev/mine:r bb sh -c 'stat -c %t:%T /dev/mine; head -c 3 /dev/mine | wc -c'
	assert_eq "$output" $'1:5\n3'
	run -0 prun --rm --cap-add mknod --device-cgroup-rule 'c 1:11 w' bb sh -c 'mknod /tmp/k c 1 11 && : >/tmp/k && echo opened'
	assert_eq "$output" opened
	run prun --rm --cap-add mknod bb sh -c 'mknod /tmp/k c 1 11 && : >/tmp/k'
	assert_has "$output" "Operation not permitted"
}

@test "--ulimit, --sysctl, --oom-score-adj" {
	run -0 prun --rm --ulimit nofile=123:456 --ulimit nproc=1000:1000 --sysctl kernel.msgmax=9000 --oom-score-adj 300 bb \
		sh -c 'ulimit -n; ulimit -Hn; cat /proc/sys/kernel/msgmax /proc/self/oom_score_adj'
	assert_eq "$output" $'123\n456\n9000\n300'
}

@test "--pid, --ipc, --uts container and host" {
	prun -d --ipc shareable bb sleep 300
	run -0 pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network none --pid "container:$NAME" --ipc "container:$NAME" bb sh -c 'tr "\0" " " </proc/1/cmdline; readlink /proc/self/ns/ipc'
	assert_has "$output" "sleep 300"
	assert_has "$output" "$(pm exec "$NAME" readlink /proc/self/ns/ipc)"
	run -0 pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network none --pid host --ipc host --uts host bb sh -c 'for n in pid ipc uts; do readlink /proc/self/ns/$n; done'
	assert_eq "$output" "$(for n in pid ipc uts; do readlink /proc/self/ns/$n; done)"
}

@test "--uidmap: a user namespace" {
	chmod 711 "$TMPDIR" "$POD_DIR" "$POD_DIR/root" 2>/dev/null || true
	run -0 prun --rm --uidmap 0:700000:65536 --gidmap 0:700000:65536 bb sh -c 'id -u; cat /proc/self/uid_map; touch /tmp/x && stat -c %u /tmp/x'
	assert_match "$output" $'^0\n +0 +700000 +65536\n0$'
}

@test "--cgroups disabled" {
	lean_only "has no --cgroup-manager disabled"
	run -0 pm run --rm --network none --cgroups disabled bb echo without
	assert_eq "$output" without
}

@test "--preserve-fds" {
	echo three >"$BATS_TEST_TMPDIR/three"
	run -0 preserving
	assert_eq "$output" three
}

preserving() {
	CONTAINERS_CONF=$POD_DIR/containers.conf podman --root "$POD_DIR/root" --runroot "$POD_DIR/run" --tmpdir "$POD_DIR/tmp" --storage-driver overlay \
		run --cgroup-parent "/$LR_SANDBOX_TAG" --network none --rm --preserve-fds 1 bb sh -c 'cat <&3' 3<"$BATS_TEST_TMPDIR/three"
}

@test "pods: shared network, ipc and uts; pod stop and rm" {
	pm pod create --name pod1 --cgroup-parent "/$LR_SANDBOX_TAG" --network none >/dev/null
	pm run -d --pod pod1 --name one bb sleep 300 >/dev/null
	pm run -d --pod pod1 --name two bb sleep 300 >/dev/null
	local n
	for n in net ipc uts; do
		assert_eq "$(pm exec one readlink /proc/self/ns/$n)" "$(pm exec two readlink /proc/self/ns/$n)"
	done
	[ "$(pm exec one readlink /proc/self/ns/pid)" != "$(pm exec two readlink /proc/self/ns/pid)" ]
	pm exec -d one sh -c 'echo via lo | nc -l -p 777'
	wait_until eval 'pm exec two sh -c "nc 127.0.0.1 777 </dev/null" | grep -q "via lo"'
	pm pod pause pod1
	assert_eq "$(pm inspect -f '{{.State.Status}}' one)" paused
	pm pod unpause pod1
	pm pod stop -t 1 pod1
	assert_eq "$(pm inspect -f '{{.State.Status}}' one)" exited
	pm pod rm pod1
}

@test "play kube" {
	cat >"$BATS_TEST_TMPDIR/pod.yaml" <<-'END'
		apiVersion: v1
		kind: Pod
		metadata:
		  name: kubepod
		spec:
		  hostNetwork: true
		  containers:
		  - name: main
		    image: localhost/bb
		    imagePullPolicy: Never
		    command: ["/bin/sleep", "300"]
		    resources:
		      limits:
		        memory: 64Mi
	END
	run pm play kube "$BATS_TEST_TMPDIR/pod.yaml"
	[ "$status" = 0 ] || fail "$output"
	assert_eq "$(pm inspect -f '{{.State.Status}} {{.HostConfig.Memory}}' kubepod-main)" "running 67108864"
	pm exec kubepod-main /bin/true
	pm play kube --down "$BATS_TEST_TMPDIR/pod.yaml"
}

@test "podman build" {
	mkdir "$BATS_TEST_TMPDIR/ctx"
	printf 'FROM localhost/bb\nRUN echo built >/made && id -u\nUSER 1000\nRUN id -u >/tmp/who\nCMD cat /made /tmp/who\n' >"$BATS_TEST_TMPDIR/ctx/Dockerfile"
	run pm build --runtime "$LEAN_RUNTIME" --network none --isolation oci -t built "$BATS_TEST_TMPDIR/ctx"
	[ "$status" = 0 ] || fail "$output"
	run -0 prun --rm built
	assert_eq "$output" $'built\n1000'
	pm rmi built >/dev/null
}

@test "six containers at once" {
	local i pids=()
	for i in 0 1 2 3 4 5; do
		pm run --rm --cgroup-parent "/$LR_SANDBOX_TAG" --network none bb echo "out $i" >"$BATS_TEST_TMPDIR/o$i" 2>&1 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	assert_eq "$(cat "$BATS_TEST_TMPDIR"/o? | grep -c '^out [0-9]$')" 6
}

@test "the runtime's own error reaches the user" {
	lean_only "words of ours"
	run ! prun --rm -v "$BATS_TEST_TMPDIR:/proc" bb true
	assert_hasnt "$output" "unable to retrieve OCI runtime error"
	assert_has "$output" "/proc"
}
