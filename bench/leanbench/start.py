# SPDX-License-Identifier: Apache-2.0
"""start: a whole `run`, all runtimes in turn, 150 ms apart and back to back."""
import os
import re
import subprocess

from leanbench import inprocess, options, results, stats, turns
from leanbench.workspace import KILLED, MARK, call, progress

BATCH = 5  # back-to-back runs of one runtime before the next has its turn


def _watched(work, argv):
    """The status of a command under strace or perf; None if it hangs: under these, a command may that does not hang without them."""
    try:
        return call(argv, work.args.timeout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    except subprocess.TimeoutExpired:
        work.remove_containers()
        return None


def syscalls(work, argv, want=MARK):
    """Of a command and what it starts; None if they can't be counted."""
    out = os.path.join(work.path, "strace.out")
    try:
        if _watched(work, ["strace", "-f", "-c", "-o", out, *argv]) != want:
            return None
        with open(out, encoding="utf-8") as f:
            total = [line.split() for line in f if line.rstrip().endswith(" total")]
        return int(total[-1][3]) if total else None
    except (OSError, ValueError, IndexError):
        return None


def _instructions(work, argv):
    out = os.path.join(work.path, "perf.out")
    try:
        if _watched(work, ["perf", "stat", "-x,", "-e", "instructions:u", "-o", out, "--", *argv]) != MARK:
            return None
        with open(out, encoding="utf-8") as f:
            found = re.search(r"^(\d+),.*instructions", f.read(), re.M)
        return int(found.group(1)) if found else None
    except OSError:
        return None


def _works(work, runtime, argv):
    """One run that does not count: warms caches, and finds out what does not work here."""
    sample = work.runner.run(argv)[0]
    if sample["status"] == MARK:
        return None
    return f"status {sample['status']}: " + " ".join(work.runner.last_error())


def _row(args, runtime, config, mode, samples, counts):
    good = [s for s in samples if s["status"] == MARK]
    row = {"runtime": runtime.name, "config": config, "mode": mode, "runs": len(samples),
           "failed": len(samples) - len(good), **counts}
    if good:
        row["wall_us"] = stats.summary([s["wall_us"] for s in good])
        row["user_us"] = stats.summary([s["user_us"] for s in good])
        row["sys_us"] = stats.summary([s["sys_us"] for s in good])
        row["max_rss_kb"] = max(s["rss_kb"] for s in good)
        if args.samples:
            row["samples_us"] = [round(s["wall_us"], 1) for s in good]
    return row


def measure(args, work, commands, isolated):
    """{name: samples}: the nth of each were taken in the nth turn."""
    samples = {name: [] for name in commands}
    rounds = args.runs if isolated else (args.runs + BATCH - 1) // BATCH
    for i, order in enumerate(turns.orders(commands, rounds, isolated)):
        progress(f"start: {'isolated' if isolated else 'back to back'} {i + 1}/{rounds}")
        for name in order:
            taken = (work.runner.run(commands[name], 1, args.gap_ms * 1000) if isolated
                     else work.runner.run(commands[name], BATCH))
            if any(s["status"] == KILLED for s in taken):
                work.remove_containers() # or the next would find its name taken
            samples[name] += taken
    return samples


def add(sub, common):
    s = sub.add_parser("start", parents=[common], help="a whole `run`, isolated and back to back")
    s.add_argument("--runs", type=options.at_least(1), default=200)
    s.add_argument("--gap-ms", type=options.at_least(0), default=150, help="pause before each isolated start")
    s.add_argument("--touch-mb", type=options.at_least(0), default=1024, metavar="N",
                   help="liblean also out of a process that uses N MB (0: not)")
    s.add_argument("--no-inprocess", action="store_true", help="no liblean")
    s.add_argument("--no-counts", action="store_true", help="no strace, no perf")
    s.add_argument("--host-mounts", type=options.at_least(0), default=0, metavar="N",
                   help="bring the host's mounts up to N (in a mount namespace of our own)")


def run(args, work):
    rows = work.left_out(config="default", mode="trial")
    for config in work.configs():
        commands, counts = {}, {}
        for runtime in work.runtimes:
            if not runtime.oci and config != "default":
                continue
            argv = work.run_command(runtime, config)
            progress(f"start: {runtime.name}, {config}")
            problem = _works(work, runtime, argv)
            if problem:
                rows.append({"runtime": runtime.name, "config": config, "mode": "trial", "runs": 1,
                             "failed": 1, "error": problem})
                continue
            commands[runtime.name] = argv
            counts[runtime.name] = {} if args.no_counts else {
                "syscalls": syscalls(work, argv), "instructions_user": _instructions(work, argv)}
        for isolated in (False, True): # the quick one first: its table is there within a minute
            samples = measure(args, work, commands, isolated)
            measured = [_row(args, r, config, "isolated" if isolated else "back-to-back",
                             samples[r.name], counts[r.name])
                        for r in work.runtimes if r.name in samples]
            if measured:
                turns.add_ratios(measured, work.runtimes[0].name)
                results.so_far("start", measured)
            rows += measured
    if work.library and not args.no_inprocess:
        for isolated in (True, False):
            rows += inprocess.each(args, work, isolated)
        if args.touch_mb:
            rows += inprocess.each(args, work, False, args.touch_mb)
    return rows
