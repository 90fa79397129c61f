# SPDX-License-Identifier: Apache-2.0
"""exec: the life of a container step by step; each step timed by itself, from before its vfork until after its wait4.
Before or after each life, in turns, a whole `run` of the same config, so that create and start together can be held against
it: what comes second finds warm caches.

One life that doesn't count warms caches and pools. A runtime that fails once is left out from then on, and nothing is
divided by what it has."""
import os
import time

from leanbench import options, stats, turns
from leanbench.workspace import MARK, progress

STEPS = ("create", "start", "exec", "state", "kill", "delete")
CONFIGS = ("default", "docker", "lean")  # of compare and counts: lean is the profile on default
VERBS = ("run", *STEPS)
ROWS = (*STEPS, "create+start", "run")
WAIT_S = 10


def wait_gone(pid_file):
    """Until the container's process has ended (a zombie has)."""
    with open(pid_file, encoding="ascii") as f:
        path = f"/proc/{int(f.read())}/stat"
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                if f.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.001)


def commands(work, runtime, config):
    """{step: argv} of one container, and where its pid will be."""
    ident = work.ident(runtime, "life")
    base = [runtime.path, *runtime.options, "--root", work.state(runtime)]
    pid_file = os.path.join(work.path, ident + ".pid")
    bundle = work.bundle(config, ["/true", "pause"], ident)
    argv = {
        "create": ["create", "--bundle", bundle, "--pid-file", pid_file, ident],
        "start": ["start", ident], "exec": ["exec", ident, "/true", str(MARK)],
        "state": ["state", ident], "kill": ["kill", ident, "KILL"], "delete": ["delete", ident],
        "delete --force": ["delete", "--force", ident],
    }
    return {step: base + rest for step, rest in argv.items()}, pid_file


def life(work, runtime, config, samples):
    """One container from create to delete; what went wrong, or None. Stopped half-way, the workspace takes it away."""
    argv, pid_file = commands(work, runtime, config)
    for step in STEPS:
        if step == "delete":
            wait_gone(pid_file)
        sample = work.runner.run(argv[step])[0]
        samples[step].append(sample)
        if sample["status"] != (MARK if step == "exec" else 0):
            sample["failed"] = True
            why = " ".join(work.runner.last_error())
            work.runner.run(argv["delete --force"])
            return f"{step}: status {sample['status']}: {why}"
    return None


def _life(work, runtime, config, samples):
    problem = life(work, runtime, config, samples)
    if problem:
        return problem
    create, start = samples["create"][-1], samples["start"][-1]
    samples["create+start"].append({"wall_us": create["wall_us"] + start["wall_us"],
                                    "rss_kb": max(create["rss_kb"], start["rss_kb"])})
    return None


def _run(work, runtime, config, samples):
    sample = work.runner.run(work.run_command(runtime, config))[0]
    samples["run"].append(sample)
    if sample["status"] == MARK:
        return None
    sample["failed"] = True
    return f"run: status {sample['status']}: " + " ".join(work.runner.last_error())


def _turn(work, runtime, config, samples, number):
    """A life and a `run`; as life()."""
    first, second = (_run, _life) if number % 2 else (_life, _run)
    return first(work, runtime, config, samples) or second(work, runtime, config, samples)


def add(sub, common):
    s = sub.add_parser("exec", parents=[common], help="create, start, exec, state, kill, delete; and run")
    s.add_argument("--runs", type=options.at_least(1), default=200)


def _row(args, runtime, config, step, samples, problem):
    good = [s for s in samples if not s.get("failed")]
    row = {"runtime": runtime.name, "config": config, "mode": step, "runs": len(samples),
           "failed": len(samples) - len(good)}
    if row["failed"]:
        row["error"] = problem
    elif problem: # it has fewer turns than the others
        row["what"] = "left out since " + problem
    if good:
        row["wall_us"] = stats.summary([s["wall_us"] for s in good])
        row["max_rss_kb"] = max(s["rss_kb"] for s in good)
        if args.samples:
            row["samples_us"] = [round(s["wall_us"], 1) for s in good]
    return row


def run(args, work):
    rows = []
    runtimes = work.oci()
    for config in work.configs(("default",)):
        samples = {r.name: {step: [] for step in ROWS} for r in runtimes}
        problems = {}
        for i, order in enumerate(turns.orders(runtimes, args.runs + 1, config)):
            progress(f"exec: {config} {i}/{args.runs}")
            for runtime in order:
                if runtime.name in problems:
                    continue
                first = {step: [] for step in ROWS}
                problem = _turn(work, runtime, config, samples[runtime.name] if i else first, i)
                if problem:
                    problems[runtime.name] = problem
                    if not i: # told as samples that failed
                        samples[runtime.name] = first
        measured = [_row(args, r, config, step, samples[r.name][step], problems.get(r.name))
                    for r in runtimes for step in ROWS]
        turns.add_ratios([row for row in measured if row["runtime"] not in problems], work.runtimes[0].name)
        rows += measured
    return rows
