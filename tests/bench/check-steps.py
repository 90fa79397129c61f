#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-steps.py BENCH: ratios, and steps that are tried again, with rows that are known."""
import sys
import types

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

from leanbench import lifecycle, steps, sysbench, warm  # noqa: E402


def spread(p50):
    return {"min": p50, "p50": p50}


def check_lifecycle():
    rows = [{"runtime": name, "mode": "create", "failed": failed, "wall_us": spread(us)}
            for name, us, failed in (("lean-runtime", 10, 0), ("crun", 20, 0), ("runc", 40, 1))]
    lifecycle._add_ratios(rows, "lean-runtime")
    assert rows[1]["ratio_p50"] == 2 and rows[0]["ratio_crun_p50"] == 0.5
    assert not any(key.startswith("ratio") for key in rows[2]) and "ratio_runc_p50" not in rows[0]


def check_sysbench():
    rows = [{"runtime": name, "config": "default", "mode": "cpu", "failed": failed, "events_per_second": spread(rate)}
            for name, rate, failed in (("host", 10, 0), ("crun", 20, 0), ("runc", 40, 1))]
    sysbench._add_ratios(rows)
    assert rows[1]["ratio_host_p50"] == 2 and "ratio_host_p50" not in rows[2]
    rows[0]["failed"] = 1
    del rows[1]["ratio_host_p50"]
    sysbench._add_ratios(rows)
    assert "ratio_host_p50" not in rows[1]


def check_warm():
    def rows(first):
        found = [{"runtime": "lean-runtime", **first}, {"runtime": "crun", "failed": 0, "late": 0, "wall_us": spread(20)},
                 {"runtime": "runc", "failed": 0, "late": 3, "wall_us": spread(30)},
                 {"runtime": "freezer", "failed": 0, "late": 0, "wall_us": spread(5)}]
        return warm.Step._ratios(found)
    good = rows({"failed": 0, "late": 0, "wall_us": spread(10)})
    assert [row["ratio_p50"] for row in good] == [1, 2, 3, 0.5]
    assert [row.get("ratio_floor_p50") for row in good] == [2, 4, None, 1]
    # None takes the place of a first one that failed.
    assert not any("ratio_p50" in row for row in rows({"failed": 1}))


def check_again():
    good, bad = {"failed": 0, "wall_us": spread(1)}, {"failed": 1, "error": "today"}
    done = {"whole": [good, good], "failed": [good, bad], "skipped": [{"skipped": "no network today"}],
            "a part": [good, {"failed": 0, "skipped": "it can't do that"}]}
    journal = types.SimpleNamespace(done=done)
    steps.again(journal)
    assert sorted(journal.done) == ["a part", "whole"]
    row, = steps.timed(lambda: [good])()
    assert row["wall_us"] == spread(1) and row["began"] <= row["ended"] and row["began"].endswith("Z")


check_lifecycle()
check_sysbench()
check_warm()
check_again()
