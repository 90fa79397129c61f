#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Docker, with the runtime added by --add-runtime and made the default.

load dockerd.bash

setup_file() {
	start_dockerd docker --default-runtime lean
}

teardown_file() {
	stop_dockerd
}

setup() {
	NAME=c$BATS_TEST_NUMBER
}

teardown() {
	remove_all
	assert_clean "$DOCKER_DIR/exec/runtime"
}

drun() {
	dk run --name "$NAME" "$@"
}

cgroup_of() { # CONTROLLER FILE
	cat "/sys/fs/cgroup/$1/$LR_SANDBOX_TAG/$(dk inspect -f '{{.Id}}' "$NAME")/$2"
}

v1_only() {
	[ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ] || skip "looks at cgroup v1 files; this machine has v2"
}

@test "docker info knows the runtime" {
	run -0 dk info --format '{{.DefaultRuntime}} {{json .Runtimes}}'
	assert_has "$output" "lean {"
	assert_has "$output" "$LEAN_RUNTIME"
}

@test "docker run: output, and the runtime it ran with" {
	run -0 drun bb echo hello
	assert_eq "$output" hello
	assert_eq "$(dk inspect -f '{{.HostConfig.Runtime}} {{.State.Status}}' "$NAME")" "lean exited"
}

@test "docker run --runtime lean" {
	run -0 drun --rm --runtime lean bb echo hello
	assert_eq "$output" hello
}

@test "docker run: standard input and exit code" {
	run -0 drun --rm -i bb cat <<<"typed in"
	assert_eq "$output" "typed in"
	run -42 drun bb sh -c 'exit 42'
	assert_eq "$(dk inspect -f '{{.State.ExitCode}}' "$NAME")" 42
}

@test "docker run: no such program is 127, a directory or no x bit is 126" {
	run -127 drun --rm bb /no/such
	assert_has "$output" "no such file or directory"
	run -127 drun --rm bb no-such-program
	assert_has "$output" "executable file not found in"
	run -126 drun --rm bb /bin
	run -126 drun --rm bb /bin/not-executable
	assert_has "$output" "permission denied"
	run -125 drun --rm --no-such-option bb true
}

@test "docker run -it" {
	run -5 "$LR_LIB/on-pty" --size 31x91 --step "# =>$(until_size 31 91)" --step 'sized-31x91=>tty; exit 5\n' -- \
		"$DOCKER" -H "unix://$DOCKER_DIR/sock" run -it --name "$NAME" bb sh
	assert_match "$output" "/dev/pts/0"
}

@test "docker run -it: the window's size follows" {
	run -0 "$LR_LIB/on-pty" --again --size 31x91 --step "# =>$(until_size 31 91)" --step 'sized-31x91=>resize 40x132' \
		--step "# =>$(until_size 40 132)" --step 'sized-40x132=>exit\n' -- "$DOCKER" -H "unix://$DOCKER_DIR/sock" run -it --name "$NAME" bb sh
}

@test "docker run -d, logs, stop, start, kill, rm" {
	drun -d bb sh -c 'echo out; echo err >&2; trap "exit 3" TERM; while :; do sleep 0.1; done'
	wait_until eval 'dk logs "$NAME" 2>&1 | grep -q err'
	run -0 --separate-stderr dk logs "$NAME"
	assert_eq "$output|$stderr" "out|err"
	dk stop -t 10 "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Status}} {{.State.ExitCode}}' "$NAME")" "exited 3"
	dk start "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Running}}' "$NAME")" true
	dk kill "$NAME"
	wait_until eval '[ "$(dk inspect -f "{{.State.ExitCode}}" "$NAME")" = 137 ]'
	dk rm "$NAME"
}

@test "docker kill -s" {
	drun -d bb sh -c 'trap "echo got USR1" USR1; echo ready; while :; do sleep 0.1; done'
	wait_until eval 'dk logs "$NAME" | grep -q ready'
	dk kill -s USR1 "$NAME"
	wait_until eval 'dk logs "$NAME" | grep -q "got USR1"'
}

