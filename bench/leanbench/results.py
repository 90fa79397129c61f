# SPDX-License-Identifier: Apache-2.0
"""The result as JSON (schema 1: members are only ever added), as a table, and while it is measured."""
import json
import os
import sys
import time

from leanbench import machine
from leanbench.workspace import Failure, progress

SCHEMA = 1


def document(args, work, results):
    return {
        "schema": SCHEMA,
        "benchmark": args.command,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv,
        "machine": machine.describe(),
        "commit": machine.commit(),
        "versions": {r.name: r.version() for r in work.runtimes},
        "programs": {r.name: machine.digest(r.path) for r in work.runtimes},
        "results": results,
    }


def write(doc, path):
    """Whole or not at all: a reader never finds half of it."""
    if path:
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(doc, f, indent=1)
            f.write("\n")
        os.replace(path + ".new", path)


class Journal:
    """The rows of a long benchmark, kept as they come, so that it can be stopped and goes on.

    With --output FILE they are in FILE.partial, one JSON document a line, after a first line that says
    what they were measured on and with: another machine, commit, program or command line is refused.
    A step is what is measured in one go, with all that are compared in it taking turns."""

    def __init__(self, args, work, steps):
        self.name, self.steps = args.command, steps
        self.path = args.output and args.output + ".partial"
        self.done, self.rows = {}, []
        self.began, self.measured = time.monotonic(), 0
        head = document(args, work, [])
        head = {k: head[k] for k in head if k not in ("time", "results")}
        # What changes between two halves of one run, and what they may differ in.
        head["machine"] = {k: v for k, v in head["machine"].items() if k != "host_mounts"}
        self.file = None
        if not self.path:
            return
        if os.path.exists(self.path):
            self._continue(head)
        else:
            self.file = open(self.path, "w", encoding="utf-8")
            self._put(head)

    def _continue(self, head):
        with open(self.path, encoding="utf-8") as f:
            text = f.read()
        whole = text[:text.rfind("\n") + 1] # a line that was cut off is measured again
        lines = [json.loads(line) for line in whole.splitlines()]
        if lines:
            other = sorted(k for k in {*head, *lines[0]} if head.get(k) != lines[0].get(k))
            if other:
                raise Failure(f"{self.path} was begun with another {', another '.join(other)}: "
                              "remove it, or choose another --output")
        for line in lines[1:]:
            self.done[line["step"]] = line["rows"]
        self.file = open(self.path, "r+", encoding="utf-8")
        self.file.truncate(len(whole.encode()))
        self.file.seek(0, os.SEEK_END)
        if not lines:
            self._put(head)

    def _put(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def step(self, name, measure):
        """measure() returns the rows of this step; it isn't called if they are there already."""
        if name not in self.done:
            number = len(self.done) + 1
            left = ""
            if self.measured:
                seconds = (time.monotonic() - self.began) / self.measured * (self.steps - number + 1)
                left = f", about {seconds / 60:.0f} minutes left" if seconds > 90 else f", about {seconds:.0f} s left"
            progress(f"{self.name}: {name} ({number} of {self.steps}{left})", True)
            self.done[name] = measure()
            self.measured += 1
            if self.file:
                self._put({"step": name, "rows": self.done[name]})
        self.rows += self.done[name]
        return self.done[name]

    def end(self):
        """All rows. FILE.partial goes when FILE is there: see finish."""
        if self.file:
            self.file.close()
        return self.rows


def finish(path):
    """After write: what was kept on the way isn't needed any more."""
    if path and os.path.exists(path + ".partial"):
        os.unlink(path + ".partial")


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


def table(doc, more=()):
    """more: (title, key, show) of further columns."""
    columns = [*_columns(doc), *more]
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
