# SPDX-License-Identifier: Apache-2.0
"""The statistics of `lean-bench compare`, with made-up samples: says what is wrong, if anything is."""
import argparse
from collections import Counter
import contextlib
import io
import itertools
import math
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench"))
sys.dont_write_bytecode = True

from leanbench import compare, stats, turns as turns_module  # noqa: E402

problems = []


def check(what, holds):
    if not holds:
        problems.append(what)


def judged(old, new, confidence=0.99, bar=1.05):
    low, high = stats.ratio_interval(old, new, confidence, 600)
    return stats.verdict(low, high, stats.signed_rank(old, new), 1 - confidence, bar, len(old))


def turns(rng, count, factor, wobble, drift=0.0):
    """Pairs of times with the long tail that times have; drift: a load that both have for some turns."""
    old, new = [], []
    for i in range(count):
        load = 1 + drift * (i // 10 % 2)
        old.append(1000 * load * rng.lognormvariate(0, wobble))
        new.append(1000 * factor * load * rng.lognormvariate(0, wobble))
    return old, new


rng = random.Random(1)
# The p of the test against all ways to say which of a pair is old; ratios are powers of 2, so some are tied.
for count in (1, 5, 10):
    pairs = [(1, 2 ** rng.choice((-3, -2, -1, 1, 2, 3))) for _ in range(count)]

    def far(signs):
        size = sorted(abs(math.log2(b)) for _, b in pairs)
        middle = {s: statistics.mean(i + 1 for i, x in enumerate(size) if x == s) for s in size}
        return abs(sum(sign * middle[abs(math.log2(b))] for sign, (_, b) in zip(signs, pairs)))

    mine = far([1 if b > 1 else -1 for _, b in pairs])
    all_ = [far(signs) >= mine - 1e-9 for signs in itertools.product((1, -1), repeat=count)]
    found = stats.signed_rank(*zip(*pairs))
    check(f"p of {count} pairs: {found}, exactly {sum(all_) / len(all_)}", abs(found - sum(all_) / len(all_)) < 1e-9)
many = turns(rng, stats.EXACT_MAX, 1.05, 0.2)
exact, stats.EXACT_MAX = stats.signed_rank(*many), 0
near, stats.EXACT_MAX = stats.signed_rank(*many), len(many[0])
check(f"of many: about {near}, exactly {exact}", abs(near - exact) < 0.01)
check("p is that of either direction", stats.signed_rank([1, 1, 1, 1], [2, 3, 4, 5]) == 2 / 16 == stats.signed_rank([2, 3, 4, 5], [1, 1, 1, 1]))
check("all the same", stats.signed_rank([5] * 40, [5] * 40) == 1.0 and judged([5] * 40, [5] * 40) == "same")
check("of few turns nothing is the same", judged([5] * 9, [5] * 9) == "can't tell")

check("the nearest rank", [stats.quantile(list(range(1, 101)), q) for q in (0.01, 0.5, 0.99, 1)] == [1, 50, 99, 100]
      and stats.quantile([7], 0.99) == 7 and stats.quantile([1, 2, 3, 4], 0.5) == 2)
check("a summary of few", stats.summary([4, 1, 3, 2]) == {"min": 1, "p50": 2.5, "mean": 2.5})
check("a summary of many", stats.summary(range(100, 0, -1)) == {"min": 1, "p50": 50.5, "p99": 99, "mean": 50.5})

orders = list(turns_module.orders("abcd", 200, "seed"))
check("everybody has one turn each", all(sorted(order) == list("abcd") for order in orders))
follows = Counter(pair for order in orders for pair in zip(order, order[1:]))
check(f"nobody always follows the same one: {follows}", len(follows) == 12 and max(follows.values()) < 2 * min(follows.values()))
check("each is as often before as after", all(order == list(reversed(back)) for order, back in zip(orders[::2], orders[1::2])))
check("the same each time", orders == list(turns_module.orders("abcd", 200, "seed")))

# What compare makes of samples: the verdict, and what the bar makes of that.
args = argparse.Namespace(confidence=0.95, bar=1.05, samples=False)
for factor, bar, verdict, status in ((1.3, 1.05, "slower", 1), (1.3, 2.0, "slower", 0), (0.7, 1.05, "faster", 0), (1.0, 1.05, "same", 0)):
    args.bar = bar
    sides = [[{"wall_us": wall, "rss_kb": 1} for wall in of] for of in turns(rng, 60, factor, 0.02)]
    rows = compare.judge(args, 4, "default", "state", sides)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        got = compare.conclude(args, rows)
    check(f"{factor} times, bar {bar}: {rows[1]['verdict']}, status {got}", rows[1]["verdict"] == verdict and got == status)
    check("the row is named", ("slower than 1.05 times: default, state: at least " in said.getvalue()) == bool(status))
    check("ratio and interval fit", rows[1]["ratio_low"] <= rows[1]["ratio_p50"] + 0.001 <= rows[1]["ratio_high"] + 0.002)
sides[1][0]["failed"] = True
check("what failed gets no verdict", all("verdict" not in row for row in compare.judge(args, 4, "default", "state", sides)))

# The interval has the true ratio about as often as it says.
for confidence, least, most in ((0.9, 80, 99), (0.99, 95, 100)):
    hits = 0
    for _ in range(100):
        old, new = turns(rng, 60, 1.1, 0.2, drift=1.0)
        low, high = stats.ratio_interval(old, new, confidence, 400)
        hits += low <= 1.1 <= high
    check(f"an interval of {confidence} had the ratio {hits} times of 100", least <= hits <= most)

wrong = sum(judged(*turns(rng, 60, 1.0, 0.2, drift=1.0)) in ("slower", "faster") for _ in range(30))
check(f"{wrong} of 30 that are alike were told apart", wrong <= 3)
found = sum(judged(*turns(rng, 100, 1.3, 0.2)) == "slower" for _ in range(15))
check(f"{found} of 15 that are slower were found", found >= 13)
found = sum(judged(*turns(rng, 100, 0.7, 0.2)) == "faster" for _ in range(15))
check(f"{found} of 15 that are faster were found", found >= 13)
check("little noise: the same", judged(*turns(rng, 100, 1.0, 0.01)) == "same")
check("much noise: nothing to be said", judged(*turns(rng, 6, 1.02, 1.0)) == "can't tell")
check("one of two alone is no verdict", stats.verdict(1.1, 1.2, 0.5, 0.05, 1.05, 99) == "can't tell"
      and stats.verdict(0.9, 1.2, 0.001, 0.05, 1.05, 99) == "can't tell")
old, new = turns(rng, 40, 1.0, 0.3)
again = stats.ratio_interval(old, new, 0.95)
check("the same samples give the same interval", again == stats.ratio_interval(old, new, 0.95))
low, high = stats.ratio_interval(old, new, 0.95)
check("the interval has the ratio that was measured", low <= statistics.median(new) / statistics.median(old) <= high)
print("\n".join(problems))
sys.exit(bool(problems))
