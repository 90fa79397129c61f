#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""server.py SEED-DIRECTORY HOST PORT TICKET-FILE HOW: a host of one seed that does not keep to the protocol (plain).

It writes the ticket, serves, and says what it did in standard error. HOW names what is wrong; "honest": nothing."""
import os
import socket
import struct
import sys
import threading
import time

from wire import whole

directory, host, port, ticket, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
descriptor = open(f"{directory}/descriptor", "rb").read()
pages = open(f"{directory}/pages", "rb").read()
seed = bytes.fromhex(sys.argv[6]) if len(sys.argv) > 6 else descriptor[32:48]
WELCOME, REFUSED, DESCRIBE, READ, DATA, PONG, ENTRY, MODULE = 2, 3, 4, 5, 6, 8, 10, 13
answers = connections = 0


def sealed(text):
    """A descriptor with the sum that belongs to it: what else is wrong has to be found by itself."""
    value = 0xCBF29CE484222325
    for byte in text[:56] + text[64:]:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return text[:56] + struct.pack("<Q", value) + text[64:]


assert sealed(descriptor) == descriptor
others = sealed(descriptor[:32] + bytes(16) + descriptor[48:])


def message(kind, body=b"", tag=0, length=None):
    return struct.pack("<IHHQ", len(body) if length is None else length, kind, 0, tag) + body


def greeting(code=0, version=1, magic=b"LEANWIRE"):
    return magic + struct.pack("<HHI", 0 if code else version, code, 0) + os.urandom(32)


def welcome(count=256, length=len(descriptor), size=len(pages), ident=seed):
    return message(WELCOME, struct.pack("<IQQQ", count, length, size, 3600000) + ident)


def refused(code, text=b""):
    return message(REFUSED, struct.pack("<I", code) + text)


GREETINGS = {
    "no greeting": b"",
    "garbage": os.urandom(4096),
    "another version": greeting(version=9),
    "revoked, before any proof": greeting(code=2),
    "an unknown code": greeting(code=200),
    "half a greeting": greeting()[:20],
}
WELCOMES = {
    "another seed": welcome(ident=bytes(16)),
    "a descriptor of 2^60 bytes": welcome(length=1 << 60),
    "a descriptor of nothing": welcome(length=0),
    "pages of nothing": welcome(size=0),
    "pages that are none": welcome(size=4097),
    "pages without end": welcome(size=1 << 63),
    "no pages at once": welcome(count=0),
    "a message of 4 GiB": message(WELCOME, b"", 0, 0xFFFFFFFF),
    "data in place of a welcome": message(DATA, b"x" * 48),
    "a text that is not printable": refused(2, b"\x1b[2J\n"),
    "a code that there is not": refused(99),
}


def entry(port, tag, token=b"t" * 32):
    return message(ENTRY, struct.pack("<I", port) + token, tag)


# Answers to MODULE, by the tag of the question; None: the connection ends.
ENTRIES = {
    "module: port 70000": lambda tag: entry(70000, tag),
    "module: port 2^32 - 1": lambda tag: entry(0xFFFFFFFF, tag),
    "module: a token that is too short": lambda tag: entry(7411, tag, b"t" * 31),
    "module: a token that is too long": lambda tag: entry(7411, tag, b"t" * 33),
    "module: an entry without anything": lambda tag: message(ENTRY, b"", tag),
    "module: an entry of 4 GiB": lambda tag: message(ENTRY, b"", tag, 0xFFFFFFFF),
    "module: the tag of another question": lambda tag: entry(7411, tag + 1),
    "module: pages in place of an entry": lambda tag: message(DATA, b"x" * 36, tag),
    "module: half an entry, and silence": lambda tag: entry(7411, tag)[:30],
    "module: garbage": lambda tag: os.urandom(200),
    "module: a refusal": lambda tag: refused(8),
    "module: that the seed is revoked": lambda tag: refused(2),
    "module: never an answer": lambda tag: b"",
    "module: an end": None,
    # These lead to a connection of the module's.
    "entry": lambda tag: entry(7777, tag),
    "entry, and one more that nobody asked for": lambda tag: entry(7777, tag) + entry(6666, tag),
}


def question(s):
    length, kind, _, tag = struct.unpack("<IHHQ", whole(s, 16))
    body = whole(s, length)
    if kind == DESCRIBE:
        at, count = struct.unpack("<QI", body)
        return kind, tag, descriptor[at:at + count]
    if kind == MODULE:
        return kind, tag, b""
    if kind != READ:
        raise EOFError
    data = b""
    for i in range(0, length, 12):
        at, count = struct.unpack("<QI", body[i:i + 12])
        data += pages[at:at + 4096 * count]
    return kind, tag, data


def mangled(kind, tag, data):
    """What goes out in place of an answer, and whether the connection ends then."""
    if how == "the tag of another question":
        return message(DATA, bytes(len(data)), tag + 1), False
    if how == "a byte less":
        return message(DATA, data[:-1], tag), False
    if how == "a page more":
        return message(DATA, data + bytes(4096), tag), False
    if how == "half of it":
        return message(DATA, data, tag)[:16 + len(data) // 2], True
    if how == "an answer that nobody asked for":
        return message(PONG, struct.pack("<Q", 1), tag), False
    if how == "more than there may be":
        return message(DATA, b"", tag, (1 << 20) + 1), True
    if how == "a refusal that is none":
        return refused(77), True
    if how == "busy":
        return refused(5), True
    return None, False


def talk(s):
    global answers, connections
    connections += 1
    whole(s, 32)
    if how in GREETINGS:
        s.sendall(GREETINGS[how])
        return
    s.sendall(greeting())
    if how == "nothing behind the greeting":
        whole(s, 1 << 20)
    whole(s, 48)
    if how == "a byte now and then":
        for byte in welcome():
            s.sendall(bytes([byte]))
            time.sleep(1)
        return
    if how in WELCOMES:
        s.sendall(WELCOMES[how])
        return
    changes = how == "another seed, when it is asked again"
    s.sendall(welcome(length=len(descriptor) + 8) if changes and connections > 1 else welcome())
    while True:
        kind, tag, data = question(s)
        answers += kind == READ
        if kind == MODULE:
            if not ENTRIES.get(how):
                return
            s.sendall(ENTRIES[how](tag))
            continue
        if changes and connections == 1 and kind == READ:
            return
        if how == "a descriptor of another seed" and kind == DESCRIBE:
            data = others[:len(data)] if len(data) == len(others) else data
        wrong, end = mangled(kind, tag, data) if kind == READ and answers % 3 == 0 else (None, False)
        s.sendall(wrong or message(DATA, data, tag))
        if how == "two answers for one question":
            s.sendall(message(DATA, bytes(len(data)), tag))
        if end:
            return


def serve(s):
    try:
        talk(s)
    except (EOFError, OSError, struct.error):
        pass
    finally:
        s.close()


listener = socket.create_server((host, port), backlog=64)
with open(ticket, "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
    f.write(f"lean-seed:1:plain:{seed.hex()}:{'A' * 43}@{host}:{port}\n")
if how == "list":
    print("\n".join([*GREETINGS, *WELCOMES]))
    sys.exit()
if how == "entries":
    print("\n".join(h for h in ENTRIES if h.startswith("module: ")))
    sys.exit()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
