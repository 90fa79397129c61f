# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# cri.bash: pods by containerd's CRI plug-in, with the handlers `lean` (this runtime) and `runc`, for comparison.

load ../lib/daemon.bash

CRI_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BB=test.local/bb:1

start_containerd() {
	containerd --config "$CD_DIR/config.toml" </dev/null >>"$CD_DIR/log" 2>&1 3>&- &
	note_process $! >"$CD_DIR/daemon"
	wait_until cri Version || { tail "$CD_DIR/log" >&2; return 1; }
}

# A handler of containerd's configuration: NAME PROGRAM.
handler_config() {
	cat <<-END
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.$1]
		  runtime_type = "io.containerd.runc.v2"
		  pod_annotations = ["org.lean-runtime.*"]
		  container_annotations = ["org.lean-runtime.*"]
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.$1.options]
		    BinaryName = "$2"
	END
}

cri_setup_file() {
	CD_DIR=$TMPDIR/cri-$(basename "$BATS_TEST_FILENAME" .bats)
	export CD_DIR
	mkdir -p "$CD_DIR/cni/bin" "$CD_DIR/cni/conf"
	cp "$CRI_HERE/cni" "$CD_DIR/cni/bin/pod"
	cp "$CRI_HERE/cni" "$CD_DIR/cni/bin/loopback"
	chmod 755 "$CD_DIR"/cni/bin/*
	echo '{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "pod"}]}' >"$CD_DIR/cni/conf/pods.conflist"
	printf '#!/bin/sh\necho "$*" >>%s\nexec %s "$@"\n' "$CD_DIR/calls" "$LEAN_RUNTIME" >"$CD_DIR/logged"
	chmod 755 "$CD_DIR/logged"
	{
		# Without CAP_SYS_RESOURCE, the pause container can't have the score that it asks for.
		cat <<-END
			version = 2
			root = "$CD_DIR/root"
			state = "$CD_DIR/state"
			disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
			  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
			[grpc]
			  address = "$CD_DIR/sock"
			[ttrpc]
			  address = "$CD_DIR/ttrpc"
			[plugins."io.containerd.grpc.v1.cri"]
			  sandbox_image = "test.local/pause:1"
			  restrict_oom_score_adj = true
			  disable_apparmor = true
			  [plugins."io.containerd.grpc.v1.cri".cni]
			    bin_dir = "$CD_DIR/cni/bin"
			    conf_dir = "$CD_DIR/cni/conf"
			[plugins."io.containerd.grpc.v1.cri".containerd]
			  snapshotter = "overlayfs"
			  default_runtime_name = "lean"
		END
		handler_config lean "$LEAN_RUNTIME"
		handler_config logged "$CD_DIR/logged"
		if command -v runc >/dev/null; then
			handler_config runc "$(command -v runc)"
		fi
	} >"$CD_DIR/config.toml"
	start_containerd
	make_images
	wait_until cri_ready
}

cri_ready() {
	cri Status false | jq -e '[.status.conditions[] | select(.type | test("^(Runtime|Network)Ready$")) | .status] == [true, true]'
}

cri_teardown_file() {
	end_process "$(cat "$CD_DIR/daemon")"
	if [ -n "${LR_TEST_LOGS-}" ]; then
		mkdir -p "$LR_TEST_LOGS"
		cp "$CD_DIR/log" "$LR_TEST_LOGS/$(basename "$CD_DIR").log"
	fi
}

# Images of one layer in the form of `docker save`: NAME DIRECTORY COMMAND.
make_image() {
	local d=$CD_DIR/image sum
	rm -rf "$d"
	mkdir -p "$d"
	tar -C "$2" -cf "$d/layer.tar" .
	sum=$(sha256sum "$d/layer.tar" | cut -d' ' -f1)
	jq -n --arg s "sha256:$sum" --arg a "$(dpkg --print-architecture 2>/dev/null || echo amd64)" --arg c "$3" '{architecture: $a, os: "linux",
		config: {Env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], Entrypoint: [$c]}, rootfs: {type: "layers", diff_ids: [$s]}}' >"$d/config.json"
	jq -n --arg n "$1" '[{Config: "config.json", RepoTags: [$n], Layers: ["layer.tar"]}]' >"$d/manifest.json"
	tar -C "$d" -cf "$CD_DIR/image.tar" manifest.json config.json layer.tar
	ctr -a "$CD_DIR/sock" -n k8s.io image import "$CD_DIR/image.tar" >/dev/null 3>&-
}

make_images() {
	local tree=$CD_DIR/tree
	mkdir -p "$tree/pause" "$tree/bb"
	cc -static -O2 -o "$tree/pause/pause" "$CRI_HERE/pause.c"
	"$LR_LIB/mkrootfs" "$tree/bb"
	make_image test.local/pause:1 "$tree/pause" /pause
	make_image $BB "$tree/bb" sh
	rm -rf --one-file-system "$tree"
}

cri() {
	"$LR_CRI_CLIENT" "$CD_DIR/sock" "$@" 3>&-
}

containerd_major() {
	cri Version | jq -r .runtimeVersion | sed -E 's/^v?([0-9]+).*/\1/'
}

