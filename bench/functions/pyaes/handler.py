# SPDX-License-Identifier: Apache-2.0
"""AES in pure Python: encrypts and decrypts 16 KiB in counter mode."""
import hashlib

import pyaes

SIZE = 16 << 10
KEY = bytes(range(16))


def setup():
    text = bytes(i * 7 % 251 for i in range(SIZE))
    # A known answer (FIPS 197, appendix C.1), so that it is AES what we measure.
    block = pyaes.AES(KEY).encrypt(bytes(0x11 * i for i in range(16)))
    if bytes(block).hex() != "69c4e0d86a7b0430d8cdb78070b4c55a":
        raise ValueError("this is no AES")
    return text


def handle(text):
    secret = pyaes.AESModeOfOperationCTR(KEY).encrypt(text)
    back = pyaes.AESModeOfOperationCTR(KEY).decrypt(secret)
    return {"bytes": len(secret), "same": back == text, "sha256": hashlib.sha256(secret).hexdigest()}
