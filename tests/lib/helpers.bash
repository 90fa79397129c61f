# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# helpers.bash: what every bats file here loads. A test gets
#   $LEAN_RUNTIME  the runtime under test (absolute)
#   $TAG           a word that no other test uses; ids, cgroups and environments carry it
#   $ID            a container id (more by new_id)
#   $ROOT          its own --root
#   $BUNDLE        a bundle with a private copy of the busybox root file system
# and in teardown everything it left running is deleted, and then nothing may be left: no process,
# mount, cgroup, state or temporary file. What is left fails the test.

bats_require_minimum_version 1.5.0

LR_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${LEAN_RUNTIME:?is not set: the runtime to test}"
case $LEAN_RUNTIME in
/*) ;;
*/*) LEAN_RUNTIME=$(realpath "$LEAN_RUNTIME") ;;
*) LEAN_RUNTIME=$(command -v "$LEAN_RUNTIME") ;;
esac
export LEAN_RUNTIME
. "$LR_LIB/processes.bash"
# Seconds until what is waited for has not come: it costs nothing where it comes, and a busy machine takes its time. Shorter where
# tests are to fail (tests/mutants).
patience=${LR_PATIENCE:-30}

# --- which runtime is this? -------------------------------------------------------------------

is_lean() {
	[ -n "${LR_IS_LEAN-}" ] || {
		case $("$LEAN_RUNTIME" --version 2>/dev/null | head -n 1) in
		lean-runtime*) LR_IS_LEAN=1 ;;
		*) LR_IS_LEAN=0 ;;
		esac
		export LR_IS_LEAN
	}
	[ "$LR_IS_LEAN" = 1 ]
}

# The suite itself is checked with other runtimes standing in; what they cannot do is left out
# there, and only there.
lean_only() {
	is_lean || skip "stand-in runtime: ${1:-not a feature of it}"
}

# The whole suite runs with the lean profile, too: LEAN_RUNTIME_PROFILE=lean bats tests/bats.
lean_profile() {
	case ${LEAN_RUNTIME_PROFILE-} in "" | none) return 1 ;; esac
}

# lean_changes PART: this test is about what that part of the profile changes, as docs/lean-profile.md
# says it does: it runs with the other parts.
lean_changes() {
	! lean_profile || export LEAN_RUNTIME_PROFILE=$LEAN_RUNTIME_PROFILE,$1=config
}

# LR_TEST_CGROUPS=systemd bats tests/bats, where systemd is the host's first process: rt() asks the runtime for systemd's cgroups, by the
# options $BY. A test that calls "$LEAN_RUNTIME" itself has the runtime's own, unless it passes "${BY[@]}".
by_systemd() {
	case ${LR_TEST_CGROUPS-} in
	systemd) ;;
	"" | cgroupfs) return 1 ;;
	*) echo "LR_TEST_CGROUPS is cgroupfs or systemd, not $LR_TEST_CGROUPS" >&2 && exit 1 ;;
	esac
}

# This test is about what the runtime does where it makes the cgroups itself.
cgroupfs_only() {
	! by_systemd || skip "systemd makes the cgroups: ${1:-this is about those of the runtime}"
}

# cgroups_path NAME: a value for linux.cgroupsPath.
cgroups_path() {
	if by_systemd; then
		echo "system.slice:lr:$1"
	else
		echo "/$1"
	fi
}

# --- set up and tear down ---------------------------------------------------------------------

# One root file system per bats run, copied for each test.
shared_rootfs() {
	local dir=${BATS_RUN_TMPDIR:?}/rootfs
	(
		flock 9
		[ -e "$dir.done" ] || { "$LR_LIB/mkrootfs" "$dir" >&2 && touch "$dir.done"; }
	) 9>"$dir.lock" 3>&- || return 1
	echo "$dir"
}

common_setup() {
	TAG=lrt$$x$RANDOM
	ID=$TAG-1
	LR_IDS=1
	export LR_TEST_TAG=$TAG # whoever starts a runtime: what that leaves is found
	BY=()
	! by_systemd || BY=(--systemd-cgroup)
	ROOT=$BATS_TEST_TMPDIR/root
	BUNDLE=$BATS_TEST_TMPDIR/bundle
	export LC_ALL=C
	unset NOTIFY_SOCKET LISTEN_FDS LISTEN_PID LISTEN_FDNAMES XDG_RUNTIME_DIR
	make_bundle "$BUNDLE"
	cd "$BATS_TEST_TMPDIR" || return 1
}

common_teardown() {
	cd / || return 1
	# Skipped by its setup: without a tag, everything on the machine would be the test's.
	[ -n "${TAG-}" ] || return 0
	local id rc=0
	for id in $(list_ids); do
		rt delete --force "$id" </dev/null >/dev/null 2>&1 || true
	done
	assert_nothing_left || rc=1
	[ "$rc" = 0 ] || clean_by_force
	return "$rc"
}

