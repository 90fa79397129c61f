# SPDX-License-Identifier: Apache-2.0
"""The result as JSON (schema 1: members are only ever added) and as a table."""
import json
import sys
import time

from leanbench import machine

SCHEMA = 1


def document(args, work, results):
    return {
        "schema": SCHEMA,
        "benchmark": args.command,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv,
        "machine": machine.describe(),
        "versions": {r.name: r.version() for r in work.runtimes},
        "results": results,
    }


def write(doc, path):
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")


def _columns(doc):
    if doc["benchmark"] == "floor":
        yield "", "name", str
        for key in ("min_us", "p50_us", "p99_us"):
            yield key, key, lambda v: f"{v:.1f}"
        yield "", "skipped", str
        return
    yield from (("config", "config", str), ("mode", "mode", str), ("runtime", "runtime", str),
                ("runs", "runs", str), ("failed", "failed", str))
    for key in ("min", "p50", "p99"):
        yield key + " us", ("wall_us", key), lambda v: f"{v:.0f}"
    yield from (("/first", "ratio_p50", lambda v: f"{v:.2f}"),
                ("/floor", "ratio_floor_p50", lambda v: f"{v:.2f}"), ("syscalls", "syscalls", str),
                ("cpu us", ("cpu_us", "p50"), lambda v: f"{v:.0f}"),
                ("whole us", ("whole_us", "p50"), lambda v: f"{v:.0f}"),
                ("user instr", "instructions_user", str), ("RSS kB", "max_rss_kb", str),
                ("per second", "per_second", str), ("kernel kB", "kernel_kb", str),
                ("cgroups", "cgroups", str), ("mounts", "mounts", str),
                ("processes", "processes", str), ("", "what", str), ("", "error", lambda v: v[:100]))


def _cell(row, key, show):
    value = row.get(key[0], {}).get(key[1]) if isinstance(key, tuple) else row.get(key)
    return "" if value is None else show(value)


def table(doc):
    columns = list(_columns(doc))
    lines = [[title for title, _, _ in columns]]
    lines += [[_cell(row, key, show) for _, key, show in columns] for row in doc["results"]]
    used = [i for i in range(len(columns)) if any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in used}
    left = {"", "config", "mode", "runtime"}
    m = doc["machine"]
    print(f"{doc['benchmark']}: {m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}, "
          f"cgroups {m['cgroups']}, {m['host_mounts']} mounts")
    for name, version in doc["versions"].items():
        print(f"  {name}: {version}")
    for line in lines:
        print("  ".join(line[i].ljust(widths[i]) if columns[i][0] in left
                        else line[i].rjust(widths[i]) for i in used).rstrip())
