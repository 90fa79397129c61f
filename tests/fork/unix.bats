#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of containers that listen at Unix sockets: their files, names and owners.

load ../lib/helpers.bash
load seeds.bash
load servers.bash

# Those of AF_UNIX: type, state, how many may wait, name.
names() { # ID
	nsenter -t "$(pid_of "$1")" -n ss -Hxl | awk '{ print $1, $2, $4, $5 }' | sort
}

# What is at the paths, below the container's root: mode, owner, kind.
files() { # ID PATH...
	local path
	for path in "${@:2}"; do
		stat -c '%a %u %g %F' "/proc/$(pid_of "$1")/root$path"
	done
}

unix() { # ID PATH: asks by that path of the container's
	ask "$1" "/proc/$(pid_of "$1")/root$2"
}

@test "unix: a server at paths of its root and of a tmpfs, and at an abstract name, answers there in the child" {
	python '
async def main():
    os.makedirs("/srv/app")
    os.symlink("/srv/app", "/link")
    os.chdir("/srv")
    os.umask(0o117)
    await serve(asyncio.start_unix_server(answer, "/link/s", backlog=33), asyncio.start_unix_server(answer, "/tmp/s"),
        asyncio.start_unix_server(answer, "\0name"), asyncio.start_unix_server(answer, "./app/relative"))
asyncio.run(main())'
	cfg '.mounts += [{destination: "/tmp", type: "tmpfs", source: "tmpfs"}]'
	start
	assert_eq "$(unix "$ID" /srv/app/s)" 1
	assert_eq "$(ask "$ID" @name)" 2
	seed "$ID"
	copy
	child
	assert_eq "$(unix "$CHILD" /srv/app/s)" 3
	assert_eq "$(unix "$CHILD" /tmp/s)" 4
	assert_eq "$(ask "$CHILD" @name)" 5
	assert_eq "$(unix "$CHILD" /srv/app/relative)" 6
	assert_has "$(names "$ID")" "u_str LISTEN 33 /link/s"
	assert_has "$(names "$ID")" "u_str LISTEN 100 ./app/relative"
	assert_eq "$(names "$CHILD")" "$(names "$ID")"
	assert_eq "$(files "$CHILD" /srv/app/s /tmp/s)" "$(files "$ID" /srv/app/s /tmp/s)"
	assert_has "$(files "$CHILD" /srv/app/s)" "660 0 0 socket"
	# The parent goes on at its own.
	assert_eq "$(unix "$ID" /srv/app/s)" 3
	# Its child's child; what is left of its parent makes way.
	IMG=$PWD/again
	seed "$CHILD"
	rt delete --force "$CHILD"
	assert_has "$(stat -c %F "$BUNDLE/rootfs/srv/app/s")" socket
	child
	assert_eq "$(unix "$CHILD" /srv/app/s)" 7
}

@test "unix: a threaded server of the library answers by its path, where its directory is" {
	python '
import socketserver, threading
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        global asked
        self.rfile.readline()
        asked += 1
        self.wfile.write(b"%d\n" % asked)
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
os.makedirs("/run/app")
with Server("/run/app/s", Answer) as s:
    is_ready(1)
    s.serve_forever()'
	start
	assert_eq "$(unix "$ID" /run/app/s)" 1
	seed "$ID"
	copy
	child
	assert_eq "$(unix "$CHILD" /run/app/s)" 2
	rt delete --force "$CHILD"
	# A root that never had the directory.
	rm -rf other/rootfs/run/app
	no_child "$CHILD" "open the directory of the socket /run/app" --with-changes
}

