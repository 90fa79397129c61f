# SPDX-License-Identifier: Apache-2.0
"""lifecycle: what a container manager takes to create, start and enter a container, runtime by runtime.

A candidate is a manager x a storage driver x a base image x a runtime, with the cgroups of this host, as root or not.
All runtimes of one manager, storage, base and test take turns. Times as in G. Everarts de Velp, Improving the
performance and the scalability of INGInious (2020), chapter 4.2.2:

  create    from before the command that creates the container until after it (docker, podman, ctr container create).
            By hand, and where the manager has no network of its own, the commands that make the root file system and
            the network count, too; `create` of the runtime is a part of it by hand, and of `start` elsewhere
  start     the same of the command that starts it. Its first process is a shell that does nothing
  exec      the same of the command that runs the test in it
  response  web: from the end of that, which started a server, until the end of its first good answer;
            ping: what ping says, for one packet, ARP included
  boot      create + start
  whole     create + start + exec (+ response of web)

Each command is timed by itself by runner.c; sums are of one container's life. A life counts if every command had status
0, the output of the test is what was generated, and the container could be removed; else it is a failure, never a
sample."""
import fnmatch
import hashlib
import os
import re
import signal
import subprocess
import threading

from leanbench import images, machine, managers, options, sandbox, stats, steps, turns
from leanbench.managers import Unavailable
from leanbench.results import Journal
from leanbench.workspace import NOT_OCI, Failure, Runtime, progress

PHASES = ("create", "start", "exec", "response", "boot", "whole")
LIMIT_S = 600  # no command takes that long
GIVE_UP = 3  # failures of one runtime in one step
DEFAULT_TESTS = ("hello", "sqlite-read-150k", "files-read-1000", "web", "ping")
COLUMNS = (("/crun", "ratio_crun_p50", lambda v: f"{v:.2f}"), ("/runc", "ratio_runc_p50", lambda v: f"{v:.2f}"))


class _Failed(Exception):
    pass


class Test:
    """data: what its image has; shown: what it has to write, or the digest of that; check: a command that isn't timed,
    and what that has to write."""

    def __init__(self, name, argv, data=None, *, shown=None, check=None, writes=False, network=None):
        self.name, self.argv, self.data, self.shown, self.check = name, argv, data, shown, check
        self.writes, self.network = writes, network


def _select(tables, what):
    return "; ".join(what.format(table) for table in tables)


def _make_test(name, base, store):
    """The facts of its data are generated with it."""
    kind, _, size = name.rpartition("-")
    if kind in ("sqlite-read", "sqlite-write"):
        data = "sqlite-" + size
        facts = store.facts(data)
        if kind == "sqlite-read":
            return Test(name, ["sqlite3", "/srv/data.db", _select(images.TABLES, "SELECT * FROM {}")], data,
                        shown=facts["shown_sha256"])
        counts = "".join(f"{n}\n" for n in facts["rows"])
        copy = _select(images.TABLES, "CREATE TABLE copy_{0} AS SELECT * FROM {0}")
        count = _select(images.TABLES, "SELECT count(data) FROM copy_{}")
        return Test(name, ["sqlite3", "/srv/data.db", copy], data, shown="", writes=True,
                    check=(["sqlite3", "/srv/data.db", count], counts))
    if kind == "files-read":
        data = "files-" + size
        return Test(name, ["/srv/readfiles", "/srv/files"], data, shown=store.facts(data)["shown"])
    if kind == "files-untar":
        data = "untar-" + size
        return Test(name, ["tar", "-xf", "/srv/files.tar", "-C", "/srv/out"], data, shown="", writes=True,
                    check=(["/srv/readfiles", "/srv/out"], store.facts(data)["shown"]))
    if name == "web":
        server = {"busybox": ["httpd", "-p", "80", "-h", "/srv/www"],
                  "debian": ["lighttpd", "-f", "/srv/lighttpd.conf"]}
        return Test(name, server[base], "web", network="web")
    if name == "ping":
        return Test(name, ["ping", "-c", "1", managers.Network.PEER], network="ping")
    return Test(name, ["/bin/echo", "Hello World"], shown="Hello World\n")


TESTS = ("hello", *(f"sqlite-{what}-{size}" for size in images.DATABASES for what in ("read", "write")),
         *(f"files-{what}-{size}" for size in images.FILES for what in ("read", "untar")), "web", "ping")


