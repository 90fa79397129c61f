#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Seeds of programs that have files open which have no name any more: their children have what is in them.

load ../lib/helpers.bash
load seeds.bash

setup() {
	seeds_setup
	needs_seedtool
}
teardown() {
	common_teardown
}

# python TEXT: it is ready when it writes /n.
python() {
	rm -rf "$R"
	"$LR_LIB/mkpython" "$R" || skip "no python3 to copy"
	cfg --arg p 'import fcntl, os, sys, time
sys.stderr = open("/err", "w", buffering=1)
def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
def say(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)
'"$1" '.process.args = ["/usr/bin/python3", "-c", $p] | .process.env += ["PYTHONDONTWRITEBYTECODE=1"]'
}

# A child with files of its own, as those of the parent are now.
child() {
	cp -a "$BUNDLE" other
	new_id CHILD
	jq --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id' "$BUNDLE/config.json" >other/config.json
	BUNDLE=$PWD/other grow "$CHILD"
	C=$PWD/other/rootfs
}

reports() { # ROOT: lets the program there say what it has, and prints that
	: >"$1/go"
	wait_until test -s "$1/out" || fail "it says: $(cat "$1/err")"
	cat "$1/out"
}

@test "deleted: what is in them, places, flags, and who shares them" {
	python '
os.umask(0)
f = os.open("/gone", os.O_RDWR | os.O_CREAT, 0o641)
os.write(f, b"0123456789" * 1000)
r = os.open("/gone", os.O_RDONLY)
os.lseek(r, 5, os.SEEK_SET)
w = os.open("/gone", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
os.unlink("/gone")
os.lseek(f, 100, os.SEEK_SET)
os.ftruncate(f, 2 << 20)
os.pwrite(f, b"far", (2 << 20) - 3)
if os.fork() == 0:
    wait_for("/go")
    os.read(f, 7)
    say("/read", "1")
    time.sleep(1000)
say("/n", "1")
wait_for("/read")
st = os.fstat(f)
place = os.lseek(f, 0, os.SEEK_CUR)
os.write(w, b"end")
flags = fcntl.fcntl(w, fcntl.F_GETFL)
say("/out", repr([place, os.read(r, 5), os.pread(r, 6, (2 << 20) - 3), os.pread(r, 3, 1 << 20), oct(st.st_mode), st.st_uid, st.st_nlink, st.st_size,
    flags & os.O_ACCMODE == os.O_WRONLY, flags & os.O_APPEND > 0, flags & os.O_NONBLOCK > 0, os.path.exists("/gone")]))
while True:
    time.sleep(1)'
	start
	seed "$ID"
	child
	want="[107, b'56789', b'farend', b'\\x00\\x00\\x00', '0o100641', 0, 0, 2097152, True, True, True, False]"
	assert_eq "$(reports "$C")" "$want"
	assert_eq "$(reports "$R")" "$want"
}

@test "deleted: owner and mode, and so it is with a child's child" {
	python '
f = os.open("/gone", os.O_RDWR | os.O_CREAT, 0o600)
os.write(f, b"kept")
os.chown("/gone", 5, 6)
os.unlink("/gone")
say("/n", "1")
wait_for("/go")
st = os.fstat(f)
say("/out", repr([os.pread(f, 9, 0), oct(st.st_mode), st.st_uid, st.st_gid]))
while True:
    time.sleep(1)'
	with_caps CAP_CHOWN CAP_SETUID CAP_SETGID
	start
	seed "$ID"
	new_id CHILD
	jq --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id' "$BUNDLE/config.json" >again.json
	cp -a "$BUNDLE" first
	mv again.json first/config.json
	BUNDLE=$PWD/first grow "$CHILD"
	IMG=$PWD/again
	seed "$CHILD"
	child
	assert_eq "$(reports "$C")" "[b'kept', '0o100600', 5, 6]"
}

@test "deleted: one that its program may write, and not read, does not become one that it may read" {
	python '
f = os.open("/gone", os.O_WRONLY | os.O_CREAT, 0o200)
os.write(f, b"secret")
os.unlink("/gone")
out = open("/n", "w")
os.setresgid(7, 7, 7)
os.setresuid(9, 9, 9)
def tell():
    try:
        return os.read(os.open("/proc/self/fd/%d" % f, os.O_RDONLY), 9).decode()
    except OSError as x:
        return type(x).__name__
while True:
    out.seek(0)
    out.write(tell())
    out.flush()
    time.sleep(0.01)'
	with_caps CAP_SETUID CAP_SETGID
	start
	assert_eq "$(cat "$N")" PermissionError
	seed "$ID"
	cp -a "$BUNDLE" other
	: >other/rootfs/n
	new_id CHILD
	jq --arg id "$CHILD" '.linux.cgroupsPath = "/" + $id' "$BUNDLE/config.json" >other/config.json
	BUNDLE=$PWD/other grow "$CHILD"
	wait_until test -s other/rootfs/n
	assert_eq "$(cat other/rootfs/n)" PermissionError
}

@test "deleted: more than 64 MiB of them is refused by name, and so is what lost its name and has another" {
	python '
def gone(path, size):
    f = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(f, size)
    os.unlink(path)
    return f
all = [gone("/one", 40 << 20)]
all.append(os.dup(all[0]))
say("/n", "1")
wait_for("/go")
all.append(gone("/two", 40 << 20))
g = os.open("/three", os.O_RDWR | os.O_CREAT)
os.link("/three", "/four")
os.unlink("/three")
all.append(os.open("/five (deleted)", os.O_RDWR | os.O_CREAT))
say("/n", "2")
while True:
    time.sleep(1)'
	start
	# Once for each file, whoever has it.
	seed "$ID"
	: >"$R/go"
	wait_until grep -q 2 "$N"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "larger than what is carried of those (/two (deleted))"
	assert_has "$output" "a file whose name is deleted, and that may have another one (/three (deleted))"
	assert_has "$output" "cannot carry 2 of"
	assert_eq "$(status_of)" running
}

# Its directory is a link by now, which would lead who makes the seed to wherever the container likes.
@test "deleted: a name that was lost is looked for in the container, and nowhere on the host" {
	mkdir trap
	python '
os.mkdir("/a")
f = os.open("/a/f", os.O_RDWR | os.O_CREAT)
os.link("/a/f", "/g")
os.unlink("/a/f")
os.rmdir("/a")
os.symlink(open("/trap").read(), "/a")
say("/n", "1")
while True:
    time.sleep(1)'
	printf %s "$PWD/trap" >"$R/trap"
	start
	ln "$R/g" "trap/f (deleted)"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "a file whose name is deleted, and that may have another one (/a/f (deleted))"
	rm "trap/f (deleted)"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "may have another one (/a/f (deleted))"
}

@test "deleted: one that is the standard output, too, is counted as any other" {
	python '
f = os.open("/data/log", os.O_RDWR)
os.unlink("/data/log")
os.ftruncate(f, 65 << 20)
say("/n", "1")
while True:
    time.sleep(1)'
	mkdir data
	: >data/log
	cfg --arg d "$PWD/data" '.mounts += [{destination: "/data", type: "bind", source: $d, options: ["bind"]}]'
	rm -f "$N"
	"$LEAN_RUNTIME" --root "$ROOT" run --detach --bundle "$BUNDLE" "$ID" </dev/null >data/log 2>refused 3>&-
	wait_until test -s "$N" || fail "it says: $(cat "$R/err")"
	run ! rt checkpoint --engine fork --image-path "$IMG" "$ID"
	assert_has "$output" "larger than what is carried of those (/data/log (deleted))"
}

# Whoever has it open outside may let it grow at any moment; a seed that is made has what was counted.
@test "deleted: one that grows while it is looked at does not become larger than what is carried" {
	command -v strace >/dev/null || skip "strace is not installed"
	python '
f = os.open("/data/gone", os.O_RDWR)
os.unlink("/data/gone")
say("/n", "1")
while True:
    time.sleep(1)'
	mkdir data
	: >data/gone
	cfg --arg d "$PWD/data" '.mounts += [{destination: "/data", type: "bind", source: $d, options: ["bind"]}]'
	python3 -c 'import os, random, time
f = os.open("data/gone", os.O_RDWR)
parent = os.getppid()
open("grows", "w").close()
while os.getppid() == parent:
    os.ftruncate(f, random.choice((1, 1 << 33)))
    time.sleep(0.01)' </dev/null >/dev/null 2>&1 3>&- &
	local grower=$! i sizes=
	wait_until test -e grows
	start
	for i in $(seq 20); do
		rm -rf "$IMG"
		timeout 60 strace -o calls -P "/proc/$(pid_of)/fd/4" -e trace=open,openat -e inject=open,openat:delay_enter=50000 \
			"$LEAN_RUNTIME" --root "$ROOT" checkpoint --engine fork --image-path "$IMG" "$ID" </dev/null >said 2>&1 3>&- || continue
		sizes=$("$SEEDTOOL" dump "$IMG" | jq -r ".objects[].size")
		[ $((sizes)) -le $((64 << 20)) ] || break
	done
	kill "$grower"
	[ -n "$sizes" ] || fail "it was large each time: $(cat said)"
	[ $((sizes)) -le $((64 << 20)) ] || fail "it has $sizes bytes"
}
