#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore with --remote: a container becomes a seed of this host's lean-forkd, and others continue
# it by that of another host. Hosts are network namespaces here.

load ../lib/helpers.bash
load seeds.bash
load hosts.bash

@test "remote: a counter goes on, on another host, and its parent runs on" {
	start
	seed
	at=$(count)
	moves
	[ ! -e checkpoint ] # nothing is on a disk
	assert_has "$(ask a list)" "$id held"
	other_host
	grow --pid-file "$PWD/pid"
	came_there
	assert_eq "$(status_of "$CHILD")" running
	assert_eq "$(cat pid)" "$(pid_of "$CHILD")"
	assert_has "$(cat "/proc/$(pid_of "$CHILD")/cgroup")" "/$CHILD"
	[ "$(metric faults_total)" -gt 0 ] # its memory came when it was touched
	moves # the parent
	[ "$at" -gt 20 ]
	assert_eq "$(rt exec "$CHILD" /bin/readlink /proc/1/exe)" /bin/counter
	assert_hasnt "$(cat "/proc/$(pid_of "$CHILD")/maps")" rwxp
}

@test "remote: python with threads, its memory compared, on demand and ahead" {
	python 24
	start
	seed --lease=1h
	other_host
	grow
	came_there
	assert_match "$(grep Threads "/proc/$(pid_of "$CHILD")/status")" '4$'
	[ "$(metric prefetched_pages_total)" -eq 0 ]
	# All of the memory has been looked at.
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	rt delete --force "$CHILD"
	echo 1 >"$THERE/rootfs/n"
	grow --fetch=prefetch
	came_there
	wait_until eval '[ "$(metric children_complete_total)" -eq 1 ]'
	# Now it needs nobody: neither the seed nor its daemon.
	ask a rm "$id"
	signal_process "$b" KILL
	sleep 0.3
	moves "$THERE/rootfs/n"
	nothing_bad
	moves # the parent
}

@test "remote: what a program watches, it watches there, too, by the same number" {
	cp --remove-destination "$build/tests/fork/fork-watch" "$BUNDLE/rootfs/bin/watcher" # no applet's name: that would be a link
	mkdir "$BUNDLE/rootfs/d"
	cfg '.process.args = ["/bin/watcher", "/d=100@3"]'
	start
	seed
	other_host
	: >"$THERE/rootfs/out"
	grow
	came_there
	touch "$BUNDLE/rootfs/d/parents" "$THERE/rootfs/d/other"
	wait_until grep -qx "0:3 100 other" "$THERE/rootfs/out"
	assert_hasnt "$(cat "$THERE/rootfs/out")" parents
	nothing_bad
}

@test "remote: --fetch=prefetch:N: so much comes before it is touched, and the rest when it is" {
	python 24
	start
	seed
	other_host
	run ! grow --fetch=prefetch:0
	run ! grow --fetch=eager:1
	grow --fetch=prefetch:2 --stats
	assert_has "$(cat "$ERR")" '"fetch":"prefetch:2"'
	ahead() { rt seed children -f json --forkd "$PWD/b" | jq "$1"; }
	wait_until eval '[ "$(ahead ".[0].prefetchedPages")" -eq 512 ]'
	# All of the memory has been looked at.
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	assert_eq "$(ahead '.[0] | .state, .prefetchedPages, .askedPages > 50' | tr '\n' ' ')" '"coming" 512 true '
	assert_eq "$(metric prefetched_pages_total)" 512
}

# What would end a child whose memory is still coming.
@test "remote: --fetch=eager: the daemon dies as soon as it runs, and the child has all it needs" {
	python 24
	start
	seed
	other_host
	grow --fetch=eager
	signal_process "$b" KILL
	ask a rm "$id"
	came_there
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	# All of it is its own: it can become a seed itself.
	daemon $B b
	rt_bg checkpoint --engine=fork --image-path "$PWD/again" "$CHILD"
	moves
}

