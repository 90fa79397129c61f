# SPDX-License-Identifier: Apache-2.0
"""Few numbers of many samples, and what two sets of samples say about each other."""
import math
import random
import statistics

VERDICTS = ("faster", "slower", "same", "can't tell")


TAIL_MIN = 30  # of fewer samples a p99 would only be their greatest
EXACT_MAX = 40
SAME_MIN = 30  # of fewer turns an interval is too narrow to say that nothing is the matter


def quantile(ordered, q):
    """Nearest rank: a value that was measured, the least that so many of all don't exceed."""
    return ordered[max(0, math.ceil(q * len(ordered) - 1e-9) - 1)]


def summary(values, digits=1):
    """p50 is the median: of an even number, between the middle two. No p99 of few."""
    ordered = sorted(values)
    found = {"min": ordered[0], "p50": statistics.median(ordered), "p99": quantile(ordered, 0.99),
             "mean": sum(ordered) / len(ordered)}
    if len(ordered) < TAIL_MIN:
        del found["p99"]
    return {part: round(value, digits) for part, value in found.items()}


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


def signed_rank(old, new):
    """How likely pairs that differ so much would be, if either could as well have been the other (two-sided p of
    Wilcoxon's test of the logarithms of the ratios). The nth of both were taken in the same turn: what loads the machine
    has both, and isn't in their ratio. Exact for few turns, a normal approximation for many."""
    logs = [math.log(b / a) for a, b in zip(old, new) if a != b]
    count = len(logs)
    logs.sort(key=abs)
    ranks, i = [], 0 # doubled, so that ties have whole ones
    while i < count:
        j = i
        while j < count and abs(logs[j]) == abs(logs[i]):
            j += 1
        ranks += [i + 1 + j] * (j - i)
        i = j
    total = sum(ranks)
    far = abs(2 * sum(rank for rank, log in zip(ranks, logs) if log > 0) - total)
    if count == 0:
        return 1.0
    if count <= EXACT_MAX:
        ways = [1] + [0] * total
        for rank in ranks:
            for at in range(total, rank - 1, -1):
                ways[at] += ways[at - rank]
        return sum(of for at, of in enumerate(ways) if abs(2 * at - total) >= far) / 2 ** count
    spread = math.sqrt(sum(rank * rank for rank in ranks))
    return math.erfc(max(0.0, far - 2) / spread / math.sqrt(2))


def verdict(low, high, p, alpha, bar, turns):
    """slower or faster only if interval and p both say so, same only if all of the interval is within the bar, and that
    of enough turns. same needs no p: a test that finds nothing proves nothing."""
    if p < alpha and low > 1:
        return "slower"
    if p < alpha and high < 1:
        return "faster"
    return "same" if turns >= SAME_MIN and 1 / bar <= low and high <= bar else "can't tell"
