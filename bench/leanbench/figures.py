# SPDX-License-Identifier: Apache-2.0
"""Which figures a result asks for: data only, so that it can be tested without drawing anything.

  curves   a number in the mode (`4 processes`, `minute 3`) is the x axis
  ecdf     with --samples: the share of runs that took at most so long, a curve for each that is compared
  spread   without: from the fastest run to p99, with a mark at p50
  bars     a number for each row: the ratio to the floor, or what a benchmark counts"""
from leanbench import reading

ITEMS_MAX = 48 # of one figure; the table has all
FIGURES_MAX = 40 # of one file
POINTS_MAX = 400 # of one curve
SPREADS_MAX = 4
NUMBERS_MAX = 8


class Figure:
    """items: ecdf and curves {label: [(x, y)]}, spread [(mode, label, {min, p50, p99})], bars [(mode, label, x)]"""

    def __init__(self, kind, title, axis, items, x_axis="", dashed=None):
        self.kind, self.title, self.axis, self.x_axis = kind, title, axis, x_axis
        self.items = dict(list(items.items())[:ITEMS_MAX]) if isinstance(items, dict) else items[:ITEMS_MAX]
        self.left_out = len(items) - len(self.items)
        self.dashed = dashed or {} # others' hardware

    def labels(self):
        return list(self.items) if isinstance(self.items, dict) else [item[1] for item in self.items]

    def text(self):
        """What somebody who can't see it hears; the figures themselves are in the table."""
        what = {"ecdf": "Share of runs that took at most that long", "curves": "Curves",
                "spread": "Range from min to p99 with the median marked", "bars": "Bars"}[self.kind]
        names = ", ".join(dict.fromkeys(label for label in [*self.labels(), *self.dashed] if label))
        return f"{self.title}. {what}: {self.axis}{' by ' + self.x_axis if self.x_axis else ''}; {names}. " \
               "The table below has the figures."


def _join(*parts):
    return ": ".join(part for part in parts if part)


def _numbered(rows):
    """{what is around the number: [(row, number)]} of modes that differ in it alone; and the rest of the rows."""
    found = {}
    for row in rows:
        match = reading.NUMBERED.match(row.mode)
        if match:
            found.setdefault((match[1], match[3]), []).append((row, int(match[2])))
    found = {around: pairs for around, pairs in found.items() if len({n for _, n in pairs}) > 1}
    taken = {id(row) for pairs in found.values() for row, _ in pairs}
    return found, [row for row in rows if id(row) not in taken]


def _curves(name, found, papers):
    for (before, after), pairs in found.items():
        before, after = before.strip(" ,"), after.strip(" ,")
        x_axis = after or before or "number"
        where = before if after else ""
        rate = all("per_second" in row.numbers for row, _ in pairs)
        items = {}
        for row, x in pairs:
            y = row.numbers["per_second"] if rate else row.spreads.get("wall_us", {}).get("p50")
            if y is not None:
                items.setdefault(row.whole, []).append((x, y))
        dashed = {}
        for paper in papers:
            if rate and paper.get("x") == x_axis and paper.get("where", "") == where:
                dashed[f"{paper['title']} ({paper['hardware']})"] = [tuple(point) for point in paper["rows"]]
        if items:
            named = "" if name.endswith(where) else where
            yield Figure("curves", _join(name, named, f"by {x_axis}"), "per second" if rate else "µs (p50)",
                         {label: sorted(points) for label, points in items.items()}, x_axis, dashed)


def _of_spread(name, key, rows):
    """One figure, if each mode has a row or two; else one for each mode."""
    modes = {}
    for row in rows:
        modes.setdefault(row.mode, []).append(row)
    axis = f"{reading.title(key)}, {reading.unit(key)}" if key == "wall_us" else reading.title(key)
    sampled = {mode: [r for r in of if len(r.samples.get(key, ())) > 1] for mode, of in modes.items()}
    if len(modes) > 1 and max(map(len, modes.values())) <= 2 or not any(sampled.values()):
        yield Figure("spread", name, axis, [(r.mode, r.whole, r.spreads[key]) for of in modes.values() for r in of])
        return
    for mode, of in modes.items():
        if sampled[mode]:
            yield Figure("ecdf", _join(name, mode), axis,
                         {r.whole: thin(sorted(r.samples[key])) for r in sampled[mode]})
        rest = [r for r in of if r not in sampled[mode]]
        if rest:
            yield Figure("spread", _join(name, mode), axis, [("", r.whole, r.spreads[key]) for r in rest])


def thin(ordered):
    """Few points of many, the first and the last among them, with the share of runs up to each."""
    n = len(ordered)
    picked = range(n) if n <= POINTS_MAX else sorted({round(i * (n - 1) / (POINTS_MAX - 1)) for i in range(POINTS_MAX)})
    return [(ordered[i], (i + 1) / n) for i in picked]


def _of_numbers(name, rows):
    plain = [row for row in rows if not row.spreads]
    keys = dict.fromkeys(k for row in plain for k in row.numbers
                         if k not in reading.NOT_MEASURED and not k.startswith("ratio"))
    for key in list(keys)[:NUMBERS_MAX]:
        items = [(row.mode, row.whole, row.numbers[key]) for row in plain if key in row.numbers]
        if any(value for _, _, value in items):
            yield Figure("bars", _join(name, reading.title(key)), reading.unit(key) or reading.title(key), items)


def _of_floor(name, rows):
    items = [(row.mode, row.whole, row.numbers["ratio_floor_p50"]) for row in rows
             if "ratio_floor_p50" in row.numbers and "floor" not in row.label]
    if items:
        yield Figure("bars", _join(name, "times the floor"), "ratio of the medians: 1 is the floor", items)


def _all(result, papers):
    for outer, rows in result.outers():
        name = _join(result.benchmark, outer)
        found, rest = _numbered(rows)
        yield from _curves(name, found, papers)
        keys = list(dict.fromkeys(k for row in rest for k in row.spreads))
        for key in sorted(keys, key=lambda k: k != "wall_us")[:SPREADS_MAX]:
            yield from _of_spread(_join(name, "" if key == "wall_us" else reading.title(key)), key,
                                  [row for row in rest if key in row.spreads])
        yield from _of_floor(name, rest)
        yield from _of_numbers(name, rest)


def of(result, papers):
    """(figures, how many there would be); papers are of the same benchmark."""
    made = list(_all(result, papers))
    return made[:FIGURES_MAX], len(made)