class Meter:
    """Times commands, and sees what they wrote."""

    def __init__(self, work):
        self.output = os.path.join(work.run_dir, "output")
        self.runner = work.new_runner(self.output)
        work.compile("respond", "-O2", "-static")
        self.respond = work.program("respond")

    def _end_commands(self):
        """What takes for ever is a failure: the runner sees that its command was killed."""
        for pid in sandbox.children(self.runner.process.pid):
            os.kill(pid, signal.SIGKILL)

    def run(self, phase, argv):
        watchdog = threading.Timer(LIMIT_S, self._end_commands)
        watchdog.start()
        try:
            sample = self.runner.run(argv)[0]
        finally:
            watchdog.cancel()
        if sample["status"]:
            words = argv[0] if phase == "exec" else " ".join(argv[:2])
            raise _Failed(f"{phase}: status {sample['status']} of {words}: " + " ".join(self.runner.last_error()))
        return sample

    def text(self):
        with open(self.output, encoding="utf-8", errors="replace") as f:
            return f.read()

    def expect(self, shown):
        """A digest has 64 digits; other output is never so."""
        if shown is None:
            return
        with open(self.output, "rb") as f:
            digest = hashlib.file_digest(f, "sha256").hexdigest()
        if digest != (shown if len(shown) == 64 else hashlib.sha256(shown.encode()).hexdigest()):
            with open(self.output, "rb") as f:
                raise _Failed(f"exec: wrong output, which begins with {f.read(60)!r}")


def _execute(meter, life, test, times):
    """The test itself: exec, and response where it has one."""
    if test.network == "web":
        address, port = life.address
        meter.run("exec", [meter.respond, address, str(port), images.PAGE.strip(), *life.enter, *test.argv])
        times["exec"], times["response"] = (int(word) / 1000 for word in meter.text().split())
        return
    times["exec"] = meter.run("exec", [*life.enter, *test.argv])["wall_us"]
    meter.expect(test.shown)
    if test.network == "ping":
        found = re.search(r"time=([0-9.]+) ms", meter.text())
        if not found:
            raise _Failed(f"exec: no answer in {meter.text()[:60]!r}")
        times["response"] = float(found.group(1)) * 1000


def _one_life(meter, life, test):
    """{phase: microseconds}, and of the commands' processes {cpu_us, rss_kb}"""
    times, samples = {}, []
    for phase in ("create", "start"):
        done = [meter.run(phase, argv) for argv in getattr(life, phase)]
        times[phase] = sum(s["wall_us"] for s in done)
        samples += done
    _execute(meter, life, test, times)
    if test.check:
        argv, shown = test.check
        meter.run("check", _again(life.enter) + argv)
        meter.expect(shown)
    times["boot"] = times["create"] + times["start"]
    times["whole"] = times["boot"] + times["exec"] + (times["response"] if test.network == "web" else 0)
    return times, {"rss_kb": max(s["rss_kb"] for s in samples),
                   "cpu_us": sum(s["user_us"] + s["sys_us"] for s in samples)}


def _again(enter):
    """ctr wants another id for another exec."""
    return [word if word != "exec" or enter[i - 1] != "--exec-id" else "exec2" for i, word in enumerate(enter)]


def _remove(life):
    """Everything is tried; what is said first counts."""
    problem = None
    for argv in life.remove:
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, errors="replace", timeout=LIMIT_S, check=False)
            text = f"status {done.returncode}: " + " ".join(done.stderr.strip().splitlines()[-1:])
            problem = problem or (f"remove: {text}" if done.returncode else None)
        except subprocess.TimeoutExpired:
            problem = problem or f"remove: {argv[0]} took too long"
    return problem


class Step:
    """One manager, storage, base and test, with all runtimes in turn."""
    number = 0  # of containers so far: no two have the same name

    def __init__(self, args, meter, manager, base, test):
        self.args, self.meter, self.manager, self.base, self.test = args, meter, manager, base, test

    def life(self, runtime):
        """(times, use) or a _Failed; the container is gone after it."""
        Step.number += 1
        life = self.manager.life(runtime, f"{runtime.name}-{Step.number}", Step.number, self.base, self.test.data,
                                 self.test.network)
        problem = None
        try:
            return _one_life(self.meter, life, self.test)
        except _Failed as e:
            problem = e
            raise
        finally:
            left = _remove(life)
            if left and not problem:
                raise _Failed(left)

    def measure(self, runtimes):
        good = {r.name: [] for r in runtimes}
        bad = {r.name: [] for r in runtimes}
        for i, order in enumerate(turns.orders(runtimes, self.args.runs + 1, self.test.name), -1):  # the first one warms caches, and does not count
            for runtime in order:
                if len(bad[runtime.name]) >= GIVE_UP:
                    continue
                progress(f"lifecycle: {runtime.name} {i + 1}/{self.args.runs}")
                try:
                    sample = self.life(runtime)
                    if i >= 0:
                        good[runtime.name].append(sample)
                except _Failed as e:
                    bad[runtime.name].append(str(e))
        return good, bad