@test "unix: sequenced packets, a file of somebody else's, and whom peers see: as in the parent" {
	python '
os.mkdir("/tmp/all")
os.chmod("/tmp/all", 0o777)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind("/tmp/all/s")
os.chmod("/tmp/all/s", 0o602)
os.chown("/tmp/all/s", 5, 6)
n = open("/n", "w")
os.setresgid(7, 7, 0)
os.setresuid(9, 9, 0)
s.listen(3)
t = socket.socket(socket.AF_UNIX)
t.bind("/tmp/all/t")
t.listen()
n.write("1\n")
n.close()
while True:
    a, _ = s.accept()
    if a.recv(100):
        a.send(b"%d\n" % a.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED))'
	with_caps CAP_SETUID CAP_SETGID CAP_CHOWN
	cfg '.mounts += [{destination: "/tmp", type: "tmpfs", source: "tmpfs"}]'
	sees() { # ID PATH [TYPE]
		python3 -c 'import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if len(sys.argv) > 2 else socket.SOCK_STREAM)
s.connect(sys.argv[1])
print(struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:])' "/proc/$(pid_of "$1")/root$2" "${@:3}"
	}
	start
	seed "$ID"
	child
	assert_eq "$(ask "$CHILD" "/proc/$(pid_of "$CHILD")/root/tmp/all/s" packets)" 1
	assert_eq "$(sees "$CHILD" /tmp/all/s packets)" "(9, 7)"
	assert_eq "$(sees "$CHILD" /tmp/all/t)" "(9, 7)"
	assert_has "$(names "$CHILD")" "u_seq LISTEN 3 /tmp/all/s"
	assert_eq "$(names "$CHILD")" "$(names "$ID")"
	assert_eq "$(files "$CHILD" /tmp/all/s)" "602 5 6 socket"
	assert_eq "$(files "$CHILD" /tmp/all/t)" "755 9 7 socket"
	# A process that could not give it away can't in the child.
	"$SEEDTOOL" forge "$IMG" endpoints 0 file_uid 11
	cfg '.process.capabilities |= map_values(. - ["CAP_CHOWN"])'
	for m in permitted effective inheritable ambient bounding; do
		"$SEEDTOOL" forge "$IMG" creds 0 "$m" 0
	done
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	no_child "$CHILD" "give /tmp/all/s to user 11" CAP_CHOWN
}

@test "unix: peers see the groups of config.json's process, and not those of who restores" {
	python '
s = socket.socket(socket.AF_UNIX)
s.bind("/s")
s.listen()
def groups():
    with socket.socket(socket.AF_UNIX) as c:
        c.connect("/s")
        s.accept()[0].close()
        return str([g[0] for g in struct.iter_unpack("I", c.getsockopt(socket.SOL_SOCKET, 59, 256))])
while True:
    seen = groups()
    with open("/groups.new", "w") as f:
        f.write(seen)
    os.rename("/groups.new", "/groups")
    is_ready(1)
    time.sleep(0.01)'
	with_caps CAP_SETUID CAP_SETGID
	cfg '.process.user.additionalGids = [55]'
	start
	assert_eq "$(cat "$R/groups")" "[55]"
	seed "$ID"
	rt delete --force "$ID"
	rm "$R/groups"
	: >>"$R/groups.new" # if it was just writing
	printf '#!/bin/sh\nexec setpriv --groups 4,27 "%s" "$@"\n' "$LEAN_RUNTIME" >grouped
	chmod +x grouped
	LEAN_RUNTIME=$PWD/grouped grow "$ID"
	wait_until test -s "$R/groups"
	assert_eq "$(cat "$R/groups")" "[55]"
}

# Who shares the volume is faster than who restores, if that one waits before it gives the file away.
@test "unix: what somebody puts where a socket was just made is not given away" {
	command -v strace >/dev/null || skip "strace is not installed"
	python '
os.makedirs("/srv")
s = socket.socket(socket.AF_UNIX)
s.bind("/srv/s")
os.chown("/srv/s", 5, 6)
s.listen()
is_ready(1)
while True:
    time.sleep(1)'
	with_caps CAP_CHOWN
	start
	seed "$ID"
	rt delete --force "$ID"
	rm "$R/srv/s"
	echo secret >"$R/srv/secret"
	timeout 60 strace -f -o calls -e trace=fchownat -e inject=fchownat:delay_enter=2000000 "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >/dev/null 2>&1 3>&- &
	local tracer=$!
	wait_until test -e "$R/srv/s"
	wait_until grep -q fchownat calls
	hold_tracer "$tracer"
	mv "$R/srv/secret" "$R/srv/s"
	let_tracer_go
	wait_until grep -q "fchownat.* = " calls
	kill "$tracer" # it would wait for the container
	assert_eq "$(stat -c %u:%g "$R/srv/s")" 0:0
	assert_eq "$(cat "$R/srv/s")" secret
}

