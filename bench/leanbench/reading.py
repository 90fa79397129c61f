# SPDX-License-Identifier: Apache-2.0
"""Result files, read by somebody who doesn't know the benchmark: what groups rows, what is a figure, what is text.

A file may come from anywhere, so it is bounded, and every text of it is cleaned; who shows it escapes it."""
import json
import math
import re
import unicodedata

from leanbench.workspace import Failure

BYTES_MAX = 64 << 20
FILES_MAX = 64
ROWS_MAX = 20000
TEXT_MAX = 300
KEYS_MAX = 60 # of a row
SERIES = ("runtime", "candidate", "name") # the first that a row has is what is compared
# Said about a row, and no reason to set it apart from another.
REMARKS = ("error", "what", "skipped", "verdict", "reason", "why", "note", "floor")
NOT_MEASURED = ("runs", "failed", "processes", "containers", "clients", "mb", "touch_mb")
HEADINGS = ("config", "test", "function") # other texts of a row say more about what is compared
NUMBERED = re.compile(r"^(.*?)(\d{1,9})(\D*)$") # its last number


def clean(text, longest=TEXT_MAX):
    """One line, without what steers a terminal or turns the direction of writing."""
    text = "".join(" " if c in "\n\t" else "\ufffd" if unicodedata.category(c)[0] == "C" else c
                   for c in text[:longest + 1])
    return text[:longest] + "…" if len(text) > longest else text


def number(value):
    """As a float, or None: JSON's NaN, Infinity and endless integers are no figures."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


class Row:
    """label: what is compared; whole: with what else tells it from others; group: [(key, text)], config first and mode
    last; spreads: {key: {min, p50, p99, mean}}; numbers: {key: float}; samples: {key of the spread: [float]};
    remarks: {key: text}."""

    def __init__(self, row):
        self.group, self.spreads, self.numbers, self.samples, self.remarks = [], {}, {}, {}, {}
        series = next((k for k in SERIES if isinstance(row.get(k), str)), None)
        self.label = self.whole = clean(row[series], 60) if series else ""
        for key, value in list(row.items())[:KEYS_MAX]:
            if key != series:
                self._take(clean(key, 60), value)
        self._plain_spread()
        order = {"config": 0, "mode": 2}
        self.group.sort(key=lambda pair: (order.get(pair[0], 1), pair[0]))

    def _take(self, key, value):
        if isinstance(value, str):
            if key in REMARKS:
                self.remarks[key] = clean(value)
            else:
                self.group.append((key, clean(value, 100)))
        elif isinstance(value, dict):
            parts = {k: number(value.get(k)) for k in ("min", "p50", "p99", "mean")}
            if parts["p50"] is not None:
                self.spreads[key] = {k: v for k, v in parts.items() if v is not None}
            else:
                for k, v in list(value.items())[:12]:
                    if number(v) is not None:
                        self.numbers[f"{key} {clean(k, 40)}"] = number(v)
        elif isinstance(value, list):
            if key.startswith("samples"):
                found = [number(v) for v in value]
                self.samples[key.removeprefix("samples").strip("_")] = [v for v in found if v is not None]
        elif isinstance(value, bool):
            self.group.append((key, key.replace("_", " ") if value else ""))
        elif number(value) is not None:
            self.numbers[key] = number(value)

    def _plain_spread(self):
        """Rows of floor have min_us, p50_us and p99_us; samples_us are those of wall_us."""
        if "p50_us" in self.numbers and "wall_us" not in self.spreads:
            self.spreads["wall_us"] = {k: self.numbers.pop(k + "_us") for k in ("min", "p50", "p99")
                                       if k + "_us" in self.numbers}
        self.samples = {("wall_us" if k in ("us", "") else k): v for k, v in self.samples.items() if v}

    def get(self, key):
        return dict(self.group).get(key, "")

    @property
    def mode(self):
        return self.get("mode")

    @property
    def outer(self):
        """What its table and its figures are of."""
        return tuple(text for key, text in self.group if key in HEADINGS)

    @property
    def where(self):
        return tuple(text for _, text in self.group)


class Result:
    """One file. `bed` is what only figures of one have in common can be compared: machine and commit."""

    def __init__(self, path, doc):
        self.path = clean(path)
        self.benchmark = clean(doc["benchmark"], 40)
        self.time = clean(str(doc.get("time", "")), 40)
        command = doc.get("command")
        self.command = [clean(str(word)) for word in command[:100]] if isinstance(command, list) else []
        self.machine = self._texts(doc.get("machine"))
        self.commit = clean(str(doc.get("commit") or "unknown"), 100)
        self.versions = self._texts(doc.get("versions"))
        self.programs = self._texts(doc.get("programs"))
        self.compared = {k: ", ".join(self._texts(v).values()) if isinstance(v, dict) else clean(str(v))
                         for k, v in (doc["compared"].items() if isinstance(doc.get("compared"), dict) else ())}
        self.rows = [Row(row) for row in doc["results"]]
        if doc.get("turns", True) is True: # else figures of one row are another time's than those of the next
            self._ratios()
        self._whole_labels()

    @staticmethod
    def _texts(value):
        if not isinstance(value, dict):
            return {}
        return {clean(k, 60): clean(str(v)) for k, v in list(value.items())[:KEYS_MAX]}

    def _ratios(self):
        """To the floor that took turns with the row; the command itself says it where only it knows which."""
        base = {row.where: row.spreads["wall_us"]["p50"] for row in self.rows
                if row.label == "floor" and "wall_us" in row.spreads and not row.numbers.get("failed")}
        for row in self.rows:
            floor = base.get(row.where)
            if floor and "wall_us" in row.spreads and not row.numbers.get("failed"):
                ratio = number(round(row.spreads["wall_us"]["p50"] / floor, 3)) # None, where a double has no room for it
                if ratio is not None:
                    row.numbers.setdefault("ratio_floor_p50", ratio)

    def _whole_labels(self):
        """With manager, storage and the like, where these differ in what is shown together."""
        values = {}
        for row in self.rows:
            for key, text in row.group:
                values.setdefault((row.outer, row.mode, key), set()).add(text)
        for row in self.rows:
            telling = [text for key, text in row.group if key not in (*HEADINGS, "mode")
                       and len(values[row.outer, row.mode, key]) > 1]
            row.whole = " · ".join(part for part in dict.fromkeys((row.label, *telling)) if part)

    @property
    def bed(self):
        return (*((k, v) for k, v in sorted(self.machine.items()) if k != "host_mounts"), ("commit", self.commit))

    def failures(self):
        return sum(1 for row in self.rows if row.numbers.get("failed") or "error" in row.remarks)

    def outers(self):
        """[(heading, rows)] in the file's order; what took turns stands together."""
        found = {}
        for row in self.rows:
            found.setdefault(row.outer, {}).setdefault(row.mode, []).append(row)
        return [(" · ".join(part for part in outer if part), [row for rows in modes.values() for row in rows])
                for outer, modes in found.items()]


