# SPDX-License-Identifier: Apache-2.0
"""What the peers and hosts of these tests have in common."""


def whole(s, n):
    out = b""
    while len(out) < n:
        got = s.recv(n - len(out))
        if not got:
            raise EOFError
        out += got
    return out