@test "remote: what is in a tmpfs goes to the other host" {
	sh_cfg 'exec >/dev/null; i=0; echo here >/dev/shm/f; head -c 3000000 /bin/counter >/dev/shm/g; md5sum </dev/shm/g >/sum
		while [ -e /dev/shm/f ]; do i=$((i + 1)); echo $i >/n; sleep 0.01; done'
	start
	seed
	other_host
	grow
	came_there
	assert_eq "$(rt exec "$CHILD" /bin/cat /dev/shm/f)" here
	assert_eq "$(rt exec "$CHILD" /bin/sh -c 'md5sum </dev/shm/g')" "$(cat "$BUNDLE/rootfs/sum")"
}

@test "remote: a killed daemon: its child ends, and sees no zeros" {
	python 64
	start
	seed
	other_host
	for pause in 0 0.1 0.4; do
		grow
		wait_until eval '[ "$(metric children)" -eq 1 ]'
		sleep "$pause"
		signal_process "$b" KILL
		wait_for_status stopped "$CHILD"
		nothing_bad
		rt delete "$CHILD"
		daemon $B b --metrics "$PWD/b.metrics"
		b=$started
	done
	moves # the parent
}

@test "remote: the seed's daemon is killed, and the ticket is good with the next one, for children that are there, too" {
	python 64
	start
	seed --lease=1h
	other_host
	grow
	came_there
	signal_process "$(head -n 1 daemons)" KILL
	sleep 1
	daemon $A a --listen 192.0.2.1:7411
	assert_has "$(ask a list)" "$id held"
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 450 ]'
	nothing_bad
	rt delete --force "$CHILD"
	echo 1 >"$THERE/rootfs/n"
	grow --fetch=eager
	came_there
	ask a rm "$id"
	run rt restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --bundle "$THERE" "$ID-new"
	assert_eq "$status" 1
	assert_has "$output" revoked
}

@test "remote: a child ends when its seed is revoked before its memory has come" {
	python 64
	start
	seed
	other_host
	grow
	came_there
	ask a rm "$id"
	wait_for_status stopped "$CHILD"
	nothing_bad
	assert_has "$(cat b.log)" revoked
	run rt restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --bundle "$THERE" "$ID-new"
	assert_eq "$status" 1
	assert_has "$output" revoked
}

@test "remote: shared memory of several megabytes, two processes, and forks before the memory has come" {
	python 1
	cfg --arg p 'import mmap, os, random, time, zlib
random.seed(7)
data = random.randbytes(3 << 20)
shared = mmap.mmap(-1, len(data))
shared.write(data)
holes = mmap.mmap(-1, 200 * 8192)
for i in range(200): # more runs than one question may ask for
    holes[i * 8192] = i + 1
whole = zlib.crc32(data)
del data
pages = [random.randbytes(65536) for _ in range(160)]
sums = [zlib.crc32(p) for p in pages]
def look(at):
    if any(holes[i * 8192] != i + 1 or holes[i * 8192 + 4096] for i in range(200)):
        open("/bad", "w").write("holes")
        os._exit(1)
    if zlib.crc32(shared) != whole or zlib.crc32(pages[at]) != sums[at]:
        open("/bad", "w").write(str(at))
        os._exit(1)
def work(step):
    for i in range(1, 1 << 30):
        pid = os.fork()
        if pid == 0:
            look(i * step % len(pages))
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            open("/bad", "w").write("a child")
        if step == 7:
            open("/n", "w").write(str(i))
        time.sleep(0.005)
if os.fork() == 0:
    work(11)
work(7)
' '.process.args[2] = $p'
	start
	seed
	other_host
	grow
	came_there
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 150 ]'
	[ "$(metric events_total)" -gt 0 ]
	[ "$(rt ps --format json "$CHILD" | jq length)" -ge 2 ]
	nothing_bad
	moves # the parent
}

@test "remote: a shell with children and a pipeline" {
	sh_cfg 'exec >/dev/null; (while :; do echo x; usleep 10000; done | (i=0; while read l; do i=$((i+1)); echo $i >/n; done)) &
		wait'
	start
	tree() { rt exec "$1" /bin/ps -o pid,ppid,comm | grep ' sh$'; }
	tree "$ID" >before
	seed
	other_host
	grow
	came_there
	tree "$CHILD" >after
	diff before after
	moves
}

