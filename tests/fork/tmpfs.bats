#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# checkpoint and restore with --engine=fork: what is in the container's own tmpfs.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_seedtool
	tmpfs /t
}
teardown() {
	[ ! -d host ] || umount -R host 2>/dev/null || true
	common_teardown
}

tmpfs() { # DIR [OPTION...]
	mkdir -p "$BUNDLE/rootfs$1"
	cfg --arg d "$1" --arg o "nosuid nodev ${*:2}" \
		'.mounts += [{destination: $d, type: "tmpfs", source: "tmpfs", options: ($o | split(" ") | map(select(. != "")))}]'
}

# A process that has done SCRIPT by a shell, and then says so again and again.
start() { # SCRIPT
	sh_cfg "$1
		i=0
		while sleep 0.02; do i=\$((i + 1)); echo \$i >/n; done"
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
}

python() { # PROGRAM: it calls tell(TEXT) again and again
	rm -rf "$BUNDLE/rootfs"
	"$LR_LIB/mkpython" "$BUNDLE/rootfs" || skip "no python3 to copy"
	mkdir -p "$BUNDLE/rootfs/t"
	cfg --arg p "import time, os
def tell(text):
    with open('/n', 'w') as f: print(text, file=f)
    time.sleep(0.02)
$1" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
	rt_bg run --detach --bundle "$BUNDLE" "$ID"
	goes_round
}

# It writes; the file stays, as a program may have had it open just then.
goes_round() {
	: >"$N"
	wait_until eval '[ -s "$N" ]'
}

said() { # it is empty for an instant
	local text
	for _ in $(seq 200); do
		text=$(cat "$N" 2>/dev/null) && [ -n "$text" ] && break
		sleep 0.01
	done
	echo "$text"
}

seed() { # [OPTION...]
	rt_bg checkpoint --engine fork --image-path "$IMG" "$@" "$ID"
}

grow() {
	rt_bg restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID"
	goes_round
}

try() {
	timeout 20 "$LEAN_RUNTIME" --root "$ROOT" restore --engine fork --detach --image-path "$IMG" --bundle "$BUNDLE" "$ID" </dev/null >grow.out 2>&1 3>&-
}

no_child() { # WORD...: it is refused, with that
	run try
	assert_eq "$status" 1
	for word; do
		assert_has "$(cat grow.out)" "$word"
	done
	assert_eq "$(rt list -q)" ""
}

# All that can be seen of it, from outside.
listing() { # DIR
	(cd "/proc/$(pid_of)/root$1" && find . -printf '%p %y %m %U:%G %s %b %n %l %T@\n' | sort &&
		find . -type f -print0 | sort -z | xargs -0r md5sum)
}

@test "tmpfs: files, directories, links, pipes and sockets are what and whose they were" {
	cfg '.process.capabilities |= map_values(. + ["CAP_CHOWN", "CAP_FOWNER", "CAP_DAC_OVERRIDE", "CAP_FSETID"])'
	start 'umask 0
		mkdir -p /t/a/b/c /t/empty; echo one >/t/a/b/f; echo two >/t/a/b/c/g; : >/t/none
		chmod 640 /t/a/b/f; chown 12:34 /t/a/b/f /t/a; chmod 1777 /t/a; chmod 4755 /t/a/b/c/g; chmod 2750 /t/empty
		ln -s ../../nowhere /t/a/b/l; ln /t/a/b/f /t/other; ln -s /etc/passwd /t/out; chown -h 5:6 /t/out
		mkfifo -m 620 /t/p
		dd if=/dev/urandom of=/t/big bs=4096 count=700; printf end >>/t/big
		dd if=/dev/urandom of=/t/holes bs=4096 count=1 seek=5000; truncate -s 40000000 /t/holes
		echo deep >"/t/a/a name with  spaces"; touch -d "2001-02-03 04:05:06" /t/a/b/f /t/a/b
		chmod 3777 /t; rm -f /dev/core; echo own >/dev/shm/own; echo log >/dev/log'
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "/proc/$(pid_of)/root/t/s"
	listing /t >before
	listing /dev/shm >before.shm
	seed
	[ "$(wc -l <before)" -gt 20 ]
	[ -S "/proc/$(pid_of)/root/t/s" ]
	rt delete --force "$ID"
	grow
	listing /t >after
	listing /dev/shm >after.shm
	diff before after
	diff before.shm after.shm
	assert_eq "$(rt exec "$ID" /bin/cat /dev/log /t/other)" $'log\none'
	# One file by two names.
	rt exec "$ID" /bin/sh -c 'echo more >>/t/other'
	assert_eq "$(rt exec "$ID" /bin/cat /t/a/b/f)" $'one\nmore'
	assert_eq "$(rt exec "$ID" /bin/readlink /dev/fd)" /proc/self/fd
}

