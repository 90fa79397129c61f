# SPDX-License-Identifier: Apache-2.0
"""compare: two commits or two programs, turn by turn, with a verdict for each row.

What is timed is what `start` times (`run`) and what `exec` times (each step of a container's life). A verdict rests on
a bootstrap interval of the ratio of the medians over paired turns, and on the signed-rank test of the turns: both have
to agree.
The confidence is shared out among the rows (Bonferroni), so that all of them together are right with --confidence."""
import os
import shutil
import statistics

from leanbench import builds, life, options, results, start, stats, turns
from leanbench.life import CONFIGS, VERBS
from leanbench.workspace import MARK, Failure, Runtime, progress

RUN = {"run, isolated": True, "run, back to back": False}
COLUMNS = (("at least", "ratio_low", lambda v: f"{v:.3f}"), ("at most", "ratio_high", lambda v: f"{v:.3f}"),
           ("p", "p_value", lambda v: f"{v:.2g}"), ("", "verdict", str))


def add(sub, common):
    s = sub.add_parser("compare", parents=[common], help="two commits or two programs, with a verdict for each row")
    s.add_argument("old", metavar="OLD", help="a program, or a git revision, which is built (once; see --cache)")
    s.add_argument("new", metavar="NEW")
    s.add_argument("--runs", type=options.at_least(2), default=200, help="turns of each row")
    s.add_argument("--gap-ms", type=options.at_least(0), default=150, help="pause before each isolated start")
    s.add_argument("--bar", type=float, default=1.05, metavar="RATIO",
                   help="exit status 1 if a row is credibly slower than so many times OLD (1.05)")
    s.add_argument("--confidence", type=float, default=0.95, help="that all verdicts together are right (0.95)")
    s.add_argument("--only", metavar="VERB,...", help="of " + ", ".join(VERBS))
    s.add_argument("--cache", metavar="DIR", help="where what was built is kept (~/.cache/lean-bench)")


def prepare(args):
    if args.runtime:
        raise Failure("compare takes no --runtime: OLD and NEW are what is compared")
    if not args.bar >= 1 or not 0.5 <= args.confidence < 1:
        raise Failure("--bar is at least 1, --confidence from 0.5 to below 1")
    args.only = args.only.split(",") if args.only else list(VERBS)
    for verb in args.only:
        if verb not in VERBS:
            raise Failure(f"--only {verb}: not of {', '.join(VERBS)}")
    for config in args.config or ():
        if config not in CONFIGS:
            raise Failure(f"{config}: no such configuration")
    args.compared, args.runtime = {}, []
    for name in ("old", "new"):
        path, args.compared[name] = builds.find(getattr(args, name), args.cache)
        args.runtime.append(f"{name}={path}")


def _pairs(work):
    """{config: (old, new)}. Both are copies in one directory, so neither has a file system or path for itself."""
    pairs = {}
    for runtime in work.runtimes:
        directory = os.path.join(work.path, runtime.name)
        os.mkdir(directory)
        runtime.path = shutil.copy(runtime.path, os.path.join(directory, "lean-runtime"))
    plain = list(work.runtimes)
    for config in CONFIGS:
        pairs[config] = plain
    pairs["lean"] = [Runtime(r.name + "-lean", r.path) for r in plain]
    for runtime in pairs["lean"]:
        runtime.lean, runtime.options = True, ["--lean"]
    work.runtimes += pairs["lean"] # what they keep is removed as of any other
    return pairs


def judge(args, comparisons, config, mode, samples):
    """Two rows; samples are [[old], [new]], each with `good` of what succeeded."""
    rows = []
    for name, of in zip(("old", "new"), samples):
        good = [s for s in of if not s.get("failed")]
        row = {"runtime": name, "config": config, "mode": mode, "runs": len(of), "failed": len(of) - len(good)}
        if good:
            row["wall_us"] = stats.summary([s["wall_us"] for s in good])
            row["max_rss_kb"] = max(s["rss_kb"] for s in good)
            if args.samples:
                row["samples_us"] = [round(s["wall_us"], 1) for s in good]
        rows.append(row)
    if any(row["failed"] or not row["runs"] for row in rows):
        return rows
    common = min(len(of) for of in samples) # a life that was broken off has some steps of one alone
    old, new = ([s["wall_us"] for s in of[:common]] for of in samples)
    alpha = (1 - args.confidence) / comparisons
    low, high = stats.ratio_interval(old, new, 1 - alpha)
    p = stats.signed_rank(old, new)
    rows[1].update({"ratio_p50": round(statistics.median(new) / statistics.median(old), 3),
                    "ratio_low": round(low, 4), "ratio_high": round(high, 4), "p_value": float(f"{p:.3g}"),
                    "confidence": round(1 - alpha, 5), "verdict": stats.verdict(low, high, p, alpha, args.bar, common)})
    return rows


def _runs(args, work, pair, config, comparisons):
    rows = []
    argv = {r.name: work.run_command(r, "default" if r.lean else config) for r in pair}
    for command in argv.values():
        work.runner.run(command) # warms caches and pools
    for mode, isolated in RUN.items():
        taken = start.measure(args, work, argv, isolated)
        for samples in taken.values():
            for sample in samples:
                sample["failed"] = sample["status"] != MARK
        rows += judge(args, comparisons, config, mode, [taken[r.name] for r in pair])
        if any(row["failed"] for row in rows[-2:]):
            rows[-1]["error"] = " ".join(work.runner.last_error())
    return rows


def _lives(args, work, pair, config, comparisons):
    taken = {r.name: {step: [] for step in life.STEPS} for r in pair}
    problem = None
    for i, order in enumerate(turns.orders(pair, args.runs + 1, config)):
        progress(f"compare: {config}, life {i}/{args.runs}")
        for runtime in order:
            first = {step: [] for step in life.STEPS} # warms caches and pools
            problem = life.life(work, runtime, "default" if runtime.lean else config,
                                taken[runtime.name] if i else first)
            if problem:
                if not i: # told as a sample that failed
                    for step, samples in first.items():
                        taken[runtime.name][step] += samples
                break
        if problem:
            break
    rows = []
    for step in life.STEPS:
        rows += judge(args, comparisons, config, step, [taken[r.name][step] for r in pair])
    for row in rows:
        if row["failed"]:
            row["error"] = problem
    # What failed is told, whether or not it is a step that was asked for.
    return [row for row in rows if row["mode"] in args.only or row["failed"]]


def run(args, work):
    pairs = _pairs(work)
    chosen = args.config or list(CONFIGS)
    lives = [verb for verb in args.only if verb != "run"]
    comparisons = len(chosen) * (len(lives) + ("run" in args.only) * len(RUN))
    journal = results.Journal(args, work, len(chosen) * (("run" in args.only) + bool(lives)))
    for config in chosen:
        if "run" in args.only:
            journal.step(f"{config}, run", lambda c=config: _runs(args, work, pairs[c], c, comparisons))
        if lives:
            journal.step(f"{config}, life", lambda c=config: _lives(args, work, pairs[c], c, comparisons))
    return journal.end()


def conclude(args, rows):
    judged = [row for row in rows if "verdict" in row]
    slower = [row for row in judged if row["verdict"] == "slower" and row["ratio_low"] > args.bar]
    print(f"{len(judged)} rows judged, all together with {args.confidence:.0%} confidence: "
          + ", ".join(f"{sum(r['verdict'] == v for r in judged)} {v}" for v in stats.VERDICTS))
    for row in slower:
        print(f"slower than {args.bar} times: {row['config']}, {row['mode']}: at least {row['ratio_low']:.3f}")
    return 1 if slower else 0