@test "remote: a shell on a terminal goes on, on the other host's" {
	cfg '.process.terminal = true | .process.args = ["sh"] | .process.env += ["PS1=ready> "]'
	manager one --size 33x77
	rt_bg run --detach --console-socket one.sock --bundle "$BUNDLE" "$ID"
	shows one ready
	keys one 'x=41; sleep 1006\n'
	wait_until eval 'rt exec "$ID" /bin/ps -o args | grep -q "^sleep 1006"'
	seed
	other_host
	manager two
	grow --console-socket two.sock
	keys two '\003'
	shows two ready
	keys two 'echo "code $? x $((x + 1))"; stty size\n'
	shows two 'code 130 x 42'
	shows two '^33 77$'
}

@test "remote: a child in a user namespace gets all of its memory first, and is refused otherwise" {
	start
	seed
	other_host
	cfg -b "$THERE" '.linux.namespaces += [{type: "user"}] | .linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}]
		| .linux.gidMappings = .linux.uidMappings'
	chown -R 100000:100000 "$THERE/rootfs"
	chmod 755 "$BATS_TEST_TMPDIR"
	for how in ondemand prefetch; do
		run ! rt restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --fetch=$how --bundle "$THERE" "$CHILD"
		assert_has "$output" "--fetch=eager"
		[ ! -e "$ROOT/$CHILD" ]
	done
	grow --fetch=eager
	came_there
	assert_match "$(cat "/proc/$(pid_of "$CHILD")/status")" 'Uid:.100000'
}

@test "remote: several children of one seed, in the foreground, too, and one by the variable" {
	sh_cfg 'trap "echo bye; exit 7" TERM; i=0; while :; do i=$((i+1)); echo $i >/n; usleep 20000; done'
	start
	seed
	for i in 1 2 3; do
		other_host
		grow
		came_there
		THERE=$PWD/there$i
	done
	other_host
	ONE=$(cat "$TICKET") rt restore --remote env:ONE --forkd "$PWD/b" --bundle "$THERE" "$CHILD" </dev/null >fg.out 2>fg.err &
	front=$!
	wait_until eval '[ "$(status_of "$CHILD" 2>/dev/null)" = running ]'
	came_there
	runtime=$(pgrep -P "$front")
	assert_eq "$(cat "/proc/$runtime/comm")" lean-runtime
	[ -z "$(find "/proc/$runtime/fd" -lname '*userfaultfd*' -o -lname '*memfd:pages*')" ]
	rt kill "$CHILD" TERM
	code=0
	wait "$front" || code=$?
	assert_eq "$code" 7
	assert_eq "$(cat fg.out)" bye
}

@test "remote: --stop ends the container with the seed, which goes on from there" {
	start
	seed --stop
	at=$(count)
	run rt state "$ID"
	assert_has "$output" "does not exist"
	sleep 0.2
	assert_eq "$(count)" "$at"
	other_host
	grow
	came_there
	[ "$(count "$THERE/rootfs/n")" -ge "$at" ]
}

@test "remote: who cannot be told the ticket has not lost the container" {
	start
	for stop in "" --stop; do
		# shellcheck disable=SC2086 # no word, or one
		run bash -c 'exec "$@" >/dev/full' - "$LEAN_RUNTIME" --root "$ROOT" checkpoint --remote --forkd "$PWD/a" $stop "$ID"
		assert_eq "$status" 1
		assert_has "$output" "no space left"
		assert_eq "$(status_of)" running
		moves
		run -0 ask a list
		assert_hasnt "$output" held
	done
}

@test "remote: what a seed cannot carry is named, and no seed is left with the daemon" {
	python 1
	cfg '.process.args[2] = "import socket\ns = socket.socket(); s.bind((\"127.0.0.1\", 0))\n" + .process.args[2]'
	start
	run rt checkpoint --remote --forkd "$PWD/a" "$ID"
	assert_eq "$status" 1
	assert_has "$output" socket
	assert_hasnt "$output" lean-seed:
	run -0 ask a list
	assert_eq "$output" ""
	moves
}

