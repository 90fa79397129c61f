#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A container's record: believed only where nobody else could have written it, and of use however it
# was damaged.

load ../lib/helpers.bash

MALLORY=1234

setup() {
	common_setup
	lean_only "keeps other records"
	needs_root
	# Where everybody can come to, as /run is. Mallory's home and links are in there.
	PLACE=$(mktemp -d "/tmp/$TAG.XXXX")
	chmod 755 "$PLACE"
	# It would keep its own things in the root directories that come and go here.
	unset LEAN_RUNTIME_PROFILE
}

teardown() {
	signal_remembered TERM
	ROOT=$BATS_TEST_TMPDIR/root
	[ -z "${PLACE-}" ] || rm -rf "$PLACE"
	common_teardown
}

# victim: a process of root's that belongs to no container, and a record below $1 that says it does.
victim() {
	mkdir -p "${1%/*}"
	ROOT=$1
	cfg '.process.args = ["/bin/sleep", "300"] | del(.linux.cgroupsPath)'
	rt_bg --cgroup-manager disabled run -d -b "$BUNDLE" "$ID"
	cp -a "$ROOT/$ID" kept
	rt delete --force "$ID"
	sleep 300 3>&- &
	VICTIM=$!
	remember "$VICTIM"
	"$LR_LIB/record" forge kept/record "$VICTIM"
	cp -a kept "$ROOT/$ID"
}

# refused ROOT WORDS: no verb believes the record that is there, and the victim lives.
refused() {
	local verb words=$2
	ROOT=$1
	for verb in "kill $ID KILL" "delete --force $ID" "state $ID" "exec $ID true" "pause $ID" "start $ID"; do
		# shellcheck disable=SC2086
		run rt $verb
		assert_one_error
		assert_has "$output" "$words"
		kill -0 "$VICTIM" || fail "$verb: ended a process that is none of the container's"
	done
}

# The record does what it says where root alone could have written it: else the rest would prove nothing.
@test "records: what root wrote is believed" {
	victim "$PLACE/root"
	assert_eq "$(status_of)" running
	run -0 rt kill "$ID" KILL
	wait "$VICTIM" || true
	run ! kill -0 "$VICTIM"
	rt delete --force "$ID"
}

@test "records: forged in a root directory of somebody else's, or that others may write to" {
	local mode
	victim "$PLACE/root"
	chown $MALLORY "$PLACE/root"
	refused "$PLACE/root" "$PLACE/root belongs to user $MALLORY, who could forge containers"
	run ! rt list
	assert_has "$output" "belongs to user $MALLORY"
	chown 0 "$PLACE/root"
	for mode in 0777 1777 0775 0713; do
		chmod "$mode" "$PLACE/root"
		refused "$PLACE/root" "may be written to by others (mode $mode)"
	done
	run ! rt run -b "$BUNDLE" "$ID"
	assert_has "$output" "may be written to by others"
	chmod 0755 "$PLACE/root"
	run -0 rt kill "$ID" KILL
	rt delete --force "$ID"
}

@test "records: forged in a directory, or a file, of somebody else's; list tells and shows the others" {
	local what
	victim "$PLACE/root"
	rt_bg run -d -b "$BUNDLE" "$ID-mine"
	for what in "" /record; do
		chown $MALLORY "$PLACE/root/$ID$what"
		refused "$PLACE/root" "$ID belongs to user $MALLORY"
		run -0 --separate-stderr rt list -q
		assert_eq "$output" "$ID-mine"
		assert_has "$stderr" "$ID belongs to user $MALLORY"
		chown 0 "$PLACE/root/$ID$what"
		chmod go+w "$PLACE/root/$ID$what"
		refused "$PLACE/root" "$ID may be written to by others"
		chmod go-w "$PLACE/root/$ID$what"
	done
	assert_eq "$(status_of)" running
	rm -rf "${PLACE:?}/root/$ID"
	rt delete --force "$ID-mine"
}