@test "docker exec" {
	drun -d bb sleep 300
	run -0 dk exec "$NAME" sh -c 'echo inside; cat /proc/1/comm'
	assert_eq "$output" $'inside\nsleep'
	run -9 dk exec "$NAME" sh -c 'exit 9'
	run -0 dk exec -i "$NAME" cat <<<"typed in"
	assert_eq "$output" "typed in"
	run -0 dk exec -u 1000:2000 -w /usr -e A=b "$NAME" sh -c 'id -u; id -g; pwd; echo $A'
	assert_eq "$output" $'1000\n2000\n/usr\nb'
	run dk exec "$NAME" /no/such
	[ "$status" = 126 ] || [ "$status" = 127 ]
	dk exec -d "$NAME" sh -c 'echo detached >/tmp/d'
	wait_until dk exec "$NAME" grep -q detached /tmp/d
	is_lean || return 0 # the stand-in fails where CAP_SYS_RESOURCE is missing
	run -0 dk exec --privileged "$NAME" grep CapEff /proc/self/status
	assert_hasnt "$output" 00000000a80425fb
}

@test "docker exec -it" {
	drun -d bb sleep 300
	run -4 "$LR_LIB/on-pty" --size 28x77 --step "# =>$(until_size 28 77)" --step 'sized-28x77=>exit 4\n' -- \
		"$DOCKER" -H "unix://$DOCKER_DIR/sock" exec -it "$NAME" sh
}

@test "docker attach and detach keys" {
	drun -dit bb sh
	run "$LR_LIB/on-pty" --step '=>echo a$((1+1))b\n' --step 'a2b=>\x10\x11' -- \
		"$DOCKER" -H "unix://$DOCKER_DIR/sock" attach "$NAME"
	assert_has "$output" a2b
	[ "$status" -le 1 ] # Docker's own code for having been detached
	assert_eq "$(dk inspect -f '{{.State.Running}}' "$NAME")" true
}

@test "docker pause and unpause" {
	drun -d bb sh -c 'while :; do echo x; sleep 0.1; done'
	dk pause "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Status}}' "$NAME")" paused
	run dk exec "$NAME" true
	[ "$status" -ne 0 ]
	dk unpause "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Status}}' "$NAME")" running
	run -0 dk exec "$NAME" true
}

@test "docker stats --no-stream" {
	drun -d --memory 64m bb sleep 300
	run -0 dk stats --no-stream --format '{{.MemUsage}} {{.PIDs}} {{.CPUPerc}}' "$NAME"
	assert_match "$output" '^[0-9.]+[kKM]i?B / 64MiB 1 '
}

@test "docker top" {
	drun -d bb sleep 300
	run -0 dk top "$NAME"
	assert_has "$output" "sleep 300"
	run -0 dk top "$NAME" -o pid,comm
	assert_match "$output" "PID +COMMAND"
}

@test "docker cp, both ways" {
	drun -d bb sleep 300
	echo content >"$BATS_TEST_TMPDIR/f"
	dk cp "$BATS_TEST_TMPDIR/f" "$NAME:/tmp/f"
	run -0 dk exec "$NAME" cat /tmp/f
	assert_eq "$output" content
	dk cp "$NAME:/etc/motd" "$BATS_TEST_TMPDIR/m"
	assert_has "$(cat "$BATS_TEST_TMPDIR/m")" busybox
}

@test "--memory, --cpus, --pids-limit, --cpuset-cpus reach the cgroup" {
	v1_only
	drun -d --memory 64m --memory-reservation 32m --cpus 0.5 --pids-limit 33 --cpuset-cpus 0 --cpu-shares 512 bb sleep 300
	assert_eq "$(cgroup_of memory memory.limit_in_bytes)" 67108864
	assert_eq "$(cgroup_of memory memory.soft_limit_in_bytes)" 33554432
	assert_eq "$(cgroup_of cpu cpu.cfs_quota_us)" 50000
	assert_eq "$(cgroup_of cpu cpu.shares)" 512
	assert_eq "$(cgroup_of pids pids.max)" 33
	assert_eq "$(cgroup_of cpuset cpuset.cpus)" 0
}

