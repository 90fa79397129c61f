# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of many steps have in common: what may be compared, and what a step that was begun again keeps."""
import time


def comparable(row, other):
    """Figures of the same turns: one that failed in some of them lacks those."""
    return bool(row and other) and not row.get("failed") and not other.get("failed")


def _kept(rows):
    """A part of a step may be left out for good; all of it, or a failure, may be of the moment."""
    return not any(row.get("failed") for row in rows) and not all("skipped" in row for row in rows)


def again(journal):
    """What wasn't measured the last time is tried again. For a journal that has just been opened."""
    journal.done = {name: rows for name, rows in journal.done.items() if _kept(rows)}


def timed(measure):
    """measure(), and in each row when that was: another load of the machine may be why a step differs."""
    def stamp():
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def measured():
        began = stamp()
        rows = measure()
        return [{**row, "began": began, "ended": stamp()} for row in rows]
    return measured
