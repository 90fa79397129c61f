# SPDX-License-Identifier: Apache-2.0
"""touch: what memory costs that comes when it is touched. In each child the program reads a word of every page in order, or
writes as many words to pages in random order, first thing; the time is of all of them, by its own clock."""
from leanbench import resume, seedlings
from leanbench.workspace import Failure

PAPERS = True
PAGES_OF_MB = 256


def _pages(row):
    return int(row["mode"].split()[1]) * PAGES_OF_MB


COLUMNS = (("us/page", "us_page", lambda v: f"{v:.2f}"), ("MB/s", "mb_s", lambda v: f"{v:.0f}"))


def add(sub, common):
    s = sub.add_parser("touch", parents=[common], help="memory that comes when it is touched")
    seedlings.add_options(s, 10)


def _word(seed, name, line):
    words = seed.child(name, [line, "check"])[1]
    # A page that was written has its first word still.
    if words[1:] != ["same"]:
        raise Failure("memory is not what it was: " + " ".join(words))
    return int(words[0]) / 1000


def _once(seed, name):
    pages = seed.mb * PAGES_OF_MB
    return [_word(seed, name + "r", "read"), _word(seed, name + "w", f"write {pages}")]


def run(args, work):
    rows = resume.each_size(args, work, ["read ", "write "], _once)
    for row in rows:
        if "wall_us" in row:
            row["us_page"] = round(row["wall_us"]["p50"] / _pages(row), 3)
            row["mb_s"] = round(_pages(row) / PAGES_OF_MB / row["wall_us"]["p50"] * 1e6, 1)
    return rows