@test "docker update" {
	v1_only
	drun -d --memory 64m bb sleep 300
	dk update --memory 128m --memory-swap 128m --pids-limit 44 --cpus 0.25 "$NAME"
	assert_eq "$(cgroup_of memory memory.limit_in_bytes)" 134217728
	assert_eq "$(cgroup_of pids pids.max)" 44
	assert_eq "$(cgroup_of cpu cpu.cfs_quota_us)" 25000
	run -0 dk exec "$NAME" sh -c 'echo >/dev/null'
}

@test "an out-of-memory kill is reported as one" {
	run -137 drun --memory 32m --memory-swap 32m bb sh -c 'exec awk "BEGIN { s = \"xxxxxxxxxxxxxxxx\"; while (1) s = s s }"'
	wait_until eval '[ "$(dk inspect -f "{{.State.OOMKilled}}" "$NAME")" = true ]'
	assert_eq "$(dk inspect -f '{{.State.ExitCode}}' "$NAME")" 137
}

@test "the smallest memory limit that Docker takes" {
	[ -z "${LR_SANITIZED-}" ] || skip "a sanitized program needs more"
	run -0 drun --rm --memory 6m bb echo small
	assert_has "$output" small
}

@test "--read-only, --tmpfs, --shm-size" {
	run -0 drun --read-only --tmpfs /scratch:size=1m,mode=1770 --shm-size 3m bb sh -c 'touch /x; touch /scratch/y && echo scratch; df -k /dev/shm | tail -n 1; grep /scratch /proc/mounts'
	assert_has "$output" "Read-only file system"
	assert_has "$output" scratch
	assert_match "$output" " 3072 "
	assert_match "$output" "size=1024k,mode=1770"
}

@test "-v and --mount: bind, read-only, named volume, propagation" {
	mkdir "$BATS_TEST_TMPDIR/src"
	echo in >"$BATS_TEST_TMPDIR/src/f"
	run -0 drun --rm -v "$BATS_TEST_TMPDIR/src:/a" -v "$BATS_TEST_TMPDIR/src:/b:ro" -v vol:/v \
		--mount "type=bind,source=$BATS_TEST_TMPDIR/src,target=/c,readonly" --mount type=tmpfs,target=/t,tmpfs-size=65536 \
		bb sh -c 'cat /a/f /b/f /c/f; echo out >/a/g; touch /b/h 2>/dev/null || echo ro; touch /c/h 2>/dev/null || echo ro; touch /v/x /t/y && ls /v /t'
	assert_has "$output" $'in\nin\nin'
	assert_eq "$(cat "$BATS_TEST_TMPDIR/src/g")" out
	assert_eq "$(grep -c '^ro$' <<<"$output")" 2
	run -0 drun --rm -v vol:/v bb ls /v
	assert_eq "$output" x
	dk volume rm vol
}

@test "--user, --group-add, -w, -e, --hostname, --entrypoint" {
	run -0 drun --user 1000:1000 --group-add 3000 -w /usr -e A=b --hostname thehost --entrypoint sh bb -c 'id; pwd; echo $A; hostname; echo $HOME'
	assert_match "$output" "uid=1000\(tester\) gid=1000\(tester\) groups=1000\(tester\),3000"
	assert_has "$output" $'/usr\nb\nthehost\n/home/tester'
	run -0 dk run --rm --user tester bb id -u
	assert_eq "$output" 1000
}