@test "remote: no daemon, a wrong ticket, an ended lease, foreign options: refused, with the reason" {
	start
	run rt checkpoint --remote --forkd "$PWD/none" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "connect to lean-forkd at $PWD/none"
	assert_has "$output" "lean-forkd serve"
	run rt checkpoint --remote --forkd "$PWD/b" "$ID" # it serves no seeds
	assert_eq "$status" 1
	assert_has "$output" "no address for tickets"
	assert_eq "$(status_of)" running
	seed --lease=300ms
	other_host
	sed -E 's/:[^:@]*@/:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA@/' "$TICKET" >wrong
	chmod 600 wrong
	refuse() { # WORDS OPTION...
		run rt restore --forkd "$PWD/b" --detach --bundle "$THERE" "${@:2}" "$CHILD"
		assert_eq "$status" 1
		assert_has "$output" "$1"
		assert_hasnt "$(rt list -q)" "$CHILD"
	}
	refuse "does not prove" --remote file:wrong
	chmod 644 wrong
	refuse "others may read" --remote file:wrong
	refuse "no ticket" --remote nonsense
	refuse "no ticket in the variable NOBODY" --remote env:NOBODY
	refuse "connect to lean-forkd" --remote "file:$TICKET" --forkd "$PWD/none"
	refuse "--remote goes with --engine=fork" --remote "file:$TICKET" --engine=criu
	refuse "--remote contradicts --image-path" --remote "file:$TICKET" --image-path=x
	refuse "--forkd goes with --remote" --engine=fork --image-path=x
	run rt checkpoint --lease=1h --forkd "$PWD/a" "$ID"
	assert_has "$output" "--lease goes with --remote"
	cfg -b "$THERE" '.process.capabilities = {}'
	sleep 1.5
	refuse expired --remote "file:$TICKET"
	seed
	refuse "CAP_" --remote "file:$TICKET"
	cfg -b "$THERE" '.process.terminal = true'
	refuse "process.terminal is true" --remote "file:$TICKET"
	moves
}

@test "remote: a child becomes a seed itself when all of its memory has come, and is refused before" {
	daemon $B c --listen 192.0.2.2:7412 --metrics "$PWD/c.metrics"
	python 8
	start
	seed
	other_host
	grow
	run rt checkpoint --remote --forkd "$PWD/a" "$CHILD"
	assert_eq "$status" 1
	assert_has "$output" "memory under userfaultfd"
	came_there
	rt delete --force "$CHILD"
	ID=$CHILD N=$THERE/rootfs/n
	from=a to=c
	for i in $(seq 8); do
		at=$(count)
		rt_bg restore --remote "file:$TICKET" --forkd "$PWD/$to" --fetch=prefetch --detach --bundle "$THERE" "$ID"
		wait_until eval '[ "$(count)" -gt '"$at"' ]'
		nothing_bad
		wait_until eval '(umask 077 && rt checkpoint --remote --forkd "$PWD/'"$to"'" --stop "$ID" </dev/null >"$TICKET" 2>err)'
		read -r from to <<<"$to $from"
	done
	assert_has "$(cat "$TICKET")" "192.0.2.1:7411"
}

@test "remote: the walk-through of docs/remote-fork.md does what it says" {
	run -0 timeout 100 "$BATS_TEST_DIRNAME/../../tools/demo-fork" "$LEAN_RUNTIME" "$forkd" demo 3>&-
	assert_match "$output" '[0-9a-f]{32} held lease='
	assert_match "$(cat demo/ticket)" '^lean-seed:1:tls:[0-9a-f]{32}:.*@192\.0\.2\.1:7411$'
	assert_eq "$(head -n 1 demo/here.out)" 1
	first=$(head -n 1 demo/there.out)
	[ "$first" -gt 1 ] # it goes on
	[ "$(wc -l <demo/there.out)" -ge 2 ] # and is no file of its parent's
	assert_match "$output" 'child +[0-9]+ +running'
	assert_match "$output" 'counter +[0-9]+ +running'
	[ -z "$(ls demo/state)" ]
}