@test "tmpfs: files that are open or mapped there, with a name, another one or none, are shared as they were" {
	python '
import mmap, socket
def path(name, flags, size=8192):
    fd = os.open(name, flags, 0o600)
    os.ftruncate(fd, size)
    return fd
def number(eight): return int.from_bytes(eight, "little")
a = path("/dev/shm/a", os.O_RDWR | os.O_CREAT)
named = mmap.mmap(a, 8192)
# As sem_open(3) makes one: by another name than it has in the end.
b = path("/dev/shm/tmp.b", os.O_RDWR | os.O_CREAT)
moved = mmap.mmap(b, 8192)
os.link("/dev/shm/tmp.b", "/dev/shm/b"); os.unlink("/dev/shm/tmp.b")
# As multiprocessing has its arenas: by none.
c = path("/t/c", os.O_RDWR | os.O_CREAT)
gone = mmap.mmap(c, 8192); private = mmap.mmap(c, 8192, mmap.MAP_PRIVATE)
os.unlink("/t/c")
named[0:4] = b"aaaa"; moved[0:4] = b"bbbb"; gone[0:4] = b"cccc"; private[4096:4100] = b"pppp"
with open("/t/read", "w") as f: f.write("0123456789")
r = open("/t/read", "rb", 0); r.read(4)
os.mkdir("/t/here"); os.chdir("/t/here")
pid = os.fork()
if not pid:
    while True:
        gone[8:16] = (number(gone[8:16]) + 1).to_bytes(8, "little")
        moved[8:16] = gone[8:16]
        time.sleep(0.01)
while True:
    assert open("/dev/shm/a", "rb").read(4) == named[0:4] == b"aaaa"
    assert open("/dev/shm/b", "rb").read(4) == moved[0:4] == b"bbbb"
    # The child goes on writing between one look and the next.
    before = moved[8:16]; there = open("/dev/shm/b", "rb").read(16)[8:]; after = moved[8:16]
    assert number(before) <= number(there) <= number(after)
    assert os.pread(c, 4, 0) == gone[0:4] == private[0:4] == b"cccc" and private[4096:4100] == b"pppp"
    assert os.fstat(b).st_ino == os.stat("/dev/shm/b").st_ino and os.fstat(c).st_nlink == 0
    assert r.tell() == 4 and os.getcwd() == "/t/here"
    tell(number(gone[8:16]))
'
	wait_until eval '[ "$(said)" -gt 20 ]'
	seed
	wait_until eval '[ "$(said)" -gt 40 ]' # the parent
	rt delete --force "$ID"
	grow
	at=$(said)
	[ "$at" -gt 20 ] || fail "it began again: $at"
	wait_until eval '[ "$(said)" -gt '"$((at + 20))"' ]'
}

@test "tmpfs: python's multiprocessing goes on: locks, a value, a queue, shared memory by its name" {
	python '
import multiprocessing as m
from multiprocessing import shared_memory
if __name__ == "__main__":
    m.set_start_method("fork")
    lock, value, queue = m.Lock(), m.Value("q", 0), m.SimpleQueue()
    memory = shared_memory.SharedMemory(create=True, size=4096, name="lr")
    def work():
        mine = shared_memory.SharedMemory(name="lr")
        while True:
            with lock:
                value.value += 1
                mine.buf[0:8] = value.value.to_bytes(8, "little")
            time.sleep(0.005)
    for _ in range(2):
        m.Process(target=work, daemon=True).start()
    while True:
        with lock:
            assert int.from_bytes(bytes(memory.buf[0:8]), "little") == value.value
            queue.put(value.value)
        tell(queue.get())
'
	wait_until eval '[ "$(said)" -gt 20 ]'
	seed
	rt delete --force "$ID"
	grow
	at=$(said)
	[ "$at" -gt 20 ] || fail "it began again: $at"
	wait_until eval '[ "$(said)" -gt '"$((at + 20))"' ]'
}