@test "--cap-drop and --cap-add" {
	run -0 drun --rm bb grep CapEff /proc/self/status
	assert_has "$output" 00000000a80425fb
	run -0 drun --rm --cap-drop ALL bb grep CapEff /proc/self/status
	assert_has "$output" 0000000000000000
	run -0 drun --rm --cap-drop ALL --cap-add NET_ADMIN bb grep CapEff /proc/self/status
	assert_has "$output" 0000000000001000
}

@test "--security-opt: seccomp default, own, none; no-new-privileges" {
	run -0 drun --rm bb sh -c 'grep -E "Seccomp:|NoNew" /proc/self/status'
	assert_match "$output" 'Seccomp:.2'
	assert_match "$output" 'NoNewPrivs:.0'
	run -0 drun --rm --security-opt no-new-privileges bb grep NoNew /proc/self/status
	assert_match "$output" ':.1'
	run -0 drun --rm --security-opt seccomp=unconfined bb grep Seccomp: /proc/self/status
	assert_match "$output" ':.0'
	echo '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}' >"$BATS_TEST_TMPDIR/s.json"
	run drun --rm --security-opt "seccomp=$BATS_TEST_TMPDIR/s.json" bb mkdir /x
	assert_has "$output" "Operation not permitted"
	# Docker's default profile refuses these
	run drun --rm bb unshare -U true
	assert_has "$output" "Operation not permitted"
}

@test "--security-opt: masked and read-only paths" {
	run -0 drun --rm bb sh -c 'ls /proc/acpi /sys/firmware 2>/dev/null | grep -v : | grep -c .; echo 1 >/proc/sys/kernel/panic; cat /proc/timer_list | wc -c; true'
	assert_has "$output" "Read-only file system"
	assert_eq "$(grep -c -x 0 <<<"$output")" 2
	run -0 drun --rm --security-opt systempaths=unconfined bb sh -c 'head -c 20 /proc/timer_list | wc -c'
	assert_eq "$output" 20
}

@test "--network none, host, container" {
	run -0 drun --rm --network none bb sh -c 'ip -o link | wc -l'
	assert_eq "$output" 1
	run -0 drun --rm --network host bb readlink /proc/self/ns/net
	assert_eq "$output" "$(readlink /proc/self/ns/net)"
	drun -d bb sleep 300
	run -0 dk run --rm --network "container:$NAME" bb sh -c 'ip -4 -o addr show eth0; readlink /proc/self/ns/net'
	assert_match "$output" "172\.[0-9.]+/16"
	assert_has "$output" "$(dk exec "$NAME" readlink /proc/self/ns/net)"
}

@test "--network bridge with a published port" {
	mkdir "$BATS_TEST_TMPDIR/www"
	echo served >"$BATS_TEST_TMPDIR/www/index.html"
	drun -d -p 127.0.0.1:18080:80 -v "$BATS_TEST_TMPDIR/www:/www:ro" bb httpd -f -p 80 -h /www
	wait_until busybox wget -q -O /dev/null http://127.0.0.1:18080/
	run -0 busybox wget -q -O - http://127.0.0.1:18080/
	assert_eq "$output" served
	# and straight to the container over the bridge
	local ip
	ip=$(dk inspect -f '{{.NetworkSettings.IPAddress}}' "$NAME")
	run -0 busybox wget -q -O - "http://$ip/"
	assert_eq "$output" served
}

@test "a network of its own: containers find each other by name" {
	dk network create net1
	dk run -d --name web --network net1 bb httpd -f -p 80 -h /etc
	run -0 drun --rm --network net1 bb sh -c 'for i in 1 2 3 4 5; do wget -q -O - http://web/motd && exit; sleep 0.5; done; exit 1'
	assert_has "$output" "busybox test image"
	remove_all
	dk network rm net1
}

@test "two containers on the bridge never share a network namespace" {
	dk run -d --name one bb sleep 300
	dk run -d --name two bb sleep 300
	[ "$(dk exec one readlink /proc/self/ns/net)" != "$(dk exec two readlink /proc/self/ns/net)" ]
}

