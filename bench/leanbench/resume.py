# SPDX-License-Identifier: Apache-2.0
"""resume: from before the command `restore` until the program's next instruction, in a container with everything that the
default config.json asks for. The program waits for input, which whoever continues it has; it looks at the clock first
thing. Every child's memory is then compared with what the parent had written."""
from leanbench import seedlings, stats, turns
from leanbench.workspace import Failure, progress


def add(sub, common):
    s = sub.add_parser("resume", parents=[common], help="a container continues a seed, to its first instruction")
    seedlings.add_options(s)
    seedlings.add_runs(s, 30)


def _once(seed, name):
    begin, now = seed.does(name, "now")
    return [(now - begin) / 1000]


def row_of(way, subject, mode, samples, problem):
    row = seedlings.row_of(way, subject, mode, len(samples), problem)
    if samples:
        row["wall_us"] = stats.summary(samples)
    return row


def each(args, work, modes, once):
    """Rows of each of modes(subject), which once(seed, name) has a time of (us), all ways in turn, for seeds of each subject
    that are made once."""
    with seedlings.Nursery(args, work) as nursery:
        return nursery.measure(lambda subject: _subject(args, nursery, subject, modes(subject), once))


def _subject(args, nursery, subject, modes, once):
    with nursery.seeds(subject) as (seeds, problems):
        samples = _children(args, nursery, subject, seeds, problems, once)
    rows = []
    for at, mode in enumerate(modes):
        measured = [row_of(w, subject, mode, [s[at] for s in samples[w.name]], problems.get(w.name)) for w in nursery.ways]
        turns.add_ratios(measured, measured[0]["runtime"])
        rows += measured
    return rows


def _children(args, nursery, subject, seeds, problems, once):
    """What once(seed, name) said of each way's children; problems has then what went wrong with the others, too."""
    samples = {w.name: [] for w in nursery.ways}
    for i, order in enumerate(turns.orders(nursery.ways, args.runs, subject.mode)):
        for way in order:
            progress(f"{args.command}: {way.name}, {subject.mode}, {i + 1}/{args.runs}")
            if way.name in problems:
                continue
            try:
                samples[way.name].append(once(seeds[way.name], f"child{i}"))
            except Failure as e:
                problems[way.name] = str(e)
    return samples


def run(args, work):
    return each(args, work, lambda subject: [subject.mode], _once)
