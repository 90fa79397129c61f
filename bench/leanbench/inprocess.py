# SPDX-License-Identifier: Apache-2.0
"""liblean in one process, beside the bare clone in the same process; see inprocess.c."""
import os
import select
import subprocess

from leanbench import stats, turns
from leanbench.workspace import CLOSE_S, MARK, Failure, progress

LIMIT_S = 60 # for one line of an answer

# Row, and the floor that has the same namespaces: the lean profile makes no network namespace.
ROWS = {"floor": "floor", "liblean": "floor", "floor-host-net": "floor-host-net",
        "liblean-lean": "floor-host-net"}


class _Group:
    """Processes of inprocess.c, which end with the block."""

    def __init__(self, work, commands):
        self.work, self.commands, self.processes = work, commands, []

    def __enter__(self):
        try:
            for argv in self.commands:
                self.processes.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                                       start_new_session=True))
        except BaseException:
            self.__exit__()
            raise
        return self.processes

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
            process.stdout.close()
        for process in self.processes:
            try:
                process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _line(process, limit_s):
    """The next line; what comes after it stays in the pipe or in `rest`."""
    rest = getattr(process, "rest", b"")
    while b"\n" not in rest:
        if not select.select([process.stdout], [], [], limit_s)[0]:
            raise Failure(f"inprocess says nothing for {limit_s:.0f} s")
        got = os.read(process.stdout.fileno(), 65536)
        if not got:
            raise Failure("inprocess ended before it was done")
        rest += got
    line, _, process.rest = rest.partition(b"\n")
    return line.decode()


def _places(work, name="inprocess"):
    return [work.rootfs, work.library_state(), work.bundle("default", ["/true", str(MARK)], name)]


def each(args, work, isolated, touch_mb=0):
    """Rows of single runs, in turn."""
    rounds = args.runs if isolated else args.runs * 5
    mode = "in process, " + ("isolated" if isolated else "back to back")
    if touch_mb:
        mode += f", {touch_mb} MB in use"
    gap = args.gap_ms * 1000 if isolated else 0
    program = [work.program("inprocess"), "each", str(rounds), str(gap), str(touch_mb)]
    samples, cpu, whole = ({name: [] for name in ROWS} for _ in range(3))
    with _Group(work, [program + _places(work)]) as (process,):
        for n in range(rounds * len(ROWS)):
            line = _line(process, gap / 1e6 + LIMIT_S)
            name, wall, spent, deleted = line.split()
            samples[name].append(int(wall) / 1000)
            if int(wall): # else it failed, and how long that took is no figure
                cpu[name].append(int(spent))
                whole[name].append(int(deleted) / 1000)
            if n % len(ROWS) == 0:
                progress(f"start: {mode} {n // len(ROWS) + 1}/{rounds}")
    rows = {}
    for name in ROWS:
        good = [s for s in samples[name] if s]
        row = rows[name] = {"runtime": name, "config": "default", "mode": mode, "runs": rounds,
                            "failed": rounds - len(good)}
        if good:
            row["wall_us"] = stats.summary(good)
            row["cpu_us"] = stats.summary(cpu[name])
            row["whole_us"] = stats.summary(whole[name])
            if args.samples:
                row["samples_us"] = good
    for name, floor in ROWS.items():
        rows[name]["floor"] = floor
        turns.add_ratio(rows[name], rows[floor], "_floor")
    return list(rows.values())


def _crowd(work, name, count):
    return [[work.program("inprocess"), "for", "1", name, *_places(work, f"inprocess{i}")] for i in range(count)]


def _slice(crowd):
    """[(runs, successes, seconds), ...]"""
    for process in crowd:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    ended = [[int(word) for word in _line(process, LIMIT_S).split()] for process in crowd]
    return [(runs, good, took / 1e9) for runs, good, took in ended]


def together(args, work, count):
    """Rows of `count` processes at once, in turn, a slice of a second each; those whose turn it isn't wait."""
    mode, ended = f"in process, {count} processes", {name: [] for name in ROWS}
    argv = [words for name in ROWS for words in _crowd(work, name, count)]
    with _Group(work, argv) as all_:
        crowds = {name: all_[i * count:(i + 1) * count] for i, name in enumerate(ROWS)}
        for process in all_:
            _line(process, LIMIT_S)
        for i, order in enumerate(turns.orders(ROWS, args.seconds, count)):
            for name in order:
                progress(f"scale: {name}, {mode}, {i + 1}/{args.seconds}")
                ended[name] += _slice(crowds[name])
    rows = {}
    for name, of in ended.items():
        rows[name] = {"runtime": name, "config": "default", "mode": mode, "processes": count, "floor": ROWS[name],
                      "runs": sum(e[0] for e in of), "failed": sum(e[0] - e[1] for e in of),
                      "per_second": round(sum(e[1] / e[2] for e in of) / args.seconds, 1)}
    for row in rows.values(): # time against the floor's time, as elsewhere
        floor = rows[row["floor"]]
        if row["per_second"] and not row["failed"] and not floor["failed"]:
            row["ratio_floor_p50"] = round(floor["per_second"] / row["per_second"], 3)
    return list(rows.values())