@test "remote: killed at any of its system calls, checkpoint leaves the container as it was" {
	command -v strace >/dev/null || skip "strace is not installed"
	start
	points 41 checkpoint --remote --forkd "$PWD/a" "$ID" >points.list
	[ "$(wc -l <points.list)" -gt 10 ] || fail "there is little to kill: $(cat points.list)"
	while read -r call n <&4; do
		killed_at "$call" "$n" checkpoint --remote --forkd "$PWD/a" "$ID"
		moves
	done 4<points.list
	often_killed
	assert_eq "$(status_of)" running
	wait_until seed
	other_host
	grow
	came_there
}

@test "remote: killed at any of its system calls, restore leaves what delete --force removes, and no child" {
	command -v strace >/dev/null || skip "strace is not installed"
	start
	seed
	other_host
	set -- restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --bundle "$THERE" "$CHILD"
	points 13 "$@" >points.list
	[ "$(wc -l <points.list)" -gt 10 ] || fail "there is little to kill: $(cat points.list)"
	rt delete --force "$CHILD"
	while read -r call n <&4; do
		killed_at "$call" "$n" "$@"
		rt delete --force "$CHILD"
		assert_eq "$(rt list -q)" "$ID"
	done 4<points.list
	often_killed
	wait_until eval '[ "$(metric children)" -eq 0 ]'
	grow
	came_there
}

@test "annotation: a ticket, as a file or in clear, for create and start" {
	start
	seed
	other_host
	mkdir -m 700 seeds
	cp "$TICKET" seeds/ticket
	chmod 600 seeds/ticket
	for value in ticket "$(cat "$TICKET")"; do
		cfg -b "$THERE" --arg v "$value" '.annotations["org.lean.seed"] = $v'
		rt_bg --seed-dir "$PWD/seeds" --seed-forkd "$PWD/b" create --bundle "$THERE" "$CHILD"
		assert_eq "$(status_of "$CHILD")" created
		rt start "$CHILD"
		came_there
		rt delete --force "$CHILD"
		echo 1 >"$THERE/rootfs/n"
	done
}

@test "annotation: a seed that is revoked between create and start never runs" {
	start
	seed
	other_host
	cfg -b "$THERE" --rawfile v "$TICKET" '.annotations["org.lean.seed"] = ($v | rtrimstr("\n"))'
	rt_bg --seed-dir "$PWD" --seed-forkd "$PWD/b" create --bundle "$THERE" "$CHILD"
	ask a rm "$id"
	run rt start "$CHILD"
	echo "$status: $output"
	wait_for_status stopped "$CHILD"
	assert_eq "$(count "$THERE/rootfs/n")" 1
}

# The figures of the container's child, of those that are listed.
child() {
	rt seed children --forkd "$PWD/b" -f json | jq -e --argjson pid "$1" '.[] | select(.pid == $pid)'
}

