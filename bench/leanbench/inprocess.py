# SPDX-License-Identifier: Apache-2.0
"""liblean in one process, beside the bare clone in the same process; see inprocess.c."""
import subprocess

from leanbench import stats
from leanbench.workspace import MARK, progress

# Row, and the floor that has the same namespaces: the lean profile makes no network namespace.
ROWS = {"floor": "floor", "liblean": "floor", "floor-host-net": "floor-host-net",
        "liblean-lean": "floor-host-net"}


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
    with subprocess.Popen(program + _places(work), stdout=subprocess.PIPE, text=True) as process:
        for n, line in enumerate(process.stdout):
            name, wall, spent, deleted = line.split()
            samples[name].append(int(wall) / 1000)
            cpu[name].append(int(spent))
            whole[name].append(int(deleted) / 1000)
            if n % len(ROWS) == 0:
                progress(f"start: {mode} {n // len(ROWS) + 1}/{rounds}")
    rows = []
    for name, floor in ROWS.items():
        good = [s for s in samples[name] if s]
        row = {"runtime": name, "config": "default", "mode": mode, "runs": rounds,
               "failed": rounds - len(good)}
        if good:
            row["wall_us"] = stats.summary(good)
            row["cpu_us"] = stats.summary(cpu[name])
            row["whole_us"] = stats.summary(whole[name])
            base = [s for s in samples[floor] if s]
            if base:
                row["floor"] = floor
                row["ratio_floor_p50"] = round(
                    row["wall_us"]["p50"] / stats.summary(base)["p50"], 3)
                row["ratio_floor_min"] = round(
                    row["wall_us"]["min"] / stats.summary(base)["min"], 3)
            if args.samples:
                row["samples_us"] = good
        rows.append(row)
    return rows


def together(args, work, count):
    """Rows of `count` processes at once."""
    rows = []
    for name, floor in ROWS.items():
        progress(f"scale: {name}, {count} processes")
        crowd = [subprocess.Popen([work.program("inprocess"), "for", str(args.seconds), name,
                                   *_places(work, f"inprocess{i}")],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for i in range(count)]
        for process in crowd:
            process.stdout.readline()
        for process in crowd:
            process.stdin.write("go\n")
            process.stdin.flush()
        ended = [[int(word) for word in process.stdout.readline().split()] for process in crowd]
        for process in crowd:
            process.stdin.close()
            process.wait()
        done = [e for e in ended if e]
        rows.append({"runtime": name, "config": "default", "mode": f"in process, {count} processes",
                     "processes": count, "floor": floor, "runs": sum(e[0] for e in done),
                     "failed": sum(e[0] - e[1] for e in done) + count - len(done),
                     "per_second": round(sum(e[1] / e[2] * 1e9 for e in done), 1)})
    rates = {row["runtime"]: row["per_second"] for row in rows}
    for row in rows: # time against the floor's time, as elsewhere
        if row["per_second"]:
            row["ratio_floor_p50"] = round(rates[row["floor"]] / row["per_second"], 3)
    return rows