@test "records: somebody else's directory with a link to a record of root's" {
	victim "$PLACE/root"
	mkdir "$PLACE/root/$ID-2"
	ln "$PLACE/root/$ID/record" "$PLACE/root/$ID-2/record"
	chown $MALLORY "$PLACE/root/$ID-2"
	ID=$ID-2
	refused "$PLACE/root" "$ID belongs to user $MALLORY"
	# And root's own: a record is that of its name.
	chown 0 "$PLACE/root/$ID"
	run ! rt kill "$ID" KILL
	assert_has "$output" "the record of another container"
	run -0 rt delete --force "$ID"
	kill -0 "$VICTIM"
	run ! test -e "$PLACE/root/$ID"
	ln -s "${ID%-2}" "$PLACE/root/$ID"
	refused "$PLACE/root" "not a directory"
	rm -rf "${PLACE:?}/root"
}

# What is root's there may come from anywhere: an image's tree is full of root's directories.
@test "records: a root directory that somebody else could have put there" {
	victim "$PLACE/mallory/root"
	chown $MALLORY "$PLACE/mallory"
	refused "$PLACE/mallory/root" "$PLACE/mallory belongs to user $MALLORY"
	refused "$PLACE/mallory/../mallory//root/" "$PLACE/mallory belongs to user $MALLORY"
	mkdir "$PLACE/roots"
	ln -s ../mallory/root "$PLACE/roots/link"
	refused "$PLACE/roots/link" "$PLACE/mallory belongs to user $MALLORY"
	ln -s "$PLACE/mallory" "$PLACE/roots/far"
	refused "$PLACE/roots/far/root" "$PLACE/mallory belongs to user $MALLORY"
	cd "$PLACE/mallory"
	refused root "$PLACE/mallory belongs to user $MALLORY"
	cd "$BATS_TEST_TMPDIR"
	chown 0 "$PLACE/mallory"
	# A link of another user's, where everybody may make links.
	mkdir -m 1777 "$PLACE/tmp"
	ln -s "$PLACE/mallory/root" "$PLACE/tmp/link"
	chown -h $MALLORY "$PLACE/tmp/link"
	run ! rt --root "$PLACE/tmp/link" state "$ID" # by us, or by fs.protected_symlinks
	chown -h 0 "$PLACE/tmp/link"
	chmod 0777 "$PLACE/mallory"
	refused "$PLACE/mallory/root" "$PLACE/mallory may be written to by others"
	# Nobody can take away what is root's from a sticky one; and links of root's are fine.
	chmod 1777 "$PLACE/mallory"
	for ROOT in "$PLACE/mallory/root" "$PLACE/roots/link" "$PLACE/roots/far/root" "$PLACE/tmp/link"; do
		assert_eq "$ROOT: $(status_of)" "$ROOT: running"
	done
	rm -rf "${PLACE:?}/mallory"
}

@test "records: exec refuses a seccomp filter that somebody else could have written" {
	local file=$ROOT/$ID/seccomp
	cfg '.process.args = ["/bin/sleep", "300"] | .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW"}'
	rt_bg run -d -b "$BUNDLE" "$ID"
	run -0 rt exec "$ID" true
	chmod 0666 "$file"
	run ! rt exec "$ID" true
	assert_has "$output" "the seccomp filter of $ID may be written to by others"
	chmod 0600 "$file"
	chown $MALLORY "$file"
	run ! rt exec "$ID" true
	assert_has "$output" "the seccomp filter of $ID belongs to user $MALLORY"
}

@test "records: an ordinary user, and root of a user namespace, believe their own" {
	local lr=$PLACE/lr as="setpriv --reuid $MALLORY --regid $MALLORY --clear-groups env -i PATH=$PATH"
	cp "$LEAN_RUNTIME" "$lr"
	mkdir -m 700 "$PLACE/run" "$PLACE/bob"
	mkdir -p "$PLACE/run/lean-runtime" "$PLACE/bob/lean-runtime" "$PLACE/root"
	chown -R $MALLORY "$PLACE/run"
	chown -R 4321 "$PLACE/bob/lean-runtime"
	run -0 $as XDG_RUNTIME_DIR="$PLACE/run" "$lr" list
	run -0 $as XDG_RUNTIME_DIR="$PLACE/run" unshare -Ur "$lr" list
	run -0 $as unshare -Ur "$lr" --root "$PLACE/run/lean-runtime" list
	# Root's is root's for everybody, if it can be read.
	run -0 $as "$lr" --root "$PLACE/root" list
	chmod 711 "$PLACE/bob"
	run ! $as XDG_RUNTIME_DIR="$PLACE/bob" "$lr" list
	assert_has "$output" "belongs to user 4321"
	run ! $as unshare -Ur "$lr" --root "$PLACE/bob/lean-runtime" list
	assert_has "$output" "belongs to user"
}

