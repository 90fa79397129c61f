#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers with a terminal: a manager's, by the console socket, and the caller's own.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	cfg '.process.terminal = true | .process.args = ["sh"] | .process.env += ["PS1=ready> "]'
}
teardown() {
	managers_end
	common_teardown
}

start() { # NAME
	rt_bg run --detach --console-socket "$1.sock" --bundle "$BUNDLE" "$ID"
}

seed() { # ID [OPTION...]
	local id=$1
	shift
	rt_bg checkpoint --engine fork --image-path "$IMG" "$@" "$id"
}

# Whether the container has a process of that command line.
runs() { # ID COMMAND
	local pid
	for pid in $(rt ps --format json "$1" | jq '.[]'); do
		case $(tr '\0' ' ' <"/proc/$pid/cmdline") in
		*"$2"*) return 0 ;;
		esac
	done
	return 1
}

grow() { # ID NAME
	cfg --arg id "$1" '.linux.cgroupsPath = "/" + $id'
	rt_bg restore --engine fork --detach --console-socket "$2.sock" --image-path "$IMG" --bundle "$BUNDLE" "$1"
}

@test "terminal: a shell with jobs goes on: its keys, its size, ^C to who is in the foreground" {
	manager one --size 33x77
	start one
	shows one ready
	keys one 'x=41\nsleep 1001 &\n'
	shows one ready 3
	keys one 'sleep 1002\n'
	wait_until runs "$ID" 'sleep 1002'
	seed "$ID"
	new_id CHILD
	manager two
	grow "$CHILD" two
	wait_until runs "$CHILD" 'sleep 1002'
	keys two '\003'
	shows two ready
	keys two 'echo "code $? x $((x + 1))"; jobs; tty; stty size\n'
	shows two 'code 130 x 42'
	shows two 'Running +sleep 1001'
	shows two '^/dev/pts/0$'
	shows two '^33 77$'
	# Nobody else has it: the parent's is as it was.
	runs "$ID" 'sleep 1002'
	keys one '\003'
	shows one ready 4
	keys two 'exit\n'
}

@test "terminal: a group in the foreground whose leader has ended, and one whose leader nobody has waited for" {
	manager one
	start one
	shows one ready
	keys one 'sleep 0.1 | sleep 1005\n'
	# The first of the two is gone, and has been waited for.
	wait_until eval 'runs "$ID" "sleep 1005" && ! runs "$ID" "sleep 0.1"'
	seed "$ID"
	new_id CHILD
	manager two
	grow "$CHILD" two
	for id in "$ID" "$CHILD"; do
		for pid in $(rt ps --format json "$id" | jq '.[]'); do
			sed -nE 's/^(Name|NSpid|NSpgid|NSsid):.*\s(\S+)$/\1 \2/p' "/proc/$pid/status"
		done >"groups.$id"
	done
	diff groups."$ID" groups."$CHILD"
	keys two '\003'
	shows two ready
	keys two 'echo "code $?"\n'
	shows two 'code 130'
	keys two 'exit\n'
	wait_for_status stopped "$CHILD"

	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cat >"$R/dead.py" <<-'END'
		import os, signal, time
		def child(group, work):
		    pid = os.fork()
		    if pid == 0:
		        os.setpgid(0, group)
		        work()
		        os._exit(3)
		    return pid
		leader = child(0, lambda: None)
		os.waitid(os.P_PID, leader, os.WEXITED | os.WNOWAIT)
		other = child(leader, lambda: time.sleep(1000))
		while os.getpgid(other) != leader:
		    time.sleep(0.01)
		signal.signal(signal.SIGTTOU, signal.SIG_IGN)
		os.tcsetpgrp(0, leader)
		print("there", flush=True)
		while not os.path.exists("/go"):
		    time.sleep(0.01)
		assert os.waitpid(-leader, 0) == (leader, 3 << 8)
		pid, status = os.waitpid(-leader, 0)
		print("ended by", os.WTERMSIG(status), flush=True)
	END
	IMG=$IMG.2
	new_id
	cfg --arg id "$ID" '.process.args = ["/usr/bin/python3", "/dead.py"] | .linux.cgroupsPath = "/" + $id'
	manager three
	start three
	shows three there
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	manager four
	grow "$CHILD" four
	touch "$R/go"
	keys four '\003'
	shows four 'ended by 2'
}