new_id() {
	LR_IDS=$((LR_IDS + 1))
	printf -v "${1:-ID}" '%s-%d' "$TAG" "$LR_IDS"
}

# make_bundle DIR: a bundle that prints a line; edit it with cfg.
make_bundle() {
	local dir=$1 rootfs base=${BATS_RUN_TMPDIR:?}/base.json
	rootfs=$(shared_rootfs) || return 1
	mkdir -p "$dir"
	cp -a "$rootfs" "$dir/rootfs"
	if [ ! -e "$base" ]; then
		mkdir -p "$base.d.$$"
		(cd "$base.d.$$" && "$LEAN_RUNTIME" spec) || return 1
		mv "$base.d.$$/config.json" "$base"
		rm -rf "$base.d.$$"
	fi
	jq --arg tag "$TAG" --arg path "$(cgroups_path "$ID")" '
		.process.terminal = false | .process.args = ["echo", "hello"] | .root.readonly = false
		| .process.env += ["LR_TEST_TAG=" + $tag]
		| .linux.cgroupsPath = $path' "$base" >"$dir/config.json"
}

# jq 1.6 takes it for true (-e) if there is nothing to look at.
jq() {
	local word out rc=0
	for word; do
		case $word in -[!-]*e* | -e*)
			out=$(command jq "$@") || rc=$?
			[ -z "$out" ] || printf '%s\n' "$out"
			[ "$rc" != 0 ] || [ -n "$out" ] || rc=4
			return "$rc" ;;
		esac
	done
	command jq "$@"
}

# cfg [-b BUNDLE] [jq options] FILTER: changes the bundle's config.json.
cfg() {
	local dir=$BUNDLE
	if [ "$1" = -b ]; then
		dir=$2
		shift 2
	fi
	jq "$@" "$dir/config.json" >"$dir/config.json.new" && mv "$dir/config.json.new" "$dir/config.json"
}

# sh_cfg SCRIPT: the container runs SCRIPT by sh.
sh_cfg() {
	cfg --arg s "$1" '.process.args = ["/bin/sh", "-c", $s]'
}

without_ns() {
	cfg --arg t "$1" '.linux.namespaces |= map(select(.type != $t))'
}

# Raises what a test's config needs in capabilities.
with_caps() {
	cfg --arg c "$*" '.process.capabilities |= with_entries(.value += ($c | split(" ")))'
}

# --- calling the runtime ----------------------------------------------------------------------

# peers [PROGRAM...]: those of runc and crun, or of these programs, that are installed; the others are
# named in the test's output. A test that says "as runc" compares with them.
peers() {
	local p
	[ $# -gt 0 ] || set -- runc crun
	for p in "$@"; do
		if command -v "$p" >/dev/null; then
			echo "$p"
		else
			echo "# $p is not installed: not compared with it" >&3
		fi
	done
}

# peer runc|crun ARGS...: with a root of its own. crun 1.8 takes a host with both cgroup hierarchies
# for one with v2 alone, and knows no later specification than 1.0.
peer() {
	local args=("$1" --root "$BATS_TEST_TMPDIR/$1-root" "${@:2}")
	[ "$1" != crun ] || cfg '.ociVersion = "1.0.2"'
	[ "$1" != crun ] || args=(unshare -m sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh "${args[@]}")
	# A pipe: crun makes the container's user the owner of standard input, also of the host's /dev/null.
	"${args[@]}" < <(:) 3>&-
}

# bats' descriptor 3 must not reach a container that outlives the call. What never waits for a
# program of the container's gets 30 s: a hang is a failure, not the end of the suite.
rt() {
	case $1 in
	state | list | delete | kill | pause | resume | update | features | spec)
		timeout -k 2 30 "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" "$@" 3>&- ;;
	*) "$LEAN_RUNTIME" "${BY[@]}" --root "$ROOT" "$@" 3>&- ;;
	esac
}

# The version that the older ones know, too.
for_peers() {
	cfg '.ociVersion = "1.0.2"'
}

# peer_run runc|crun: what that one makes of the same bundle; see tests/lib/peer.
peer_run() {
	"$LR_LIB/peer" "$1" "$BUNDLE" "$ID" 3>&-
}

# For what stays behind (create, run -d, exec -d): stdio are files, so that nobody waits for them.
# The container's output: $OUT and $ERR.
rt_bg() {
	OUT=$BATS_TEST_TMPDIR/out
	ERR=$BATS_TEST_TMPDIR/err
	local rc=0
	rt "$@" </dev/null >"$OUT" 2>"$ERR" || rc=$?
	[ "$rc" = 0 ] || { echo "rt $*: exit $rc" && cat "$OUT" "$ERR"; }
	return "$rc"
}

