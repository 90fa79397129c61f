# SPDX-License-Identifier: Apache-2.0
"""scale: `run` by 1, 2, 4, ... processes at once; summed throughput. Runtimes take turns by slices of a second, each of
which begins when all processes are ready, and ends for each with the run that it is at."""
from leanbench import inprocess, options, turns
from leanbench.workspace import KILLED, MARK, progress

SLICE_S = 1


def add(sub, common):
    s = sub.add_parser("scale", parents=[common], help="`run` by several processes at once")
    s.add_argument("--seconds", type=options.at_least(1), default=5, help="of each row, in slices of one")
    s.add_argument("--processes", type=options.several(), default="1,2,4,8,16", metavar="N,...")
    s.add_argument("--no-inprocess", action="store_true", help="no liblean")


def slice_of(runners, commands):
    """[(runs, successes, seconds), ...]"""
    for runner, argv in zip(runners, commands):
        runner.begin_for(argv, SLICE_S, MARK)
    return [runner.end_for() for runner in runners]


def ready(work, runners, commands):
    """Each once: makes bundles and warms pools outside of the timed part. Why it can't be measured, or None."""
    for runner, argv in zip(runners, commands):
        status = runner.run(argv)[0]["status"]
        if status != MARK:
            if status == KILLED:
                work.remove_containers()
            return f"status {status}: " + " ".join(runner.last_error())
    return None


def row_of(name, config, count, mode, ended):
    return {"runtime": name, "config": config, "mode": mode, "processes": count, "runs": sum(e[0] for e in ended),
            "failed": sum(e[0] - e[1] for e in ended),
            "per_second": round(sum(e[1] / e[2] for e in ended) * count / len(ended), 1)}


def _step(args, work, runners, config):
    """Rows of as many processes as there are runners."""
    count, mode, rows, commands = len(runners), f"{len(runners)} processes", [], {}
    for runtime in work.runtimes:
        if runtime.oci or config == "default":
            argv = [work.run_command(runtime, config, f"worker{i}") for i in range(count)]
            problem = ready(work, runners, argv)
            if problem:
                rows.append({"runtime": runtime.name, "config": config, "mode": mode, "processes": count, "runs": 1,
                             "failed": 1, "error": problem})
            else:
                commands[runtime.name] = argv
    ended = {name: [] for name in commands}
    for i, order in enumerate(turns.orders(commands, args.seconds, count)):
        for name in order:
            progress(f"scale: {name}, {config}, {mode}, {i + 1}/{args.seconds}")
            ended[name] += slice_of(runners, commands[name])
    return rows + [row_of(name, config, count, mode, of) for name, of in ended.items()]


def run(args, work):
    rows = []
    runners = [work.new_runner(limit_s=args.timeout) for _ in range(max(args.processes))]
    for config in work.configs(("default",)):
        for n in args.processes:
            rows += _step(args, work, runners[:n], config)
    if work.library and not args.no_inprocess:
        for n in args.processes:
            rows += inprocess.together(args, work, n)
    return rows