# What the kernel says of a process's descriptors: number, and flags with close-on-exec.
descriptors() { # PID
	local fd
	for fd in 0 1 2 5 6 7; do
		# Without O_LARGEFILE, which says nothing here.
		printf '%s %o\n' "$fd" $(($(sed -n 's/^flags:./0/p' "/proc/$1/fdinfo/$fd") & ~0100000))
	done
}

@test "terminal: its modes and characters are the seed's, and each descriptor is what it was" {
	sh_cfg 'exec 5</dev/tty 6>/dev/console 7>>/dev/pts/0 2>/dev/null; stty -echo -icanon -ixon intr ^X erase ^Y; echo set; read go; stty -a; tty'
	manager one --size 33x77
	start one
	shows one set
	seed "$ID"
	# One open file for what the runtime has made, and nothing is of the caller's.
	rt seed inspect "$IMG" >seed.json
	assert_eq "$(jq '[.fds[] | select(.number < 2) | .file] | unique | length' seed.json)" 1
	assert_eq "$(jq -c '[.files[].kind] | unique' seed.json)" '[1,11]'
	assert_eq "$(jq '[.files[] | select(.kind == 11)] | length' seed.json)" 4
	descriptors "$(pid_of)" >before
	new_id CHILD
	manager two
	grow "$CHILD" two
	descriptors "$(pid_of "$CHILD")" >after
	diff before after
	assert_has "$(cat after)" '0 2
1 2
2 1'
	assert_eq "$(stat -Lc %t:%T "/proc/$(pid_of "$CHILD")/fd/2")" 1:3
	assert_has "$(cat after)" '7 2001' # O_APPEND
	keys one 'go\n'
	keys two 'go\n'
	shows one pts/0
	shows two pts/0
	tr -d '\r' <one.shown | sed 1d >parent
	tr -d '\r' <two.shown >child
	assert_has "$(cat child)" 'intr = ^X'
	assert_has "$(cat child)" '-echo '
	assert_has "$(cat child)" 'rows 33; columns 77'
	diff parent child
}

@test "terminal: another user, without capabilities and with no-new-privileges, in a session that is not the first process's" {
	cfg '.process.user = {uid: 1000, gid: 1001} | .process.capabilities = {} | .process.noNewPrivileges = true'
	manager one
	start one
	shows one ready
	seed "$ID"
	new_id CHILD
	manager two
	grow "$CHILD" two
	keys two 'id -u; exec 9<>/dev/tty && echo "opened"\n'
	shows two '^1000$'
	shows two '^opened$'

	IMG=$IMG.2
	new_id
	cfg --arg id "$ID" '.linux.cgroupsPath = "/" + $id | .process.user = {uid: 0, gid: 0} | .process.noNewPrivileges = false
		| .process.capabilities = {bounding: ["CAP_KILL"], effective: ["CAP_KILL"], permitted: ["CAP_KILL"]}'
	with_caps CAP_SYS_ADMIN # to take it from the first session
	sh_cfg 'setsid -c sh; exit 7'
	manager three
	start three
	shows three ready
	seed "$ID"
	assert_eq "$(rt seed inspect "$IMG" | jq '.terminal[0].session > 1')" true
	rt delete --force "$ID"
	new_id CHILD
	manager four
	grow "$CHILD" four
	keys four 'sleep 1003\n'
	wait_until runs "$CHILD" 'sleep 1003'
	keys four '\003'
	shows four ready
	keys four 'exit\n'
	wait_for_status stopped "$CHILD"
}

on_pty() {
	"$LR_LIB/on-pty" "$@" 3>&-
}

# What a program hears when its terminal gets another size, and how lines end there.
TELLS='trap "stty size; stty -a | grep -o .onlcr" WINCH; echo ready; while :; do sleep 0.05; done'