@test "tmpfs: what is more than --tmpfs-bytes or --tmpfs-files is refused by name, and nothing is touched" {
	start 'dd if=/dev/zero of=/t/big bs=1k count=600; truncate -s 1G /t/hole; for i in $(seq 50); do : >/t/$i; done'
	run rt checkpoint --engine fork --image-path "$IMG" --tmpfs-bytes 500k "$ID"
	assert_eq "$status" 1
	assert_has "$output" "more than 512000 bytes in its tmpfs, with those in /t"
	run rt checkpoint --engine fork --image-path "$IMG" --tmpfs-files 50 "$ID"
	assert_eq "$status" 1
	assert_has "$output" "more than 50 files in its tmpfs, with those in /t"
	run rt checkpoint --image-path "$IMG" --tmpfs-files 50 "$ID"
	assert_has "$output" "go with --engine=fork"
	assert_eq "$(ls -A "$IMG")" ""
	goes_round
	seed --tmpfs-bytes 700k --tmpfs-files 60
	seed --tmpfs-bytes -1 --tmpfs-files -1
	rt delete --force "$ID"
	grow
	assert_eq "$(rt exec "$ID" /bin/stat -c %s /t/big /t/hole)" $'614400\n1073741824'
}

@test "tmpfs: names, targets of links and attributes count as bytes, and take no more memory than they have" {
	python '
long = "x" * 4000
for i in range(100):
    os.symlink(long, "/t/l%d" % i)
word = "well"
for i in range(100):
    open("/t/f%d" % i, "w").close()
    for k in range(400):
        try: os.setxattr("/t/f%d" % i, "user.%d" % k, b"v" * 60)
        except OSError: word = "none"
while True:
    tell(word)
'
	[ "$(said)" = well ] || skip "no user attributes in tmpfs" # before Linux 6.6
	run rt checkpoint --engine fork --image-path "$IMG" --tmpfs-bytes 500k "$ID"
	assert_eq "$status" 1
	assert_has "$output" "more than 512000 bytes in its tmpfs"
	run rt checkpoint --engine fork --image-path "$IMG" --tmpfs-bytes 2M "$ID"
	assert_eq "$status" 1
	assert_has "$output" "more than 2097152 bytes in its tmpfs"
	prlimit --as=300000000 "$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" --tmpfs-bytes 5M "$ID"
	goes_round
}

@test "tmpfs: what no seed can have, too deep or too long, is refused by name before anything is held" {
	start 'cd /t; i=0; while [ $i -lt 127 ]; do mkdir d && cd d; i=$((i + 1)); done; : >f; mkdir e; ln -s x e/link; cd /t; truncate -s 9223372036854775807 "long
process 1 (sh): as if it were another"'
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "a file that is nested too deeply in the tmpfs /t (link)"
	assert_has "$output" "a file that is too long in the tmpfs /t (long?process 1 (sh): as if it were another)"
	assert_has "$output" "cannot carry 2 of the container's resources"
	rt exec "$ID" /bin/sh -c 'rm -r /t/long*; rm /t/d*/d*/* -f; cd /t; mv d/d/d up; rm -r d'
	seed
}

@test "tmpfs: a bundle without it, a smaller one, one that is read-only: refused, and nothing is left" {
	start 'dd if=/dev/urandom of=/t/big bs=1k count=600'
	seed --stop
	cp "$BUNDLE/config.json" whole.json
	cfg '.mounts |= map(select(.destination != "/t"))'
	no_child "the seed has files in the tmpfs /t, and there is none" mounts
	mkdir host
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/t", type: "tmpfs", source: $h, options: ["bind"]}]'
	no_child "the seed has files in the tmpfs /t, and there is none"
	assert_eq "$(ls -A host)" ""
	cp whole.json "$BUNDLE/config.json"
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/t", type: "bind", source: $h, options: ["bind"]}]'
	no_child "the seed has files in the tmpfs /t, and there is none"
	assert_eq "$(ls -A host)" ""
	cp whole.json "$BUNDLE/config.json"
	cfg '(.mounts[] | select(.destination == "/t") | .options) += ["size=100k"]'
	no_child "big" "size="
	cp whole.json "$BUNDLE/config.json"
	cfg '(.mounts[] | select(.destination == "/t") | .options) += ["ro"]'
	no_child "read-only"
	cp whole.json "$BUNDLE/config.json"
	grow
}

