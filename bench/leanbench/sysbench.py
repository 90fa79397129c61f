# SPDX-License-Identifier: Apache-2.0
"""sysbench: what a program gets done once it runs, by the figures that sysbench itself reports.

The same sysbench, out of one read-only root, on the host and in each runtime, without limits. The files of its file I/O
lie in one directory of the host, which is /mnt in the containers: no storage driver is compared. After the report on
the simple container, of 2022 (papers.json). Nothing of a container's start or end is in any figure."""
import json
import os
import re
import signal
import subprocess
import tempfile

from leanbench import cache, configs, neighbours, options, results, stats, steps, trees, turns
from leanbench.workspace import Failure, progress

PROGRAM = "/usr/bin/sysbench"
MODES = ("seqrd", "seqwr", "rndrw")
# What is asked of sysbench, for how many seconds, and the figure that is compared: those of the report.
TESTS = {"cpu": (["cpu", "--cpu-max-prime=20000"], 10, "events_per_second"),
         "threads": (["threads", "--thread-locks=1"], 20, "events_per_second"),
         "memory": (["memory", "--threads=4"], 20, "mib_per_second"),
         "file": (["fileio", "--threads=16"], 10, "mib_per_second")}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_ALWAYS = {"total_time_s": rf"total time:\s+{_NUMBER}s$", "events": r"total number of events:\s+([0-9]+)$",
           "latency_ms_min": rf"min:\s+{_NUMBER}$", "latency_ms_avg": rf"avg:\s+{_NUMBER}$",
           "latency_ms_max": rf"max:\s+{_NUMBER}$", "latency_ms_p95": rf"95th percentile:\s+{_NUMBER}$"}
_FILE = {"read_mib_per_second": rf"read, MiB/s:\s+{_NUMBER}$",
         "written_mib_per_second": rf"written, MiB/s:\s+{_NUMBER}$"}
_MORE = {"cpu": {"events_per_second": rf"events per second:\s+{_NUMBER}$"}, "threads": {},
         "memory": {"operations": r"Total operations: ([0-9]+) ",
                    "mib_per_second": rf"transferred \({_NUMBER} MiB/sec\)$"},
         "file": _FILE}
_PREPARED = {"written_mib_per_second": rf"[0-9]+ bytes written in [0-9.]+ seconds \({_NUMBER} MiB/sec\)\.$"}
FIRST_LINE = re.compile(r"^(sysbench [0-9]+\.[0-9]+\.[0-9]+)", re.M)


def _shown(value):
    number = value.get("p50", value.get("mean"))
    return f"{number:.0f}" if number >= 100 else f"{number:.2f}"


COLUMNS = (("events/s", "events_per_second", _shown), ("MiB/s", "mib_per_second", _shown),
           ("read MiB/s", "read_mib_per_second", _shown), ("written MiB/s", "written_mib_per_second", _shown),
           ("total s", "total_time_s", _shown), ("events", "events", _shown), ("p95 ms", "latency_ms_p95", _shown),
           ("/host", "ratio_host_p50", lambda v: f"{v:.2f}"))


class Wrong(Exception):
    """A run that is no sample, and why."""


class Host:
    """No container: the root's program and libraries, by the root's own loader."""
    name = "host"

    def __init__(self, root):
        self.program = trees.on_host(root, PROGRAM)

    def argv(self, what, _data):
        return [*self.program, *what]

    def stop(self):
        pass


class Contained:
    def __init__(self, work, runtime, config, root):
        self.work, self.runtime, self.config, self.root = work, runtime, config, root
        self.name = runtime.name
        self.ident = f"{runtime.name}-{config}-sysbench"

    def argv(self, what, data):
        what = [PROGRAM, *what]
        if not self.runtime.oci:
            return neighbours.command(self.work, self.runtime, self.ident, self.root, what, data)
        bundle = os.path.join(self.work.path, "sysbench-" + self.ident)
        os.makedirs(bundle, exist_ok=True)
        document = configs.docker(what, bundle, self.ident) if self.config == "docker" else configs.default(what)
        document["root"] = {"path": self.root, "readonly": True}
        document["process"]["cwd"] = "/mnt"
        # Docker's config comes without Docker's files in /etc, and both without limits.
        document["mounts"] = [m for m in document["mounts"] if not m["destination"].startswith("/etc/")]
        document["mounts"].append({"destination": "/mnt", "type": "bind", "source": data, "options": ["bind", "rw"]})
        for limit in ("memory", "cpu", "pids"):
            document["linux"]["resources"].pop(limit, None)
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump(document, f)
        return self._command("run", "--bundle", bundle, self.ident)

    def _command(self, *words):
        return [self.runtime.path, *self.runtime.options, "--root", self.work.state(self.runtime), *words]

    def stop(self):
        if not self.runtime.oci:
            neighbours.stop(self.work, self.runtime, self.ident)
            return
        subprocess.run(self._command("delete", "--force", self.ident), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, check=False)