rt_create() {
	rt_bg create --bundle "${2:-$BUNDLE}" "${1:-$ID}"
}

# kill_at USEC COMMAND...: kill -9 of a command that long after it was started; in $KILLED: how many had not ended by then.
KILLED=0
kill_at() {
	local code=0
	python3 - "$@" <<-'END' || code=$?
		import signal, subprocess, sys, time
		p = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		time.sleep(int(sys.argv[1]) / 1e6)
		p.send_signal(signal.SIGKILL)
		sys.exit(9 if p.wait() == -signal.SIGKILL else 0)
	END
	[ "$code" != 9 ] || KILLED=$((KILLED + 1))
}

# dies_at_execve COMMAND...: the runtime, whose child is killed as it executes the container's
# program, as the kernel does it for want of memory.
dies_at_execve() {
	timeout -k 2 30 strace -f -o /dev/null -e trace=execve -e inject=execve:signal=KILL:when=1 \
		"$LEAN_RUNTIME" --root "$ROOT" "$@" </dev/null 3>&-
}

# Who traces stands still, and whom it holds in a delayed call with it: so the delay has only to last until here, also where the
# machine is busy.
hold_tracer() { # PID: of the shell's child, which may be timeout(1)
	tracer_held=$(pgrep -P "$1" -x strace || echo "$1")
	kill -STOP "$tracer_held"
}
let_tracer_go() {
	kill -CONT "$tracer_held"
}

# A container that sleeps.
rt_sleeper() {
	cfg '.process.args = ["/bin/sleep", "300"]'
	rt_bg run --detach --bundle "$BUNDLE" "${1:-$ID}"
}

# The container's program opens what is executed beside it, if that is not busybox, waits for its end, and writes to it then
# (CVE-2019-5736): until there is a file /stop. Says "held" for each that it has open, and WROTE.
sh_cfg_attack() {
	with_caps CAP_SYS_ADMIN CAP_DAC_OVERRIDE CAP_SYS_PTRACE
	sh_cfg 'while [ ! -e /stop ]; do
			for p in /proc/[0-9]*; do
				[ $p != /proc/1 ] || continue
				(exec 5<$p/exe # at once: it does not take long
				case $(readlink /proc/self/fd/5) in */busybox | "") exit ;; esac
				echo held
				mount -o remount,rw,bind $p/exe && echo WROTE; mount --bind $p/exe /mnt && echo WROTE; echo x >$p/exe && echo WROTE
				while [ -e $p ]; do sleep 0.01; done; echo overwritten >/proc/self/fd/5 && echo WROTE) 2>/dev/null
			done
		done; true'
}

# attacked OUT RUNTIME ARGUMENT...: executes the runtime in that container, which prints to OUT, until it was held.
attacked() {
	local out=$1 end=$((SECONDS + patience))
	shift
	until grep -q held "$out"; do
		[ "$SECONDS" -lt "$end" ] || fail "nobody held the runtime: $(cat "$out")" || return 1
		"$@" exec "$ID" true </dev/null >>"$out" 2>&1 3>&- || true
		"$@" exec "$ID" /proc/self/exe </dev/null >>"$out" 2>&1 3>&- || true
	done
	touch "$BUNDLE/rootfs/stop"
	wait_for_status stopped "$ID" || return 1
	rm "$BUNDLE/rootfs/stop"
}

status_of() {
	rt state "${1:-$ID}" | jq -r .status
}

pid_of() {
	rt state "${1:-$ID}" | jq -r .pid
}

wait_for_status() {
	local end=$((SECONDS + patience))
	while [ "$SECONDS" -lt "$end" ]; do
		[ "$(status_of "$2")" = "$1" ] && return 0
		sleep 0.05
	done
	echo "container $2 is $(status_of "$2") and not $1"
	return 1
}

# wait_until COMMAND...: up to half a minute.
wait_until() {
	local end=$((SECONDS + patience))
	while [ "$SECONDS" -lt "$end" ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	echo "waited in vain for: $*"
	return 1
}

list_ids() {
	rt list -q 2>/dev/null </dev/null
}

# --- asserting --------------------------------------------------------------------------------

fail() {
	echo "$*"
	return 1
}

assert_eq() {
	[ "$1" = "$2" ] || fail "got: '$1'
expected: '$2'"
}

assert_has() {
	case $1 in
	*"$2"*) ;;
	*) fail "'$2' is not in:
$1" ;;
	esac
}

assert_hasnt() {
	case $1 in
	*"$2"*) fail "'$2' is in:
$1" ;;
	esac
}

assert_match() {
	[[ $1 =~ $2 ]] || fail "no match for '$2' in:
$1"
}

