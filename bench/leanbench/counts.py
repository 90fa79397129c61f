# SPDX-License-Identifier: Apache-2.0
"""counts: what doesn't depend on the machine's mood: system calls, instructions and peak memory of each verb.

System calls are those of the verb's process and of all it makes, from its execve to its end; `create` goes on until the
container's first process waits for start, and `run` until its program has ended. Memory is that of the greatest of
these processes; less than the runner's own doesn't show. Each is the least of --runs: what is more is a call that a
signal or a lost race repeats.

bench/counts.json holds them down, --check compares, --update writes it."""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from leanbench import life, machine, options, results
from leanbench.life import CONFIGS, VERBS
from leanbench.workspace import BENCH, MARK, Failure, Runtime, progress

KEEP_CGROUP_VIEW = True # only one program is counted, and it takes every layout
KINDS = ("syscalls", "instructions_user", "max_rss_kb")
TABLE = os.path.join(BENCH, "counts.json")
PR_SET_CHILD_SUBREAPER = 36
NAPS = ("nanosleep", "clock_nanosleep")
LOOP_MAX = 8 # calls of one round
WAIT_S = 20
NO_ENTRY = 3 # exit status: nothing to hold it against
CALL = re.compile(r"^(\d+) +(\w+)\(")
ENDED = re.compile(r"^(\d+) +\+\+\+ (?:exited|killed)")


def add(sub, common):
    s = sub.add_parser("counts", parents=[common], help="system calls, instructions, memory of each verb")
    s.add_argument("--runs", type=options.at_least(1), default=5, help="the least of so many")
    s.add_argument("--table", metavar="FILE", default=TABLE, help="(bench/counts.json)")
    s.add_argument("--check", action="store_true", help="exit status 1 if something is more than the table has, "
                   f"{NO_ENTRY} if the table has nothing for a machine like this")
    s.add_argument("--update", action="store_true", help="write what was counted into the table")


def prepare(args):
    for config in args.config or ():
        if config not in CONFIGS:
            raise Failure(f"{config}: no such configuration")
    if args.check and args.update:
        raise Failure("--check and --update exclude each other")
    if args.update and args.config:
        raise Failure("--update is of all configurations")
    args.runtime = args.runtime or ["lean-runtime"]
    if len(args.runtime) > 1 or args.runtime[0].partition("=")[0] != "lean-runtime":
        raise Failure("counts are of lean-runtime: --runtime lean-runtime=PATH")
    if args.check or args.update:
        args.held = load(args.table, args.update)
    results.not_below_mnt(args.output, args.table)
    _same_for_everyone()


def _same_for_everyone():
    """What a shell or a test hands down and some call depends on: how deep the directory is, which signals are ignored,
    and who reaps a container whose runtime has ended. (The mount namespace is our own.)"""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt"], check=True)
    tempfile.tempdir = "/mnt"
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN: # nohup; a handler ends with an exec, as those of the others do
        signal.signal(signal.SIGHUP, lambda *_: None)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def load(path, missing=False):
    try:
        with open(path, encoding="utf-8") as f:
            table = json.load(f)
    except FileNotFoundError as e:
        if missing:
            return {"tolerance": {kind: {} for kind in KINDS}, "machines": {}}
        raise Failure(f"{path}: {e.strerror}") from e
    except (OSError, ValueError) as e:
        raise Failure(f"{path}: {e}") from e
    try:
        for kind in KINDS:
            for name in ("part", "more"):
                float(table["tolerance"][kind].get(name, 0))
        for rows in table["machines"].values():
            for counted in rows["counts"].values():
                for value in counted.values():
                    int(value)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise Failure(f"{path}: not a table of counts ({e!r})") from e
    return table


def like(runtime):
    """What the counts depend on: a machine with the same has the same. A kernel without a call takes a detour."""
    m = machine.describe()
    with open(runtime.path, "rb") as f:
        program = f.read()
    libc = "glibc" if b"GLIBC_TUNABLES" in program or b"/ld-linux" in program else "musl"
    return f"{m['architecture']}, Linux {'.'.join(m['kernel'].split('.')[:2])}, cgroups {m['cgroups']}, {libc}" + \
        (", dynamic" if b"/ld-" in program else "")


