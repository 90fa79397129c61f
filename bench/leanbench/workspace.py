# SPDX-License-Identifier: Apache-2.0
"""The programs, bundles and runtimes of one benchmark run, in a directory that goes away."""
import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from leanbench import configs, leftovers, machine, neighbours

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
MARK = 7  # the exit status that only a process in the container gives
DIRECTORIES = ("proc", "sys", "dev", "etc", "tmp", "run")
FLOORS = {"floor": [], "floor-host-net": ["--host-net"], "floor-cgroups": ["--cgroups"]}
NOT_OCI = (*FLOORS, *neighbours.NAMES)
RUNTIMES = ("lean-runtime", "lean", "crun", "runc", "youki")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")  # becomes a part of paths, ids and control groups
AWKWARD = re.compile(r"[^A-Za-z0-9/_.+@=-]")  # in paths: mount options and configurations take these for their own
TIMEOUT_S = 60
CLOSE_S = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILLED = 256 + signal.SIGKILL  # a status, if a command took too long


class Failure(Exception):
    pass


_last_progress = 0.0


def progress(text, step=False):
    """One line that is rewritten on a terminal; in a log, each step and one every ten seconds."""
    global _last_progress
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text[:100])
    elif step or time.monotonic() - _last_progress >= 10:
        _last_progress = time.monotonic()
        sys.stderr.write(text + "\n")
    sys.stderr.flush()


def end_group(process):
    """What a process that began a session has started and left alone there, itself included."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def call(argv, limit_s, **how):
    """As subprocess.run, but when it returns, or raises, nothing is left of what argv has started in its session."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, **how) as process:
        try:
            said, errors = process.communicate(timeout=limit_s or None)
        finally:
            end_group(process)
    return subprocess.CompletedProcess(argv, process.returncode, said, errors)


class Runner:
    """The timing program: see runner.c for the protocol."""

    def __init__(self, program, errors, output=None, limit_s=0):
        """output: a file that holds what the last command wrote, which else goes to /dev/null. limit_s: a command that
        takes longer is killed, and has status 256 + SIGKILL (0: it may take for ever)."""
        self.errors, self.limit_s = errors, limit_s
        # A session of its own: a terminal's ^C comes to us alone, and what is begun can be taken away.
        self.process = subprocess.Popen([program, errors, *([output] if output else [])], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)

    def _ask(self, argv, *numbers):
        head = " ".join(str(n) for n in (*numbers, self.limit_s, len(argv))) + "\n"
        try:
            self.process.stdin.write(head.encode() + b"".join(a.encode() + b"\0" for a in argv))
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self):
        status = self.process.wait()
        why = f"status {status}" if status >= 0 else f"signal {-status}"
        return Failure(f"runner, which times the commands, ended early: {why}: " +
                       ("was there enough memory? (dmesg)" if status == -signal.SIGKILL else "begin again"))

    def _answer(self):
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise self._ended()
            if line == b"\n":
                return lines
            lines.append([int(word) for word in line.split()])

    def run(self, argv, count=1, gap_us=0):
        """[{wall_us, user_us, sys_us, rss_kb, status}, ...]"""
        self._ask(argv, count, gap_us, 0)
        return [{"wall_us": w / 1000, "user_us": u, "sys_us": s, "rss_kb": r, "status": st}
                for w, u, s, r, st in self._answer()]

    def begin_for(self, argv, seconds, want):
        self._ask(argv, want, 0, seconds)

    def end_for(self):
        """(runs, successes, seconds)"""
        runs, good, took = self._answer()[0]
        return runs, good, took / 1e9

    def last_error(self):
        try:
            with open(self.errors, encoding="utf-8", errors="replace") as f:
                return f.read().strip().splitlines()[-1:]
        except OSError:
            return []

    def close(self):
        """What it is at may end, but not take for ever; what a command that was killed has started goes, too."""
        with contextlib.suppress(BrokenPipeError): # it has ended, with a question unread
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(CLOSE_S)
        end_group(self.process)
        self.process.wait()


def _built(name):
    path = os.path.join(os.path.dirname(BENCH), "build", "src", "cli", name)
    return path if os.path.exists(path) else None


def _library():
    """The archive: `make` builds it in a directory of its own where the program is musl's."""
    for build in ("build-lib", "build"):
        path = os.path.join(os.path.dirname(BENCH), build, "src", "liblean", "liblean.a")
        if os.path.exists(path):
            return path
    return None