def _labels(step, storage):
    manager = step.manager
    name = manager.name.removesuffix("-rootless")
    return {"manager": name, "storage": storage, "driver": manager.storages[storage], "backing": manager.backing,
            "cgroups": machine.cgroup_layout(), "rootless": manager.rootless, "limits": manager.limits,
            "base": step.base, "test": step.test.name}


def _rows(step, runtime, labels, config, good, bad):
    if not good:
        return [{"runtime": runtime.name, "config": config, **labels, "mode": "whole", "runs": len(bad),
                 "failed": len(bad), "error": bad[0]}]
    rows = []
    for mode in (phase for phase in PHASES if phase in good[0][0]):
        values = [times[mode] for times, _ in good]
        row = {"runtime": runtime.name, "config": config, **labels, "mode": mode, "runs": len(good) + len(bad),
               "failed": len(bad), "wall_us": stats.summary(values)}
        if bad:
            row["error"] = bad[0]
        if mode == "boot" and step.manager.name == "none":  # elsewhere these are the client's
            row["max_rss_kb"] = max(use["rss_kb"] for _, use in good)
            row["cpu_us"] = stats.summary([use["cpu_us"] for _, use in good])
        if step.args.samples:
            row["samples_us"] = [round(value, 1) for value in values]
        rows.append(row)
    return rows


def _add_ratios(rows, first):
    """Each against the first runtime, crun and runc, of the same step and mode, if none failed."""
    for row in rows:
        for other in rows:
            if "wall_us" not in row or "wall_us" not in other or other["mode"] != row["mode"] \
                    or not steps.comparable(row, other):
                continue
            p50, least = (round(row["wall_us"][key] / other["wall_us"][key], 3) for key in ("p50", "min"))
            if other["runtime"] == first:
                row["ratio_p50"], row["ratio_min"] = p50, least
            if other["runtime"] in ("crun", "runc"):
                row[f"ratio_{other['runtime']}_p50"], row[f"ratio_{other['runtime']}_min"] = p50, least


class Bench:
    """Goes through the candidates; one manager with one storage is up at a time."""

    def __init__(self, args, work, journal, store, meter):
        self.args, self.work, self.journal, self.store, self.meter = args, work, journal, store, meter
        self.network = managers.Network(work)
        self.manager = None
        self.broken = {}  # (manager, storage): why it couldn't begin

    def _up(self, name, storage):
        """Only when something of it isn't measured yet."""
        if self.manager and (self.manager.name, self.manager.storage) == (name, storage):
            return
        self.down()
        if (name, storage) in self.broken:
            raise Unavailable(self.broken[name, storage])
        manager = managers.ALL[name](self.work, self.store, self.network)
        try:
            self.network.prepare()
            manager.begin(storage)
        except Unavailable as e:
            self.broken[name, storage] = str(e)
            manager.end()
            raise
        self.manager = manager

    def down(self):
        if self.manager:
            self.manager.end()
        self.manager = None

    def _skip(self, name, storage, base, test, why, runtime="all"):
        return {"runtime": runtime, "config": f"{name}/{storage}/{base}/{test}",
                "manager": name.removesuffix("-rootless"), "storage": storage, "cgroups": machine.cgroup_layout(),
                "rootless": name.endswith("-rootless"), "base": base, "test": test, "mode": "whole",
                "runs": 0, "failed": 0, "skipped": why}

    def _measure(self, name, storage, base, test_name):
        config = f"{name}/{storage}/{base}/{test_name}"
        try:
            if test_name.startswith("sqlite-") and not self.store.has_sqlite(base):
                raise Unavailable("sqlite3 is not installed")
            test = _make_test(test_name, base, self.store)
            if test.writes and storage == "shared":
                raise Unavailable("a shared root is read-only")
            self._up(name, storage)
            self.manager.load(base, test.data)
        except Unavailable as e:
            return [self._skip(name, storage, base, test_name, str(e))]
        step = Step(self.args, self.meter, self.manager, base, test)
        runtimes, rows = [r for r in self.work.runtimes if r.oci], []
        if test.writes:
            rows = [self._skip(name, storage, base, test_name, "the profile's root is read-only", r.name)
                    for r in runtimes if r.lean]
            runtimes = [r for r in runtimes if not r.lean]
        good, bad = step.measure(runtimes)
        for runtime in runtimes:
            rows += _rows(step, runtime, _labels(step, storage), config, good[runtime.name], bad[runtime.name])
        _add_ratios(rows, self.work.runtimes[0].name)
        return rows

    def run(self, candidates):
        try:
            for name, storage, base, test, why in candidates:
                label = f"{name}/{storage}/{base}/{test}"
                self.journal.step(label, steps.timed(lambda: [self._skip(name, storage, base, test, why)] if why
                                                     else self._measure(name, storage, base, test)))
        finally:
            self.down()


