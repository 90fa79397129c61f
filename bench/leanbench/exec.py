# SPDX-License-Identifier: Apache-2.0
"""exec: the life of a container step by step; each step timed by itself."""
import os
import subprocess
import time

from leanbench import stats
from leanbench.workspace import MARK, progress

STEPS = ("create", "start", "exec", "state", "kill", "delete")
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
    ident = f"{runtime.name}-life"
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
    """One container from create to delete; what went wrong, or None."""
    try:
        return _life(work, runtime, config, samples)
    except KeyboardInterrupt: # the runner may be at it still
        subprocess.run(commands(work, runtime, config)[0]["delete --force"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        raise


def _life(work, runtime, config, samples):
    argv, pid_file = commands(work, runtime, config)
    for step in STEPS:
        if step == "delete":
            wait_gone(pid_file)
        sample = work.runner.run(argv[step])[0]
        samples[step].append(sample)
        if sample["status"] != (MARK if step == "exec" else 0):
            sample["failed"] = True
            work.runner.run(argv["delete --force"])
            return f"{step}: status {sample['status']}: " + " ".join(work.runner.last_error())
    return None


def add(sub, common):
    s = sub.add_parser("exec", parents=[common], help="create, start, exec, state, kill, delete")
    s.add_argument("--runs", type=int, default=30)


def run(args, work):
    rows = []
    runtimes = [r for r in work.runtimes if r.oci]
    for config in work.configs(("default",)):
        samples = {r.name: {step: [] for step in STEPS} for r in runtimes}
        problems = {}
        for i in range(args.runs):
            progress(f"exec: {config} {i + 1}/{args.runs}")
            for runtime in runtimes:
                if runtime.name not in problems:
                    problem = life(work, runtime, config, samples[runtime.name])
                    if problem:
                        problems[runtime.name] = problem
            runtimes.append(runtimes.pop(0))
        for runtime in (r for r in work.runtimes if r.oci):
            for step in STEPS:
                all_ = samples[runtime.name][step]
                good = [s for s in all_ if not s.get("failed")]
                row = {"runtime": runtime.name, "config": config, "mode": step, "runs": len(all_),
                       "failed": len(all_) - len(good)}
                if row["failed"]:
                    row["error"] = problems[runtime.name]
                if good:
                    row["wall_us"] = stats.summary([s["wall_us"] for s in good])
                    row["max_rss_kb"] = max(s["rss_kb"] for s in good)
                    if args.samples:
                        row["samples_us"] = [round(s["wall_us"], 1) for s in good]
                rows.append(row)
    for row in rows:
        for other in rows:
            if (other["runtime"] == work.runtimes[0].name and "wall_us" in row
                    and "wall_us" in other
                    and (other["config"], other["mode"]) == (row["config"], row["mode"])):
                row["ratio_p50"] = round(row["wall_us"]["p50"] / other["wall_us"]["p50"], 3)
    return rows