@test "unix: where its file is to be, only a socket that nobody has makes way" {
	python '
async def main():
    os.mkdir("/srv")
    await serve(asyncio.start_unix_server(answer, "/srv/s"))
asyncio.run(main())'
	start
	seed "$ID"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	# Its parent listens there, and is not disturbed.
	no_child "$CHILD" "listen at /srv/s, as the seed did: somebody has it" "a root, or a volume, of its own"
	assert_eq "$(unix "$ID" /srv/s)" 1
	rt delete --force "$ID"
	mv "$R/srv/s" "$R/srv/old"
	echo mine >"$R/srv/s"
	no_child "$CHILD" "listen at /srv/s, as the seed did: it is no socket here"
	assert_eq "$(cat "$R/srv/s")" mine
	rm "$R/srv/s"
	ln -s old "$R/srv/s"
	no_child "$CHILD" "it is no socket here"
	rm "$R/srv/s"
	mv "$R/srv/old" "$R/srv/s"
	grow "$CHILD"
	assert_eq "$(unix "$CHILD" /srv/s)" 1
}

# Root in there has no CAP_DAC_OVERRIDE: it may not connect to its own socket, and may remove it. What is opened after the
# socket is what shows addresses to who opens it with more rights (CAP_SYSLOG).
@test "unix: a socket that lets nobody in who makes a child makes way if nobody has it, and nothing else is done with more rights" {
	python '
async def show(file):
    while True:
        with open("/shown.new", "wb") as f:
            f.write(os.pread(file, 17, 0))
        os.rename("/shown.new", "/shown")
        await asyncio.sleep(0.05)
async def shows():
    os.umask(0o22)
    asyncio.ensure_future(show(os.open("/proc/kallsyms", os.O_RDONLY)))
async def main():
    os.mkdir("/srv")
    os.umask(0o770)
    await serve(asyncio.start_unix_server(answer, "/srv/s"), shows())
asyncio.run(main())'
	start
	assert_eq "$(files "$ID" /srv/s)" "7 0 0 socket"
	seed "$ID"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	no_child "$CHILD" "listen at /srv/s, as the seed did: somebody has it"
	assert_eq "$(unix "$ID" /srv/s)" 1
	rt delete --force "$ID"
	rm "$R/shown"
	: >>"$R/shown.new" # if it was just writing
	grow "$CHILD"
	assert_eq "$(unix "$CHILD" /srv/s)" 1
	assert_eq "$(files "$CHILD" /srv/s)" "7 0 0 socket"
	wait_until test -s "$R/shown"
	grep -q -v "^0000000000000000" /proc/kallsyms || skip "this kernel shows its addresses to nobody"
	assert_eq "$(cat "$R/shown")" "0000000000000000 "
}

@test "unix: no link of an image, or name of a forged seed, has a socket's file made elsewhere" {
	python '
async def main():
    os.makedirs("/srv/app")
    os.symlink("/srv/app", "/link")
    await serve(asyncio.start_unix_server(answer, "/link/s"))
asyncio.run(main())'
	start
	seed "$ID"
	rt delete --force "$ID"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	mkdir "$R/elsewhere"
	ln -sfn /elsewhere "$R/link"
	no_child "$CHILD" "/link/s, at which the seed listened, is not in /srv/app here"
	assert_eq "$(ls -A "$R/elsewhere")" ""
	ln -sfn /srv/app "$R/link"
	mv "$R/srv/app" "$R/srv/moved"
	ln -s moved "$R/srv/app"
	no_child "$CHILD" "open the directory of the socket /srv/app"
	rm "$R/srv/app"
	mv "$R/srv/moved" "$R/srv/app"
	grow "$CHILD"
	assert_eq "$(unix "$CHILD" /srv/app/s)" 1
}

