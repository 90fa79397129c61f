#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile.py HOST PORT TICKET: what a peer of lean-forkd (--plain, --handshake 1s, --idle 3s) may try. TAP."""
import base64
import hashlib
import hmac
import os
import socket
import struct
import sys
import time

host, port, ticket = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ident, secret = ticket.split(":")[3], ticket.split(":")[4].split("@")[0]
seed, key = bytes.fromhex(ident), base64.urlsafe_b64decode(secret + "=")
REFUSED, WELCOME, DATA = 3, 2, 6
count = bad = 0


def check(what, right):
    global count, bad
    count += 1
    bad += not right
    print(f"{'ok' if right else 'not ok'} {count} - hostile peer: {what}", flush=True)


def connect():
    return socket.create_connection((host, port), timeout=10)


def whole(s, n):
    out = b""
    while len(out) < n:
        got = s.recv(n - len(out))
        if not got:
            break
        out += got
    return out


def ended(s):
    """The other side closes; what it says before does not matter."""
    try:
        while s.recv(65536):
            pass
    except (TimeoutError, socket.timeout):
        return False
    except OSError:
        pass
    return True


def hello(way=2, which=seed, oldest=1, newest=1):
    return b"LEANWIRE" + struct.pack("<HHHH", oldest, newest, way, 0) + which


def greeted(**more):
    s = connect()
    s.sendall(hello(**more))
    g = whole(s, 48)
    return s, struct.unpack("<HH", g[8:12])[1], g[16:]


def message(kind, body=b"", length=None):
    return struct.pack("<IHHQ", len(body) if length is None else length, kind, 0, 7) + body


def answer(s):
    head = whole(s, 16)
    if len(head) < 16:
        return 0, b""
    length, kind = struct.unpack("<IH", head[:6])
    return kind, whole(s, length)


def proof(challenge, with_key=key):
    return hmac.new(with_key, b"lean-seed 1 client" + challenge + seed, hashlib.sha256).digest()


def let_in():
    s, _, challenge = greeted()
    s.sendall(message(1, proof(challenge)))
    return s, answer(s)


def code(body):
    return struct.unpack("<I", body[:4])[0] if len(body) >= 4 else None


def before_proof():
    s = connect()
    s.sendall(os.urandom(4096))
    check("garbage in place of a hello", ended(s))
    s = connect()
    s.sendall(hello()[:20])
    s.shutdown(socket.SHUT_WR)
    check("half a hello", ended(s))
    check("no such seed", greeted(which=bytes(16))[1] == 1)
    check("no common version", greeted(oldest=9, newest=9)[1] == 6)
    s, _, challenge = greeted()
    s.sendall(message(1, proof(challenge, bytes(32))))
    kind, body = answer(s)
    check("a wrong secret is refused", kind == REFUSED and code(body) == 4 and ended(s))
    s, _, challenge = greeted()
    old = message(1, proof(challenge))
    s.sendall(old)
    first = answer(s)[0]
    s = greeted()[0]
    s.sendall(old)
    kind, body = answer(s)
    check("a proof that was heard before proves nothing", first == WELCOME and kind == REFUSED and code(body) == 4)
    s = greeted()[0]
    s.sendall(message(5, struct.pack("<QI", 4096, 1)))
    check("pages without a proof", answer(s)[0] != DATA and ended(s))


def slow():
    s, began = connect(), time.monotonic()
    gone = False
    for byte in hello():
        try:
            s.sendall(bytes([byte]))
            time.sleep(0.2)
        except OSError:
            gone = True
            break
    check("a byte now and then", gone or ended(s))
    check("and no longer than the handshake may take", time.monotonic() - began < 9)


def after_proof():
    s, (kind, _) = let_in()
    s.sendall(message(5, struct.pack("<QI", 4096, 2)))
    kind2, body = answer(s)
    check("a ticket lets in", kind == WELCOME and kind2 == DATA and len(body) == 8192)
    bads = {
        "a length of 4 GiB": message(5, b"", 0xFFFFFFFF),
        "more ranges than allowed": message(5, struct.pack("<QI", 4096, 1) * 65),
        "more pages than allowed": message(5, struct.pack("<QI", 4096, 257)),
        "pages behind the end": message(5, struct.pack("<QI", 1 << 40, 1)),
        "an offset that overflows": message(5, struct.pack("<QI", (1 << 64) - 4096, 2)),
        "an offset that is none": message(5, struct.pack("<QI", 4097, 1)),
        "the header's page": message(5, struct.pack("<QI", 0, 1)),
        "the descriptor, behind its end": message(4, struct.pack("<QI", 1 << 62, 4096)),
        "the descriptor, 4 GiB of it": message(4, struct.pack("<QI", 0, 0xFFFFFFFF)),
        "a local question": message(34, seed),
        "an unknown type": message(99),
        "an answer": message(6, b"x" * 4096),
        "a proof again": message(1, bytes(32)),
        "garbage": os.urandom(64),
    }
    for what, text in bads.items():
        s, _ = let_in()
        s.sendall(text)
        kind, body = answer(s)
        check(what, kind == REFUSED and code(body) == 8 and ended(s))
    s, _ = let_in()
    s.sendall(message(5, struct.pack("<QI", 4096, 1))[:20])
    check("half a message, then nothing", ended(s))
    s, _ = let_in()
    for _ in range(200):
        s.sendall(message(5, struct.pack("<QI", 4096, 256)))
    s.close()  # asks for 200 MiB, takes none of it
    check("one that vanishes does not take the daemon with it", let_in()[1][0] == WELCOME)


def idle():
    s, (kind, _) = let_in()
    check("a ticket, and then nothing: the connection ends", kind == WELCOME and ended(s))


def flood():
    kept, busy = [], False
    for _ in range(40):
        s = connect()
        s.sendall(hello())
        kept.append(s)
        try:
            busy = busy or struct.unpack("<HH", whole(s, 48)[8:12])[1] == 5
        except (OSError, struct.error):
            pass
    check("more connections than one peer may have", busy)
    for s in kept:
        s.close()
    time.sleep(2)
    check("and after that it is let in again", let_in()[1][0] == WELCOME)


before_proof()
slow()
after_proof()
idle()
flood()
print(f"# {count} tries")
sys.exit(bad != 0)