@test "--init" {
	command -v docker-init >/dev/null || skip "docker-init is not installed"
	run -0 drun --rm --init bb sh -c 'cat /proc/1/comm; echo $$'
	assert_match "$output" "docker-init|tini"
}

@test "--rm removes, restart policy restarts" {
	run -0 drun --rm bb true
	run ! dk inspect "$NAME"
	drun -d --restart on-failure:2 bb sh -c 'exit 1'
	wait_until eval '[ "$(dk inspect -f "{{.RestartCount}} {{.State.Status}}" "$NAME")" = "2 exited" ]'
}

@test "docker restart" {
	drun -d bb sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done'
	local before
	before=$(dk inspect -f '{{.State.Pid}}' "$NAME")
	dk restart -t 5 "$NAME"
	assert_eq "$(dk inspect -f '{{.State.Running}}' "$NAME")" true
	[ "$(dk inspect -f '{{.State.Pid}}' "$NAME")" != "$before" ]
}

@test "health check" {
	drun -d --health-cmd 'test -e /tmp/healthy' --health-interval 1s --health-retries 1 bb sh -c 'sleep 2; touch /tmp/healthy; sleep 300'
	wait_until eval '[ "$(dk inspect -f "{{.State.Health.Status}}" "$NAME")" = healthy ]'
}

@test "--privileged" {
	lean_only "fails where CAP_SYS_RESOURCE is missing"
	run -0 drun --rm --privileged bb sh -c 'grep Seccomp: /proc/self/status; mount -t tmpfs none /mnt && echo mounted; ls /dev | wc -l; grep " /sys " /proc/mounts'
	assert_match "$output" 'Seccomp:.0'
	assert_has "$output" mounted
	assert_match "$output" "/sys sysfs rw"
}

@test "--device and device cgroup rules" {
	run -0 drun --rm --device /dev/zero:/dev/mine:r bb sh -c 'stat -c %t:%T /dev/mine; head -c 3 /dev/mine | wc -c'
	assert_eq "$output" $'1:5\n3'
	run drun --rm bb sh -c 'mknod /tmp/k c 1 11 && : >/tmp/k'
	assert_has "$output" "Operation not permitted"
	run -0 drun --rm --device-cgroup-rule 'c 1:11 w' bb sh -c 'mknod /tmp/k c 1 11 && : >/tmp/k && echo opened'
	assert_eq "$output" opened
}

@test "--ulimit and --sysctl" {
	run -0 drun --rm --ulimit nofile=123:456 --sysctl net.ipv4.ip_unprivileged_port_start=1024 --sysctl kernel.msgmax=9000 bb \
		sh -c 'ulimit -n; ulimit -Hn; cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax'
	assert_eq "$output" $'123\n456\n1024\n9000'
}

@test "--pid container and host, --ipc container and host, --uts host" {
	drun -d --ipc shareable bb sleep 300
	run -0 dk run --rm --pid "container:$NAME" --ipc "container:$NAME" bb sh -c 'tr "\0" " " </proc/1/cmdline; readlink /proc/self/ns/ipc'
	assert_has "$output" "sleep 300"
	assert_has "$output" "$(dk exec "$NAME" readlink /proc/self/ns/ipc)"
	run -0 dk run --rm --pid host --ipc host --uts host bb sh -c 'for n in pid ipc uts; do readlink /proc/self/ns/$n; done'
	assert_eq "$output" "$(for n in pid ipc uts; do readlink /proc/self/ns/$n; done)"
}

@test "--pid host: docker stop ends everything" {
	drun -d --pid host bb sh -c 'sleep 312 & sleep 313'
	wait_until eval 'dk top "$NAME" | grep -q 312'
	dk stop -t 1 "$NAME"
	wait_until eval '! grep -l -a -s -z "^312$" /proc/[0-9]*/cmdline'
}