class Trace:
    """strace of a command and of what it starts, call by call; `-c` would only tell at the end, which create hasn't."""

    def __init__(self, work, argv):
        self.path = os.path.join(work.path, "strace.out")
        if os.path.exists(self.path):
            os.unlink(self.path)
        # -I 2: can be told to leave, although it writes to a file
        self.process = subprocess.Popen(["strace", "-f", "-q", "-I", "2", "-o", self.path, "--", *argv],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def lines(self):
        try:
            with open(self.path, encoding="utf-8", errors="replace") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def wait(self):
        return self.process.wait(timeout=WAIT_S)

    def wait_first(self):
        """Until the command itself has ended and all that it started sleeps in a call, for a while and without waking:
        silence alone may be a busy machine's."""
        end, before, since = time.monotonic() + WAIT_S, None, 0
        while time.monotonic() < end:
            lines = self.lines()
            first = lines[0].split()[0] if lines else None
            ended = {m[1] for m in map(ENDED.match, lines) if m}
            left = {line.split()[0] for line in lines} - ended
            now = (len(lines), [asleep(pid) for pid in sorted(left)], asleep(self.process.pid))
            if first not in ended or now != before or None in (*now[1], now[2]):
                before, since = now, time.monotonic()
            elif time.monotonic() - since > 0.2:
                return
            time.sleep(0.02)
        raise Failure("strace: the command doesn't come to an end")

    def leave(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def calls(self):
        """{call: how often}"""
        sequences, found = {}, {}
        for match in map(CALL.match, self.lines()):
            if match:
                sequences.setdefault(match[1], []).append(match[2])
        for sequence in sequences.values():
            for call in without_waiting(sequence):
                found[call] = found.get(call, 0) + 1
        return found


def asleep(pid):
    """How often a process has gone to sleep, if it does so now; None if it runs, wants to, or is stopped by strace."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return None
    return fields["voluntary_ctxt_switches"] if fields["State"][0] == "S" else None


def without_waiting(sequence):
    """The calls of a process without further rounds of a loop that looks, naps and looks again: how many there are is
    the scheduler's."""
    kept, i = [], 0
    while i < len(sequence):
        if sequence[i] in NAPS:
            sizes = range(1, min(LOOP_MAX, len(kept)) + 1)
            size = next((n for n in sizes if kept[-n:] == sequence[i + 1:i + 1 + n]), 0)
            if size:
                i += 1 + size
                continue
        kept.append(sequence[i])
        i += 1
    return kept


def _traced(work, argv, want, verb):
    trace = Trace(work, argv)
    try:
        if verb == "create":
            trace.wait_first()
        elif trace.wait() != want:
            raise Failure(f"{verb} under strace: status {trace.process.returncode}, not {want}")
    except subprocess.TimeoutExpired as e:
        raise Failure(f"{verb} under strace doesn't come to an end") from e
    finally:
        trace.leave()
    return trace.calls()


def _counted(work, argv, want, verb):
    """By perf, where the processor's counters can be read."""
    out = os.path.join(work.path, "perf.out")
    if os.path.exists(out):
        os.unlink(out)
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "-o", out, "--", *argv], timeout=WAIT_S,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != want:
        raise Failure(f"{verb} under perf: status {done.returncode}, not {want}")
    with open(out, encoding="utf-8") as f:
        found = re.search(r"^(\d+),.*instructions", f.read(), re.M)
    return int(found[1])


def counters():
    """Why instructions can't be counted here, or None."""
    try:
        done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True,
                              check=False)
    except OSError:
        return "perf isn't installed"
    found = re.search(r"^\d+,.*instructions", done.stderr, re.M)
    return None if found else "perf can't read the processor's counters here"


def _sampled(work, argv, want, verb):
    sample = work.runner.run(argv)[0]
    if sample["status"] != want:
        raise Failure(f"{verb}: status {sample['status']}: " + " ".join(work.runner.last_error()))
    return sample["rss_kb"]