@test "terminal: in the foreground it is the caller's: its size is told, its keys, and how lines end" {
	sh_cfg "$TELLS"
	manager one --size 33x77
	start one
	shows one ready
	seed "$ID"
	rt delete --force "$ID"
	cfg '.process.env += ["X=1"]'
	run -130 on_pty --size 20x60 --step '20 60=>' --step='-onlcr=>\x03' -- \
		"$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_hasnt "$output" ready

	# And from there to a manager.
	IMG=$IMG.2
	on_pty --size 20x60 --timeout 60 -- "$LEAN_RUNTIME" --root "$ROOT" run --bundle "$BUNDLE" "$ID" </dev/null >ran 2>&1 &
	remember $!
	wait_until grep ready ran
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	manager two --size 31x71
	grow "$CHILD" two
	shows two '^31 71$'
	shows two '^ onlcr$'
}

@test "terminal: by an annotation, between create and start, it has nothing of the caller's" {
	sh_cfg "$TELLS"
	manager one --size 33x77
	start one
	shows one ready
	mkdir -m 700 seeds
	IMG=$PWD/seeds/one
	seed "$ID"
	rt delete --force "$ID"
	cfg '.annotations["org.lean.seed"] = "one"'
	manager two --size 30x90
	rt_bg --seed-dir "$PWD/seeds" create --console-socket two.sock --bundle "$BUNDLE" "$ID"
	for fd in 0 1 2; do
		assert_eq "$(stat -Lc %t:%T "/proc/$(pid_of)/fd/$fd")" 88:0
	done
	rt start "$ID"
	shows two '^30 90$'
	rt kill "$ID" KILL
	rt delete --force "$ID"

	# Also who waits in a call: it does not look before that ends.
	sh_cfg 'trap "set -- \$(stty size); echo sized-\$1x\$2" WINCH; echo ready; while ! read -r l; do :; done; echo "got $l"'
	cfg 'del(.annotations)'
	manager three --size 33x77
	start three
	shows three ready
	IMG=$PWD/seeds/two
	seed "$ID"
	rt delete --force "$ID"
	cfg '.annotations["org.lean.seed"] = "two"'
	manager four --size 30x90
	rt_bg --seed-dir "$PWD/seeds" create --console-socket four.sock --bundle "$BUNDLE" "$ID"
	rt start "$ID"
	shows four sized-30x90
	keys four 'it\n'
	shows four 'got it'
}

@test "terminal: a seed with one, and a bundle without, and the other way: refused, and nothing is left" {
	manager one
	start one
	shows one ready
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id | .process.terminal = false'
	run ! rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$CHILD"
	assert_has "$output" "the seed has a terminal, and process.terminal is false (at process.terminal)"
	cfg '.process.terminal = true'
	run ! rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$CHILD"
	assert_has "$output" "without setting console socket"
	cfg '.process.terminal = false | .process.args = ["sleep", "1004"]'
	IMG=$IMG.2
	new_id
	cfg --arg id "$ID" '.linux.cgroupsPath = "/" + $id'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	seed "$ID"
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id | .process.terminal = true'
	manager two
	run ! rt restore --engine fork --detach --console-socket two.sock --image-path "$IMG" --bundle "$BUNDLE" "$CHILD"
	assert_has "$output" "the seed has no terminal, and process.terminal is true (at process.terminal)"
	[ ! -e "$ROOT/$CHILD" ]
}

@test "terminal: others than the container's are named, and the container is left alone" {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cat >"$R/pair.py" <<-'END'
		import os, pty, sys, time
		if sys.argv[1] == "pair":
		    pty.openpty()
		elif sys.argv[1] == "session":
		    pid, master = pty.fork()
		    if pid == 0: # the terminal is its by now
		        print("mine", flush=True)
		        time.sleep(100)
		    os.read(master, 4)
		elif sys.argv[1] == "left":
		    import fcntl, termios
		    if os.fork() == 0:
		        fcntl.ioctl(0, termios.TIOCNOTTY)
		        print("left", flush=True)
		        time.sleep(100)
		print("there", flush=True)
		time.sleep(100)
	END
	for how in pair session left; do
		cfg --arg h "$how" --arg id "$ID" '.process.args = ["/usr/bin/python3", "/pair.py", $h] | .linux.cgroupsPath = "/" + $id'
		manager "$how"
		start "$how"
		shows "$how" there
		[ "$how" != left ] || shows left left
		run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
		case $how in
		pair) assert_match "$output" 'descriptor 3: a terminal that is not the container.s own' ;;
		session) assert_match "$output" 'a controlling terminal that is not the container' ;;
		left) assert_match "$output" 'it has left the terminal of its session' ;;
		esac
		assert_eq "$(status_of)" running
		rt delete --force "$ID"
		new_id
	done
}