# ---- damage ---------------------------------------------------------------------------------------

# gone N WHAT: nothing is left of the container, whose cgroup and process are $CGROUP and $PID.
gone() {
	[ ! -e "$ROOT/$ID" ] || fail "$1: the record is left"
	[ ! -e "$CGROUP" ] || fail "$1: the cgroup is left"
	[ ! -e "/proc/$PID" ] || [ "$(awk '{print $3}' "/proc/$PID/stat" 2>/dev/null)" != S ] || fail "$1: the process is left"
}

start_one() {
	rt_bg run -d --pid-file pid -b "$BUNDLE" "$ID"
	PID=$(cat pid)
	CGROUP=$(cgroup_file pids . .)
	CGROUP=${CGROUP%/.}
	[ -d "$CGROUP" ]
}

# All of them, and each bit, in tests/unit/store/test_record.c: what is read stays the same.
@test "records: whichever byte is damaged, delete --force leaves nothing, and nothing else is touched" {
	local size i
	cfg '.process.args = ["/bin/sleep", "300"] | .annotations = {}'
	# Another one that a damaged name or path could lead to.
	cfg --arg p "$(cgroups_path "${ID}0")" '.linux.cgroupsPath = $p'
	rt_bg run -d -b "$BUNDLE" "${ID}0"
	cfg --arg p "$(cgroups_path "$ID")" '.linux.cgroupsPath = $p'
	start_one
	size=$(stat -c %s "$ROOT/$ID/record")
	for ((i = 0; i < size; i += i < 80 ? 10 : 111)); do
		[ -d "$ROOT/$ID" ] || start_one
		"$LR_LIB/record" flip "$ROOT/$ID/record" "$i"
		run rt delete --force "$ID"
		assert_eq "byte $i: $status $output" "byte $i: 0 "
		gone "byte $i"
	done
	assert_eq "$(status_of "${ID}0")" running
}

@test "records: wherever it is cut off, delete --force ends the process as long as it is known" {
	local size n
	cfg '.process.args = ["/bin/sleep", "300"] | .annotations = {}'
	start_one
	size=$(stat -c %s "$ROOT/$ID/record")
	# Half of it is a record; the first header knows the process.
	for n in $((size - 1)) $((size / 2 + 1)) $((size / 2)) $((size / 2 - 1)) 500 81 80 79 64 63 40; do
		[ -d "$ROOT/$ID" ] || start_one
		truncate -s "$n" "$ROOT/$ID/record"
		if [ "$n" -lt $((size / 2)) ]; then
			run ! rt exec "$ID" true
		else
			run -0 rt exec "$ID" true
		fi
		run -0 rt delete --force "$ID"
		if [ "$n" -lt $((size / 2)) ]; then
			assert_has "$output" "its process is gone; its control group may be left"
			remove_empty_cgroups
		else
			assert_eq "$output" ""
		fi
		gone "cut at $n"
	done
}

@test "records: of both copies damaged, other verbs refuse; of another version, delete too" {
	local size
	cfg '.process.args = ["/bin/sleep", "300"]'
	start_one
	size=$(stat -c %s "$ROOT/$ID/record")
	cp "$ROOT/$ID/record" record
	"$LR_LIB/record" flip "$ROOT/$ID/record" 100
	assert_eq "$(status_of)" running
	"$LR_LIB/record" flip "$ROOT/$ID/record" $((size / 2 + 100))
	run ! rt state "$ID"
	assert_has "$output" "the record is damaged; 'delete --force' removes it"
	run ! rt kill "$ID"
	run ! rt delete "$ID"
	run -0 rt list -q
	assert_has "$output" "the record is damaged"
	cp record "$ROOT/$ID/record"
	for n in 8 $((size / 2 + 8)); do
		"$LR_LIB/record" flip "$ROOT/$ID/record" "$n"
	done
	run ! rt delete --force "$ID"
	assert_has "$output" "use the version of lean-runtime that made the container"
	[ -e "/proc/$PID" ]
	cp record "$ROOT/$ID/record"
	run -0 rt delete --force "$ID"
	gone "as it was"
}

