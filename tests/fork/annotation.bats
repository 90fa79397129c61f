#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds by managers' way: create, start, and an annotation.

load ../lib/helpers.bash
load seeds.bash
load counter.bash

name() { # VALUE: the annotation
	cfg --arg v "$1" '.annotations["org.lean.seed"] = $v'
}

make() { # [OPTION...]
	rt_bg --seed-dir "$PWD/seeds" create --bundle "$BUNDLE" "$@" "$ID"
}

# In the directory that annotations may name.
have_seed() {
	IMG=$PWD/seeds/one
	mkdir -m 700 "$PWD/seeds"
	start_counter
	seed "$ID"
	rt delete --force "$ID"
	begin_anew
}

@test "annotation: what create makes continues the seed when it is started" {
	have_seed
	name one
	make --pid-file "$PWD/pid"
	assert_eq "$(status_of)" created
	assert_eq "$(cat pid)" "$(pid_of)"
	sleep 0.2
	assert_eq "$(count)" 1 # nothing runs yet
	rt start "$ID"
	assert_eq "$(status_of)" running
	assert_eq "$(cat pid)" "$(pid_of)"
	came_back
	run -0 rt exec "$ID" /bin/echo in there
	run ! rt start "$ID"
	assert_has "$output" "already running"
	rt kill "$ID" KILL
	wait_for_status stopped "$ID"
	rt delete "$ID"
}

@test "annotation: run continues the seed, also by its path; and a hook sees it run" {
	have_seed
	name "$PWD/seeds/one"
	cfg --arg p "$PWD/seen" '.hooks.poststart = [{path: "/bin/sh", args: ["sh", "-c", "cat >\($p)"]}]'
	rt_bg --seed-dir "$PWD/seeds" run --detach --bundle "$BUNDLE" "$ID"
	came_back
	assert_eq "$(jq -r .status seen)" running
}

@test "annotation: what waits for start holds nothing of the host, and ends by SIGTERM" {
	have_seed
	name one
	make
	pid=$(pid_of)
	for fd in "/proc/$pid/fd"/*; do
		to=$(readlink "$fd")
		case $to in
		"$(readlink "/proc/$pid/fd/0")" | "$(readlink "/proc/$pid/fd/1")" | "$(readlink "/proc/$pid/fd/2")") ;;
		/n | /bin/counter | "$ROOT/$ID/start" | "$ROOT/$ID/answer" | "$IMG/pages" | "$IMG/descriptor" | socket:*) ;;
		/) grep -q '^mnt_id' "/proc/$pid/fdinfo/${fd##*/}" ;;
		*) fail "descriptor ${fd##*/} leads to $to" ;;
		esac
	done
	rt kill "$ID" TERM
	wait_for_status stopped "$ID"
	run ! rt start "$ID"
	assert_has "$output" "cannot start a container that has stopped"
	rt delete "$ID"
}

@test "annotation: nobody of the container looks at the process that waits with all rights" {
	have_seed
	name one
	make
	run ! rt exec "$ID" /bin/echo in there
	assert_has "$output" "cannot exec in a container that waits to continue its seed"
	rt start "$ID"
	came_back
	run -0 rt exec "$ID" /bin/echo in there
	assert_eq "$output" "in there"
}

# It stops when a seed's process has said that it is in place, and waits for the word to go on.
stops_late() { # VERB ARGUMENT...
	rm -f late
	strace -o late -e inject=recvfrom:signal=STOP:when=1 \
		"$LEAN_RUNTIME" --root "$ROOT" --seed-dir "$PWD/seeds" "$@" </dev/null >late.out 2>&1 3>&- &
	late=$!
	wait_until grep -q 'stopped by SIGSTOP' late
}

goes_on() {
	pkill -CONT -P "$late"
	wait "$late"
}

@test "annotation: nor is anybody sent in while it is frozen, or at its last steps" {
	command -v strace >/dev/null || skip "strace is not installed"
	have_seed
	name one
	make
	rt pause "$ID"
	# Whoever gets in hangs, with all that is open.
	timeout -s KILL 5 "$LEAN_RUNTIME" --root "$ROOT" exec --ignore-paused "$ID" /bin/echo in there </dev/null >said 2>&1 3>&- || true
	rt resume "$ID"
	assert_has "$(cat said)" "cannot exec in a container that waits to continue its seed"
	stops_late start "$ID"
	assert_eq "$(status_of)" running
	run ! rt exec "$ID" /bin/echo in there
	assert_has "$output" "cannot exec in a container that waits to continue its seed"
	goes_on
	came_back
	run -0 rt exec "$ID" /bin/echo in there
	rt delete --force "$ID"
	stops_late run --detach --bundle "$BUNDLE" "$ID"
	run ! rt exec "$ID" /bin/echo in there
	assert_has "$output" "cannot exec in a container that is still being created"
	goes_on
	run -0 rt exec "$ID" /bin/echo in there
}

@test "annotation: a seed goes by its directory alone, and by leave of the runtime's caller" {
	have_seed
	mkdir elsewhere
	cp -a "$IMG" elsewhere/two
	ln -s "$PWD/elsewhere/two" seeds/link
	name one
	run ! rt create --bundle "$BUNDLE" "$ID"
	assert_has "$output" 'seeds are not continued by annotations here'
	assert_has "$output" "--seed-dir"
	for value in ../elsewhere/two "$PWD/elsewhere/two" "$PWD/seeds/../elsewhere/two" "" .; do
		name "$value"
		run ! make
		assert_has "$output" "names no seed in --seed-dir"
	done
	name link
	run ! make
	assert_has "$output" "neither a directory with a seed, nor a file with a ticket"
	for value in three file:one env:HOME; do
		name "$value"
		run ! make
		assert_has "$output" "no such file"
	done
	name one
	cfg '.annotations["org.lean.seed.fetch"] = "soon"'
	run ! make
	assert_has "$output" 'org.lean.seed.fetch'
	[ -z "$(list_ids)" ]
	# Another container's restore is not the annotation's.
	cfg 'del(.annotations["org.lean.seed.fetch"])'
	name nothing
	grow "$ID"
	came_back
}

@test "annotation: a directory that others may write to, or have, names no seed and no ticket" {
	have_seed
	echo none >seeds/ticket
	chmod 600 seeds/ticket
	for value in one ticket; do
		name "$value"
		chmod 777 seeds
		run ! make
		assert_has "$output" "--seed-dir $PWD/seeds may be written to by others"
		chmod 700 seeds
		chown 65534 seeds
		run ! make
		assert_has "$output" "--seed-dir $PWD/seeds belongs to user 65534"
		chown 0 seeds
	done
	run ! make
	assert_has "$output" "this is no ticket"
	run ! rt --seed-dir "" create --bundle "$BUNDLE" "$ID"
	assert_has "$output" "seeds are not continued by annotations here"
	[ -z "$(list_ids)" ]
}

@test "annotation: a start that fails leaves a container that has stopped, and says why" {
	have_seed
	name one
	make
	: >"$IMG/descriptor"
	run ! rt start "$ID"
	assert_has "$output" "seed"
	wait_for_status stopped "$ID" || rt delete --force "$ID"
}