# After `run -N rt ...`: the one error line a user sees, with neither Go's nor C's entrails.
assert_one_error() {
	[ "$status" -ne 0 ] || fail "it succeeded: $output"
	[ "$status" -lt 128 ] || [ "$status" = 255 ] || fail "it died by a signal ($status): $output"
	output=${output//\\\"/\"} # the text form of the log escapes quotes
	is_lean || return 0
	local n
	n=$(printf '%s\n' "$output" | grep -c .)
	[ "$n" = 1 ] || fail "expected one line, got $n:
$output"
	assert_hasnt "$output" "Assertion"
}

# --- what is left behind ----------------------------------------------------------------------

# Processes of this test: those in its cgroups, and those whose environment carries the tag (the
# runtime's own and, from config.json, the container's). Zombies have no environment.
left_processes() {
	local f pid
	for f in $(env -u LR_TEST_TAG grep -l -a -s "LR_TEST_TAG=$TAG" /proc/[0-9]*/environ); do
		pid=${f#/proc/}
		pid=${pid%/environ}
		# The test's own, which ends it later.
		[[ " ${REMEMBERED[*]} " != *" $pid:"* ]] || continue
		echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
	done
	for f in $(left_cgroups); do
		pid=$(cat "$f/cgroup.procs" 2>/dev/null)
		[ -z "$pid" ] || echo "process in $f:" $pid
	done
}

left_cgroups() {
	find /sys/fs/cgroup -mindepth 1 -type d -name "*$TAG*" 2>/dev/null
}

left_units() {
	local units
	by_systemd || return 0
	units=$(systemctl list-units --all --plain --no-legend "*$TAG*") || units="? systemctl does not list the units"
	[ -z "$units" ] || awk '{print "unit", $1, $3, $4}' <<<"$units"
}

remove_empty_cgroups() {
	find /sys/fs/cgroup -mindepth 1 -depth -type d -path "*${TAG:?}*" -exec rmdir {} \; 2>/dev/null || true
}

left_mounts() {
	grep -F -e "$BATS_TEST_TMPDIR/" -e "$TAG" /proc/self/mountinfo || true
}

# The root may keep what is the runtime's, not a container's: lock files and caches, dot-named.
left_state() {
	find "$ROOT" -mindepth 1 -maxdepth 1 ! -name '.*' 2>/dev/null
	find /run /tmp -maxdepth 2 -name "*$TAG*" 2>/dev/null || true # somebody else's directory goes meanwhile
}

whats_left() {
	left_processes
	left_cgroups
	left_units
	left_mounts
	left_state
}

# What the lean profile keeps ready is not left behind, but has to go when it is asked to.
drain_pools() {
	local home
	for home in $(find "$BATS_TEST_TMPDIR" -maxdepth 3 -type d -name .lean); do
		"$LEAN_RUNTIME" --root "${home%/.lean}" pool drain >/dev/null 2>&1 3>&- || true
	done
}

assert_nothing_left() {
	local left end=$((SECONDS + patience))
	! lean_profile || drain_pools
	while [ "$SECONDS" -lt "$end" ]; do
		left=$(whats_left)
		[ -n "$left" ] || return 0
		sleep 0.05
	done
	fail "left behind:
$left"
}

# After a failed test, so that the next one and the machine are not harmed by it.
clean_by_force() {
	local line pid cg m
	: "${TAG:?is not set: whose processes are to end?}"
	for cg in $(find /sys/fs/cgroup/freezer -type d -name "*$TAG*" 2>/dev/null); do
		echo THAWED >"$cg/freezer.state" 2>/dev/null
	done
	left_processes | sed -n 's/^process \([0-9]*\):.*/\1/p; s/^process in [^:]*: *//p' | tr ' ' '\n' |
		while read -r pid; do kill -KILL "$pid" 2>/dev/null; done
	sleep 0.2
	grep -F "$BATS_TEST_TMPDIR/" /proc/self/mountinfo | awk '{print $5}' | sort -r |
		while read -r m; do umount -l "$m" 2>/dev/null; done
	remove_empty_cgroups
}

# --- facts about the machine ------------------------------------------------------------------

cgroup_v2() {
	[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]
}

# cgroup_of [ID]: where the cgroup of a bundle of ours is, below the hierarchy's root.
cgroup_of() {
	if by_systemd; then
		echo "/system.slice/lr-${1:-$ID}.scope"
	else
		echo "/${1:-$ID}"
	fi
}

# cgroup_file CONTROLLER V1-NAME V2-NAME [ID]: the path of a container's control file.
cgroup_file() {
	if cgroup_v2; then
		echo "/sys/fs/cgroup$(cgroup_of "${4-}")/$3"
	else
		echo "/sys/fs/cgroup/$1$(cgroup_of "${4-}")/$2"
	fi
}

needs_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

has_cap() {
	local eff bit=$1
	eff=$((0x$(awk '/^CapEff:/ {print $2}' /proc/self/status)))
	[ $((eff >> bit & 1)) = 1 ]
}