@test "remote: --stats: what came before it runs; seed children: what comes later, and from the cache" {
	local pid one two before
	python 8
	start
	seed
	other_host
	assert_eq "$(rt seed children --forkd "$PWD/b" -f json)" "[]"
	grow --stats
	# shellcheck disable=SC2154 # of grow
	jq -e --arg id "$CHILD" '.id == $id and .memory == "userfaultfd" and .fetch == "ondemand" and .pages * 4096 == .bytes and
		.pagesBefore.files == 0 and .pagesBefore.tcp > 0 and .bytesBefore == .pagesBefore.tcp * 4096 and .bytesBefore < .bytes and
		.us.all >= .us.descriptor + .us.pages + .us.container and .us.descriptor > 0 and .us.pages > 0 and .us.container > 0 and .us.memory > 0' "$ERR"
	before=$(jq .pagesBefore.tcp "$ERR")
	came_there
	pid=$(pid_of "$CHILD")
	wait_until eval '[ "$(count "$THERE/rootfs/n")" -gt 150 ]'
	one=$(child "$pid")
	echo "$one"
	jq -e --arg id "$id" --argjson before "$before" '.seed == $id and .state == "coming" and .faults > 0 and .askedPages > 0 and .aheadPages > .askedPages and
		.prefetchedPages == 0 and .tcpPages + .cachePages >= .askedPages + .aheadPages + $before and .rdmaPages == 0 and .bytes == .tcpPages * 4096 + .cachePages * 4096 and
		.faultNs.count > 0 and .faultNs.min > 0 and .faultNs.min <= .faultNs.median and .faultNs.median <= .faultNs.max' <<<"$one"
	rt delete --force "$CHILD"
	wait_until eval '[ "$(child "$pid" | jq -r .state)" = over ]'
	# What came for that one needs no host for the next.
	echo 1 >"$THERE/rootfs/n"
	grow --fetch=cache
	came_there
	two=$(child "$(pid_of "$CHILD")")
	echo "$two"
	jq -e '.cachePages > 0 and .cachePages > .tcpPages and (has("faultNs") | not)' <<<"$two"
	rt seed children --forkd "$PWD/b" >rows
	assert_match "$(sed -n 2p rows)" "^$(pid_of "$CHILD") +$id +coming +[0-9]+ "
	assert_match "$(sed -n 3p rows)" "^$pid +$id +over +[0-9]+ +[0-9]+ +[0-9]+$"
	rt delete --force "$CHILD"
	rt_bg restore --remote "file:$TICKET" --forkd "$PWD/b" --detach --bundle "$THERE" --fetch=eager --stats "$CHILD"
	jq -e '.memory == "files" and .fetch == "eager" and .bytesBefore == .bytes and .pagesBefore.cache + .pagesBefore.tcp == .pages' "$ERR"
}

@test "seed: list, inspect, extend and rm, as a table and as JSON" {
	start
	rt seed list --forkd "$PWD/a" >rows
	assert_eq "$(wc -l <rows)" 1 # the heading
	assert_eq "$(rt seed list --forkd "$PWD/a" --format json)" "[]"
	seed --lease 1h
	rt seed list --forkd "$PWD/a" >rows
	assert_match "$(sed -n 2p rows)" "^$id +held +3[56][0-9][0-9] +0 "
	rt seed list --forkd "$PWD/a" -f json | jq -e --arg id "$id" '.[0] | .id == $id and .state == "held" and .pagesBytes > 0'
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e --arg id "$id" '.id == $id and .leaseMs > 3500000 and .users == 0'
	rt seed extend --forkd "$PWD/a" --lease 2h "$id"
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.leaseMs > 7100000'
	rt seed extend --forkd "$PWD/a" "$id" # as long as it is, and not the daemon's
	rt seed inspect --forkd "$PWD/a" "$id" | jq -e '.leaseMs > 7100000'
	rt seed inspect --forkd "$PWD/b" "file:$TICKET" | jq -e --arg id "$id" '.id == $id and (.processes | length == 1)'
	rt seed rm --forkd "$PWD/a" "$id"
	rt seed list --forkd "$PWD/a" -f json | jq -e '.[0].state == "revoked"'
	run ! rt seed inspect --forkd "$PWD/b" "file:$TICKET"
	assert_has "$output" revoked
}

@test "seed: errors name the id, the command, or the daemon that is not there" {
	run ! rt seed rm --forkd "$PWD/a" 12
	assert_has "$output" "is no seed's id"
	run ! rt seed rm --forkd "$PWD/a" 00000000000000000000000000000000
	assert_has "$output" "error msg=\"forkd: no such seed\""
	run ! rt seed inspect --forkd "$PWD/a" 00000000000000000000000000000000
	assert_has "$output" "no such seed"
	for words in "list x" "inspect" "rm" "extend" "water"; do
		# shellcheck disable=SC2086 # words
		run ! rt seed $words
		assert_has "$output" "list, children, inspect SEED, extend ID or rm ID"
	done
	run ! rt seed list --forkd "$PWD/nobody"
	assert_has "$output" "connect to lean-forkd at $PWD/nobody"
}
