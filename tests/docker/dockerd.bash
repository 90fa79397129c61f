# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# dockerd.bash: a dockerd of the suite's own: private data, state, socket and containerd.

load ../lib/daemon.bash

dk() {
	DOCKER_CONFIG=$TMPDIR/docker-config "$DOCKER" -H "unix://$DOCKER_DIR/sock" "$@" 3>&-
}

# start_dockerd NAME [dockerd options]; RUNTIME_PATH: another name of the runtime; RUNTIME_ARGS: JSON
start_dockerd() {
	local runtime=(--add-runtime "lean=${RUNTIME_PATH:-$LEAN_RUNTIME}")
	export DOCKER_DIR=$TMPDIR/$1
	# Debian's client goes with Debian's daemon; another in front of it in PATH may be too new.
	DOCKER=/usr/bin/docker
	[ -x $DOCKER ] || DOCKER=docker
	export DOCKER
	shift
	mkdir -p "$DOCKER_DIR" "$TMPDIR/docker-config"
	echo '{}' >"$DOCKER_DIR/daemon.json"
	if [ -n "${RUNTIME_ARGS-}" ]; then # by a file, as no flag takes them
		jq -n --arg p "$LEAN_RUNTIME" --argjson a "$RUNTIME_ARGS" \
			'{runtimes: {lean: {path: $p, runtimeArgs: $a}}}' >"$DOCKER_DIR/daemon.json"
		runtime=()
	fi
	# BuildKit runs whatever `runc` PATH names, whatever --add-runtime says.
	mkdir -p "$DOCKER_DIR/bin"
	printf '#!/bin/sh\necho "$*" >>%s/runc-calls\nexec %s "$@"\n' "$DOCKER_DIR" "$LEAN_RUNTIME" >"$DOCKER_DIR/bin/runc"
	chmod 755 "$DOCKER_DIR/bin/runc"
	PATH=$DOCKER_DIR/bin:$PATH:/usr/sbin:/sbin dockerd --config-file "$DOCKER_DIR/daemon.json" \
		--data-root "$DOCKER_DIR/data" --exec-root "$DOCKER_DIR/exec" --pidfile "$DOCKER_DIR/pid" \
		-H "unix://$DOCKER_DIR/sock" --cgroup-parent "/$LR_SANDBOX_TAG" "${runtime[@]}" "$@" </dev/null >"$DOCKER_DIR/log" 2>&1 3>&- &
	note_process $! >"$DOCKER_DIR/daemon"
	if ! wait_until dk version; then
		tail -n 30 "$DOCKER_DIR/log" >&2
		return 1
	fi
	[ -e "$TMPDIR/rootfs.tar" ] || rootfs_tar "$TMPDIR/rootfs.tar"
	dk import "$TMPDIR/rootfs.tar" bb >/dev/null
}

stop_dockerd() {
	# Every test has removed its containers; what is left now is the runtime's or Docker's.
	[ ! -s "$DOCKER_DIR/daemon" ] || end_process "$(cat "$DOCKER_DIR/daemon")"
	if [ -n "${LR_TEST_LOGS-}" ]; then
		mkdir -p "$LR_TEST_LOGS"
		cp "$DOCKER_DIR/log" "$LR_TEST_LOGS/$(basename "$DOCKER_DIR").log"
	fi
}

remove_all() {
	local ids
	ids=$(dk ps -aq)
	# shellcheck disable=SC2086
	[ -z "$ids" ] || dk rm -f -v $ids >/dev/null
}

# The lean profile has nothing to keep ready for Docker.
assert_nothing_pooled() {
	local root
	for root in "$DOCKER_DIR"/exec/runtime-*/moby; do
		[ -d "$root" ] || fail "no root of the runtime's: $root" || return 1
		assert_eq "$("$LEAN_RUNTIME" --root "$root" pool status --format json | jq -c .slots)" "[]" || return 1
	done
}
