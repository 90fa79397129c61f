# SPDX-License-Identifier: Apache-2.0
"""Packs files of some MB together into a zip archive, and reads back what is in it."""
import hashlib
import io
import random
import zipfile

FILES = 8
FILE_SIZE = 256 << 10
WORDS = 4000


def setup():
    """Files of words, of which some are frequent: they shrink as text does."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(WORDS)]
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    files = {}
    for number in range(FILES):
        text = " ".join(chance.choices(words, weights, k=FILE_SIZE // 3))
        files[f"file{number}.txt"] = text.encode()[:FILE_SIZE].ljust(FILE_SIZE)
    return files


def handle(files):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    digest = hashlib.sha256()
    with zipfile.ZipFile(archive) as z:
        # How small it got differs between versions of zlib; what comes out again does not.
        for name in z.namelist():
            digest.update(name.encode() + z.read(name))
    size = sum(len(data) for data in files.values())
    return {"files": len(files), "bytes": size, "smaller": archive.tell() < size / 2, "sha256": digest.hexdigest()}