def _problem(check, *args):
    try:
        check(*args)
    except Unavailable as e:
        return str(e)
    return None


def _candidates(args, work, store):
    """(manager, storage, base, test, why not): one with `all` where it's not about the rest."""
    found = []
    for name in args.manager:
        manager = managers.ALL[name](work, store, None)
        why = _problem(manager.program)
        if why:
            found.append((name, "all", "all", "all", why))
            continue
        for storage in args.storage:
            why = _problem(manager.check_storage, storage)
            if why:
                found.append((name, storage, "all", "all", why))
                continue
            for base in args.base:
                why = store.base_problem(base)
                found += [(name, storage, base, "all", why)] if why else [(name, storage, base, test, None)
                                                                         for test in args.test]
    return found


def _choose(given, default, everything, all_, what):
    """Names or patterns, in our order; each has to fit something."""
    for pattern in given or ():
        if not fnmatch.filter(everything, pattern) and not fnmatch.filter(everything, pattern + "-*"):
            raise Failure(f"{pattern}: no such {what}")
    if not given:
        return list(everything if all_ else default)
    return [name for name in everything
            if any(fnmatch.fnmatch(name, p) or fnmatch.fnmatch(name, p + "-*") and p not in everything for p in given)]


def _settle(args):
    args.manager = _choose(args.manager, managers.DEFAULT, list(managers.ALL), args.all, "manager")
    args.storage = _choose(args.storage, ("overlay",), managers.STORAGES, args.all, "storage")
    args.base = _choose(args.base, ("busybox",), images.BASES, args.all, "base")
    args.test = _choose(args.test, DEFAULT_TESTS, TESTS, args.all, "test")


def _note_tools(args, work, store):
    for name in args.manager:
        try:
            program = managers.ALL[name](work, store, None).program()
        except Unavailable:
            continue
        if program and program[0] not in [tool.name for tool in work.tools]:
            work.tools.append(Runtime(*program))


def _missing(work):
    """What would be compared if it were here."""
    everything = {key: "all" for key in ("config", "manager", "storage", "base", "test")}
    return [row for row in work.left_out(**everything, mode="whole") if row["runtime"] not in NOT_OCI]


def add(sub, common):
    s = sub.add_parser("lifecycle", parents=[common], help="create, start, exec by container managers",
                       epilog="Tests: " + ", ".join(TESTS) + ". A name's beginning (sqlite-read) and patterns "
                       "(files-*-10) stand for several.")
    s.add_argument("--manager", action="append", metavar="NAME", help=", ".join(managers.ALL) + " (repeatable)")
    s.add_argument("--storage", action="append", metavar="NAME", help=", ".join(managers.STORAGES) + " (repeatable)")
    s.add_argument("--base", action="append", metavar="NAME", help=", ".join(images.BASES) + " (repeatable)")
    s.add_argument("--test", action="append", metavar="NAME", help="see below (repeatable)")
    s.add_argument("--all", action="store_true", help="all of what isn't chosen; takes many hours")
    s.add_argument("--runs", type=options.at_least(1), default=5)
    s.add_argument("--cache", metavar="DIR", help="keeps the data that takes long to make (default: "
                   "$XDG_CACHE_HOME/lean-bench)")


def enter(args):
    """Daemons run in a sandbox, and we with them."""
    _settle(args)

    def prepare():
        if "debian" in args.base:
            images.prepare_debian(args.cache)
    sandbox.enter(args, prepare)


def run(args, work):
    work.runtimes = work.oci()
    os.environ["DOCKER_CONFIG"] = os.path.join(work.path, "docker-config")
    store = images.Images(work, args.cache)
    _note_tools(args, work, store)
    candidates = _candidates(args, work, store)
    journal = Journal(args, work, len(candidates))
    steps.again(journal)
    Bench(args, work, journal, store, Meter(work)).run(candidates)
    return _missing(work) + journal.end()
