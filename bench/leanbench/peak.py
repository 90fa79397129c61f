# SPDX-License-Identifier: Apache-2.0
"""peak: children per second from one seed, by 1, 2, 4, ... processes that each continue it in a container, wait for its end and
begin again; summed throughput. `run` is the same with containers that are started, of a program that ends at once. All take turns
by slices of a second (scale.py)."""
from leanbench import scale, seedlings, turns
from leanbench.workspace import Failure, progress


def add(sub, common):
    s = sub.add_parser("peak", parents=[common], help="children of one seed, by several processes at once")
    seedlings.add_ways(s)
    s.add_argument("--mb", default="1", metavar="N,...", help="megabytes of the program (1)")
    s.add_argument("--seconds", type=int, default=5, help="of each row, in slices of one")
    s.add_argument("--processes", default="1,2,4,8")
    s.set_defaults(runs=1)


def _commands(nursery, seeds, count):
    """argv of each process. The program that was a seed ends when its input does, and the runner's is empty."""
    work, runtime = nursery.work, nursery.runtime
    commands = {"run": [work.run_command(runtime, "default", f"peak{i}") for i in range(count)]}
    for name, seed in seeds.items():
        commands[name] = []
        for i in range(count):
            ident = work.ident(runtime, f"peak-{name}{i}")
            commands[name].append(nursery.argv(seed.way.go_on(ident, nursery.bundle(ident), seed.images, seed.ticket)))
    return commands


def _step(args, nursery, runners, seeds, mb):
    count, problems = len(runners), {}
    commands = _commands(nursery, seeds, count)
    mode = f"{mb} MB, {count} processes"
    for name, argv in commands.items():
        problem = scale.ready(nursery.work, runners, argv)
        if problem:
            problems[name] = problem
    ended = {name: [] for name in commands if name not in problems}
    for i, order in enumerate(turns.orders(ended, args.seconds, f"{mb} {count}")):
        for name in order:
            progress(f"peak: {name}, {mode}, {i + 1}/{args.seconds}")
            ended[name] += scale.slice_of(runners, commands[name])
    return [dict(scale.row_of(name, "default", count, mode, of), mb=mb) for name, of in ended.items()] + [
        {"runtime": name, "config": "default", "mode": mode, "processes": count, "runs": 1, "failed": 1, "error": why}
        for name, why in problems.items()]


def run(args, work):
    counts = [int(n) for n in args.processes.split(",") if n.isdigit()]
    if not counts or min(counts) < 1 or args.seconds < 1:
        raise Failure("--processes are numbers from 1, as 1,2,4, and --seconds begins at 1")
    rows, runners = [], [work.new_runner(limit_s=args.timeout) for _ in range(max(counts))]
    with seedlings.Nursery(args, work) as nursery:
        for mb in seedlings.sizes(args):
            parent, seeds = nursery.parent("parent", [str(mb)]), {}
            try:
                for way in nursery.ways:
                    seeds[way.name] = nursery.seed(way, parent)[0]
                for n in counts:
                    rows += _step(args, nursery, runners[:n], seeds, mb)
            finally:
                for seed in seeds.values():
                    seed.remove()
                parent.remove()
        return rows + nursery.skipped
