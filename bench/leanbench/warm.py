# SPDX-License-Identifier: Apache-2.0
"""warm: requests to containers that are paused in between, per function, runtime and number of containers.

Each of N containers has a process of warm.c, which over and over resumes it, asks it once over its Unix socket, and
pauses it. A round is from before `resume` until `pause` has returned; resume_us, request_us and pause_us are its parts.
per_second counts the rounds of all N, from the common start until the last one's end. All runtimes' containers are
there at the same time, paused, and take turns of some rounds, in an order of chance. `freezer` are the first runtime's
containers by the control group alone: what no runtime can be faster than."""
import functools
import os
import shutil
import signal
import subprocess
import time

from leanbench import functions, machine, options, results, roots, start, stats, steps, turns
from leanbench.workspace import Failure, progress

READY_S, READY_EACH_S = 120, 5
SOON_NS = 5_000_000  # until all processes have heard when to begin
ROUNDS = 10  # that the slowest does in a turn, at least
STOPPING = (signal.SIGINT, signal.SIGTERM)
PARTS = ("resume_us", "request_us", "pause_us")


def _p50(value):
    return f"{value['p50']:.0f}"


COLUMNS = (("resume us", "resume_us", _p50), ("request us", "request_us", _p50), ("pause us", "pause_us", _p50),
           ("cpu us each", "cpu_us_each", str), ("late", "late", str))