@test "unix: an abstract name is one of the network namespace: where that is shared, the second one is told" {
	python '
async def main():
    await serve(asyncio.start_unix_server(answer, "\0lr name"))
asyncio.run(main())'
	NETNS=fs$$
	ip netns add "$NETNS"
	cfg --arg n "/run/netns/$NETNS" '.linux.namespaces |= map(if .type == "network" then .path = $n else . end)'
	start
	seed "$ID"
	new_id CHILD
	cfg --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id'
	no_child "$CHILD" "listen at @lr name, as the seed did" "address already in use" linux.namespaces
	assert_eq "$(ask "$ID" "@lr name")" 1
	rt delete --force "$ID"
	grow "$CHILD"
	assert_eq "$(ask "$CHILD" "@lr name")" 1
}

# access FILE KIND: somebody else may read and write there, and the group may not.
access() {
	python3 -c 'import os, struct, sys
entries = [(1, 6, 2**32 - 1), (2, 6, 77), (4, 0, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)]
os.setxattr(sys.argv[1], "system.posix_acl_" + sys.argv[2], struct.pack("I", 2) + b"".join(struct.pack("HHI", *e) for e in entries))' "$@" 2>access.err || skip "no access lists here: $(tail -n 1 access.err)"
}

# The mode of such a file says what the list allows at most: with it alone, the group would be let in.
@test "unix: who may connect by an access list is not forgotten: it is refused by name, and a child's socket gets none" {
	python '
async def main():
    os.mkdir("/srv")
    os.umask(0o117)
    await serve(asyncio.start_unix_server(answer, "/srv/s"))
asyncio.run(main())'
	start
	seed "$ID"
	access "$R/srv/s" access
	run ! rt checkpoint --engine fork --image-path "$PWD/none" "$ID"
	assert_has "$output" "a socket that listens, and whose file has an access list"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	rm "$R/srv/s"
	access "$R/srv" default
	no_child "$ID" "what is made in /srv would get an access list of its own"
	[ ! -e "$R/srv/s" ]
	python3 -c 'import os, sys; os.removexattr(sys.argv[1], "system.posix_acl_default")' "$R/srv"
	grow "$ID"
	assert_eq "$(files "$ID" /srv/s)" "660 0 0 socket"
}

# As systemd hands one to a service.
@test "unix: a Unix socket that comes from outside is refused by name" {
	cfg '.process.args = ["/bin/sleep", "1000"] | .linux.namespaces |= map(select(.type != "network"))'
	python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind("outside")
s.listen()
os.dup2(s.fileno(), 3)
os.execv(sys.argv[1], sys.argv[1:])' "$LEAN_RUNTIME" --root "$ROOT" run --detach --preserve-fds 1 --bundle "$BUNDLE" "$ID" </dev/null >began 2>&1 || fail "$(cat began)"
	[ -S outside ]
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "descriptor 3: a socket that listens, and whose file is outside"
	assert_eq "$(status_of)" running
}

