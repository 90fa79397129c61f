# SPDX-License-Identifier: Apache-2.0
"""steady: one start after the other for minutes; a row a minute, and what the host has left over."""
import glob
import os
import time

from leanbench import options, stats
from leanbench.workspace import MARK, progress


def _memory_kb():
    with open("/proc/meminfo", encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    return sum(int(fields[k].split()[0]) for k in ("Slab", "PageTables", "KernelStack"))


def _host():
    """What could grow: kernel memory, cgroups, mounts, processes."""
    with open("/proc/cgroups", encoding="utf-8") as f:
        cgroups = sum(int(line.split()[2]) for line in f if not line.startswith("#"))
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        mounts = sum(1 for _ in f)
    return {"kernel_kb": _memory_kb(), "cgroups": cgroups, "mounts": mounts,
            "processes": len(glob.glob("/proc/[0-9]*"))}


def _entries(state):
    return len(os.listdir(state)) if os.path.isdir(state) else 0  # a runtime that does nothing makes none


def add(sub, common):
    s = sub.add_parser("steady", parents=[common], help="one start after the other, for minutes")
    s.add_argument("--minutes", type=options.at_least(1), default=10)
    s.set_defaults(turns=False) # one after the other, minutes apart


def run(args, work):
    rows = []
    for config in work.configs(("default",)):
        for runtime in work.runtimes:
            argv = work.run_command(runtime, config)
            work.runner.run(argv)
            for minute in range(args.minutes):
                progress(f"steady: {runtime.name}, {config}, minute {minute + 1}/{args.minutes}")
                samples, end = [], time.monotonic() + 60
                while time.monotonic() < end:
                    samples += work.runner.run(argv, 50)
                good = [s["wall_us"] for s in samples if s["status"] == MARK]
                rows.append({"runtime": runtime.name, "config": config,
                             "mode": f"minute {minute + 1}", "runs": len(samples),
                             "failed": len(samples) - len(good),
                             "state_entries": _entries(work.state(runtime)) if runtime.oci else 0,
                             **({"wall_us": stats.summary(good)} if good else {}), **_host()})
                if len(good) < len(samples):
                    rows[-1]["error"] = " ".join(work.runner.last_error())
    return rows