def _why_not(doc):
    if not isinstance(doc, dict) or "benchmark" not in doc or "schema" not in doc:
        return "no result of lean-bench"
    if doc["schema"] != 1:
        return f"its schema is {clean(str(doc['schema']), 20)}, and only 1 is known here"
    if not isinstance(doc["benchmark"], str):
        return "its benchmark has no name"
    rows = doc.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return "its results are no rows"
    if len(rows) > ROWS_MAX:
        return f"more than {ROWS_MAX} rows"
    return None


def load(path):
    try:
        with open(path, "rb") as f:
            text = f.read(BYTES_MAX + 1)
    except OSError as e:
        raise Failure(f"{clean(path)}: {e.strerror}") from e
    if len(text) > BYTES_MAX:
        raise Failure(f"{clean(path)}: more than {BYTES_MAX >> 20} MB")
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Failure(f"{clean(path)}: not JSON ({clean(str(e), 100)})") from e
    problem = _why_not(doc)
    if problem:
        raise Failure(f"{clean(path)}: {problem}")
    return Result(path, doc)


def load_all(paths):
    if len(paths) > FILES_MAX:
        raise Failure(f"more than {FILES_MAX} files")
    return [load(path) for path in paths]


def unit(key):
    for end, name in (("per_second", "per second"), ("_us", "µs"), ("_ms", "ms"), ("_ns", "ns"), ("_seconds", "s"),
                      ("_s", "s"), ("_kb", "kB"), ("_mb", "MB")):
        if key.endswith(end):
            return name
    return ""


TITLES = {"wall_us": "time", "ratio_p50": "/first", "ratio_floor_p50": "/floor", "ratio_min": "/first, min",
          "ratio_floor_min": "/floor, min", "max_rss_kb": "peak RSS, kB", "instructions_user": "user instructions",
          "syscalls": "system calls"}


def title(key):
    if key in TITLES:
        return TITLES[key]
    name = unit(key)
    plain = key.removesuffix("_us").removesuffix("_ms").removesuffix("_ns").removesuffix("_kb").removesuffix("_mb")
    plain = plain.replace("_", " ")
    return f"{plain}, {name}" if name and name != "per second" and name != "s" else plain


def show(value):
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else \
        f"{value:.3g}"