@test "unix: a Unix socket whose file is gone, or is another's, is refused by name" {
	python '
def listens(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen()
    return s
os.mkdir("/d")
os.chdir("/d")
all = [listens("/gone"), listens("/renamed"), listens("../up")]
os.unlink("/gone")
os.rename("/renamed", "/again")
s = listens("/sec")
s.setsockopt(socket.SOL_SOCKET, 34, 1)
t = listens("/rights")
try:
    t.setsockopt(socket.SOL_SOCKET, 83, 0)
    open("/passrights", "w")
except OSError:
    t.close() # before Linux 6.16
is_ready(1)
while True:
    time.sleep(1)'
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "whose file is deleted"
	assert_has "$output" "whose file has another name now"
	assert_has "$output" "whose name leads elsewhere now"
	assert_has "$output" "with SO_PASSSEC"
	if [ -e "$R/passrights" ]; then
		assert_has "$output" "that takes no descriptors (SO_PASSRIGHTS)"
		assert_has "$output" "cannot carry 5 of"
	else
		assert_has "$output" "cannot carry 4 of"
	fi
	assert_eq "$(status_of)" running
}

# The same program in a child, which then says what is in /shown.
shown_by_a_child() {
	seed "$ID"
	rt delete --force "$ID"
	rm "$R/shown"
	: >>"$R/shown.new" # if it was just writing
	grow "$ID"
	wait_until test -s "$R/shown"
}

# A program that shows its pairs and its pipe all the time, a line of what is to be the same in a child and one of what is not.
# What waits at one end was sent when who reads it was already told of senders.
@test "unix: pairs tell of who made them, pipes are whose they were, and both have what was set of them" {
	python '
def as_other(what):
    os.setegid(7)
    os.seteuid(9)
    try:
        return what()
    finally:
        os.seteuid(0)
        os.setegid(0)
def get(s, name, size=4):
    try:
        return s.getsockopt(socket.SOL_SOCKET, name, size).hex()
    except OSError as e:
        return e.errno
def reopen():
    try:
        os.close(os.open("/proc/self/fd/%d" % w, os.O_WRONLY | os.O_NONBLOCK))
        return "opened"
    except OSError as e:
        return e.strerror
def owner(fd):
    st = os.fstat(fd)
    return st.st_uid, st.st_gid, oct(st.st_mode)
a, b = as_other(socket.socketpair)
for name, value in ((socket.SO_PASSCRED, 1), (34, 1), (76, 1), (socket.SO_SNDBUF, 70000), (socket.SO_RCVTIMEO, struct.pack("ll", 7, 40000)),
        (socket.SO_SNDTIMEO, struct.pack("ll", 90000, 0))):
    try:
        b.setsockopt(socket.SOL_SOCKET, name, value)
    except OSError:
        pass # SO_PASSPIDFD, before Linux 6.5
c, d = socket.socketpair()
d.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
d.setblocking(False)
c.send(b"waits")
c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400000)
d.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400000)
much = d.send(b"x" * 300000)
r, w = as_other(os.pipe)
o, _ = as_other(os.pipe)
as_other(lambda: os.fchmod(o, 0o644))
with socket.socket(socket.AF_UNIX) as l:
    l.bind("/gone")
    l.listen()
    with socket.socket(socket.AF_UNIX) as k:
        k.connect("/gone")
        gone, _ = l.accept()
while True:
    same = [[s.type, s.getblocking(), get(s, socket.SO_PEERCRED, 12)[8:]] + [get(s, n) for n in (socket.SO_PASSCRED, 34, 76, socket.SO_SNDBUF, socket.SO_RCVBUF)]
        + [get(s, n, 16) for n in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)] for s in (a, b, c, d)]
    same += [owner(r), owner(w), as_other(reopen), owner(o), gone.recv(1, socket.MSG_PEEK), len(c.recv(500000, socket.MSG_PEEK)) == much]
    data, said, _, _ = d.recvmsg(9, 99, socket.MSG_PEEK)
    other = [get(a, socket.SO_PEERCRED, 12)[:8], data, struct.unpack("iii", said[0][2])]
    with open("/shown.new", "w") as f:
        f.write("%s\n%s\n" % (same, other))
    os.rename("/shown.new", "/shown")
    is_ready(1)
    time.sleep(0.01)'
	with_caps CAP_SETUID CAP_SETGID
	shown() { # LINE
		sed -n "$1p" "$R/shown"
	}
	local first
	start
	first=$(shown 1)
	assert_has "$first" "[<SocketKind.SOCK_STREAM: 1>, True, '0900000007000000', '00000000'"
	assert_has "$first" "(9, 7, '0o10600'), 'opened', (9, 7, '0o10644'), b'', True]"
	assert_has "$(shown 2)" "b'waits', (1, 0, 0)]"
	shown_by_a_child
	assert_eq "$(shown 1)" "$first"
	# Who made a pair is as which process it was made: the first. Who sent what waits is not told.
	assert_eq "$(shown 2)" "['01000000', b'waits', (0, 65534, 65534)]"
}

@test "unix: options of a pair that would be missed are refused by name" {
	python '
import array
code = array.array("Q", [6]) # one instruction: return 0
def pair(name, value):
    s = socket.socketpair()
    try:
        s[1].setsockopt(socket.SOL_SOCKET, name, value)
    except OSError:
        return s # SO_PASSRIGHTS, before Linux 6.16
    if name == 83:
        open("/passrights", "w")
    return s
all = [pair(26, struct.pack("HP", 1, code.buffer_info()[0])), pair(83, 0), pair(44, 1), pair(42, 0)]
is_ready(1)
while True:
    time.sleep(1)'
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "one of a pair of sockets, with a filter"
	assert_has "$output" "one of a pair of sockets, with SO_LOCK_FILTER"
	assert_has "$output" "one of a pair of sockets, with SO_PEEK_OFF"
	[ ! -e "$R/passrights" ] || assert_has "$output" "one of a pair of sockets, that takes no descriptors (SO_PASSRIGHTS)"
	assert_eq "$(grep -c "one of a pair" <<<"$output")" "$([ -e "$R/passrights" ] && echo 4 || echo 3)"
	assert_eq "$(status_of)" running
}

