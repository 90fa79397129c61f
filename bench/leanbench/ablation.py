# SPDX-License-Identifier: Apache-2.0
"""ablation: what each optimisation is worth: the same `run` with it off, taking turns."""
import os
import shutil
import subprocess

from leanbench import options, stats, turns
from leanbench.workspace import BENCH, MARK, Failure, progress

# Everyone is started through env(1) or the launcher that denies system calls, so that this costs
# all of a group the same.
SELF = (
    ("executed again from a read-only mount, no stub", "LEAN_RUNTIME_SELF=mount"),
    ("executed again from a sealed copy, no stub", "LEAN_RUNTIME_SELF=copy"),
)
DENIED = (
    ("mounts by mount(2), not by descriptor", "fsopen,open_tree,move_mount,mount_setattr"),
    ("clone(2): a child with memory of its own", "clone3"),
    ("paths resolved by steps, no openat2(2)", "openat2"),
    ("descriptors closed one by one, no close_range(2)", "close_range"),
)
LEAN = (
    ("lean profile, warm", ["--lean"]),
    ("lean without the mount template", ["--lean=lean,mounts=config"]),
    ("lean without the pool of cgroups", ["--lean=lean,cgroup=config"]),
    ("lean with a network namespace of its own", ["--lean=lean,network=config"]),
    ("lean that drops the bounding set", ["--lean=lean,bounding=drop"]),
)


def _deny():
    return os.path.join(os.path.dirname(BENCH), "build", "tests", "denied", "deny")


def _variants(args, base):
    """(group, name, argv, what to do before each run)"""
    def nothing():
        pass

    def no_cache():
        shutil.rmtree(os.path.join(base[base.index("--root") + 1], ".seccomp"), ignore_errors=True)

    plain = ["/usr/bin/env", "LEAN_BENCH=1"]
    yield "env", "as it is", [*plain, *base], nothing
    for name, how in SELF:
        yield "env", name, ["/usr/bin/env", how, *base], nothing
    yield "env", "seccomp filter compiled each time", [*plain, *base], no_cache
    if args.glibc:
        yield "env", "linked with glibc", [*plain, args.glibc, *base[1:]], nothing
    for name, option in LEAN:
        yield "env", name, [*plain, base[0], *option, *base[1:]], nothing
    if os.path.exists(_deny()):
        yield "deny", "as it is, under a filter", [_deny(), "ENOSYS", "kexec_load", *base], nothing
        for name, calls in DENIED:
            yield "deny", name, [_deny(), "ENOSYS", calls, *base], nothing


def add(sub, common):
    s = sub.add_parser("ablation", parents=[common], help="what each optimisation is worth")
    s.add_argument("--runs", type=options.at_least(1), default=200)
    s.add_argument("--glibc", metavar="PATH", help="the same program linked with glibc")


def run(args, work):
    runtime = work.runtimes[0]
    if runtime.name != "lean-runtime":
        raise Failure("ablation is of lean-runtime")
    rows = []
    for config in work.configs():
        variants = list(_variants(args, work.run_command(runtime, config)))
        samples = {name: [] for _, name, _, _ in variants}
        for i, order in enumerate(turns.orders(variants, args.runs + 1, config)):
            progress(f"ablation: {config}, {i}/{args.runs}")
            for _, name, argv, before in order:
                before()
                sample = work.runner.run(argv)[0]
                if i:  # the first one warms caches and pools
                    samples[name].append(sample)
        base = {}
        for group, name, _, _ in variants:
            good = [s["wall_us"] for s in samples[name] if s["status"] == MARK]
            row = {"runtime": runtime.name, "config": config, "mode": name,
                   "runs": len(samples[name]), "failed": len(samples[name]) - len(good)}
            if good:
                row["wall_us"] = stats.summary(good)
            turns.add_ratio(row, base.setdefault(group, row)) # the first of its group is the one to divide by
            rows.append(row)
        subprocess.run([runtime.path, "--root", work.state(runtime), "pool", "drain"],
                       stdout=subprocess.DEVNULL, check=False)
    return rows
