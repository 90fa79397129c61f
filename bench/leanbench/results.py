# SPDX-License-Identifier: Apache-2.0
"""The result as JSON (schema 1: members are only ever added), as a table, and while it is measured."""
import errno
import fcntl
import glob
import hashlib
import json
import os
import platform
import stat
import sys
import tempfile
import time

from leanbench import machine
from leanbench.workspace import BENCH, Failure, progress

SCHEMA = 1


def _programs(work):
    """{name: digest} of what was measured. Figures of a program that was replaced meanwhile are nobody's."""
    found = {}
    for runtime in [*work.runtimes, *getattr(work, "tools", ())]:
        try:
            found[runtime.name] = machine.digest(runtime.path)
        except OSError:
            found[runtime.name] = None
        if found[runtime.name] != getattr(runtime, "began", found[runtime.name]):
            raise Failure(f"{runtime.path} was replaced while {runtime.name} was measured: nothing of it counts, begin again")
    return found


def document(args, work, results):
    programs = [*work.runtimes, *getattr(work, "tools", ())]
    return {
        "schema": SCHEMA,
        "benchmark": args.command,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv,
        "machine": machine.describe(),
        "commit": machine.commit(),
        "versions": {r.name: r.version() for r in programs},
        "programs": {**_programs(work),
                     **({"liblean.a": machine.digest(work.library)} if getattr(work, "library", None) else {})},
        "environment": machine.environment(),
        "turns": getattr(args, "turns", True), # whether rows took turns, so that one may be divided by another
        **({"compared": args.compared} if hasattr(args, "compared") else {}),
        "results": results,
    }


def check_output(path):
    """Before minutes are spent on what then can't be kept."""
    if path:
        if os.path.isdir(path):
            raise Failure(f"--output {path}: is a directory")
        directory = os.path.dirname(path) or "."
        if not os.path.isdir(directory):
            raise Failure(f"--output {path}: there is no directory {directory}")
        try:
            fd, new = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=directory)
        except OSError as e: # access(2) says of /proc that root may
            raise Failure(f"--output {path}: can't write to {directory}: {e.strerror}") from e
        os.close(fd)
        os.unlink(new)


def not_below_mnt(*paths):
    """Where a command covers /mnt in its namespace."""
    for path in filter(machine.below_mnt, paths):
        raise Failure(f"{path}: choose a place outside of /mnt, which is covered meanwhile")


def replace(path, text):
    """Whole or not at all: a reader never finds half of it, and who else writes it has a file of their own."""
    new = None
    try:
        fd, new = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path) or ".")
        with open(fd, "w", encoding="utf-8") as f:
            os.fchmod(fd, 0o644)
            f.write(text)
        os.replace(new, path)
    except BaseException as e: # also a signal
        if new and os.path.exists(new):
            os.unlink(new)
        if isinstance(e, OSError):
            raise Failure(f"{path}: {e.strerror}") from e
        raise


def write(doc, path):
    if path:
        replace(path, json.dumps(doc, indent=1) + "\n")


def _bench_digest():
    """The commit doesn't tell two changed trees apart."""
    digest = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(BENCH, "**"), recursive=True)):
        if os.path.isfile(path) and not path.endswith((".md", "counts.json", ".pyc")):
            with open(path, "rb") as f:
                digest.update(os.path.relpath(path, BENCH).encode() + b"\0" + f.read())
    return digest.hexdigest()


