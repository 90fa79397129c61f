#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers in a user namespace of their own, and children in others, whose ids stand for others outside.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_program counter
	cfg '.process.args = ["/bin/counter", "/n"] | .linux.namespaces += [{type: "user"}]'
	chmod 755 "$BATS_TEST_TMPDIR"
	maps 100000
}
teardown() {
	managers_end
	common_teardown
}

maps() { # HOST-ID [SIZE]: the bundle's root file system is theirs
	chown -R "$1:$1" "$R"
	cfg --argjson id "$1" --argjson n "${2-65536}" '.linux.uidMappings = [{containerID: 0, hostID: $id, size: $n}]
		| .linux.gidMappings = [{containerID: 0, hostID: ($id + 1), size: $n}]'
}

# As the container sees it.
rights() {
	rt exec "$ID" /bin/cat /proc/1/status | grep -E '^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters|Threads|SigIgn|SigCgt):'
	rt exec "$ID" /bin/cat /proc/1/limits
}

@test "userns: a child is what its parent was, in another user namespace, whose ids are others outside" {
	start_counter
	rights >before
	seed "$ID"
	moves # the parent
	assert_eq "$(rt seed inspect "$IMG" | jq -c '.creds[0] | [.uids, .gids]')" '[[0,0,0,0],[0,0,0,0]]'
	rt delete --force "$ID"
	echo 1 >"$N"
	maps 300000
	grow "$ID"
	came_back
	rights >after
	diff before after
	assert_match "$(cat "/proc/$(pid_of)/status")" 'Uid:.300000.300000'
	assert_match "$(cat "/proc/$(pid_of)/status")" 'Gid:.300001.300001'
	# And from there on.
	seed "$ID"
	rt delete --force "$ID"
	echo 1 >"$N"
	grow "$ID"
	came_back
}

@test "userns: another user with groups and a filter, with and without no-new-privileges" {
	for nnp in false true; do
		chmod 777 "$R"
		cfg --argjson n $nnp '.process.user = {uid: 1000, gid: 1001, additionalGids: [7, 8]} | .process.capabilities = {}
			| .process.noNewPrivileges = $n
			| .linux.seccomp = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}'
		rm -f "$N"
		start_counter
		rights >before
		assert_match "$(cat before)" 'Groups:.7 8'
		seed "$ID"
		rt delete --force "$ID"
		echo 1 >"$N"
		grow "$ID"
		came_back
		rights >after
		diff before after
		run rt exec "$ID" /bin/mkdir /tmp/x
		assert_has "$output" "not implemented"
		rt delete --force "$ID"
	done
}

@test "userns: a shell with jobs on a terminal, and files in a tmpfs with their owners" {
	cfg '.process.terminal = true | .process.args = ["sh"] | .process.env += ["PS1=ready> "]
		| .process.capabilities |= with_entries(.value += ["CAP_CHOWN", "CAP_FOWNER"])'
	manager one --size 33x77
	rt_bg run --detach --console-socket one.sock --bundle "$BUNDLE" "$ID"
	shows one ready
	keys one 'cd /dev/shm; echo in it >f; chown 5:6 f; chmod 604 f; mkdir d; chown 7 d; x=41; sleep 1001 & echo se"t"\n'
	shows one '^set'
	keys one 'sleep 1002\n'
	wait_until eval 'rt exec "$ID" /bin/ps -o args | grep -q "^sleep 1002"'
	seed "$ID"
	rt delete --force "$ID"
	maps 300000
	manager two
	grow "$ID" --console-socket two.sock
	keys two '\003'
	shows two ready
	keys two 'echo "code $? x $((x + 1))"; jobs; stty size; stat -c "%n %u:%g %a" f d; cat f\n'
	shows two 'code 130 x 42'
	shows two 'Running +sleep 1001'
	shows two '^33 77$'
	shows two '^f 5:6 604$'
	shows two '^d 7:0 755$'
	shows two '^in it$'
	assert_eq "$(stat -c %u:%g "/proc/$(pid_of)/root/dev/shm/f")" 300005:300007
}

@test "userns: ids that the child's does not map, or the parent's did not, and namespaces that are joined: refused" {
	chmod 777 "$R"
	cfg '.process.user = {uid: 1000, gid: 1000}'
	start_counter
	# One that was sent in, and never became one of its users; its parent has ended.
	nsenter -t "$(pid_of)" -U -p -m -i -n -u --preserve-credentials /bin/sh -c "/bin/sleep 303$$ </dev/null >/dev/null 2>&1 & exit" 3>&-
	wait_until eval 'rt exec "$ID" /bin/ps -o args | grep -q -x "/bin/sleep 303$$"'
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "(sleep): a user or group that its user namespace does not know"
	kill "$(pgrep -f -x "/bin/sleep 303$$")"
	wait_until seed "$ID"
	rt delete --force "$ID"
	cfg '.process.user = {uid: 0, gid: 0} | .process.capabilities |= with_entries(.value += ["CAP_SETUID", "CAP_SETGID"])'
	maps 100000 1000
	run ! rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "the seed has user 1000, and the user namespace maps none to it (at linux.uidMappings)"
	maps 100000 2000
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	new_id
	cfg --arg p "/proc/$(pid_of "$TAG-1")/ns/user" --arg id "$ID" '(.linux.namespaces[] | select(.type == "user")).path = $p
		| del(.linux.uidMappings, .linux.gidMappings) | .linux.cgroupsPath = "/" + $id'
	run ! rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	assert_has "$output" "in a user namespace that is joined"
}

@test "userns: the owners of a socket's file and of a deleted one, and whom peers see, are those inside" {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cfg --arg p 'import os, socket, time
os.mkdir("/d")
f = os.open("/d/gone", os.O_RDWR | os.O_CREAT, 0o600)
os.write(f, b"kept")
os.fchown(f, 5, 5)
os.unlink("/d/gone")
s = socket.socket(socket.AF_UNIX)
s.bind("/d/s")
os.chown("/d/s", 5, 6)
s.listen()
open("/n", "w").write("1")
while True:
    a, _ = s.accept()
    st = os.fstat(f)
    a.send(b"%s %d %d" % (os.pread(f, 9, 0), st.st_uid, st.st_gid))
    a.close()
' '.process.args = ["/usr/bin/python3", "-c", $p]'
	maps 100000
	with_caps CAP_CHOWN CAP_SETUID CAP_SETGID
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	wait_until test -s "$N"
	seed "$ID"
	rt delete --force "$ID"
	maps 300000
	grow "$ID"
	run -0 python3 -c 'import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(100).decode(), *struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:])' "/proc/$(pid_of)/root/d/s"
	assert_eq "$output" "kept 5 5 300000 300001"
	assert_eq "$(stat -c '%u %g' "/proc/$(pid_of)/root/d/s")" "300005 300007"
	# A user namespace that does not know them.
	rt delete --force "$ID"
	maps 300000 6
	code=0
	grow "$ID" >refused 2>&1 || code=$?
	[ "$code" -ne 0 ]
	assert_has "$(cat refused)" "the seed has group 6"
	assert_has "$(cat refused)" linux.gidMappings
}