# ---- what fails meanwhile -------------------------------------------------------------------------

# with_fault CALLS:FAULT VERB...: the runtime with that system call failing.
with_fault() {
	command -v strace >/dev/null || skip "strace is not installed"
	timeout -k 2 30 strace -o /dev/null -e "trace=${1%%:*}" -e "inject=$1" \
		"$LEAN_RUNTIME" --root "$ROOT" "${@:2}" 3>&-
}

@test "records: delete --force that can't look at the directory, or at the process, says so" {
	[ -z "${LR_SANITIZED-}" ] || skip "the loader of a sanitized program looks at files, too"
	cfg '.process.args = ["/bin/sleep", "300"]'
	start_one
	run ! with_fault fstat,newfstatat,statx:error=EIO delete --force "$ID"
	assert_has "$output" "input/output error"
	# musl's fstat is a system call of its own, glibc's is newfstatat.
	strace -o calls -e trace=fstat "$LEAN_RUNTIME" --root "$ROOT" state "$ID" 3>&-
	! grep -q '^fstat(' calls || {
		run ! with_fault fstat:error=EIO delete --force "$ID"
		assert_has "$output" "input/output error"
	}
	run ! with_fault pidfd_send_signal,kill:error=EPERM delete --force "$ID"
	assert_has "$output" "kill process $PID: operation not permitted"
	assert_eq "$(status_of)" running
	run -0 rt delete --force "$ID"
	gone "at last"
}

@test "records: a directory that can't be read is not taken for an empty one" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	start_one
	run ! with_fault getdents64:error=EIO list
	assert_has "$output" "input/output error"
	run ! with_fault getdents64:error=EIO kill --all "$ID" TERM
	assert_has "$output" "input/output error"
	cfg 'del(.linux.cgroupsPath)'
	rt --lean pool warm -b "$BUNDLE"
	run ! with_fault getdents64:error=EIO pool status
	assert_has "$output" "input/output error"
	rt pool drain
	rt delete --force "$ID"
}

# Whoever makes a container has its directory before the lock, and the lock before the record.
@test "records: delete looks again at what was only a directory" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	start_one
	cp -a "$ROOT/$ID/record" kept
	rm "$ROOT/$ID/record"
	command -v strace >/dev/null || skip "strace is not installed"
	# It has found nothing, and is slow to give the lock back.
	timeout -k 2 60 strace -o calls -e trace=flock -e inject=flock:delay_enter=2000000:when=2 \
		"$LEAN_RUNTIME" --root "$ROOT" delete "$ID" >said 2>&1 3>&- &
	wait_until grep -q LOCK_UN calls
	hold_tracer $!
	cp -a kept "$ROOT/$ID/record"
	let_tracer_go
	status=0
	wait $! || status=$?
	assert_eq "$status" 1
	assert_has "$(cat said)" "cannot delete container $ID that is not stopped: running"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	gone "at last"
}

# Between making its directory and locking it a creation holds nothing: meanwhile that may be deleted, and another
# container of that name be made.
@test "records: a creation whose directory was deleted takes no other's" {
	cfg '.process.args = ["/bin/sleep", "300"]'
	command -v strace >/dev/null || skip "strace is not installed"
	mkdir "$ROOT"
	strace -o calls -e trace=mkdirat,openat -e "inject=mkdirat:signal=STOP:when=1" \
		"$LEAN_RUNTIME" --root "$ROOT" create -b "$BUNDLE" "$ID" </dev/null >said 2>&1 3>&- &
	local slow=$! status=0
	wait_until grep -q 'stopped by SIGSTOP' calls
	assert_eq "$(grep -c mkdirat calls)" 1
	run -0 rt delete --force "$ID"
	run ! test -e "$ROOT/$ID"
	rt_create
	PID=$(pid_of)
	CGROUP=$(dirname "$(cgroup_file pids cgroup.procs cgroup.procs)")
	[ -d "$CGROUP" ]
	kill -CONT "$(pgrep -P "$slow")"
	wait "$slow" || status=$?
	assert_eq "$status" 1
	assert_has "$(cat said)" "container with id $ID already exists"
	assert_eq "$(status_of)" created
	run -0 rt start "$ID"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	gone "at last"
}

