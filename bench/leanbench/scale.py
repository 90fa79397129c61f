# SPDX-License-Identifier: Apache-2.0
"""scale: `run` by 1, 2, 4, ... processes at once; summed throughput."""
from leanbench import inprocess
from leanbench.workspace import MARK, progress


def add(sub, common):
    s = sub.add_parser("scale", parents=[common], help="`run` by several processes at once")
    s.add_argument("--seconds", type=int, default=5)
    s.add_argument("--processes", default="1,2,4,8,16")
    s.add_argument("--no-inprocess", action="store_true", help="no liblean")


def run(args, work):
    rows = []
    counts = [int(n) for n in args.processes.split(",")]
    runners = [work.new_runner() for _ in range(max(counts))]
    for config in work.configs(("default",)):
        for n in counts:
            for runtime in work.runtimes:
                if not runtime.oci and config != "default":
                    continue
                progress(f"scale: {runtime.name}, {config}, {n} processes")
                for i in range(n):
                    argv = work.run_command(runtime, config, f"worker{i}")
                    runners[i].run(argv)  # warm; makes the bundle outside the timed part
                for i in range(n):
                    runners[i].begin_for(work.run_command(runtime, config, f"worker{i}"),
                                         args.seconds, MARK)
                ended = [runners[i].end_for() for i in range(n)]
                rows.append({"runtime": runtime.name, "config": config, "mode": f"{n} processes",
                             "processes": n, "runs": sum(e[0] for e in ended),
                             "failed": sum(e[0] - e[1] for e in ended),
                             "per_second": round(sum(e[1] / e[2] for e in ended), 1)})
    if work.library and not args.no_inprocess:
        for n in counts:
            rows += inprocess.together(args, work, n)
    return rows