@test "unix: what waits in a pair with its senders' pidfds, or with more than one sender, is refused by that name" {
	waits() { # OPTION
		python '
a, b = socket.socketpair()
b.setsockopt(socket.SOL_SOCKET, '"$1"', 1)
a.send(b"waits")
if not os.fork():
    a.send(b"of another one")
    os._exit(0)
os.wait()
is_ready(1)
while True:
    time.sleep(1)'
		start
		run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
		assert_has "$output" "what waits with its senders in a pair of sockets (socket:["
		assert_has "$output" "cannot carry 1 of"
		assert_eq "$(status_of)" running
		rt delete --force "$ID"
	}
	waits socket.SO_PASSCRED
	# SO_PASSPIDFD, since Linux 6.5
	! python3 -c 'import socket; socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, 76, 1)' || waits 76
}

@test "unix: an end of a pair whose other end was closed with something unread is refused, and told of that afterwards" {
	python '
def is_told(s):
    try:
        return s.recv(9, socket.MSG_DONTWAIT)
    except ConnectionResetError:
        return "reset"
ends = []
for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.send(b"a")
    b.send(b"b")
    a.close()
    ends.append(b)
is_ready(1)
while not os.path.exists("/go"):
    time.sleep(0.01)
said = [sorted(str(is_told(s)) for _ in "12") for s in ends]
open("/said.new", "w").write(str(said))
os.rename("/said.new", "/said")
while True:
    time.sleep(1)'
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$(grep -c "with an error that nobody was told of yet" <<<"$output")" 2
	: >"$R/go"
	wait_until test -s "$R/said"
	assert_eq "$(tr -d \"\' <"$R/said")" "[[ba, reset], [ba, reset]]"
}

@test "unix: a connection between two of its processes is refused by name, whichever of them comes first" {
	python '
def listens(name):
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen()
    return s
def connects(name):
    s = socket.socket(socket.AF_UNIX)
    s.connect(name)
    return s
a, b = listens("\0a"), listens("\0b")
if os.fork():
    s = a.accept()
    c = connects("\0b")
else:
    c = connects("\0a")
    s = b.accept()
    is_ready(1)
while True:
    time.sleep(1)'
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$(grep -c "a Unix socket that was accepted, or has a name, and does not listen" <<<"$output")" 2
	[[ $output != *outside* ]]
	assert_eq "$(status_of)" running
}

# What is sent there is not the other end's to read; in a child it would be.
@test "unix: an end of a pair for datagrams that is connected elsewhere is refused by name" {
	python '
first = int(open("/first").read()) # of which end is looked at first
def datagrams():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
def pair(leave):
    s = datagrams()
    leave(s[1 - first])
    return s
def to_log(s):
    s.connect("/log")
def to_nobody(s):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind("/gone")
        s.connect("/gone")
    os.unlink("/gone")
    try:
        s.send(b"anybody there?")
    except ConnectionRefusedError:
        pass
all = [datagrams(), pair(to_log), pair(to_nobody)]
is_ready(1)
while True:
    time.sleep(1)'
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
time.sleep(1000)' "$R/log" 3>&- &
	local log=$!
	wait_until test -S "$R/log"
	echo 0 >"$R/first"
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$(grep -c "one of a pair of sockets, that is connected elsewhere now" <<<"$output")" 2
	assert_has "$output" "cannot carry 2 of"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	echo 1 >"$R/first"
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	kill "$log"
	assert_eq "$(grep -c "a socket for datagrams that is connected to nobody" <<<"$output")" 1
	assert_eq "$(grep -c "its other end is outside" <<<"$output")" 3
	assert_has "$output" "cannot carry 4 of"
	assert_eq "$(status_of)" running
}