@test "records: a creation whose lock can't be had leaves no directory" {
	run ! with_fault flock:error=ENOLCK run -b "$BUNDLE" "$ID" </dev/null
	assert_has "$output" "lock the container: no locks available"
	run ! test -e "$ROOT/$ID"
	run ! with_fault flock:error=ENOLCK create -b "$BUNDLE" "$ID" </dev/null
	run ! test -e "$ROOT/$ID"
}

# stays_locked ID: nobody deletes it; what is said about that is in ID.err.
stays_locked() {
	local rc=0
	timeout -k 2 90 "$LEAN_RUNTIME" --root "$ROOT" delete --force "$1" >"$1.err" 2>&1 3>&- || rc=$?
	echo "$rc" >"$1.rc"
}

@test "records: delete --force ends what runs in a container that stays locked, and names who has it locked even then" {
	local pid ends stays deletes
	command -v flock >/dev/null || skip "flock is not installed"
	rt_sleeper "$ID-a"
	cfg --arg p "$(cgroups_path "$ID-b")" '.linux.cgroupsPath = $p'
	rt_sleeper "$ID-b"
	pid=$(pid_of "$ID-a")
	# As a criu does that waits for who does not answer; and as a runtime does that was stopped.
	flock -F "$ROOT/$ID-a" sh -c "while kill -0 $pid; do sleep 0.1; done" 2>/dev/null 3>&- &
	ends=$!
	flock -F "$ROOT/$ID-b" sleep 300 3>&- &
	stays=$!
	wait_until eval '! flock -n "$ROOT/$ID-a" true'
	wait_until eval '! flock -n "$ROOT/$ID-b" true'
	kill -STOP "$stays"
	stays_locked "$ID-b" &
	deletes=$!
	run -0 timeout -k 2 90 "$LEAN_RUNTIME" --root "$ROOT" delete --force "$ID-a" 3>&-
	assert_eq "$output" ""
	[ ! -e "$ROOT/$ID-a" ]
	wait "$ends"
	wait "$deletes"
	kill -KILL "$stays"
	assert_eq "$(cat "$ID-b.rc")" 1
	assert_has "$(cat "$ID-b.err")" "process $stays (sleep) keeps container $ID-b locked"
	assert_has "$(cat "$ID-b.err")" "kill -CONT $stays"
	assert_eq "$(status_of "$ID-b")" stopped
	rt delete --force "$ID-b"
	assert_eq "$(left_cgroups)" ""
}

# The pool is the profile's memory of what it made: mounts, and where the control groups are.
@test "records: a pool in a directory that somebody else has made, or may write to" {
	ROOT=$PLACE/root
	cfg 'del(.linux.cgroupsPath) | .root.readonly = true'
	local home
	home=$ROOT/.lean/m$(stat -L -c %i /proc/self/ns/mnt)
	mkdir -p "$home"
	for dir in "$ROOT/.lean" "$home"; do
		chmod 700 "$ROOT/.lean" "$home"
		chown "$MALLORY" "$dir"
		run rt --lean run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "$dir"
		assert_has "$output" "belongs to user $MALLORY"
		chown 0 "$dir"
		chmod 777 "$dir"
		run rt --lean run -b "$BUNDLE" "$ID"
		assert_one_error
		assert_has "$output" "may be written to by others"
	done
	assert_eq "$(ls -A "$home")" ""
	chmod 700 "$ROOT/.lean" "$home"
	run -0 rt --lean run -b "$BUNDLE" "$ID"
	assert_eq "$output" hello
	rt pool drain
}

@test "records: a root directory is looked at again when part of the way to it was missing" {
	mkdir "$PLACE/mallory"
	chown "$MALLORY" "$PLACE/mallory"
	ROOT=$PLACE/missing/../mallory
	run rt run -b "$BUNDLE" "$ID"
	assert_one_error
	assert_has "$output" "belongs to user $MALLORY"
	assert_eq "$(ls -A "$PLACE/mallory")" ""
}
