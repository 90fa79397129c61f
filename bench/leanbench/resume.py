# SPDX-License-Identifier: Apache-2.0
"""resume: from before the command `restore` until the program's next instruction, in a container with everything that the
default config.json asks for. The program waits for input, which whoever continues it has; it looks at the clock first
thing. Every child's memory is then compared with what the parent had written."""
from leanbench import seedlings, stats, turns
from leanbench.workspace import Failure, progress

PAPERS = True


def add(sub, common):
    s = sub.add_parser("resume", parents=[common], help="a container continues a seed, to its first instruction")
    seedlings.add_options(s, 30)


def _once(seed, name):
    begin, words = seed.child(name, ["now", "check"])
    if words[1:] != ["same"]:
        raise Failure("memory is not what it was: " + " ".join(words))
    return [(int(words[0]) - begin) / 1000]


def row_of(way, mode, samples, problem):
    row = seedlings.row_of(way, mode, len(samples), problem)
    if samples:
        row["wall_us"] = stats.summary(samples)
    return row


def each_size(args, work, modes, once):
    """Rows of each mode, which once(seed, name) has a time of (us), all ways in turn, for seeds of each size that are
    made once."""
    rows = []
    with seedlings.Nursery(args, work) as nursery:
        for mb in seedlings.sizes(args):
            parent = nursery.parent("parent", [str(mb)])
            try:
                rows += _size(args, nursery, parent, mb, modes, once)
            finally:
                parent.remove()
        return rows + nursery.skipped


def _size(args, nursery, parent, mb, modes, once):
    samples, problems, seeds = {w.name: [] for w in nursery.ways}, {}, {}
    for way in nursery.ways:
        try:
            seeds[way.name] = nursery.seed(way, parent)[0]
        except Failure as e:
            problems[way.name] = str(e)
    for i, order in enumerate(turns.orders(nursery.ways, args.runs, mb)):
        for way in order:
            progress(f"{args.command}: {way.name}, {mb} MB, {i + 1}/{args.runs}")
            if way.name in problems:
                continue
            try:
                samples[way.name].append(once(seeds[way.name], f"child{i}"))
            except Failure as e:
                problems[way.name] = str(e)
    for seed in seeds.values():
        seed.remove()
    rows = []
    for at, mode in enumerate(modes):
        measured = [row_of(w, f"{mode}{mb} MB", [s[at] for s in samples[w.name]], problems.get(w.name))
                    for w in nursery.ways]
        turns.add_ratios(measured, measured[0]["runtime"])
        rows += measured
    return rows


def run(args, work):
    return each_size(args, work, [""], _once)
