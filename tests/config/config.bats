#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# contrib/docker-config: the managers take the files, and a container starts from them.

load ../lib/daemon.bash

CONF=$BATS_TEST_DIRNAME/../../contrib/docker-config

# The file with this machine's path to the runtime under test.
ours() {
	sed "s|/usr/local/bin/lean-runtime|$LEAN_RUNTIME|" "$CONF/$1"
}

@test "daemon.json: JSON, known keys" {
	local f
	for f in daemon.json daemon-optional.json; do
		jq -e '.runtimes.lean.path == "/usr/local/bin/lean-runtime"' "$CONF/$f"
		assert_eq "$(jq -r 'keys - ["runtimes", "default-runtime"] | length' "$CONF/$f")" 0
	done
}

@test "daemon.json: dockerd takes it and runs a container" {
	command -v dockerd >/dev/null || skip "dockerd is not installed"
	local d docker=/usr/bin/docker pid f
	[ -x $docker ] || docker=docker
	rootfs_tar "$TMPDIR/r.tar"
	for f in daemon.json daemon-optional.json; do
		# Each its own: dockerd leaves its data directory a mount, which the sandbox ends.
		d=$TMPDIR/dk-$f
		mkdir -p "$d"
		ours $f >"$d/daemon.json"
		dockerd --config-file "$d/daemon.json" --data-root "$d/data" --exec-root "$d/exec" --pidfile "$d/pid" -H "unix://$d/sock" \
			--iptables=false --bridge none --cgroup-parent "/$LR_SANDBOX_TAG" </dev/null >"$d/log" 2>&1 3>&- &
		pid=$!
		daemon=$(note_process "$pid")
		wait_until $docker -H "unix://$d/sock" version || fail "$(tail "$d/log")"
		$docker -H "unix://$d/sock" import "$TMPDIR/r.tar" bb >/dev/null
		run -0 $docker -H "unix://$d/sock" run --rm --runtime lean bb echo "from $f"
		assert_eq "$output" "from $f"
		if [ $f = daemon-optional.json ]; then
			run -0 $docker -H "unix://$d/sock" run --rm --runtime lean-debug bb echo debug
			assert_eq "$output" debug
		fi
		end_process "$daemon"
		wait "$pid" || true
	done
}

@test "containers.conf: podman takes both and runs a container" {
	command -v podman >/dev/null || skip "podman is not installed"
	local d=$TMPDIR/pm
	mkdir -p "$d"
	[ -e "$TMPDIR/r.tar" ] || rootfs_tar "$TMPDIR/r.tar"
	# Two files at once as drop-ins need Podman 5: here they become one.
	{ ours containers-nosystemd.conf | sed '/^\[engine\]/,$d'; ours containers.conf | sed '/^\[engine.runtimes\]/,$d'
		ours containers-nosystemd.conf | sed '1,/^\[engine\]/d'; ours containers.conf | sed -n '/^\[engine.runtimes\]/,$p'; } >"$d/conf"
	export CONTAINERS_CONF=$d/conf
	local p="podman --root $d/root --runroot $d/run --tmpdir $d/tmp"
	run -0 --separate-stderr $p info --format '{{.Host.OCIRuntime.Name}} {{.Host.OCIRuntime.Path}}'
	assert_eq "$output" "lean $LEAN_RUNTIME"
	$p import "$TMPDIR/r.tar" bb >/dev/null 2>&1
	run -0 $p run --rm --network none --cgroup-parent "/$LR_SANDBOX_TAG" bb echo hello
	assert_eq "$output" hello
}

@test "containers.conf: podman takes it as it is" {
	command -v podman >/dev/null || skip "podman is not installed"
	local f
	for f in containers.conf containers-nosystemd.conf; do
		CONTAINERS_CONF=$CONF/$f run podman --root "$TMPDIR/x/root" --runroot "$TMPDIR/x/run" --tmpdir "$TMPDIR/x/tmp" --runtime "$LEAN_RUNTIME" --log-level debug info
		[ "$status" = 0 ] || fail "$f: $output"
		assert_hasnt "$output" "Failed to decode"
	done
}

@test "containerd-config-v2.toml: containerd reads it whole" {
	command -v containerd >/dev/null || skip "containerd is not installed"
	run -0 containerd --config "$CONF/containerd-config-v2.toml" config dump
	assert_has "$output" 'containerd.runtimes.lean]'
	assert_has "$output" 'BinaryName = "/usr/local/bin/lean-runtime"'
	assert_has "$output" 'default_runtime_name = "runc"'
}

@test "the other TOML files parse" {
	python3 - "$CONF"/*.toml "$CONF"/*.conf <<-'END'
		import sys, tomllib
		for f in sys.argv[1:]:
		    tomllib.load(open(f, "rb"))
		v3 = tomllib.load(open([f for f in sys.argv if f.endswith("v3.toml")][0], "rb"))
		r = v3["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]["runtimes"]["lean"]
		assert v3["version"] == 3 and r["runtime_type"] == "io.containerd.runc.v2" and r["options"]["BinaryName"]
	END
}

@test "runtimeclass.yaml names containerd's handler" {
	local f handler
	handler=$(sed -n 's/^handler: //p' "$CONF/runtimeclass.yaml")
	for f in "$CONF"/containerd-config-*.toml; do
		assert_has "$(cat "$f")" "containerd.runtimes.$handler]"
	done
	assert_match "$(cat "$CONF/runtimeclass.yaml")" 'apiVersion: node.k8s.io/v1'
}

@test "README.md names every file" {
	local f
	for f in "$CONF"/*; do
		f=${f##*/}
		[ "$f" = README.md ] || assert_has "$(cat "$CONF/README.md")" "\`$f\`"
	done
}
