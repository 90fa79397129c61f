# SPDX-License-Identifier: Apache-2.0
"""Classifies a picture of 224 by 224 pixels by an untrained network of the shape of ResNet-50.

The layers are those of He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (2015), the stride of a
block being in its 3x3 convolution. Weights are random, so the answer means nothing, but is as much work as that of
a trained one: 25.5 million weights, 4.1 billion multiplications. Batch normalisation of a trained network is a
factor and a bias for each channel: the factor is in the weights here. Everything is a product of matrices, by numpy's
BLAS, in one thread (server's environment): containers, not threads, are what runs at once."""
import numpy as np

SIDE = 224
CLASSES = 1000
# width, blocks and stride of each stage; a block widens four times
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


class Convolution:
    """of images (height, width, channels), by a product of matrices"""

    def __init__(self, chance, size, channels, wanted, stride=1, gain=2.0):
        rows = size * size * channels
        self.size, self.stride = size, stride
        self.weights = chance.standard_normal((rows, wanted), np.float32)
        self.weights *= np.float32((gain / rows) ** 0.5)
        self.bias = chance.standard_normal(wanted, np.float32) * np.float32(0.01)

    def __call__(self, x):
        if self.size > 1:
            edge = self.size // 2
            x = np.pad(x, ((edge, edge), (edge, edge), (0, 0)))
            windows = np.lib.stride_tricks.sliding_window_view(x, (self.size, self.size), (0, 1))
            windows = windows[::self.stride, ::self.stride].transpose(0, 1, 3, 4, 2)
        else:
            windows = x[::self.stride, ::self.stride]
        high, wide = windows.shape[:2]
        flat = windows.reshape(high * wide, -1)
        return (flat @ self.weights + self.bias).reshape(high, wide, -1)


class Block:
    """1x1, 3x3 and 1x1 beside a short cut"""

    def __init__(self, chance, channels, width, stride):
        self.narrow = Convolution(chance, 1, channels, width)
        self.middle = Convolution(chance, 3, width, width, stride)
        self.widen = Convolution(chance, 1, width, 4 * width, gain=0.5)
        self.short = None
        if stride > 1 or channels != 4 * width:
            self.short = Convolution(chance, 1, channels, 4 * width, stride, gain=1.0)

    def __call__(self, x):
        y = np.maximum(self.narrow(x), 0)
        y = np.maximum(self.middle(y), 0)
        y = self.widen(y)
        y += self.short(x) if self.short else x
        return np.maximum(y, 0, out=y)


def halve(x):
    """the greatest of 3 by 3, every second time"""
    x = np.pad(x, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    high, wide = (x.shape[0] - 1) // 2, (x.shape[1] - 1) // 2
    parts = (x[i:i + 2 * high:2, j:j + 2 * wide:2] for i in range(3) for j in range(3))
    best = next(parts).copy()
    for part in parts:
        np.maximum(best, part, out=best)
    return best


def setup():
    chance = np.random.default_rng(4)
    first = Convolution(chance, 7, 3, 64, 2)
    blocks, channels = [], 64
    for width, count, stride in STAGES:
        for number in range(count):
            blocks.append(Block(chance, channels, width, stride if number == 0 else 1))
            channels = 4 * width
    last = chance.standard_normal((channels, CLASSES), np.float32) * np.float32(channels ** -0.5)
    picture = chance.random((SIDE, SIDE, 3), np.float32)
    return first, blocks, last, picture


def handle(state):
    first, blocks, last, picture = state
    x = halve(np.maximum(first(picture), 0))
    for block in blocks:
        x = block(x)
    scores = x.mean((0, 1)) @ last
    odds = np.exp(scores - scores.max())
    odds /= odds.sum()
    best = [int(i) for i in np.argsort(odds)[::-1][:5]]
    # Rounded: processors add in different orders.
    return {"classes": len(odds), "best": best, "odds": round(float(odds[best[0]]), 3)}