@test "tmpfs: more than the memory of the child's container is an error that says so, and nothing is left" {
	start 'dd if=/dev/urandom of=/t/big bs=1M count=40'
	seed --stop
	cp "$BUNDLE/config.json" whole.json
	cfg '.linux.resources.memory = {limit: 16777216, swap: 16777216}'
	no_child "out of memory before the program could start" "linux.resources.memory.limit" "in its tmpfs"
	cp whole.json "$BUNDLE/config.json"
	grow
}

@test "tmpfs: what tmpcopyup puts there is gone if it was; binds of the host's are not carried" {
	mkdir -p "$BUNDLE/rootfs/up/sub" host
	echo image >"$BUNDLE/rootfs/up/removed"
	echo image >"$BUNDLE/rootfs/up/sub/kept"
	tmpfs /up tmpcopyup
	mkdir "$BUNDLE/rootfs/h"
	mount -t tmpfs -o size=1m lr-test host || skip "no tmpfs of ours"
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/h", type: "tmpfs", source: $h, options: ["bind"]}]'
	start 'rm /up/removed; echo changed >>/up/sub/kept; echo host >/h/file'
	seed --stop
	rm host/file
	run try
	was=$status
	[ ! -e host/file ] || was=written
	here=$([ "$was" != 0 ] || rt exec "$ID" /bin/sh -c 'ls /up; cat /up/sub/kept')
	rt delete --force "$ID"
	assert_eq "$was" 0
	assert_eq "$here" $'sub\nimage\nchanged'
}

@test "tmpfs: devices and programs with capabilities there are refused by name" {
	cfg '.process.capabilities |= map_values(. + ["CAP_MKNOD", "CAP_SETFCAP"])
		| (.mounts[] | select(.destination == "/t") | .options) |= map(select(. != "nodev"))'
	start 'mknod /t/node c 1 3; mknod /dev/own c 1 3'
	run rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_eq "$status" 1
	assert_has "$output" "a device in the tmpfs /t (node)"
	assert_has "$output" "1 of the container's resources"
	rt exec "$ID" /bin/rm /t/node
	seed
}

# The bundle's process is an ordinary user, who could never make them.
@test "tmpfs: a forged seed brings no program that runs as somebody else, and no device" {
	cfg '.process.user = {uid: 1000, gid: 1000} | .process.capabilities = {} | .process.noNewPrivileges = false
		| (.mounts[] | select(.destination == "/t") | .options) += ["mode=1777"]'
	: >"$N"
	chmod 666 "$N"
	start 'cp /bin/busybox /t/own; chmod 4755 /t/own'
	seed --stop
	cp -a "$IMG" plain
	node=$("$SEEDTOOL" dump "$IMG" | jq -e '[.nodes[].name] | index("own")')
	"$SEEDTOOL" forge "$IMG" nodes "$node" uid 0
	no_child "runs as somebody that the process may not be" own
	rm -rf "$IMG"
	cp -a plain "$IMG"
	"$SEEDTOOL" forge "$IMG" nodes "$node" mode 0026660
	no_child "is of an unknown kind"
	rm -rf "$IMG"
	cp -a plain "$IMG"
	grow
	assert_eq "$(stat -c '%a %u' "/proc/$(pid_of)/root/t/own")" "4755 1000"
}

