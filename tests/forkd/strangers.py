#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strangers.py HOST PORT ID ADDRESS...: from each address as many connections as one peer may have, which say which seed
they want and then nothing; for ever. Prints a line when all are there first."""
import socket
import struct
import sys
import time

host, port, seed, addresses = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3]), sys.argv[4:]
kept, said = [], False


def connect(address):
    try:
        s = socket.create_connection((host, port), timeout=1, source_address=(address, 0))
        s.sendall(b"LEANWIRE" + struct.pack("<HHHH", 1, 1, 1, 0) + seed)
        code = struct.unpack("<H", s.recv(48)[10:12])[0]
        if code == 0:
            kept.append(s)
        return code == 0
    except (OSError, struct.error):
        return False


def there(s):
    s.setblocking(False)
    try:
        return bool(s.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


while True:
    for address in addresses:
        while sum(s.getsockname()[0] == address for s in kept) < 16 and connect(address):
            pass
    if not said:
        print(f"{len(kept)} connections", flush=True)
        said = True
    kept[:] = [s for s in kept if there(s) or s.close()]
    time.sleep(0.05)