class Journal:
    """The rows of a long benchmark, kept as they come, so that it can be stopped and goes on.

    With --output FILE they are in FILE.partial, one JSON document a line, after a first line that says
    what they were measured on and with: another machine, commit, program or command line is refused.
    A step is what is measured in one go, with all that are compared in it taking turns."""

    def __init__(self, args, work, steps):
        self.name, self.steps = args.command, steps
        self.path = args.output and args.output + ".partial"
        self.done, self.rows = {}, []
        self.began, self.measured, self.work = time.monotonic(), 0, work
        self.file = None
        if self.path:
            self.file = self._open()
            self._begin(self._head(args, work))
            args.journal = self # finish removes it

    def _open(self):
        """Its name can be foretold: where others may write, it may be a link to any file, or be filled by them."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
            about = os.fstat(fd)
        except OSError as e:
            why = "is a link" if e.errno == errno.ELOOP else e.strerror
            raise Failure(f"{self.path}: {why}") from e
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_nlink != 1:
            os.close(fd)
            raise Failure(f"{self.path}: is not a file of yours alone: remove it, or choose another --output")
        return open(fd, "a+b", buffering=0)

    @staticmethod
    def _head(args, work):
        """What two halves of one result have in common; json makes it what it will be when it is read."""
        head = document(args, work, [])
        head = {k: head[k] for k in head if k not in ("time", "results")}
        head["command"] = sys.argv[1:] # the program may be called by another path
        head["machine"] = {k: v for k, v in head["machine"].items() if k != "host_mounts"}
        head["host"] = platform.node()
        head["bench"] = _bench_digest()
        head["filesystem"] = machine.filesystem(tempfile.gettempdir()) # of bundles and roots
        return json.loads(json.dumps(head))

    def _begin(self, head):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise Failure(f"{self.path}: another lean-bench writes it") from e
        self.file.seek(0)
        text = self.file.read()
        whole = text[:text.rfind(b"\n") + 1] # a line that was cut off is measured again
        lines = [self._line(line, i + 1) for i, line in enumerate(whole.splitlines())]
        if lines:
            self._same(head, lines[0])
        elif text and not text.startswith(b"{"):
            raise self._damaged(1)
        for i, line in enumerate(lines[1:], 2):
            rows = line.get("rows")
            if not isinstance(line.get("step"), str) or not isinstance(rows, list) \
                    or not all(isinstance(r, dict) for r in rows):
                raise self._damaged(i)
            self.done[line["step"]] = rows
        self.file.truncate(len(whole))
        if not lines:
            self._put(head)

    def _line(self, line, number):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self._damaged(number)
        return value

    def _damaged(self, number):
        return Failure(f"{self.path}: line {number} is not what lean-bench writes: remove the file, or choose another "
                       "--output")

    def _same(self, head, other):
        differ = sorted(k for k in {*head, *other} if head.get(k) != other.get(k))
        if differ:
            raise Failure(f"{self.path} was begun with another {', another '.join(differ)}: "
                          "remove it, or choose another --output")

    def _put(self, line):
        """A whole line or, on a full disk, none: what is there already stays good."""
        end = self.file.seek(0, os.SEEK_END)
        text = json.dumps(line).encode() + b"\n"
        try:
            while text:
                text = text[self.file.write(text):]
        except OSError as e:
            self.file.truncate(end)
            raise Failure(f"{self.path}: {e.strerror}; what was measured before is kept") from e

    def step(self, name, measure):
        """measure() returns the rows of this step; it isn't called if they are there already."""
        if name not in self.done:
            number = len(self.done) + 1
            left = ""
            if self.measured:
                seconds = (time.monotonic() - self.began) / self.measured * (self.steps - number + 1)
                left = f", about {seconds / 60:.0f} minutes left" if seconds > 90 else f", about {seconds:.0f} s left"
            progress(f"{self.name}: {name} ({number} of {self.steps}{left})", True)
            rows = measure()
            self.measured += 1
            _programs(self.work)
            if self.file:
                self._put({"step": name, "rows": rows})
            self.done[name] = rows
        self.rows += self.done[name]
        return self.done[name]

    def end(self):
        """All rows. FILE.partial goes, and is nobody else's, when FILE is there: see finish."""
        return self.rows

    def remove(self):
        os.unlink(self.path)
        self.file.close()


def finish(args):
    """After write: what was kept on the way isn't needed any more. Another command's stays."""
    if getattr(args, "journal", None):
        args.journal.remove()


def _columns(benchmark):
    if benchmark == "floor":
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
                ("processes", "processes", str), ("", "what", str), ("", "skipped", str),
                ("", "error", lambda v: v[:100]))


def _cell(row, key, show):
    value = row.get(key[0], {}).get(key[1]) if isinstance(key, tuple) else row.get(key)
    return "" if value is None else show(value)


def _print_rows(benchmark, rows, more=()):
    columns = [*_columns(benchmark), *more]
    lines = [[title for title, _, _ in columns]]
    lines += [[_cell(row, key, show) for _, key, show in columns] for row in rows]
    used = [i for i in range(len(columns)) if any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in used}
    left = {"", "config", "mode", "runtime"}
    for line in lines:
        print("  ".join(line[i].ljust(widths[i]) if columns[i][0] in left
                        else line[i].rjust(widths[i]) for i in used).rstrip())


def papers(benchmark):
    """What the papers of docs/origins.md report of the same."""
    with open(os.path.join(BENCH, "leanbench", "papers.json"), encoding="utf-8") as f:
        return [paper for paper in json.load(f) if paper["benchmark"] == benchmark]


def elsewhere(benchmark):
    """Prints these. The hardware is another, so they stand apart, and nothing is divided by them."""
    for paper in papers(benchmark):
        lines = [[str(cell) for cell in line] for line in (paper["columns"], *paper["rows"])]
        widths = [max(map(len, column)) for column in zip(*lines)]
        print(f"\nOn other hardware: {paper['title']}. {paper['what']} {paper['hardware']}.")
        for first, *others in lines:
            cells = [cell.rjust(width) for cell, width in zip(others, widths[1:])]
            print("  ".join([first.ljust(widths[0]), *cells]).rstrip())


def so_far(benchmark, rows):
    """A table of what is measured already, while the rest is."""
    if sys.stderr.isatty():
        progress("")
    _print_rows(benchmark, rows)
    print("", flush=True)


def table(doc, more=()):
    """more: (title, key, show) of further columns."""
    m = doc["machine"]
    print(f"{doc['benchmark']}: {m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}, "
          f"cgroups {m['cgroups']}, {m['host_mounts']} mounts")
    for name, version in doc["versions"].items():
        print(f"  {name}: {version}")
    _print_rows(doc["benchmark"], doc["results"], more)
