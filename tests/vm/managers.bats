#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The managers as Debian starts them: Docker and containerd as services of systemd, Podman as root and as a
# user, each with its default cgroup manager, network and storage, and the runtime named in its
# configuration. Their own suites have private daemons, in a sandbox that hides systemd.

load ../lib/helpers.bash

setup_file() {
	# A route out, which pasta copies; nothing is behind it.
	ip link show lean-uplink >/dev/null 2>&1 || {
		ip link add lean-uplink type dummy
		ip address add 10.66.77.2/24 dev lean-uplink
		ip link set lean-uplink up
		ip route add default via 10.66.77.1 dev lean-uplink
	}
	mkdir -p /etc/docker /etc/containers
	jq -n --arg p "$LEAN_RUNTIME" '{"default-runtime": "lean", runtimes: {lean: {path: $p}}}' >/etc/docker/daemon.json
	printf '[engine]\nruntime = "lean"\n[engine.runtimes]\nlean = ["%s"]\n' "$LEAN_RUNTIME" >/etc/containers/containers.conf
}

teardown_file() {
	systemctl stop docker.socket docker.service containerd.service 2>/dev/null || true
	rm -f /etc/docker/daemon.json /etc/containers/containers.conf
	ip link delete lean-uplink
}

setup() {
	[ -d /run/systemd/system ] || skip "systemd does not run here"
	common_setup
	WWW=$BATS_TEST_TMPDIR/www
	mkdir -p "$WWW"
	echo "served by $TAG" >"$WWW/index.html"
	chmod -R a+rX "$BATS_TEST_TMPDIR"
}

teardown() { common_teardown; }

prop() { systemctl show "${2:-$UNIT}" -P "$1"; }

# What the container's server gives over a published port: emulated, it takes some time to be there.
fetched() { # URL
	wait_until sh -c "busybox wget -q -T 5 -O '$BATS_TEST_TMPDIR/got' '$1'" || fail "nothing at $1"
	assert_eq "$(cat "$BATS_TEST_TMPDIR/got")" "served by $TAG"
}

@test "managers: Docker as a service: scopes, the default bridge, a published port, limits" {
	systemctl start docker.service
	assert_eq "$(docker info --format '{{.CgroupDriver}} {{.CgroupVersion}} {{.DefaultRuntime}}')" "systemd 2 lean"
	tar -C "$BUNDLE/rootfs" -c . | docker import - "$TAG" >/dev/null
	docker run -d --name "$TAG" -p 127.0.0.1:18080:80 --memory 64m --pids-limit 33 -v "$WWW:/www:ro" "$TAG" httpd -f -p 80 -h /www 3>&-
	UNIT=docker-$(docker inspect "$TAG" --format '{{.Id}}').scope
	assert_eq "$(prop Slice) $(prop MemoryMax) $(prop TasksMax)" "system.slice 67108864 33"
	fetched http://127.0.0.1:18080/
	fetched "http://$(docker inspect "$TAG" --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}')/"
	run -0 docker exec "$TAG" sh -c 'echo in; cat /proc/1/comm'
	assert_eq "$output" $'in\nhttpd'
	docker update --memory 80m --memory-swap 80m "$TAG" >/dev/null
	assert_eq "$(prop MemoryMax)" 83886080
	docker pause "$TAG"
	docker unpause "$TAG"
	docker restart -t 0 "$TAG"
	fetched http://127.0.0.1:18080/
	docker rm -f "$TAG"
	assert_eq "$(prop LoadState)" not-found
	docker rmi -f "$TAG" >/dev/null
}