def _reap():
    """A zombie is looked at more closely than what is gone."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _each(work, runtime, config, how):
    """{verb: what how says} of one run and one life."""
    found = {"run": how(work, work.run_command(runtime, config), MARK, "run")}
    argv, pid_file = life.commands(work, runtime, config)
    for verb in life.STEPS:
        if verb == "delete":
            life.wait_gone(pid_file)
            _reap()
        found[verb] = how(work, argv[verb], MARK if verb == "exec" else 0, verb)
    return found


def _rows(args, work, runtime, config, reason):
    found = {verb: {} for verb in VERBS}
    bundle = "default" if runtime.lean else config
    _each(work, runtime, bundle, _sampled) # fills caches and pools
    for i in range(args.runs):
        progress(f"counts: {config} {i + 1}/{args.runs}")
        for verb, calls in _each(work, runtime, bundle, _traced).items():
            found[verb].setdefault("calls", []).append(calls)
        for verb, rss in _each(work, runtime, bundle, _sampled).items():
            found[verb].setdefault("max_rss_kb", []).append(rss)
        if not reason:
            for verb, number in _each(work, runtime, bundle, _counted).items():
                found[verb].setdefault("instructions_user", []).append(number)
    for verb, of in found.items():
        totals = [sum(calls.values()) for calls in of["calls"]]
        row = {"runtime": "lean-runtime", "config": config, "mode": verb, "runs": args.runs, "failed": 0,
               "syscalls": min(totals), "max_rss_kb": min(of["max_rss_kb"])}
        if reason:
            row["note"] = f"no instructions: {reason}"
        else:
            row["instructions_user"] = min(of["instructions_user"])
        if args.samples:
            row.update({"samples_syscalls": totals, "samples_max_rss_kb": of["max_rss_kb"],
                        "samples_instructions_user": of.get("instructions_user", []),
                        "calls": dict(sorted(of["calls"][totals.index(min(totals))].items()))})
        yield row


def run(args, work):
    runtime, = work.runtimes
    runtime.path = shutil.copy(runtime.path, work.program("lean-runtime"))
    lean = Runtime("lean", runtime.path)
    work.runtimes.append(lean) # what it keeps is removed as of any other
    reason, rows = counters(), []
    for config in args.config or CONFIGS:
        rows += _rows(args, work, lean if config == "lean" else runtime, config, reason)
    args.like = like(runtime)
    return rows


def _allowed(table, kind, value):
    tolerance = table["tolerance"][kind]
    return value + max(value * tolerance.get("part", 0), tolerance.get("more", 0))


def _check(args, rows):
    entry = args.held["machines"].get(args.like)
    if entry is None:
        print(f"{args.table} has no counts of a machine like this: {args.like}")
        return NO_ENTRY
    bad, less = [], []
    for row in rows:
        name = f"{row['config']} {row['mode']}"
        held = entry["counts"].get(name)
        if held is None:
            bad.append(f"{name}: not in the table")
            continue
        for kind in KINDS:
            if kind in row and kind in held:
                if row[kind] > _allowed(args.held, kind, held[kind]):
                    bad.append(f"{name}: {kind} {held[kind]} -> {row[kind]}")
                elif held[kind] > _allowed(args.held, kind, row[kind]):
                    less.append(f"{name}: {kind} {held[kind]} -> {row[kind]}")
    for line in bad:
        print(f"more than the table: {line}")
    for line in less:
        print(f"less than the table: {line}")
    if bad or less:
        print(f"If that is meant: bench/lean-bench counts --update, and the reason in the commit that has {args.table}."
              "\nWhich calls they are: bench/lean-bench counts --samples --output FILE for both, `calls` of each row.")
    return 1 if bad else 0


def _update(args, rows):
    counts = {f"{row['config']} {row['mode']}": {kind: row[kind] for kind in KINDS if kind in row} for row in rows}
    args.held["machines"][args.like] = {"counts": counts}
    lines = []
    for name, entry in sorted(args.held["machines"].items()):
        of = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in entry["counts"].items())
        lines.append(f"  {json.dumps(name)}: {{\"counts\": {{\n{of}}}}}")
    of = ",\n".join(f"  {json.dumps(kind)}: {json.dumps(value)}" for kind, value in args.held["tolerance"].items())
    text = "{\n \"tolerance\": {\n" + of + "\n },\n \"machines\": {\n" + ",\n".join(lines) + "\n }\n}\n"
    results.replace(args.table, text)
    print(f"{args.table}: {args.like}")
    return 0


def conclude(args, rows):
    return _check(args, rows) if args.check else _update(args, rows) if args.update else 0