def _now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _group_of(pid):
    """The directory by which a process is frozen."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
        lines = [line.rstrip("\n").split(":", 2) for line in f]
    with open("/proc/self/mounts", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    for kind, wanted in (("cgroup", "freezer"), ("cgroup2", "")):
        path = [p for _, names, p in lines if wanted in names.split(",")]
        mount = [m[1] for m in mounts if m[2] == kind and (not wanted or wanted in m[3].split(","))]
        if path and mount:
            return mount[0] + path[0]
    raise Failure("there is no control group that freezes")


def _ended(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Worker:
    """A process of warm.c."""

    def __init__(self, work, sockets, answer, *way):
        self.errors = work.runner.errors
        self.process = subprocess.Popen([work.program("warm"), self.errors, sockets, answer, *way],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # seen when it doesn't answer

    def hear(self):
        line = self.process.stdout.readline().rstrip("\n")
        if not line or line.startswith("failed "):
            raise Failure(line[7:] or f"the measuring process ended ({self.process.wait()})")
        return line

    def do(self, line):
        self.ask(line)
        return self.hear()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Fleet:
    """The containers of one row. The row is failed by the first thing that goes wrong."""

    def __init__(self, step, name, runtime):
        self.step, self.name, self.runtime = step, name, runtime
        self.workers, self.samples, self.idents = [], [], []
        self.pids, self.cgroups = {}, {}
        self.cpu_us = self.took_ns = self.late = self.longest_s = 0
        self.problem, self.counts = None, {}

    def attempt(self, action, *args):
        if self.problem is not None:
            return
        errors = self.step.work.runner.errors
        before = os.path.getsize(errors)
        try:
            action(*args)
        except (Failure, OSError) as e:
            with open(errors, encoding="utf-8", errors="replace") as f:
                f.seek(before)
                self.problem = ": ".join([str(e), *f.read().strip().splitlines()[-1:]])

    # A container has a directory of its own for its socket.

    def sockets(self, ident):
        return os.path.join(self.step.work.path, "sockets", ident)

    def _bundle_path(self, ident):
        return os.path.join(self.step.work.path, "bundles", ident)

    def _bundle(self, ident):
        step, path = self.step, self._bundle_path(ident)
        os.makedirs(self.sockets(ident))
        step.root.bundle(path, step.config, ident, step.root.args, self.sockets(ident), "/lean-bench/" + ident)
        return path

    def _command(self, *words):
        return [self.runtime.path, *self.runtime.options, "--root", self.step.work.state(self.runtime), *words]

    def _must(self, *words):
        # To its end: nobody would know what a runtime has made that was left alone with it.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            sample = self.step.work.runner.run(self._command(*words))[0]
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        if sample["status"]:
            raise Failure(f"{words[0]}: status {sample['status']}")

    def start(self, number):
        ident = f"{self.step.tag}-{self.name}-{number}"
        bundle = self._bundle(ident)
        self.idents.append(ident)
        if self.runtime:
            pid_file = os.path.join(bundle, "pid")
            self._must("create", "--bundle", bundle, "--pid-file", pid_file, ident)
            with open(pid_file, encoding="ascii") as f:
                self.pids[ident] = int(f.read())
            self.cgroups[ident] = _group_of(self.pids[ident])
            self._must("start", ident)
            resume, pause = self._command("resume", ident), self._command("pause", ident)
            way = ["command", str(len(resume)), *resume, *pause]
        else:
            way = ["liblean", bundle, self.step.work.library_state(), ident]
        self.workers.append(Worker(self.step.work, self.sockets(ident), self.step.answer, *way))
        if not self.runtime:
            self.pids[ident] = int(self.workers[-1].do("start").split()[1])
            self.cgroups[ident] = _group_of(self.pids[ident])

    def ready(self, patience):
        end = time.monotonic() + patience
        for ident in self.idents:
            while not os.path.exists(os.path.join(self.sockets(ident), "socket")):
                if _ended(self.pids[ident]):
                    raise Failure("the function ended before it was ready")
                if time.monotonic() > end:
                    raise Failure(f"the function was not ready within {patience} s")
                time.sleep(0.005)

    def first(self):
        for ident, worker in zip(self.idents, self.workers):
            worker.do("open " + self.cgroups[ident])
            worker.do("first")

    def borrow(self, other):
        """The containers of another row, by their control groups."""
        for ident in other.idents:
            self.workers.append(Worker(self.step.work, other.sockets(ident), self.step.answer, "freezer"))
            self.workers[-1].do("open " + other.cgroups[ident])

    def turn(self, seconds):
        start = _now() + SOON_NS
        end = start + int(seconds * 1e9)
        for worker in self.workers:
            worker.ask(f"go {start} {end}")
        last, problem = end, None
        for worker in self.workers:
            try:
                words = worker.hear().split()
                while words[0] != "end":
                    self.samples.append([int(word) / 1000 for word in words[:3]])
                    self.late += int(words[3])
                    words = worker.hear().split()
                last = max(last, int(words[1]))
                self.cpu_us += int(words[2])
            except Failure as e:  # the others have to be heard all the same
                problem = e
        self.took_ns += last - start
        if problem:
            raise problem

    def try_turn(self):
        """How long the longest round takes with all at once. It doesn't count."""
        self.turn(0.02)
        longest = max((sum(sample) for sample in self.samples), default=0) / 1e6
        self.samples, self.cpu_us, self.took_ns, self.late = [], 0, 0, 0
        self.longest_s = longest

    def count(self):
        """System calls of one `resume` and one `pause`, a container that is paused before and after."""
        if not self.runtime or self.problem:
            return
        for word in ("resume", "pause"):
            count = start.syscalls(self.step.work, self._command(word, self.idents[0]), 0)
            if count is None:
                return
            self.counts[word + "_syscalls"] = count
        self.counts["syscalls"] = sum(self.counts.values())

    def _delete(self, ident):
        try:
            subprocess.run(self._command("delete", "--force", ident), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            pass

    def stop(self):
        for worker in self.workers:
            worker.close()
        for ident in self.idents:
            if self.cgroups.get(ident):
                _thaw(self.cgroups[ident])
            if self.runtime:
                self._delete(ident)
            if ident in self.pids and not _ended(self.pids[ident]):
                os.kill(self.pids[ident], signal.SIGKILL)
            _remove_groups(ident)
            for path in (self.sockets(ident), self._bundle_path(ident)):
                shutil.rmtree(path, ignore_errors=True)


def _thaw(group):
    """Some runtimes can't kill what is frozen; and one that failed may have left it so."""
    for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        try:
            with open(os.path.join(group, name), "r+", encoding="ascii") as f:
                f.write(value)
        except OSError:
            pass


def _remove_groups(ident):
    """Those that a runtime left that failed; for a moment after the last process's end they are busy."""
    end = time.monotonic() + 2
    while True:
        left = machine.cgroup_directories("lean-bench/" + ident)
        for path in left:
            try:
                os.rmdir(path)
            except OSError:
                pass
        if not left or time.monotonic() > end:
            return
        time.sleep(0.01)


def _anonymous_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next((int(line.split()[1]) for line in f if line.startswith("RssAnon")), 0)


def _available_kb():
    with open("/proc/meminfo", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable"))


class Step:
    """One function, one number of containers: all rows, in turns."""

    number = 0

    def __init__(self, args, work, config, root, containers):
        self.args, self.work, self.config, self.root, self.containers = args, work, config, root, containers
        # Nobody else's containers have these names, not those of another step either.
        Step.number += 1
        self.tag = f"warm-{os.path.basename(work.path)[len('lean-bench-'):]}-{Step.number}"
        self.answer = os.path.join(work.path, "answer")
        with open(self.answer, "w", encoding="ascii") as f:
            f.write(root.answer)
        self.fleets = [Fleet(self, r.name, r) for r in work.runtimes if r.oci]
        if work.library and not args.no_inprocess:
            self.fleets.append(Fleet(self, "liblean", None))
        self.floor = None if args.no_freezer or not self.fleets else Fleet(self, "freezer", None)

    def say(self, what):
        progress(f"warm: {self.root.name}, {self.containers} containers: {what}")

    def rows(self):
        try:
            too_much = self._start()
            if too_much:
                return [self._head("skipped") | {"skipped": too_much}]
            self._turns()
        finally:
            self._stop()
        fleets = self.fleets + ([self.floor] if self.floor else [])
        return self._ratios([self._row(f) for f in fleets])

    def _start(self):
        """Why it is not done, or None."""
        patience = READY_S + READY_EACH_S * self.containers * len(self.fleets)
        alive = False
        for fleet in self.fleets:
            self.say(f"starting {fleet.name}")
            for number in range(self.containers):
                fleet.attempt(fleet.start, number)
                if not alive and fleet.problem is None:
                    fleet.attempt(fleet.ready, patience)
                    alive = fleet.problem is None
                    if alive and self._lacking(fleet):
                        return self._lacking(fleet)
        for fleet in self.fleets:
            self.say(f"waiting for {fleet.name}")
            fleet.attempt(fleet.ready, patience)
            fleet.attempt(fleet.first)
        if self.floor:
            lender = next((f for f in self.fleets if f.problem is None), None)
            if lender:
                self.floor.attempt(self.floor.borrow, lender)
            else:
                self.floor.problem = "no runtime's containers run"
        return None

    def _lacking(self, fleet):
        """By the first container, what is missing for all the others."""
        need = _anonymous_kb(fleet.pids[fleet.idents[0]]) * (self.containers * len(self.fleets) - 1)
        have = _available_kb() * 9 // 10
        return f"not enough memory: {need >> 10} MB, {have >> 10} MB are free" if need > have else None

    def _slice(self, fleets):
        """Seconds of a turn. All begin together and end the round they are in: of a few rounds, the last would be a
        large part, in which some have nothing to do."""
        for fleet in fleets:
            self.say(f"{fleet.name}, a turn that doesn't count")
            fleet.attempt(fleet.try_turn)
        return max(self.args.slice, ROUNDS * max(fleet.longest_s for fleet in fleets))

    def _turns(self):
        fleets = self.fleets + ([self.floor] if self.floor else [])
        self.slice = self._slice(fleets)
        count = max(2, round(self.args.seconds / self.slice))
        for i, order in enumerate(turns.orders(fleets, count, self.root.name)):
            for fleet in order:
                self.say(f"{fleet.name}, turn {i + 1} of {count}")
                fleet.attempt(fleet.turn, self.slice)
        if not self.args.no_counts:
            for fleet in self.fleets:
                fleet.count()

    def _stop(self):
        self.say("stopping")
        handlers = {s: signal.signal(s, signal.SIG_IGN) for s in STOPPING}
        try:
            for fleet in ([self.floor] if self.floor else []) + self.fleets:
                fleet.stop()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _head(self, runs):
        head = {"function": self.root.name, "containers": self.containers, "config": self.config,
                "mode": f"{self.root.name}, {self.containers}"}
        return head if runs == "skipped" else {**head, "runs": runs}

    def _row(self, fleet):
        row = {"runtime": fleet.name, **self._head(len(fleet.samples) + (fleet.problem is not None)),
               "failed": int(fleet.problem is not None), **fleet.counts}
        if fleet.problem is not None:
            return {**row, "error": fleet.problem}
        if fleet.samples:
            row["wall_us"] = stats.summary([sum(s) for s in fleet.samples])
            for i, part in enumerate(PARTS):
                row[part] = stats.summary([s[i] for s in fleet.samples])
            row["per_second"] = round(len(fleet.samples) / fleet.took_ns * 1e9, 1)
            row["cpu_us_each"] = round(fleet.cpu_us / len(fleet.samples), 1)
            row["late"] = fleet.late
            row["turn_seconds"] = round(self.slice, 3)
            if self.args.samples:
                row["samples_us"] = [round(sum(s), 3) for s in fleet.samples]
                row.update({"samples_" + part: [s[i] for s in fleet.samples] for i, part in enumerate(PARTS)})
        return row

    @staticmethod
    def _ratios(rows):
        """Of the rounds' time: against the first row, and against the bare control group, which waits until all stand
        still: not of those who didn't."""
        for row in rows:
            if steps.comparable(row, rows[0]) and "wall_us" in row and "wall_us" in rows[0]:
                row["ratio_p50"] = round(row["wall_us"]["p50"] / rows[0]["wall_us"]["p50"], 3)
            if rows[-1]["runtime"] == "freezer" and "wall_us" in row and "wall_us" in rows[-1] and not row["late"]:
                row["floor"] = "freezer"
                row["ratio_floor_p50"] = round(row["wall_us"]["p50"] / rows[-1]["wall_us"]["p50"], 3)
        return rows


def add(sub, common):
    s = sub.add_parser("warm", parents=[common], help="requests to containers that are paused in between")
    functions.options(s)
    s.add_argument("--containers", type=options.several(), default="1,4,24", metavar="N,...",
                   help="how many at once (default: %(default)s)")
    s.add_argument("--seconds", type=options.at_least(0.01, float), default=10,
                   help="of measuring for each row (default: %(default)s)")
    s.add_argument("--slice", type=options.at_least(0.01, float), default=1,
                   help="seconds of a turn, at least (default: %(default)s)")
    s.add_argument("--no-inprocess", action="store_true", help="no liblean")
    s.add_argument("--no-freezer", action="store_true", help="no floor")
    s.add_argument("--no-counts", action="store_true", help="no strace")


def _measure(args, work, kept, config, name, containers):
    try:
        root = kept.get(name)
    except (Failure, OSError) as e:
        return [{**functions.problem(name, e), "config": config}]
    return Step(args, work, config, root, containers).rows()


def run(args, work):
    if args.no_inprocess or not work.library:
        work.oci()
    work.compile_warm()
    names = args.function or roots.NAMES
    chosen = work.configs(("default",))
    journal = results.Journal(args, work, len(chosen) * len(names) * len(args.containers))
    steps.again(journal)
    with roots.Cache(args.cache, args.base) as kept:
        for config in chosen:
            for name in names:
                for n in args.containers:
                    measure = functools.partial(_measure, args, work, kept, config, name, n)
                    journal.step(f"{name}, {config}, {n} containers", steps.timed(measure))
    return journal.end() + work.left_out()
