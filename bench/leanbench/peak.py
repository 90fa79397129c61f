# SPDX-License-Identifier: Apache-2.0
"""peak: children per second from one seed, by 1, 2, 4, ... processes that each continue it in a container, wait for its end and
begin again; summed throughput. `cold` is the same with containers in which that program is started, and gets as far as the seed is;
`run` with those of a program that ends at once. All take turns by slices of a second (scale.py)."""
from leanbench import options, scale, seedlings, turns
from leanbench.workspace import Failure, progress


def add(sub, common):
    s = sub.add_parser("peak", parents=[common], help="children of one seed, by several processes at once")
    seedlings.add_options(s, [1])
    s.add_argument("--seconds", type=options.at_least(1), default=5, help="of each row, in slices of one")
    s.add_argument("--processes", type=options.several(), default="1,2,4,8", metavar="N,...")


def _commands(nursery, subject, seeds, count):
    """argv of each process. What was a seed, or could be one, ends when its input does, and the runner's is empty."""
    work, runtime = nursery.work, nursery.runtime

    def each(name, command):
        return [command(work.ident(runtime, f"peak-{name}{i}")) for i in range(count)]

    return {"run": [work.run_command(runtime, "default", f"peak{i}") for i in range(count)],
            "cold": each("cold", lambda ident: nursery.argv(["run", "--bundle", subject.bundle(work, ident, []), ident])),
            **{name: each(name, seed.command) for name, seed in seeds.items()}}


def _step(args, nursery, runners, subject, seeds):
    """Rows of as many processes as there are runners."""
    count, problems = len(runners), {}
    commands = _commands(nursery, subject, seeds, count)
    mode = f"{subject.mode}, {count} processes"
    for name, argv in commands.items():
        problem = scale.ready(nursery.work, runners, argv)
        if problem:
            problems[name] = problem
    ended = {name: [] for name in commands if name not in problems}
    for i, order in enumerate(turns.orders(ended, args.seconds, mode)):
        for name in order:
            progress(f"peak: {name}, {mode}, {i + 1}/{args.seconds}")
            ended[name] += scale.slice_of(runners, commands[name])
    return [{**scale.row_of(name, "default", count, mode, of), **subject.about} for name, of in ended.items()] + [
        _failed(name, mode, subject, why) for name, why in problems.items()]


def _failed(name, mode, subject, why):
    return {"runtime": name, "config": "default", "mode": mode, **subject.about, "runs": 1, "failed": 1, "error": why}


def _good(seeds, problems):
    """Those whose child has the memory, or gives the answer, that it should."""
    good = {}
    for name, seed in seeds.items():
        try:
            seed.does("peak-first", "now")
            good[name] = seed
        except Failure as e:
            problems[name] = str(e)
    return good


def _subject(args, nursery, runners, subject):
    with nursery.seeds(subject) as (seeds, problems):
        good = _good(seeds, problems)
        rows = [row for n in args.processes for row in _step(args, nursery, runners[:n], subject, good)]
    return rows + [_failed(name, subject.mode, subject, why) for name, why in problems.items()]


def run(args, work):
    runners = [work.new_runner(limit_s=args.timeout) for _ in range(max(args.processes))]
    with seedlings.Nursery(args, work) as nursery:
        return nursery.measure(lambda subject: _subject(args, nursery, runners, subject))
