# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# podman.bash: Podman with storage, state and configuration of the suite's own. No daemon.

load ../lib/daemon.bash

write_conf() { # FILE
	# Hard limits can't be raised where CAP_SYS_RESOURCE is missing; no systemd, no journal.
	cat >"$1" <<-END
		[containers]
		default_ulimits = []
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		runtime = "lean"
		infra_image = "localhost/infra"
		runtime_supports_json = ["lean"]
		runtime_supports_nocgroup = ["lean"]
		[engine.runtimes]
		lean = ["$LEAN_RUNTIME"]
	END
}

pm() {
	CONTAINERS_CONF=$POD_DIR/containers.conf podman --root "$POD_DIR/root" --runroot "$POD_DIR/run" --tmpdir "$POD_DIR/tmp" \
		--storage-driver overlay "$@" 3>&-
}

# The same as words, for on-pty.
pm_words() {
	printf '%s\n' env "CONTAINERS_CONF=$POD_DIR/containers.conf" podman --root "$POD_DIR/root" --runroot "$POD_DIR/run" \
		--tmpdir "$POD_DIR/tmp" --storage-driver overlay "$@"
}

on_pty_pm() { # on-pty options -- podman arguments
	local opts=()
	while [ "$1" != -- ]; do
		opts+=("$1")
		shift
	done
	shift
	local words
	mapfile -t words < <(pm_words "$@")
	"$LR_LIB/on-pty" "${opts[@]}" -- "${words[@]}" 3>&-
}

start_podman() {
	export POD_DIR=$TMPDIR/podman
	mkdir -p "$POD_DIR"
	write_conf "$POD_DIR/containers.conf"
	[ -e "$TMPDIR/rootfs.tar" ] || rootfs_tar "$TMPDIR/rootfs.tar"
	pm import "$TMPDIR/rootfs.tar" bb >/dev/null 2>"$POD_DIR/log" || { cat "$POD_DIR/log" >&2; return 1; }
	# What holds a pod's namespaces.
	pm import -c 'ENTRYPOINT ["/bin/sleep", "3000"]' "$TMPDIR/rootfs.tar" infra >/dev/null 2>>"$POD_DIR/log"
}

# With a user namespace, Podman 4.3 now and then finds its own mount below the container's directory busy, with any
# runtime; and not the next time.
remove() { # NAME or option...
	wait_until pm rm -f -t 0 "$@"
}

remove_all() {
	pm pod rm -f -a -t 0 >/dev/null
	remove -a -v
}

# A network plug-in for --network bridge.
has_bridge() {
	[ -x /usr/lib/podman/netavark ] || [ -x /usr/libexec/podman/netavark ] || [ -x /usr/lib/cni/bridge ]
}