# --- pods and containers ----------------------------------------------------------------------

# Both handlers do a test, ours first: `for HANDLER in $HANDLERS`.
# LR_CRI_HANDLERS names one alone.
HANDLERS=lean
! command -v runc >/dev/null || HANDLERS='lean runc'
HANDLERS=${LR_CRI_HANDLERS:-$HANDLERS}

# pod [JQ-FILTER]: sets POD, a pod of its own for the handler; CONFIG is what it was made of.
pod() {
	LOGS=$BATS_TEST_TMPDIR/logs-$RANDOM$RANDOM
	mkdir -p "$LOGS"
	CONFIG=$(jq -n -c --arg n "p$RANDOM$RANDOM" --arg l "$LOGS" --arg c "/$LR_SANDBOX_TAG" '{
		metadata: {name: $n, uid: $n, namespace: "default"}, hostname: "a-pod", log_directory: $l,
		linux: {cgroup_parent: $c, security_context: {namespace_options: {pid: "CONTAINER"}}}}
		| '"${1:-.}")
	POD=$(cri RunPodSandbox "$CONFIG" "${HANDLER:=lean}")
}

# create NAME SCRIPT [JQ-FILTER]: sets BOX, a container in POD that runs SCRIPT by sh. Without options,
# it has the pid namespace that the pod asked for.
create() {
	local config
	config=$(jq -n -c --arg n "$1" --arg s "$2" --arg i "$BB" --argjson p "$CONFIG" '{metadata: {name: $n}, image: {image: $i},
		command: ["sh", "-c", $s], log_path: ($n + ".log"), linux: {security_context: {namespace_options: $p.linux.security_context.namespace_options}}}
		| '"${3:-.}")
	BOX=$(cri CreateContainer "$POD" "$config" "$CONFIG")
}

# start NAME SCRIPT [JQ-FILTER]: the same, and started.
start() {
	create "$@" && cri StartContainer "$BOX"
}

# One that sleeps, for exec.
sleeper() {
	start "${1:-sleeper}" 'exec sleep 300' "${2:-.}"
}

state_of() {
	cri ContainerStatus "${1:-$BOX}" false | jq -r .status.state
}

exit_of() {
	cri ContainerStatus "${1:-$BOX}" false | jq -r '.status.exitCode'
}

ended() {
	[ "$(state_of "${1:-$BOX}")" = CONTAINER_EXITED ]
}

# The text of a container's log without times and streams.
log_of() {
	sed -E 's/^[^ ]+ (stdout|stderr) [FP] //' "$LOGS/$1.log"
}

# The end of a script whose output is wanted: it stays, as containerd may lose what a container prints
# that ends at once ("reading from a closed fifo").
SAID='; echo =said=; exec sleep 300'

# says SCRIPT [JQ-FILTER]: what SCRIPT prints in a container of its own in POD. With a JQ-FILTER that sets
# another command, that has to end with $SAID.
says() {
	local name=b$RANDOM$RANDOM
	start "$name" "exec 2>&1; ($1)$SAID" "${2:-.}" || return 1
	wait_until eval "log_of $name | grep -q -F =said=" || return 1
	log_of "$name" | sed 's/=said=$//; ${/^$/d}'
}

# inside COMMAND...: what it prints in BOX.
inside() {
	cri ExecSync "$BOX" "$(jq -n -c '$ARGS.positional' --args -- "$@")" 60s
}

# security FIELD VALUE...: a jq filter that sets fields of the container's security context.
security() {
	local filter=.
	while [ $# -gt 1 ]; do
		filter+=" | .linux.security_context.$1 = $2"
		shift 2
	done
	echo "$filter"
}

mount_of() {
	jq -n -c --arg c "$1" --arg h "$2" --argjson more "${3:-{\}}" '{container_path: $c, host_path: $h} + $more'
}

cri_teardown() {
	local p
	[ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 20 "$CD_DIR/log"
	for p in $(cri ListPodSandbox | jq -r .id); do
		cri StopPodSandbox "$p" >/dev/null 2>&1 || true
		cri RemovePodSandbox "$p" || true
	done
	assert_clean "$CD_DIR/state/io.containerd.runtime"
}

# cgroup_file CONTROLLER V1-NAME V2-NAME: the path of a file of BOX.
cgroup_file() {
	if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
		echo "/sys/fs/cgroup/$LR_SANDBOX_TAG/$BOX/$3"
	else
		echo "/sys/fs/cgroup/$1/$LR_SANDBOX_TAG/$BOX/$2"
	fi
}