class Runtime:
    def __init__(self, name, path):
        self.name, self.path = name, path
        self.oci = name not in NOT_OCI
        self.lean = name == "lean" # lean-runtime with its profile
        self.options = ["--lean"] if self.lean else []
        self.began = machine.digest(path)  # what is measured is to be this one until the end

    def version(self):
        if self.name.startswith("floor"):
            return "bench/floor.c"
        try:
            done = call([self.path, "--version"], CLOSE_S, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return "it does not say" # no reason to lose what was measured
        return " ".join(done.stdout.decode(errors="replace").split("\n")[0].split())[:200]


class Workspace:
    def __init__(self, args):
        self.args = args
        self.runners, self.idents = [], {}
        self.tools = []  # what else is measured with, as Runtime
        self.library = None
        self.missing, self.traces = [], None

    def __enter__(self):
        if AWKWARD.search(os.path.realpath(tempfile.gettempdir())):
            raise Failure(f"TMPDIR {tempfile.gettempdir()}: mount options have no room for such a name, choose another")
        # Of all that is made on the machine: two at once don't meet, and what a killed one left is in nobody's way.
        self.tag = os.environ.get("LEAN_BENCH_TAG") or secrets.token_hex(4)
        if not NAME.fullmatch(self.tag):
            raise Failure(f"LEAN_BENCH_TAG {self.tag!r}: letters, digits and _.- alone")
        self.parent = f"lean-bench-{self.tag}"
        self.path = tempfile.mkdtemp(prefix=leftovers.PREFIX)
        try:
            words = [os.path.basename(self.path)[len(leftovers.PREFIX):], neighbours.lxc_cgroup()]
            # A word of chance is nobody else's; who gives one knows what to look for.
            leftovers.claim(self.path, words if os.environ.get("LEAN_BENCH_TAG") else [self.tag, *words])
            # Runtimes keep their state in /run, which is a tmpfs, but not on every machine.
            self.run_dir = os.path.join(self.path, "run")
            os.mkdir(self.run_dir)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", self.run_dir],
                           check=True)
            self._compile()
            self.rootfs = os.path.join(self.path, "rootfs")
            for d in DIRECTORIES:
                os.makedirs(os.path.join(self.rootfs, d))
            for name in ("resolv.conf", "hostname", "hosts"):
                open(os.path.join(self.rootfs, "etc", name), "w", encoding="utf-8").close()
            shutil.copy(self.program("true"), self.rootfs)
            self.runner = self.new_runner(limit_s=self.args.timeout)
            self.runtimes = self._find(self.args.runtime)
            self.traces = neighbours.Traces(self.runtimes)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        # What is made has to be taken away, which takes seconds: also by programs that ^C would end.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
        try:
            self._remove()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _remove(self):
        for runner in self.runners:
            runner.close()
        self.remove_containers() # those that were stopped half-way, and of commands that failed
        # Never into a mount that a failed runtime left behind.
        self._drain()
        subprocess.run(["umount", "-l", self.run_dir], check=False)
        subprocess.run(["rm", "-rf", "--one-file-system", self.path], check=False)
        if self.traces:
            self.traces.remove()
        for parent in (self.parent, "lean-bench"):
            machine.remove_empty_cgroups(parent)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")

    def program(self, name):
        return os.path.join(self.path, name)

    def _drain(self):
        """What the lean profile keeps ready is mounted below its state directory."""
        states = {self.state(r): r.path for r in getattr(self, "runtimes", []) if r.lean}
        if self.library:
            states[self.library_state()] = _built("lean-runtime")
        for state, program in states.items():
            if program and os.path.isdir(os.path.join(state, ".lean")):
                subprocess.run([program, "--root", state, "pool", "drain"], check=False)

    def _compile(self):
        flags = {"true": ["-Os", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector"],
                 "runner": ["-O2", "-static"], "floor": ["-O2", "-static"]}
        for name, options in flags.items():
            self.compile(name, *options)
        self.library = _library()
        if self.library:
            self.compile("inprocess", *self._with_library())

    def _with_library(self):
        return ["-O2", "-static", "-I", os.path.join(os.path.dirname(BENCH), "include"), self.library]

    def compile(self, name, *options):
        """A library among the options comes after the source. A compiler that is killed leaves files in TMPDIR."""
        options, libraries = ([o for o in options if o.endswith(".a") == last] for last in (False, True))
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", *options, "-o", self.program(name),
                        os.path.join(BENCH, name + ".c"), *libraries], check=True, env={**os.environ, "TMPDIR": self.path})

    def compile_warm(self):
        self.compile("warm", *(["-DWITH_LIBLEAN", *self._with_library()] if self.library else ["-O2", "-static"]))

    def compile_seedling(self):
        self.compile("seedling", "-O2", "-static")

    def new_runner(self, output=None, limit_s=0):
        runner = Runner(self.program("runner"),
                        os.path.join(self.path, f"stderr{len(self.runners)}"), output, limit_s)
        self.runners.append(runner)
        return runner

    def _default(self):
        """What is compared if nothing is asked for. Containers that aren't OCI's: where that is the question."""
        if self.args.command in ("prepare", "resume", "touch", "peak", "rpc"):
            return RUNTIMES[:1]
        if self.args.command in ("functions", "warm"):
            return RUNTIMES
        more = neighbours.NAMES if self.args.command in ("start", "sysbench") else ("bwrap",)
        return (*RUNTIMES, *more) if self.args.command == "sysbench" else (*RUNTIMES, *more, *FLOORS)

    def _find(self, wanted):
        places = {"lean-runtime": _built("lean-runtime"), "lean": _built("lean-runtime"),
                  **{name: self.program("floor") for name in FLOORS}}
        found = []
        for name in wanted or self._default():
            name, _, path = name.partition("=")
            if not NAME.fullmatch(name):
                raise Failure(f"--runtime {name!r}: a name is of letters, digits and _.- (NAME=PATH)")
            if name in (r.name for r in found):
                raise Failure(f"--runtime {name}: there are two of that name; NAME=PATH gives it another")
            path = path or places.get(name) or shutil.which(name)
            if path:
                found.append(Runtime(name, os.path.realpath(path)))
            elif wanted:
                raise Failure(f"{name}: not found")
            else:
                self.missing.append(name)
        return found

    def oci(self):
        """Where a container has a life, and not only a `run`."""
        found = [r for r in self.runtimes if r.oci]
        if not found:
            raise Failure(f"{self.args.command} is of OCI runtimes, and there is none: --runtime NAME=PATH names one")
        return found

    def left_out(self, **more):
        """Rows that say what isn't compared, because it isn't there."""
        return [{"runtime": name, **more, "runs": 0, "failed": 0, "skipped": "not installed"} for name in self.missing]

    def configs(self, default=configs.NAMES):
        chosen = self.args.config or list(default)
        for name in chosen:
            if name not in configs.NAMES:
                raise Failure(f"{name}: no such configuration")
        return chosen

    def bundle(self, config, args, name):
        """A bundle of its own for each name, over the one root file system."""
        path = os.path.join(self.path, f"bundle-{config}-{name}")
        configs.write(config, path, name, args, self.parent)
        link = os.path.join(path, "rootfs")
        if not os.path.isdir(link):
            shutil.copytree(self.rootfs, link)
        return path

    def _root_of(self, ident):
        """A root of its own for each: some lock theirs, and write to it."""
        root = os.path.join(self.path, "root-" + ident)
        if not os.path.isdir(root):
            shutil.copytree(self.rootfs, root)
            for name in neighbours.DIRECTORIES:
                os.mkdir(os.path.join(root, name))
        return root

    def state(self, runtime):
        return os.path.join(self.run_dir, runtime.name)

    def library_state(self):
        return os.path.join(self.run_dir, "liblean")

    def ident(self, runtime, name):
        """Of a container."""
        ident = f"{runtime.name}-{name}-{self.tag}"
        self.idents[ident] = runtime
        return ident

    def remove_containers(self):
        """What was stopped or killed half-way, in whatever state it is. A runtime that hangs is not waited for twice."""
        hanging = set()
        for ident, runtime in list(self.idents.items()):
            if runtime.path not in hanging and not self.remove_container(ident):
                hanging.add(runtime.path)

    def remove_container(self, ident):
        """False if that takes too long."""
        runtime = self.idents[ident]
        try:
            if runtime.oci:
                call([runtime.path, *runtime.options, "--root", self.state(runtime), "delete", "--force", ident], CLOSE_S,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            else:
                neighbours.stop(self, runtime, ident)
        except subprocess.TimeoutExpired:
            return False
        except OSError:
            pass
        return True

    def run_command(self, runtime, config, name="run"):
        """argv of a whole `run`: exits with MARK."""
        what = ["/true", str(MARK)]
        if runtime.name in FLOORS:
            return [runtime.path, "run", *FLOORS[runtime.name], self.rootfs, *what]
        ident = self.ident(runtime, name)
        if not runtime.oci:
            return neighbours.command(self, runtime, ident, self._root_of(ident), what)
        return [runtime.path, *runtime.options, "--root", self.state(runtime), "run", "--bundle",
                self.bundle(config, what, ident), ident]
