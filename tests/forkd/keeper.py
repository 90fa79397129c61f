#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""keeper.py give SOCKET HOW DIRECTORY: says that it is the keeper of a daemon that has ended, and hands the seed of the directory over.
keeper.py list: what it can be, a line each. keeper.py deaf SOCKET: listens there, and never answers. keeper.py ask SOCKET UID: what that user is told by a keeper."""
import array
import fcntl
import os
import socket
import struct
import sys
import time

HOWS = ("honest", "nothing at first", "a lease that is over", "another version", "something else", "more seeds than there may be", "a row that is too short",
        "a seed without its files", "files of a seed that has ended", "a lease that begins later", "a descriptor that can be changed",
        "pages that can be changed", "pages of a descriptor", "a pipe for its pages", "a directory for its pages", "one file more than it has", "the name of another seed", "a code that is none")


def in_memory(path, sealed=True):
    fd = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(path, "rb") as f:
        os.sendfile(fd, f.fileno(), 0, os.fstat(f.fileno()).st_size)
    if sealed:
        fcntl.fcntl(fd, 1033, 2 | 4 | 8)  # F_ADD_SEALS
    return fd


def give(path, how, directory):
    if how == "other":
        os.setgroups([])
        os.setresuid(65534, 65534, 65534)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(path)
    s.listen()
    if how == "nothing at first":
        s.accept()[0].close()
    c = s.accept()[0]
    version = 2 if how == "another version" else 1
    magic = b"SOMETHIN" if how == "something else" else b"LEANKEEP"
    rows = 4000 if how == "more seeds than there may be" else 2 if how == "half" else 1
    c.send(struct.pack("<8s4I", magic, version, 80, rows, 0))
    now = int(time.monotonic() * 1000)
    with open(directory + "/descriptor", "rb") as f:
        name = f.read()[NAME:NAME + 16]
    if how == "the name of another seed":
        name = bytes(16)
    code = 2 if how == "files of a seed that has ended" else 77 if how == "a code that is none" else 0
    until = {"a lease that is over": now - 1, "a lease that begins later": now + 60000}.get(how, now + 3000)
    row = struct.pack("<16s32sIIQQq", name, bytes(range(32)), code, 0, 4000, 0, until)
    fds = [in_memory(directory + "/descriptor", how != "a descriptor that can be changed"),
           in_memory(directory + "/pages", how != "pages that can be changed")]
    if how == "pages of a descriptor":
        fds[1] = fds[0]
    if how == "a pipe for its pages":
        fds[1] = os.pipe()[0]
    if how == "a directory for its pages":
        fds[1] = os.open(directory, os.O_RDONLY)
    if how == "one file more than it has":
        fds.append(fds[1])
    if how == "a seed without its files":
        fds = []
    if how == "a row that is too short":
        row = row[:-8]
    c.sendmsg([row], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    if how == "half":
        c.close()
        time.sleep(60)  # and still has them
    c.recv(8)


def deaf(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(path)
    s.listen(0)
    first = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    first.connect(path)
    time.sleep(60)


def ask(path, user):
    os.setgroups([])
    os.setresuid(user, user, user)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(path)
    try:
        got = s.recv(4096)
    except ConnectionResetError:
        got = b""
    print(got[:8].decode() or "nothing")


NAME = 32  # where the descriptor has the seed's id
if sys.argv[1] == "list":
    print("\n".join(HOWS))
elif sys.argv[1] == "deaf":
    deaf(sys.argv[2])
elif sys.argv[1] == "ask":
    ask(sys.argv[2], int(sys.argv[3]))
else:
    give(*sys.argv[2:])