# Each file's flags are its own: that one does not wait says nothing of the other one.
@test "unix: an end of a pipe that is opened again is another file, with flags of its own" {
	python '
import fcntl, termios
def again(fd, flags):
    return os.open("/proc/self/fd/%d" % fd, flags)
def anothers_pipe():
    os.setegid(7)
    os.seteuid(9)
    r, w = os.pipe()
    r = r, again(r, os.O_RDONLY)
    os.fchmod(w, 0o400)
    os.seteuid(0)
    os.setegid(0)
    return *r, w
r, w = os.pipe()
all = [r, w, again(r, os.O_RDONLY | os.O_NONBLOCK), again(w, os.O_WRONLY | os.O_NONBLOCK), again(w, os.O_WRONLY), *anothers_pipe()]
os.set_blocking(all[-2], False)
os.write(w, b"waits")
while True:
    with open("/shown.new", "w") as f:
        for fd in all:
            st = os.fstat(fd)
            print(oct(fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_NONBLOCK)), struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"none"))[0],
                  st.st_ino == os.fstat(r).st_ino, oct(st.st_mode), st.st_uid, st.st_gid, file=f)
    os.rename("/shown.new", "/shown")
    is_ready(1)
    time.sleep(0.01)'
	with_caps CAP_SETUID CAP_SETGID
	start
	shown_by_a_child
	assert_eq "$(cat "$R/shown")" "0o0 5 True 0o10600 0 0
0o1 5 True 0o10600 0 0
0o4000 5 True 0o10600 0 0
0o4001 5 True 0o10600 0 0
0o1 5 True 0o10600 0 0
0o0 0 False 0o10400 9 7
0o4000 0 False 0o10400 9 7
0o1 0 False 0o10400 9 7"
}

# In a child they would be one.
@test "unix: packets that wait in a pipe are refused by name, also where nobody writes such any more" {
	python '
import fcntl
def packets(n):
    r, w = os.pipe2(os.O_DIRECT)
    for _ in range(n):
        os.write(w, b"one")
    return r, w
def left():
    r, w = packets(2)
    os.close(w)
    return r, os.open("/dev/null", os.O_WRONLY)
wait = int(open("/wait").read())
all = [packets(wait), packets(2 * wait), packets(0)] + ([left()] if wait else [])
is_ready(1)
while not os.path.exists("/go"):
    time.sleep(0.01)
r, w = all[2]
os.write(w, b"one")
os.write(w, b"two")
with open("/shown", "w") as f:
    print(os.read(r, 99), os.read(r, 99), file=f)
while True:
    time.sleep(1)'
	echo 1 >"$R/wait"
	start
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$(grep -c "packets that wait in a pipe" <<<"$output")" 3
	assert_has "$output" "cannot carry 3 of"
	assert_eq "$(status_of)" running
	rt delete --force "$ID"
	echo 0 >"$R/wait"
	start
	seed "$ID"
	rt delete --force "$ID"
	touch "$R/go"
	grow "$ID"
	wait_until test -s "$R/shown"
	assert_eq "$(cat "$R/shown")" "b'one' b'two'"
}

# As a shell's: exec 3<> <(:)
@test "unix: a pipe that one file both reads and writes is one in the child, and one that is a path alone is no end" {
	python '
import fcntl
r, w = os.pipe()
both, path = (os.open("/proc/self/fd/%d" % w, flags) for flags in (os.O_RDWR | os.O_NONBLOCK, os.O_PATH))
r, w = os.close(r), os.close(w)
os.write(both, b"waits")
others, end = os.pipe()
past, _ = os.open("/proc/self/fd/%d" % others, os.O_PATH), os.close(end)
def tried(what, *args):
    try:
        return what(*args)
    except OSError as e:
        return e.strerror
is_ready(1)
while not os.path.exists("/go"):
    time.sleep(0.01)
with open("/shown", "w") as f:
    print(os.read(both, 9), [oct(fcntl.fcntl(fd, fcntl.F_GETFL) & 0o10004003) for fd in (both, path, past)], os.fstat(both).st_ino == os.fstat(path).st_ino,
          tried(os.read, path, 1), tried(os.read, past, 1), os.read(others, 1), file=f)
while True:
    time.sleep(1)'
	start
	seed "$ID"
	rt delete --force "$ID"
	touch "$R/go"
	grow "$ID"
	wait_until test -s "$R/shown"
	assert_eq "$(cat "$R/shown")" "b'waits' ['0o4002', '0o10000000', '0o10000000'] True Bad file descriptor Bad file descriptor b''"
}

