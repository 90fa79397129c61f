# SPDX-License-Identifier: Apache-2.0
"""Few numbers of many samples, and what two sets of samples say about each other."""
import math
import random
import statistics

VERDICTS = ("faster", "slower", "same", "can't tell")


def quantile(ordered, q):
    """Nearest rank: a value that was measured."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def summary(values, digits=1):
    ordered = sorted(values)
    return {"min": round(ordered[0], digits), "p50": round(quantile(ordered, 0.5), digits),
            "p99": round(quantile(ordered, 0.99), digits),
            "mean": round(sum(ordered) / len(ordered), digits)}


def ratio_interval(old, new, confidence, resamples=None):
    """(low, high): where median(new) / median(old) lies with that confidence, by a bootstrap of turns.

    The nth of both were taken in the same turn, and stay together. Turns are drawn in blocks of neighbours, since a
    load of the machine lasts longer than a turn: drawn one by one, they would look more certain than they are. The
    same samples always give the same interval."""
    turns = min(len(old), len(new))
    size = max(1, round(turns ** (1 / 3)))
    tail = (1 - confidence) / 2
    count = resamples or max(2000, math.ceil(10 / tail))
    draw = random.Random(turns).randrange
    twice_old, twice_new = 2 * list(old[:turns]), 2 * list(new[:turns]) # the last turn's neighbour is the first
    ratios = []
    for _ in range(count):
        a, b = [], []
        while len(a) < turns:
            at = draw(turns)
            a += twice_old[at:at + size]
            b += twice_new[at:at + size]
        ratios.append(statistics.median(b[:turns]) / statistics.median(a[:turns]))
    ratios.sort()
    at = int(tail * count)
    return ratios[at], ratios[-1 - at]


def mann_whitney(old, new):
    """How likely samples that differ so much in rank would be, if both came from the same (two-sided p; normal
    approximation with ties and continuity)."""
    n, m = len(old), len(new)
    ordered = sorted([(value, 0) for value in old] + [(value, 1) for value in new])
    ranks, ties, i = 0.0, 0, 0
    while i < n + m:
        j = i
        while j < n + m and ordered[j][0] == ordered[i][0]:
            j += 1
        ranks += sum(which for _, which in ordered[i:j]) * (i + 1 + j) / 2
        ties += (j - i) ** 3 - (j - i)
        i = j
    u = ranks - m * (m + 1) / 2
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def verdict(low, high, p, alpha, bar):
    """slower or faster only if interval and p both say so, same only if all of the interval is within the bar."""
    if p < alpha and low > 1:
        return "slower"
    if p < alpha and high < 1:
        return "faster"
    return "same" if 1 / bar <= low and high <= bar else "can't tell"
