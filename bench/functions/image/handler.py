# SPDX-License-Identifier: Apache-2.0
"""Decodes a picture, rotates it three times, and encodes each of them."""
import hashlib
import io

from PIL import Image

SIDE = 640
TURNS = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)


def setup():
    """A picture as a PNG, which keeps every pixel, so that the result is known to the bit."""
    wide, high = SIDE, SIDE * 3 // 4
    pixels = bytes(value for y in range(high) for x in range(wide)
                   for value in (x * 255 // wide, y * 255 // high, (x * x + y * y) // 64 % 256))
    file = io.BytesIO()
    Image.frombytes("RGB", (wide, high), pixels).save(file, "PNG")
    return file.getvalue()


def handle(data):
    turned = []
    for turn in TURNS:
        picture = Image.open(io.BytesIO(data)).transpose(turn)
        file = io.BytesIO()
        picture.save(file, "PNG", compress_level=1)
        turned.append({"size": list(picture.size), "written": file.tell() > 1000,
                       "sha256": hashlib.sha256(picture.tobytes()).hexdigest()})
    return {"pictures": turned}
