# SPDX-License-Identifier: Apache-2.0
"""Who is measured when, and what may be divided by what: only rows whose turns are the same ones."""
import random


def orders(items, count, seed=""):
    """`count` orders, each to be gone through in one turn: a random one, then the same backwards, so that each is as often
    before another as after it. The same every time, for the same seed."""
    items, rng = list(items), random.Random(f"{seed} {len(items)}")
    for i in range(count):
        if i % 2 == 0:
            rng.shuffle(items)
        else:
            items.reverse()
        yield list(items)


def add_ratio(row, base, suffix="", what="wall_us"):
    """To base's median and minimum. Not if either failed: its figures would be of other turns."""
    if row is None or base is None or row.get("failed") or base.get("failed") or what not in row or what not in base:
        return
    for part in ("p50", "min"):
        if base[what][part]:
            row[f"ratio{suffix}_{part}"] = round(row[what][part] / base[what][part], 3)


def add_ratios(rows, name, same=("config", "mode")):
    """Each to the row of the runtime `name` that took turns with it."""
    bases = {tuple(row.get(k) for k in same): row for row in rows if row["runtime"] == name}
    for row in rows:
        add_ratio(row, bases.get(tuple(row.get(k) for k in same)))
