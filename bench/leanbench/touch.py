# SPDX-License-Identifier: Apache-2.0
"""touch: what memory costs that comes when it is touched. In each child the program reads a word of every page in order, or
writes as many words to pages in random order, first thing; a function does one request's work. The time is by its own clock."""
from leanbench import resume, seedlings

COLUMNS = (("us/page", "us_page", lambda v: f"{v:.2f}"), ("MB/s", "mb_s", lambda v: f"{v:.0f}"))


def add(sub, common):
    s = sub.add_parser("touch", parents=[common], help="memory that comes when it is touched")
    seedlings.add_options(s)
    seedlings.add_runs(s, 10)


def _once(seed, name):
    return [seed.does(f"{name}{i}", line)[1] / 1000 for i, line in enumerate(seed.subject.touches.values())]


def run(args, work):
    rows = resume.each(args, work, lambda subject: list(subject.touches), _once)
    for row in rows:
        if "wall_us" in row and "mb" in row:
            row["us_page"] = round(row["wall_us"]["p50"] / (row["mb"] * seedlings.PAGES_OF_MB), 3)
            row["mb_s"] = round(row["mb"] / row["wall_us"]["p50"] * 1e6, 1)
    return rows