def _end(process, candidate):
    """Stopped half-way: the container first, then whoever waits for it. Again if it was only being made."""
    for _ in range(5):
        _stop(candidate)
        _signal_all(process, signal.SIGTERM)
        try:
            process.wait(2)
            break
        except subprocess.TimeoutExpired:
            pass
    _signal_all(process, signal.SIGKILL)
    process.wait()
    _stop(candidate)


def _signal_all(process, number):
    """With what it started and left alone."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _stop(candidate):
    try:
        candidate.stop()
    except (OSError, subprocess.TimeoutExpired):
        pass


def _execute(work, candidate, what, data, limit):
    """What it printed; Wrong unless it ended well and in time."""
    out = os.path.join(work.path, "sysbench.out")
    with open(out, "w+", encoding="utf-8", errors="replace") as f:
        # A session of its own: a terminal's SIGINT comes to us, and we end it in order.
        with subprocess.Popen(candidate.argv(what, data), cwd=data, stdin=subprocess.DEVNULL, stdout=f,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                status = process.wait(limit)
            except BaseException as e:
                _end(process, candidate)
                if isinstance(e, subprocess.TimeoutExpired):
                    raise Wrong(f"no end within {limit} s") from e
                raise
        f.seek(0)
        text = f.read().replace("\r\n", "\n")
    if status != 0:
        # sysbench says why in a line that begins with FATAL, runtimes in their last.
        lines = [line for line in text.splitlines() if line.strip()]
        lines = [line for line in lines if line.startswith("FATAL")] or lines
        raise Wrong(f"status {status}: " + (lines[-1].strip() if lines else ""))
    return text


def figures(text, patterns, version):
    """The figures of one run; Wrong if one of them isn't there, or if it was another program."""
    first = FIRST_LINE.search(text)
    if not first or first.group(1) != version:
        raise Wrong(f"this wasn't {version}")
    found = {}
    for name, pattern in patterns.items():
        match = re.findall(pattern, text, re.M)
        if len(match) != 1:
            raise Wrong(f"sysbench reported no {name}" if not match else f"sysbench reported {name} {len(match)} times")
        found[name] = float(match[0])
    return found


def _checked(test, mode, found, seconds):
    """With what follows from the figures; Wrong if nothing was done."""
    if test == "threads":
        found["events_per_second"] = found["events"] / found["total_time_s"] if found["total_time_s"] else 0
    if test == "file":
        found["mib_per_second"] = found["read_mib_per_second"] + found["written_mib_per_second"]
    wanted = ["events", "total_time_s", TESTS[test][2]]
    wanted += {"seqrd": ["read_mib_per_second"], "seqwr": ["written_mib_per_second"],
               "rndrw": list(_FILE)}.get(mode, [])
    for name in wanted:
        if found[name] <= 0:
            raise Wrong(f"sysbench reported a {name} of {found[name]:g}")
    # Memory also ends when 100 GiB are through.
    if test != "memory" and found["total_time_s"] < 0.9 * seconds:
        raise Wrong(f"it ended after {found['total_time_s']:g} s of {seconds}")
    return found


