# SPDX-License-Identifier: Apache-2.0
"""stages: where the time of a `run` goes, by the kernel's own marks of exec, fork and exit.

Three tracepoints cost nothing that shows; perf(1) writes down when they are passed.
"""
import os
import re
import subprocess

from leanbench import options, stats
from leanbench.workspace import MARK, Failure, call, progress

EVENTS = "sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit"
LINE = re.compile(r"\s*\S+\s+(\d+)\s+([\d.]+):\s+sched:sched_process_(\w+): (.*)")
SPANS = (("spawn", "begin", "exec", "the caller's vfork until the runtime is executed"),
         ("protect", "exec", "again", "until it is executed again, from where nobody can write to it"),
         ("plan", "ready", "clone", "config.json, the record, until the container's process is born"),
         ("set up", "clone", "done", "namespaces, mounts, cgroups, until that process executes something"),
         ("stub", "stub", "program", "the program that stands in between, until the container's is executed"),
         ("program", "program", "gone", "until the program has ended"),
         ("clean up", "gone", "end", "until the runtime has ended"))


def _record(argv, runs, data, limit_s):
    loop = 'i=0; while [ $i -lt $N ]; do "$@" </dev/null >/dev/null || [ $? = $MARK ] || exit 1; ' \
           'i=$((i+1)); done'
    done = call(["perf", "record", "-q", "-o", data, "-e", EVENTS, "--", "sh", "-c", loop, "sh", *argv], limit_s,
                env={**os.environ, "N": str(runs), "MARK": str(MARK)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure("perf record: " + " ".join(done.stderr.decode(errors="replace").split()[-20:]))
    return subprocess.run(["perf", "script", "-i", data, "-F", "comm,tid,time,event,trace"],
                          capture_output=True, text=True, check=True).stdout


def _marks(text):
    """One dictionary of times in microseconds for each run."""
    runs, runtime = [], None
    for line in text.splitlines():
        m = LINE.match(line)
        if not m:
            continue
        tid, when, event, rest = int(m[1]), float(m[2]) * 1e6, m[3], m[4]
        child = re.search(r"child_pid=(\d+)", rest)
        if event == "fork" and tid != runtime and (not runs or "end" in runs[-1] or not runtime):
            runs.append({"begin": when})
            runtime = int(child[1])
            container = None
        elif not runs:
            continue
        elif event == "fork" and tid == runtime and "clone" not in runs[-1]:
            runs[-1]["clone"] = when
            container = int(child[1])
        elif event == "exec" and tid == runtime:
            runs[-1]["again" if "exec" in runs[-1] else "exec"] = when
        elif event == "exec" and tid == container:
            if "program" in runs[-1]:
                runs[-1]["stub"] = runs[-1]["program"]
            runs[-1]["program"] = when
        elif event == "exit" and tid == container:
            runs[-1]["gone"] = when
        elif event == "exit" and tid == runtime:
            runs[-1]["end"] = when
            runtime = None
    for run_ in runs:  # not every run has all the marks
        run_["ready"] = run_.get("again", run_.get("exec"))
        run_["done"] = run_.get("stub", run_.get("program"))
    return [{mark: when for mark, when in r.items() if when} for r in runs]


def add(sub, common):
    s = sub.add_parser("stages", parents=[common], help="where the time of a `run` goes (perf)")
    s.add_argument("--runs", type=options.at_least(1), default=200)
    s.set_defaults(turns=False) # perf records one at a time


def run(args, work):
    rows = []
    runtimes = [r for r in work.runtimes if r.name == "lean-runtime" or r.name.startswith("floor")]
    if not runtimes:
        raise Failure("stages are of lean-runtime and the floors")
    for config in work.configs(("default",)):
        for runtime in runtimes:
            progress(f"stages: {runtime.name}, {config}")
            argv = work.run_command(runtime, config)
            work.runner.run(argv)
            runs = _marks(_record(argv, args.runs, work.program("perf.data"), args.timeout * args.runs))
            for name, start, end, what in SPANS:
                values = [r[end] - r[start] for r in runs if start in r and end in r]
                if values:
                    rows.append({"runtime": runtime.name, "config": config, "mode": name,
                                 "what": what, "runs": len(values), "failed": 0,
                                 "wall_us": stats.summary(values)})
    return rows
