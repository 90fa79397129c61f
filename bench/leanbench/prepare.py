# SPDX-License-Identifier: Apache-2.0
"""prepare: a running container becomes a seed. `pause` is the longest time that its program did not run meanwhile, by its
own clock; `fork` how long a fork took in the same process before; `wall` the whole command, which ends when the seed can
be continued. Each run has a container of its own."""
from leanbench import seedlings, stats, turns
from leanbench.workspace import Failure, progress

COLUMNS = (("pause us", ("pause_us", "p50"), lambda v: f"{v:.0f}"), ("fork us", ("fork_us", "p50"), lambda v: f"{v:.0f}"))


def add(sub, common):
    s = sub.add_parser("prepare", parents=[common], help="a running container becomes a seed")
    seedlings.add_options(s)
    seedlings.add_runs(s, 10)


def _once(nursery, way, subject, name):
    """(wall, fork, pause) in us."""
    parent = nursery.parent(name, subject, "spin")
    try:
        seed, seconds = nursery.seed(way, parent)
        seed.remove()
        forked, pause = (int(word) / 1000 for word in parent.end())
    finally:
        parent.remove()
    return seconds * 1e6, forked, pause


def row_of(way, subject, samples, problem):
    row = seedlings.row_of(way, subject, subject.mode, len(samples), problem)
    if samples:
        for i, key in enumerate(("wall_us", "fork_us", "pause_us")):
            row[key] = stats.summary([s[i] for s in samples])
    return row


def _subject(args, nursery, subject):
    samples, problems = {w.name: [] for w in nursery.ways}, {}
    for i, order in enumerate(turns.orders(nursery.ways, args.runs, subject.mode)):
        for way in order:
            progress(f"prepare: {way.name}, {subject.mode}, {i + 1}/{args.runs}")
            if way.name in problems or way.prefetch or way.here != way.there:
                continue  # where it is continued makes no difference here
            try:
                samples[way.name].append(_once(nursery, way, subject, f"prepare{i}"))
            except Failure as e:
                problems[way.name] = str(e)
    rows = [row_of(w, subject, samples[w.name], problems.get(w.name)) for w in nursery.ways
            if samples[w.name] or w.name in problems]
    if rows:
        turns.add_ratios([r for r in rows if not r["failed"]], rows[0]["runtime"])
    return rows


def run(args, work):
    with seedlings.Nursery(args, work) as nursery:
        return nursery.measure(lambda subject: _subject(args, nursery, subject))