@test "tmpfs: names of a forged seed lead nowhere: neither by links of the image nor by those of the seed" {
	mkdir -p "$BUNDLE/rootfs/up" target
	ln -s "$PWD/target" "$BUNDLE/rootfs/up/d"
	ln -s / "$BUNDLE/rootfs/up/e"
	tmpfs /up tmpcopyup
	start 'mkdir /t/aa; echo x >/t/aa/bb; ln -s /bin /t/cc; rm /up/d; mkdir /up/d; echo in >/up/d/f'
	seed --stop
	cp -a "$IMG" plain
	# A link for the directory that a file is in.
	names=$("$SEEDTOOL" dump "$IMG" | jq -c '[.nodes[].name]')
	link=$(jq 'index("cc")' <<<"$names")
	file=$(jq 'index("bb")' <<<"$names")
	"$SEEDTOOL" forge "$IMG" nodes "$file" parent "$link"
	no_child "is nowhere"
	rm -rf "$IMG"
	cp -a plain "$IMG"
	# Two of one name: a directory that is a link.
	"$SEEDTOOL" forge "$IMG" nodes "$link" name "$(text_at aa)"
	run try
	[ "$status" -ne 0 ] || rt delete --force "$ID"
	[ ! -e "$BUNDLE/rootfs/bin/bb" ]
	rm -rf "$IMG"
	cp -a plain "$IMG"
	grow
	assert_eq "$(ls -A target)" ""
	assert_eq "$(rt exec "$ID" /bin/sh -c 'cat /up/d/f; readlink /up/e; readlink /t/cc')" $'in\n/\n/bin'
}

# The host's is one, too, and its directories are what config.json binds.
@test "tmpfs: neither a link of the image nor a bind with what is below it leads a seed's files to the host" {
	tmpfs /deep/t
	start 'echo mine | tee /deep/t/f >/t/f'
	seed --stop
	mkdir host
	mount -t tmpfs -o size=1m lr-test host || skip "no tmpfs of ours"
	mkdir -p host/t
	mount -t tmpfs -o size=1m lr-test host/t
	echo precious | tee host/file >host/t/file
	cp "$BUNDLE/config.json" whole.json
	refused() { # PATH
		no_child "$1 is no tmpfs of the container's own" "config.json"
		assert_eq "$(cat host/file host/t/file)" $'precious\nprecious'
	}
	# The bind is where the link of the tmpfs leads.
	rmdir "$R/t"
	mkdir "$R/h"
	ln -s h "$R/t"
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/h", type: "bind", source: $h, options: ["bind"]}]'
	refused /t
	# The bind's link leads to the tmpfs.
	rm "$R/t"
	rmdir "$R/h"
	mkdir "$R/t"
	ln -s t "$R/h"
	refused /t
	# A bind of all above it, which has one at the same place.
	cp whole.json "$BUNDLE/config.json"
	cfg --arg h "$PWD/host" '.mounts += [{destination: "/deep", type: "bind", source: $h, options: ["rbind"]}]'
	refused /deep/t
	cp whole.json "$BUNDLE/config.json"
	grow
	assert_eq "$(rt exec "$ID" /bin/cat /t/f /deep/t/f)" $'mine\nmine'
}

@test "tmpfs: a program that changes all of it while it is read spoils nothing, and is refused or carried" {
	python '
import itertools, threading
def churn(n):
    for i in itertools.count(n):
        for do in ((os.mkdir, "/t/x"), (os.mkdir, "/t/x/y"), (os.symlink, "/", "/t/x/l"), (os.rename, "/t/x/l", "/t/x/y/z"),
                   (os.link, "/t/kept", "/t/x/k"), (os.rename, "/t/x/y", "/t/w"), (os.symlink, "/etc", "/t/x/y"), (os.mkfifo, "/t/x/f"),
                   (os.rename, "/t/x/f", "/t/kept2"), (os.unlink, "/t/x/y"), (os.unlink, "/t/w/z"), (os.rmdir, "/t/w"),
                   (os.unlink, "/t/x/k"), (os.rename, "/t/x", "/t/z%d" % (i % 9)), (os.rmdir, "/t/z%d" % (i % 7))):
            try: do[0](*do[1:])
            except OSError: pass
        try: open("/t/grows", "r+b").truncate(i * 4096 % 9000000)
        except OSError: pass
for f in "kept", "grows":
    open("/t/" + f, "w").write(f * 100000)
for n in range(2):
    threading.Thread(target=churn, args=(n,)).start()
while True:
    assert open("/t/kept").read() == "kept" * 100000
    tell("well")
'
	for _ in $(seq 10); do
		seed
		goes_round
	done
	rt delete --force "$ID"
	grow
	goes_round
	[ ! -e "$BUNDLE/rootfs/etc/z" ]
}