@test "--cgroupns private and host" {
	v1_only
	run -0 drun --rm --cgroupns private bb cat /proc/self/cgroup
	assert_hasnt "$output" "$LR_SANDBOX_TAG"
	run -0 drun --rm --cgroupns host bb cat /proc/self/cgroup
	assert_has "$output" "$LR_SANDBOX_TAG"
}

@test "--oom-score-adj" {
	run -0 drun --rm --oom-score-adj 300 bb cat /proc/self/oom_score_adj
	assert_eq "$output" 300
}

@test "docker commit, diff, export" {
	drun bb sh -c 'echo new >/new'
	run -0 dk diff "$NAME"
	assert_has "$output" "A /new"
	dk commit "$NAME" bb2 >/dev/null
	run -0 dk run --rm bb2 cat /new
	assert_eq "$output" new
	dk rmi bb2 >/dev/null
}

@test "docker wait, rename, events" {
	drun -d bb sh -c 'sleep 0.5; exit 6'
	run -0 dk wait "$NAME"
	assert_eq "$output" 6
	wait_until eval 'dk events --since 60s --until 0s --filter "container=$NAME" --format "{{.Action}}" | grep -q die'
	run -0 dk events --since 60s --until 0s --filter "container=$NAME" --format '{{.Action}}'
	assert_has "$output" start
}

@test "docker build, the classic builder" {
	mkdir "$BATS_TEST_TMPDIR/ctx"
	printf 'FROM bb\nRUN echo built >/made && id -u\nUSER 1000\nRUN id -u >/tmp/who\nCMD cat /made /tmp/who\n' >"$BATS_TEST_TMPDIR/ctx/Dockerfile"
	DOCKER_BUILDKIT=0 run -0 dk build -t built "$BATS_TEST_TMPDIR/ctx"
	run -0 drun --rm built
	assert_eq "$output" $'built\n1000'
	dk rmi built >/dev/null
}

@test "docker build, BuildKit" {
	mkdir "$BATS_TEST_TMPDIR/ctx"
	printf 'FROM bb\nRUN echo built >/made && cat /proc/self/cgroup >/cg && hostname\nCMD cat /made /cg\n' >"$BATS_TEST_TMPDIR/ctx/Dockerfile"
	: >"$DOCKER_DIR/runc-calls"
	DOCKER_BUILDKIT=1 run dk build --progress plain -t built "$BATS_TEST_TMPDIR/ctx"
	[ "$status" = 0 ] || fail "$output"
	assert_has "$(cat "$DOCKER_DIR/runc-calls")" "run --bundle"
	run -0 drun --rm built
	assert_match "$output" '^built'
	dk rmi built >/dev/null
}

@test "a failing RUN in BuildKit has the program's exit code" {
	mkdir "$BATS_TEST_TMPDIR/ctx"
	printf 'FROM bb\nRUN exit 17\n' >"$BATS_TEST_TMPDIR/ctx/Dockerfile"
	DOCKER_BUILDKIT=1 run ! dk build --progress plain -t built "$BATS_TEST_TMPDIR/ctx"
	assert_has "$output" "exit code: 17"
}

@test "ten containers at once" {
	local i pids=()
	for i in 0 1 2 3 4 5 6 7 8 9; do
		dk run --rm bb echo "out $i" >"$BATS_TEST_TMPDIR/o$i" 2>&1 3>&- &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i"; done
	assert_eq "$(cat "$BATS_TEST_TMPDIR"/o? | sort | wc -l)" 10
	assert_eq "$(cat "$BATS_TEST_TMPDIR"/o? | grep -c '^out [0-9]$')" 10
}

@test "a container survives that dockerd's record of it is reloaded (live-restore: off), and is cleaned up" {
	drun -d bb sleep 300
	local pid
	pid=$(dk inspect -f '{{.State.Pid}}' "$NAME")
	kill -KILL "$pid"
	wait_until eval '[ "$(dk inspect -f "{{.State.Status}} {{.State.ExitCode}}" "$NAME")" = "exited 137" ]'
}
