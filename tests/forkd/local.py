#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""local.py SEEDS-SOCKET CHILDREN-SOCKET TICKET-FILE SEED-DIRECTORY: what may come by the local socket of lean-forkd:
descriptors that are not what they should be, seeds that nobody showed a ticket for, other users. TAP."""
import array
import ctypes
import fcntl
import os
import socket
import struct
import sys
import tempfile
import time

seeds, children, ticket, directory = sys.argv[1:5]
with open(ticket, "rb") as t:
    text = t.read().strip()
seed = bytes.fromhex(text.split(b":")[3].decode())
ADD, REMOVE, INSPECT, FETCH, SERVE, READY, BRING, FILLED, WANTED, SOURCE, LIMIT = 32, 34, 36, 37, 38, 39, 44, 45, 46, 47, 51
EXPORTS = 52
REFUSED, OK, TICKET, SEEDS, DESCRIPTOR = 3, 40, 41, 42, 43
NO_SEED = 1  # a reason
libc = ctypes.CDLL(None, use_errno=True)
with open(f"{directory}/descriptor", "rb") as d:
    given = d.read()[32:48]  # the id of what is given by the socket
work = tempfile.mkdtemp()
count = bad = 0


def check(what, right):
    global count, bad
    count += 1
    bad += not right
    print(f"{'ok' if right else 'not ok'} {count} - local socket: {what}", flush=True)


def connect(path=children):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(path)
    return s


def send(s, data, fds=()):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def answer(s):
    """Its type; 0: the end."""
    data, control, _, _ = s.recvmsg(8192, 4096)
    for level, kind, value in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            for fd in array.array("i", value[:len(value) // 4 * 4]):
                os.close(fd)
    return struct.unpack("<H", data[4:6])[0] if len(data) >= 16 else 0


def reason(s):
    """Why it is refused; 0: it is not."""
    data = s.recv(8192)
    return struct.unpack("<I", data[16:20])[0] if struct.unpack("<H", data[4:6])[0] == REFUSED else 0


def ask(s, kind, body=b"", fds=()):
    send(s, struct.pack("<IHHQ", len(body), kind, 0, 7) + body, fds)
    return answer(s)


def fetched():
    s = connect()
    got = ask(s, FETCH, text)
    if got != DESCRIPTOR:
        raise SystemExit(f"local.py: the seed can't be fetched ({got})")
    return s


def serving(fds=()):
    s = fetched()
    return s, ask(s, SERVE, seed + struct.pack("<II", 16, 0), fds)


def in_memory(name, seals):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(f"{directory}/{name}", "rb") as f:
        os.write(fd, f.read())
    fcntl.fcntl(fd, 1033, seals)  # F_ADD_SEALS
    return fd


def userfaultfd(flags=os.O_CLOEXEC | os.O_NONBLOCK, features=None):
    fd = libc.syscall(323, flags)
    if features is not None:
        fcntl.ioctl(fd, 0xC018AA3F, struct.pack("<QQQ", 0xAA, features, 0))  # UFFDIO_API
    return fd


EVENTS = 2 | 4 | 8 | 64  # FORK, REMAP, REMOVE, UNMAP


def tickets():
    one = struct.pack("<QI", 4096, 1)
    memory = os.memfd_create("m")
    s = fetched()
    check("with the ticket, pages come", ask(s, BRING, seed + one, [memory]) == OK)
    other = connect()
    check("pages of a seed without its ticket", ask(other, BRING, seed + one, [memory]) == REFUSED)
    check("or a limit for them", ask(other, LIMIT, seed + struct.pack("<Q", 4096)) == REFUSED)
    check("which the ticket is for, too", ask(s, LIMIT, seed + struct.pack("<Q", 4096)) == OK)
    check("and processes of it", ask(other, SERVE, seed + struct.pack("<II", 16, 0)) == REFUSED)
    # Without the kernel module nobody gets one, but for another reason.
    send(other, struct.pack("<IHHQ", 16, SOURCE, 0, 7) + seed)
    check("nor its memory as a whole", reason(other) == NO_SEED)
    send(s, struct.pack("<IHHQ", 16, SOURCE, 0, 7) + seed)
    check("which the ticket is for", reason(s) != NO_SEED)
    check("but not to nobody", ask(s, BRING, seed + one) == REFUSED)
    check("nor to who can't be written to", ask(s, BRING, seed + one, [os.open("/dev/null", os.O_RDONLY)]) == REFUSED)


def files():
    whole = 2 | 4 | 8  # SHRINK, GROW, WRITE
    body = struct.pack("<QI", 60000, 0)
    for what, seals in (("without seals", 0), ("that can shrink", 4 | 8), ("that can be written", 2 | 4)):
        fds = [in_memory("descriptor", seals), in_memory("pages", seals)]
        check(f"a seed in files {what}", ask(connect(seeds), ADD, body, fds) == REFUSED)
    read, _ = os.pipe()
    check("a seed that is a pipe", ask(connect(seeds), ADD, body, [read, read]) == REFUSED)
    fds = [in_memory("descriptor", whole), in_memory("pages", whole)]
    check("a seed of the module without one", ask(connect(seeds), ADD, struct.pack("<QI", 60000, 2), fds) == REFUSED)
    check("a seed of the module that is a file", ask(connect(seeds), ADD, struct.pack("<QI", 60000, 2), fds + fds[1:]) == REFUSED)
    check("a directory with one of the module", ask(connect(seeds), ADD, struct.pack("<QI", 60000, 2) + directory.encode()) == REFUSED)
    check("one that is still filled", ask(connect(seeds), ADD, struct.pack("<QI", 60000, 3), fds) == REFUSED)
    s = connect(seeds)
    check("whether the module may be used, and another question", ask(s, EXPORTS) in (OK, REFUSED) and ask(s, REMOVE, bytes(16)) == REFUSED)
    check("sealed, it is held", ask(connect(seeds), ADD, body, fds) == TICKET)
    ask(connect(seeds), REMOVE, given)


def missing():
    s = connect(seeds)
    send(s, struct.pack("<IHHQ", 16, INSPECT, 0, 7) + given)
    data = s.recv(8192)
    code, = struct.unpack("<I", data[16 + 4 + 20:16 + 4 + 24])
    return struct.unpack("<Q", data[16 + 4 + 56:16 + 4 + 64])[0], code


def filling():
    """Pages that come after the ticket."""
    whole, size, body = 2 | 4 | 8, 2 | 4, struct.pack("<QI", 60000, 1)
    check("a directory that is being filled", ask(connect(seeds), ADD, body + directory.encode()) == REFUSED)
    fds = [in_memory("descriptor", size), in_memory("pages", size)]
    check("a descriptor that can be written", ask(connect(seeds), ADD, body, fds) == REFUSED)
    fds = [in_memory("descriptor", whole), in_memory("pages", 4)]
    check("pages that can shrink while they are filled", ask(connect(seeds), ADD, body, fds) == REFUSED)
    fds = [in_memory("descriptor", whole), in_memory("pages", size)]
    length = os.fstat(fds[1]).st_size
    s = connect(seeds)
    send(s, struct.pack("<IHHQ", len(body), ADD, 0, 7) + body, fds)
    text = s.recv(8192)[16:]
    check("pages that are still written", text.startswith(b"lean-seed:"))
    check("all but the first are missing", missing() == (length - 4096, 0))
    for what, at, n in (("bytes that are no page", 4096, 100), ("more than there is", 4096, length), ("beyond the end", 1 << 62, 1 << 63)):
        check(what, ask(s, FILLED, struct.pack("<QQ", at, n)) == REFUSED)
    check("another connection fills it", ask(connect(seeds), FILLED, struct.pack("<QQ", 4096, 4096)) == REFUSED)
    reader = connect()
    read_one = struct.pack("<QI", 4096, 1)
    memory = os.memfd_create("m")
    check("a ticket before the pages is one", ask(reader, FETCH, text) == DESCRIPTOR)
    check("a page that has not come is not read", ask(reader, BRING, given + read_one, [memory]) == REFUSED and not os.fstat(memory).st_size)
    check("what somebody waits for is told, once", [ask(s, FILLED, struct.pack("<QQ", 4096, 0)) for _ in range(2)] == [WANTED, OK])
    check("one page has come", ask(s, FILLED, struct.pack("<QQ", 4096, 4096)) == OK and missing()[0] == length - 8192)
    check("and is, when it has", ask(reader, BRING, given + read_one, [memory]) == OK and os.fstat(memory).st_size == 8192)
    check("it comes once", ask(s, FILLED, struct.pack("<QQ", 4096, 4096)) == OK and missing()[0] == length - 8192)
    check("all have come", ask(s, FILLED, struct.pack("<QQ", 0, length)) == OK and missing() == (0, 0))
    s.close()
    for _ in range(50):
        if missing()[1]:
            break
        time.sleep(0.1)
    check("but it was never sealed: damaged", missing()[1] == 9)
    s = connect(seeds)
    ask(s, ADD, body, [in_memory("descriptor", whole), fds[1]])
    ask(s, FILLED, struct.pack("<QQ", 0, length))
    fcntl.fcntl(fds[1], 1033, 8)
    check("it is sealed", ask(s, FILLED, struct.pack("<QQ", 0, 0)) == OK)
    check("what is whole is not filled", ask(s, FILLED, struct.pack("<QQ", 4096, 4096)) == REFUSED)
    s.close()
    time.sleep(0.3)
    check("and stays", missing() == (0, 0))
    ask(connect(seeds), REMOVE, given)
    s = connect(seeds)
    ask(s, ADD, body, [in_memory("descriptor", whole), in_memory("pages", size)])
    ask(connect(seeds), REMOVE, given)
    check("a revoked one is not filled", ask(s, FILLED, struct.pack("<QQ", 4096, 4096)) == REFUSED)


def cgroups():
    victim = f"{work}/victim"
    with open(victim, "w") as f:
        f.write("as it was")
    os.symlink(victim, f"{work}/cgroup.kill")
    s, got = serving([os.open(work, os.O_PATH | os.O_DIRECTORY)])
    check("a directory that is no cgroup", got == REFUSED)
    s.close()
    check("a file as a cgroup", serving([os.open(victim, os.O_RDONLY)])[1] == REFUSED)
    with open(victim) as f:
        check("nothing was written there", f.read() == "as it was")


def not_in_place(what, fd):
    s, got = serving()
    send(s, struct.pack("<I", 0), [fd])
    check(f"{what} in place of a userfaultfd", got == OK and ask(s, READY, struct.pack("<I", 1)) == REFUSED)
    s.close()


def processes():
    read, write = os.pipe()
    os.mkfifo(f"{work}/fifo")
    fifo = os.open(f"{work}/fifo", os.O_RDWR)
    for what, fd in (("a file in memory", os.memfd_create("x")), ("a pipe", read), ("a FIFO", fifo),
                     ("/dev/null", os.open("/dev/null", os.O_RDWR)), ("a socket", socket.socket().detach()),
                     ("an unused one", userfaultfd()), ("one without events", userfaultfd(features=0))):
        not_in_place(what, fd)
    os.close(write)
    s, _ = serving()
    send(s, struct.pack("<I", 99), [userfaultfd(features=EVENTS)])
    check("a process that the seed does not have", ask(s, READY, struct.pack("<I", 1)) == REFUSED)
    s, _ = serving()
    check("a process that never came", ask(s, READY, struct.pack("<I", 1)) == REFUSED)
    s, _ = serving()
    check("another question while processes are served", ask(s, FETCH, text) == REFUSED)


def messages():
    for what, data in (("garbage", os.urandom(64)), ("a long datagram", bytes(9000)), ("an answer", struct.pack(
            "<IHHQ", 0, OK, 0, 0)), ("a peer's question", struct.pack("<IHHQ", 12, 5, 0, 0) + bytes(12))):
        s = connect()
        send(s, data)
        check(what, answer(s) in (0, REFUSED))


def pid_of_listener():
    return struct.unpack("3i", connect().getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def descriptors():
    daemon = pid_of_listener()
    before = len(os.listdir(f"/proc/{daemon}/fd"))
    for n in (3, 8, 9, 200):
        s = connect()
        try:
            send(s, struct.pack("<IHHQ", 0, 35, 0, 0), [0] * n)
            answer(s)
        except OSError:
            pass
        s.close()
    for _ in range(50):
        now = len(os.listdir(f"/proc/{daemon}/fd"))
        if now <= before:
            break
        time.sleep(0.1)
    check("more descriptors than anybody asked for are closed", now <= before)


def others():
    """The mode of the socket keeps them out; and if it did not?"""
    os.chmod(children, 0o777)
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresuid(65534, 65534, 65534)
        try:
            s = connect()
            got = answer(s)
            again = 0
            try:
                again = ask(s, 35, struct.pack("<I", 0))
            except OSError:
                pass
            os._exit(0 if got in (0, REFUSED) and not again else 1)
        except OSError:
            os._exit(2)
    status = os.waitpid(pid, 0)[1]
    os.chmod(children, 0o600)
    check("another user gets nothing", status == 0)


os.chmod(work, 0o755)
tickets()
files()
filling()
cgroups()
processes()
messages()
descriptors()
others()
print(f"# {count} tries")
sys.exit(bad != 0)