@test "unix: a log that was opened again by /dev/stdout is the child's own, with flags of its own" {
	local from child
	printf '#!/bin/sh\nexec 5>>/dev/stdout\nwhile :; do i=$((i + 1)); echo $i >&5; echo $i >/n; busybox usleep 20000; done\n' >"$R/bin/logs"
	chmod 755 "$R/bin/logs"
	cfg '.process.args = ["/bin/logs"]'
	for from in pipe file; do
		rm -rf "$IMG" "$N"
		new_id ID
		cfg --arg id "$ID" '.linux.cgroupsPath = "/" + $id'
		if [ $from = pipe ]; then
			rt run --detach --bundle "$BUNDLE" "$ID" </dev/null 2>began | cat >said 3>&- &
		else
			rt run --detach --bundle "$BUNDLE" "$ID" </dev/null >>said 2>began
		fi
		wait_until test -s "$N" || fail "it says: $(cat began)"
		seed "$ID"
		for to in pipe file; do
			new_id child
			cfg --arg id "$child" '.linux.cgroupsPath = "/" + $id'
			rm -f logged
			if [ $to = pipe ]; then
				rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$child" </dev/null 2>began | cat >logged 3>&- &
			else
				rt restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$child" </dev/null >>logged 2>began
			fi
			wait_until eval '[ "$(wc -l <logged)" -gt 5 ]' || fail "from a $from to a $to: $(cat began)"
			first=$(ID=$child pid_of)
			grep -q '^flags:.*1$' "/proc/$first/fdinfo/1"
			grep -q '^flags:.*2001$' "/proc/$first/fdinfo/5" # O_APPEND
			rt delete --force "$child"
		done
	done
}

@test "unix: what was opened again to begin anew writes over no log in a child, and a terminal becomes nobody's" {
	sh_cfg 'exec 4</dev/stdin 5>/dev/stdout; while :; do i=$((i + 1)); echo $i >&5; echo $i >/n; usleep 20000; done'
	mkfifo words
	sleep 300 >words 3>&- &
	local writer=$!
	rt run --detach --bundle "$BUNDLE" "$ID" <words 2>began | cat >said 3>&- &
	wait_until test -s "$N" || fail "it says: $(cat began)"
	seed "$ID"
	rt delete --force "$ID"
	kill $writer
	echo kept >logged
	python3 - "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" >shown 3>&- <<-'END' &
		import json, os, pty, subprocess, sys
		ours, its = pty.openpty() # which controls nobody
		subprocess.run(sys.argv[1:], stdin=its, stdout=open("logged", "a"), stderr=open("began", "w"), check=True)
		pid = json.loads(subprocess.check_output([*sys.argv[1:4], "state", sys.argv[-1]]))["pid"]
		print(os.readlink(f"/proc/{pid}/fd/4") == os.ttyname(its), open(f"/proc/{pid}/stat").read().split(")")[1].split()[4], flush=True)
		sys.stdin.read()
		os.read(ours, 1)
	END
	local python=$!
	wait_until test -s shown || fail "$(cat began)"
	assert_eq "$(cat shown)" "True 0"
	wait_until eval '[ "$(wc -l <logged)" -gt 5 ]'
	assert_eq "$(head -n 1 logged)" kept
	rt delete --force "$ID"
	kill $python
}

@test "unix: a pipe that leads outside does so, whatever its program has opened again" {
	python '
both = os.open("/proc/self/fd/1", os.O_RDWR)
is_ready(1)
while True:
    time.sleep(1)'
	rt run --detach --bundle "$BUNDLE" "$ID" </dev/null 2>began | cat >said &
	wait_until test -s "$N" || fail "it says: $(cat began "$R/err")"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "descriptor 4: its other end is outside (pipe:["
	assert_has "$output" "cannot carry 1 of"
	assert_eq "$(status_of)" running
}
