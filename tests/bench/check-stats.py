# SPDX-License-Identifier: Apache-2.0
"""The statistics of `lean-bench compare`, with made-up samples: says what is wrong, if anything is."""
import itertools
import os
import random
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench"))
sys.dont_write_bytecode = True

from leanbench import stats  # noqa: E402

problems = []


def check(what, holds):
    if not holds:
        problems.append(what)


def judged(old, new, confidence=0.99, bar=1.05):
    low, high = stats.ratio_interval(old, new, confidence, 600)
    return stats.verdict(low, high, stats.mann_whitney(old, new), 1 - confidence, bar)


def turns(rng, count, factor, wobble, drift=0.0):
    """Pairs of times with the long tail that times have; drift: a load that both have for some turns."""
    old, new = [], []
    for i in range(count):
        load = 1 + drift * (i // 10 % 2)
        old.append(1000 * load * rng.lognormvariate(0, wobble))
        new.append(1000 * factor * load * rng.lognormvariate(0, wobble))
    return old, new


rng = random.Random(1)
# The p of the test against all ways to deal out the ranks: the approximation has to be near.
for n, m in ((4, 5), (6, 6), (3, 7)):
    ranks = list(range(n + m))
    rng.shuffle(ranks)
    old, new = ranks[:n], ranks[n:]
    centre = m * (n + m - 1) / 2
    far = [abs(sum(dealt) - centre) for dealt in itertools.combinations(range(n + m), m)]
    exact = sum(d >= abs(sum(new) - centre) for d in far) / len(far)
    near = stats.mann_whitney(old, new)
    check(f"p of {n} and {m}: {near}, exactly {exact}", abs(near - exact) < 0.06)
check("ties make it uncertain", stats.mann_whitney([1, 1, 2, 2], [1, 1, 2, 2]) == 1.0)
check("all the same", stats.mann_whitney([5] * 9, [5] * 9) == 1.0 and judged([5] * 9, [5] * 9) == "same")

# The interval has the true ratio about as often as it says.
hits = 0
for _ in range(100):
    old, new = turns(rng, 60, 1.1, 0.2, drift=1.0)
    low, high = stats.ratio_interval(old, new, 0.9, 300)
    hits += low <= 1.1 <= high
check(f"an interval of 90 % had the ratio {hits} times of 100", hits >= 80)

wrong = sum(judged(*turns(rng, 60, 1.0, 0.2, drift=1.0)) in ("slower", "faster") for _ in range(30))
check(f"{wrong} of 30 that are alike were told apart", wrong <= 3)
found = sum(judged(*turns(rng, 100, 1.3, 0.2)) == "slower" for _ in range(15))
check(f"{found} of 15 that are slower were found", found >= 13)
found = sum(judged(*turns(rng, 100, 0.7, 0.2)) == "faster" for _ in range(15))
check(f"{found} of 15 that are faster were found", found >= 13)
check("little noise: the same", judged(*turns(rng, 100, 1.0, 0.01)) == "same")
check("much noise: nothing to be said", judged(*turns(rng, 6, 1.02, 1.0)) == "can't tell")
check("one of two alone is no verdict", stats.verdict(1.1, 1.2, 0.5, 0.05, 1.05) == "can't tell"
      and stats.verdict(0.9, 1.2, 0.001, 0.05, 1.05) == "can't tell")
old, new = turns(rng, 40, 1.0, 0.3)
again = stats.ratio_interval(old, new, 0.95)
check("the same samples give the same interval", again == stats.ratio_interval(old, new, 0.95))
low, high = stats.ratio_interval(old, new, 0.95)
check("the interval has the ratio that was measured", low <= statistics.median(new) / statistics.median(old) <= high)
print("\n".join(problems))
sys.exit(bool(problems))