# bats test_tags=ci
@test "managers: containerd as a service, with systemd's cgroups" {
	systemctl start containerd.service
	make_image
	ctr image import "$BATS_TEST_TMPDIR/image.tar" >/dev/null
	lctr() { ctr run --runc-binary "$LEAN_RUNTIME" --runc-systemd-cgroup --cgroup "system.slice:lean:$TAG" "$@" 3>&-; }
	run -0 lctr --rm test.local/bb:1 "$TAG" echo hello
	assert_eq "$output" hello
	lctr -d --memory-limit 67108864 test.local/bb:1 "$TAG" sleep 300
	UNIT=lean-$TAG.scope
	assert_eq "$(prop Slice) $(prop MemoryMax)" "system.slice 67108864"
	run -0 ctr task exec --exec-id e1 "$TAG" cat /proc/1/comm
	assert_eq "$output" sleep
	ctr task pause "$TAG"
	ctr task resume "$TAG"
	ctr task kill -s KILL "$TAG"
	wait_until ctr task rm "$TAG"
	ctr container rm "$TAG"
	assert_eq "$(prop LoadState)" not-found
	ctr image rm test.local/bb:1
}

# An image of one layer in the form of `docker save`.
make_image() {
	local d=$BATS_TEST_TMPDIR/image sum
	mkdir -p "$d"
	tar -C "$BUNDLE/rootfs" -cf "$d/layer.tar" .
	sum=$(sha256sum "$d/layer.tar" | cut -d' ' -f1)
	jq -n --arg s "sha256:$sum" --arg a "$(dpkg --print-architecture)" '{architecture: $a, os: "linux",
		config: {Env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], Cmd: ["sh"]}, rootfs: {type: "layers", diff_ids: [$s]}}' >"$d/config.json"
	echo '[{"Config": "config.json", "RepoTags": ["test.local/bb:1"], "Layers": ["layer.tar"]}]' >"$d/manifest.json"
	tar -C "$d" -cf "$BATS_TEST_TMPDIR/image.tar" manifest.json config.json layer.tar
}

@test "managers: Podman as root: scopes, the default bridge, a published port" {
	assert_eq "$(podman info --format '{{.Host.CgroupManager}} {{.Host.OCIRuntime.Name}}')" "systemd lean"
	tar -C "$BUNDLE/rootfs" -c . | podman import -q - "$TAG" >/dev/null
	podman run -d --name "$TAG" -p 127.0.0.1:18081:80 -v "$WWW:/www:ro" "$TAG" httpd -f -p 80 -h /www 3>&-
	UNIT=libpod-$(podman inspect "$TAG" --format '{{.Id}}').scope
	assert_eq "$(prop Slice)" machine.slice
	fetched http://127.0.0.1:18081/
	run -0 podman exec "$TAG" ip -o -4 address show dev eth0
	assert_has "$output" "inet 10.88."
	podman rm -f -t 0 "$TAG"
	assert_eq "$(prop LoadState)" not-found
	podman rmi -f "$TAG" >/dev/null
}

# bats test_tags=ci
@test "managers: Podman without root: pasta, a published port" {
	HOMEDIR=/home/tester/$TAG
	mkdir "$HOMEDIR"
	cp "$LEAN_RUNTIME" "$HOMEDIR/lr"
	cp -r "$WWW" "$HOMEDIR/www"
	chown -R tester: "$HOMEDIR"
	pod() {
		(cd "$HOMEDIR" && exec setpriv --reuid 1000 --regid 1000 --init-groups env -i PATH="$PATH" HOME=/home/tester XDG_RUNTIME_DIR=/run/user/1000 \
			DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus podman --root "$HOMEDIR/store" --runtime "$HOMEDIR/lr" "$@" 3>&-)
	}
	tar -C "$BUNDLE/rootfs" -c . | pod import -q - "$TAG" >/dev/null
	assert_eq "$(pod info --format '{{.Host.RootlessNetworkCmd}}')" pasta
	pod run -d --name "$TAG" -p 127.0.0.1:18082:80 -v "$HOMEDIR/www:/www:ro" "$TAG" httpd -f -p 80 -h /www
	fetched http://127.0.0.1:18082/
	run -0 pod exec "$TAG" ip -o -4 address
	assert_has "$output" "inet 10.66.77.2/"
	pod rm -f -t 0 "$TAG"
	pod system migrate
	rm -rf "$HOMEDIR"
}