class Bench:
    def __init__(self, args, work, root, data):
        self.args, self.work, self.root, self.data = args, work, root, data
        self.version = self._version()
        self.filesystem = subprocess.run(["stat", "-f", "-c", "%T", data], capture_output=True, text=True,
                                         check=False).stdout.strip()

    def _version(self):
        done = subprocess.run([*trees.on_host(self.root, PROGRAM), "--version"], capture_output=True, text=True,
                              check=False)
        first = FIRST_LINE.search(done.stdout)
        if done.returncode != 0 or not first:
            raise Failure(f"{self.root}{PROGRAM} doesn't say its version: {done.stderr.strip()}")
        return first.group(1)

    def candidates(self, config):
        host = [] if self.args.no_host else [Host(self.root)]
        return host + [Contained(self.work, r, config, self.root) for r in self.work.runtimes
                       if r.oci or config == "default"]

    def _seconds(self, test):
        return self.args.seconds or TESTS[test][1]

    def _run(self, candidate, test, mode, more):
        seconds = self._seconds(test)
        what = [*TESTS[test][0], *more, f"--time={seconds}", "run"]
        text = _execute(self.work, candidate, what, self.data, seconds + self.args.patience)
        return _checked(test, mode, figures(text, {**_ALWAYS, **_MORE[test]}, self.version), seconds)

    def _bytes(self):
        return sum(entry.stat().st_size for entry in os.scandir(self.data))

    def _file_turn(self, candidate):
        """prepare, the three modes, cleanup: {mode: figures or the reason why there are none}"""
        size = [f"--file-total-size={self.args.file_size}"]
        whole = [*TESTS["file"][0], *size]
        taken = {}
        limit = self._seconds("file") + self.args.patience
        try:
            text = _execute(self.work, candidate, [*whole, "prepare"], self.data, limit)
            taken["file prepare"] = figures(text, _PREPARED, self.version)
            said = int(re.search(r"([0-9]+) bytes written in", text).group(1))
            if self._bytes() != said:
                raise Wrong(f"sysbench wrote {said} bytes, and {self._bytes()} are there")
            taken["file prepare"]["mib_per_second"] = taken["file prepare"]["written_mib_per_second"]
            for mode in MODES:
                more = [*size, f"--file-test-mode={mode}"]
                taken["file " + mode] = self._try(lambda m=mode, o=more: self._run(candidate, "file", m, o))
            _execute(self.work, candidate, [*whole, "cleanup"], self.data, limit)
            if self._bytes():
                raise Wrong("files are left after cleanup")
        except Wrong as e:
            taken["file prepare"] = str(e)
        finally:
            for entry in os.scandir(self.data):
                os.unlink(entry)
        return {mode: taken.get(mode, "not prepared") for mode in ("file prepare", *("file " + m for m in MODES))}

    @staticmethod
    def _try(run):
        try:
            return run()
        except Wrong as e:
            return str(e)

    def measure(self, config, test):
        candidates = self.candidates(config)
        taken = {}
        for i, order in enumerate(turns.orders(candidates, self.args.runs, f"{config} {test}")):
            for candidate in order:
                progress(f"sysbench: {config}, {test}, {candidate.name}, {i + 1} of {self.args.runs}")
                turn = self._file_turn(candidate) if test == "file" else \
                    {test: self._try(lambda c=candidate: self._run(c, test, None, []))}
                for mode, one in turn.items():
                    taken.setdefault((mode, candidate.name), []).append(one)
        names = [c.name for c in candidates]
        modes = dict.fromkeys(mode for mode, _ in taken)
        return [self._row(config, mode, name, taken[mode, name]) for mode in modes for name in names]

    def _row(self, config, mode, name, taken):
        good = [one for one in taken if isinstance(one, dict)]
        row = {"runtime": name, "config": config, "mode": mode, "runs": len(taken), "failed": len(taken) - len(good),
               "sysbench": self.version}
        if len(good) < len(taken):
            row["error"] = next(one for one in taken if isinstance(one, str))
        if mode.startswith("file"):
            row.update(filesystem=self.filesystem, file_size=self.args.file_size)
        for figure in good[0] if good else ():
            row[figure] = stats.summary([one[figure] for one in good], 4)
            if self.args.samples:
                row["samples_" + figure] = [one[figure] for one in good]
        return row


def _add_ratios(rows):
    """Of the figure that is compared, against the host's of the same turns, if none failed; more is better."""
    hosts = {(row["config"], row["mode"]): row for row in rows if row["runtime"] == "host"}
    for row in rows:
        figure = TESTS[row["mode"].split()[0]][2]
        host = hosts.get((row["config"], row["mode"]), {})
        if figure in row and figure in host and steps.comparable(row, host):
            row["ratio_host_p50"] = round(row[figure]["p50"] / host[figure]["p50"], 3)


def add(sub, common):
    s = sub.add_parser("sysbench", parents=[common],
                       help="cpu, threads, memory, file I/O on the host and in containers")
    s.add_argument("--runs", type=options.at_least(1), default=5)
    s.add_argument("--seconds", type=options.at_least(0), default=0, metavar="N",
                   help="for each run of sysbench (default: 10 for cpu and file, 20 for threads and memory)")
    s.add_argument("--test", action="append", choices=tuple(TESTS), help="repeatable; default: all")
    s.add_argument("--no-host", action="store_true", help="containers alone")
    s.add_argument("--file-size", default="1G", metavar="SIZE", help="of all test files together")
    s.add_argument("--data", metavar="DIR", help="on whose file system the test files are (default: that of TMPDIR)")
    s.add_argument("--root", default="debian", metavar="debian|host|DIR",
                   help="whose sysbench: Debian's, by mmdebstrap; the host's with its libraries; or that of a "
                        "root file system (default: debian)")
    s.add_argument("--cache", metavar="DIR", help=f"where Debian's is kept (default: {cache.default()})")
    s.add_argument("--patience", type=options.at_least(1), default=300, metavar="N",
                   help="seconds after which a run that should have ended has failed")


def _root(args, work):
    if args.root == "debian":
        return trees.of_debian("sysbench", args.cache)
    if args.root == "host":
        return trees.of_host("sysbench", os.path.join(work.path, "sysbench-made", "root"))
    return trees.given(args.root)


def run(args, work):
    if any(r.name.startswith("floor") for r in work.runtimes):
        raise Failure("a floor runs no sysbench")
    tests = list(dict.fromkeys(args.test or TESTS))
    chosen = work.configs(("default",))
    journal = results.Journal(args, work, len(chosen) * len(tests))
    steps.again(journal)
    data = tempfile.mkdtemp(prefix="lean-bench-data-", dir=args.data or work.path)
    try:
        with trees.read_only(_root(args, work), os.path.join(work.path, "sysbench-root")) as root:
            bench = Bench(args, work, root, data)
            for config in chosen:
                for test in tests:
                    journal.step(f"{config}, {test}", steps.timed(lambda c=config, t=test: bench.measure(c, t)))
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", data], check=False)
    rows = journal.end()
    _add_ratios(rows)
    return rows + work.left_out(config="default", mode="")
