#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Podman starts a container that continues a seed, by an annotation.

load podman.bash

setup_file() {
	start_podman
}

setup() {
	lean_only "an engine of its own"
	NAME=c$BATS_TEST_NUMBER
	cd "$BATS_TEST_TMPDIR" || return 1
	counter=$(dirname "$LEAN_RUNTIME")/../../tests/fork/fork-counter
	[ -x "$counter" ] || skip "fork-counter is not built" # not x86-64
	mkdir data seeds
	chmod 700 seeds
	cp "$counter" data/counter
}

teardown() {
	remove_all
	assert_clean "$POD_DIR/root/overlay/"
}

counting() { # NAME PODMAN-OPTION... -- RUN-OPTION...
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	pm "${options[@]}" run -d --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$name" -v "$PWD/data:/data" \
		"${@:2}" bb /data/counter /data/n
}

beyond() { # NUMBER
	wait_until eval '[ "$(cat data/n 2>/dev/null || echo 0)" -gt '"$1"' ]'
}

@test "podman: what a container has changed in its root goes along with --with-changes" {
	pm run -d --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" -v "$PWD/data:/data" bb \
		sh -c 'mkdir /made && echo own >/made/file && rm -r /var && cp /data/counter /made/counter && exec /made/counter /data/n'
	beyond 20
	"$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web --with-changes "$(pm inspect -f '{{.ID}}' "$NAME")"
	pm rm -f -t 0 "$NAME"
	echo 1 >data/n
	counting two --runtime-flag="seed-dir=$PWD/seeds" -- --annotation org.lean.seed=web
	wait_until eval '[ "$(cat data/n)" -gt 1 ]'
	[ "$(cat data/n)" -ge 20 ] || fail "it began again: $(cat data/n)"
	run -0 pm exec two cat /made/file
	assert_eq "$output" own
	run -0 pm diff two
	assert_has "$output" "A /made/counter"
	assert_has "$output" "D /var"
	pm rm -f -t 0 two
}

@test "podman: a container continues a seed, and is Podman's in every way" {
	counting "$NAME" --
	beyond 20
	"$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web "$(pm inspect -f '{{.ID}}' "$NAME")"
	pm rm -f -t 0 "$NAME"
	echo 1 >data/n
	counting two --runtime-flag="seed-dir=$PWD/seeds" -- --annotation org.lean.seed=web --memory 64m
	wait_until eval '[ "$(cat data/n)" -gt 1 ]'
	[ "$(cat data/n)" -ge 20 ] || fail "it began again: $(cat data/n)"
	beyond "$(cat data/n)"
	assert_eq "$(pm inspect -f '{{.State.Status}}' two)" running
	run -0 pm exec two cat /data/n
	assert_match "$output" '^[0-9]+$'
	pm pause two
	pm unpause two
	pm stop -t 0 two
	assert_eq "$(pm inspect -f '{{.State.Status}}' two)" exited
	# Started again, it continues the seed again.
	echo 1 >data/n
	pm --runtime-flag="seed-dir=$PWD/seeds" start two
	wait_until eval '[ "$(cat data/n)" -gt 1 ]'
	[ "$(cat data/n)" -ge 20 ] || fail "it began again: $(cat data/n)"
}

@test "podman: without --seed-dir the annotation is an error, and nothing is left" {
	run ! counting "$NAME" -- --annotation org.lean.seed=web
	assert_has "$output" "seeds are not continued by annotations here"
	[ ! -e data/n ]
}

# What a container does is seen in the manager's terminal; it is in the foreground of `podman run`.
@test "podman: a container with a terminal continues a seed: its keys and its size are Podman's" {
	local sh='i=41; trap "set -- \$(stty size); echo sized-\$1x\$2" WINCH; echo ready; while ! read -r l; do :; done; echo "$l $((i + 1))"; exit 5'
	pm run -dt --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name "$NAME" bb sh -c "$sh"
	wait_until eval 'pm logs "$NAME" | grep -q ready'
	"$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web "$(pm inspect -f '{{.ID}}' "$NAME")"
	pm rm -f -t 0 "$NAME"
	run -5 on_pty_pm --size 31x91 --step 'sized-31x91=>typed\n' --step 'typed 42=>' -- --runtime-flag="seed-dir=$PWD/seeds" \
		run -it --cgroup-parent "/$LR_SANDBOX_TAG" --network none --name two --annotation org.lean.seed=web bb sh
	assert_hasnt "$output" ready
}

@test "podman: --uidmap: a container in a user namespace continues a seed of one with other ids" {
	chmod 777 data
	chmod 755 "$BATS_TEST_TMPDIR"
	counting "$NAME" -- --uidmap 0:100000:65536 --gidmap 0:100000:65536
	beyond 20
	"$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web "$(pm inspect -f '{{.ID}}' "$NAME")"
	remove "$NAME"
	chmod 666 data/n
	echo 1 >data/n
	counting two --runtime-flag="seed-dir=$PWD/seeds" -- --annotation org.lean.seed=web --uidmap 0:300000:65536 --gidmap 0:300000:65536
	wait_until eval '[ "$(cat data/n)" -gt 1 ]'
	[ "$(cat data/n)" -ge 20 ] || fail "it began again: $(cat data/n)"
	beyond "$(cat data/n)"
	assert_match "$(cat "/proc/$(pm inspect -f '{{.State.Pid}}' two)/status")" 'Uid:.300000'
}

# What Podman mounts is not taken for the container's own, and what that mounts is.
privileged() { # RUN-OPTION...
	pm run -d --cgroup-parent "/$LR_SANDBOX_TAG" --network "${NET-none}" --name "$NAME" "${RIGHTS---privileged}" -v "$PWD/data:/data" "$@" bb /data/counter /data/n
	beyond 5
	local id
	id=$(pm inspect -f '{{.ID}}' "$NAME")
	"$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web "$id"
	pm exec "$NAME" mount -t tmpfs own /mnt
	run -1 "$LEAN_RUNTIME" checkpoint --engine=fork --image-path seeds/web "$id"
	assert_has "$output" "a mount that config.json does not have (tmpfs on /mnt)"
	assert_has "$output" "cannot carry 1 of"
	pm rm -f -t 0 "$NAME"
	echo 1 >data/n
}

@test "podman: privileged containers become seeds, unless they have mounted something themselves" {
	mkdir -p vol/sub
	privileged
	privileged -v "$PWD/vol:/var/run/vol:rshared" -v "$PWD/vol:/srv/vol:ro,rslave" --tmpfs /scratch --read-only --mount type=tmpfs,destination=/t2
	privileged --systemd=always
	privileged -t
	RIGHTS=--cap-add=SYS_ADMIN privileged -t --security-opt mask=/proc/loadavg
}

@test "podman: privileged containers become seeds also where the host's namespaces, or another container's, are theirs" {
	NET=host privileged --ipc=host --uts=host --cgroupns=host
	pm run -d --cgroup-parent "/$LR_SANDBOX_TAG" --network none --ipc=shareable --name other bb sleep 1000
	NET=container:other privileged --ipc=container:other --uts=host
	pm rm -f -t 0 other
}