@test "terminal: what was typed and is not read yet stays the parent's, and that is said" {
	sh_cfg 'echo there; while [ ! -e /go ]; do sleep 0.05; done; while read -r l; do echo "got <$l>"; done'
	manager one
	start one
	shows one there
	keys one 'first\nsec'
	shows one sec # it is echoed, so it is there
	seed "$ID"
	assert_match "$(cat "$ERR")" '6 bytes that were typed, .* stay the container.s own'
	new_id CHILD
	manager two
	grow "$CHILD" two
	touch "$R/go"
	keys two 'other\n'
	shows two 'got <other>'
	keys one 'ond\n'
	shows one 'got <second>'
	assert_has "$(cat one.shown)" 'got <first>'
	assert_hasnt "$(cat two.shown)" first
	assert_hasnt "$(cat two.shown)" sec
	# With nothing to read, nothing is said.
	rm -rf "$IMG"
	seed "$ID"
	assert_eq "$(cat "$ERR")" ""
}

# Its shell is in write(2), to descriptor 1.
waits_to_write() { # ID
	case $(cut -d ' ' -f 1,2 "/proc/$(pid_of "$1")/syscall") in
	"1 0x1") ;;
	*) return 1 ;;
	esac
}

@test "terminal: what ^S holds is held in the parent alone: a child's comes whole" {
	sh_cfg 'echo there; read -r go; echo begin; i=0; while [ $i -lt 9 ]; do i=$((i + 1)); echo "line $i"; done; echo end'
	manager one
	start one
	shows one there
	keys one '\023' # ^S
	keys one 'go\n'
	wait_until waits_to_write "$ID"
	assert_hasnt "$(cat one.shown)" begin
	seed "$ID"
	new_id CHILD
	manager two
	grow "$CHILD" two
	shows two '^end$'
	assert_eq "$(tr -d '\r' <two.shown | grep -cE '^(begin|line [1-9]|end)$')" 11
	wait_for_status stopped "$CHILD"
	assert_hasnt "$(cat one.shown)" begin
	keys one '\021' # ^Q
	shows one '^end$'
	assert_eq "$(tr -d '\r' <one.shown | grep -cE '^(begin|line [1-9]|end)$')" 11
}

@test "terminal: one that nobody else may open (TIOCEXCL) is so in a child" {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cat >"$R/alone.py" <<-'END'
		import errno, fcntl, os, termios, time
		def opens():
		    try:
		        os.close(os.open("/dev/pts/0", os.O_RDWR | os.O_NOCTTY))
		        return "opened"
		    except OSError as e:
		        return errno.errorcode[e.errno]
		print("before:", opens(), flush=True)
		fcntl.ioctl(0, termios.TIOCEXCL)
		print("there:", opens(), flush=True)
		while not os.path.exists("/go"):
		    time.sleep(0.01)
		print("now:", opens(), flush=True)
		fcntl.ioctl(0, termios.TIOCNXCL)
		print("then:", opens(), flush=True)
		time.sleep(100)
	END
	cfg '.process.args = ["/usr/bin/python3", "/alone.py"]'
	manager one
	start one
	shows one 'before: opened'
	shows one 'there: EBUSY'
	seed "$ID"
	new_id CHILD
	manager two
	grow "$CHILD" two
	touch "$R/go"
	for name in one two; do
		shows "$name" 'now: EBUSY'
		shows "$name" 'then: opened'
	done
	rt delete --force "$CHILD"
	# Of one that anybody may open nothing is left to the child's child.
	rm "$R/go"
	IMG=$IMG.2
	seed "$ID"
	assert_eq "$(rt seed inspect "$IMG" | jq -c '.terminal[0].flags')" '"0x0"'
}
