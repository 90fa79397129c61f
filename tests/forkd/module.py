#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lean-forkd does with a kernel module, which a stand-in takes the place of (fake_module.c).

module.py source SOCKET TICKET-FILE: asks for a source, as who continues a seed does. "source", or why there is none.
module.py add SOCKET SEED-DIRECTORY PAGES: gives the seed, with so many pages that the module has. Prints the ticket.
module.py ask HOST PORT TICKET-FILE: asks once where the module listens (plain). "PORT TOKEN".
module.py peer HOST PORT TICKET-FILE OTHER...: a peer that tries what it may not (plain); also by the other addresses. TAP."""
import array
import base64
import fcntl
import hashlib
import hmac
import os
import socket
import struct
import sys

from wire import whole

REFUSED, ENTRY, MODULE = 3, 10, 13
ADD, FETCH, OK, TICKET, DESCRIPTOR, SOURCE = 32, 37, 40, 41, 43, 47
EXPORTED = 2  # a flag of ADD
count = bad = 0


def check(what, right):
    global count, bad
    count += 1
    bad += not right
    print(f"{'ok' if right else 'not ok'} {count} - module: {what}", flush=True)


# ---- by the local socket ----------------------------------------------------------------------


def ask_here(s, kind, body=b"", fds=()):
    """Type, body and descriptors of the answer."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([struct.pack("<IHHQ", len(body), kind, 0, 7) + body], rights)
    data, fds, _, _ = socket.recv_fds(s, 8192, 8)
    return struct.unpack("<H", data[4:6])[0], data[16:], fds


def here(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    s.connect(path)
    return s


def source(path, ticket):
    with open(ticket, "rb") as t:
        text = t.read().strip()
    s = here(path)
    kind, body, _ = ask_here(s, FETCH, text)
    if kind == DESCRIPTOR:
        kind, body, fds = ask_here(s, SOURCE, bytes.fromhex(text.split(b":")[3].decode()))
        if kind == OK and len(fds) == 1:
            return "source"
    return "refused: " + body[4:].decode(errors="replace")


def sealed(name, data):
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, 2 | 4 | 8)  # F_ADD_SEALS: no other size, nothing written
    return fd


def add(path, directory, pages):
    files = [sealed(name, open(f"{directory}/{name}", "rb").read()) for name in ("descriptor", "pages")]
    module = os.memfd_create("lean-seed-exported")
    os.truncate(module, 4096 * int(pages))
    kind, body, _ = ask_here(here(path), ADD, struct.pack("<QI", 3600000, EXPORTED), [*files, module])
    return body.decode() if kind == TICKET else "refused: " + body[4:].decode(errors="replace")


# ---- as a peer --------------------------------------------------------------------------------


def message(kind, body=b""):
    return struct.pack("<IHHQ", len(body), kind, 0, 7) + body


def answer(s):
    length, kind, _, _ = struct.unpack("<IHHQ", whole(s, 16))
    return kind, whole(s, length)


class Peer:
    def __init__(self, host, port, ticket):
        text = open(ticket).read().strip()
        self.host, self.port = host, int(port)
        self.seed = bytes.fromhex(text.split(":")[3])
        self.key = base64.urlsafe_b64decode(text.split(":")[4].split("@")[0] + "=")

    def connect(self, host=None, prove=True):
        s = socket.create_connection((host or self.host, self.port), timeout=10)
        s.sendall(b"LEANWIRE" + struct.pack("<HHHH", 1, 1, 2, 0) + self.seed)
        challenge = whole(s, 48)[16:]
        if prove:
            s.sendall(message(1, hmac.new(self.key, b"lean-seed 1 client" + challenge + self.seed, hashlib.sha256).digest()))
            answer(s)
        return s

    def entry(self, s):
        """Port and token, or None: another answer, or an end."""
        try:
            s.sendall(message(MODULE))
            kind, body = answer(s)
        except (EOFError, OSError):
            return None
        return (struct.unpack("<I", body[:4])[0], body[4:]) if kind == ENTRY else None


def peer(host, port, ticket, *others):
    p = Peer(host, port, ticket)
    check("who has proved nothing is told nothing", p.entry(p.connect(prove=False)) is None)
    s = p.connect()
    tokens = [p.entry(s) for _ in range(100)]
    check("a token for each question, at our own port", all(t and t[0] == p.port for t in tokens))
    check("and each is another one", len({t[1] for t in tokens}) == len(tokens) and all(any(t[1]) for t in tokens))
    s.sendall(message(MODULE, b"x"))
    check("a question with something behind it is malformed", answer(s)[0] == REFUSED)
    for other in others:
        p.entry(p.connect(other))
    check("by more addresses than there are places", p.entry(p.connect(others[-1])) is not None)
    s = p.connect()
    for _ in range(20000):
        s.sendall(message(MODULE))
    s.close()
    check("questions whose answers nobody reads, and the daemon still answers", p.entry(p.connect()) is not None)
    print("# 6 tries")


if sys.argv[1] == "source":
    print(source(*sys.argv[2:]))
elif sys.argv[1] == "add":
    print(add(*sys.argv[2:]))
elif sys.argv[1] == "ask":
    them = Peer(*sys.argv[2:])
    got = them.entry(them.connect())
    print(f"{got[0]} {got[1].hex()}" if got else "none")
else:
    peer(*sys.argv[2:])
    sys.exit(bad > 0)
