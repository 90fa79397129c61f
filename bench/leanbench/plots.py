# SPDX-License-Identifier: Apache-2.0
"""Figures as SVG, by matplotlib: the one thing lean-bench needs that isn't Python's own, and only for this.

A page gets its colours from its style sheet, to follow light and dark; a file of its own has a white ground."""
import html
import io
import os
import re
import sys
import warnings

from leanbench.workspace import Failure

DEBIAN = "/usr/bin/python3"
TRIED = "LEAN_BENCH_PYTHON"
WIDTH = 5.3 # inches: as text is 8.5 points, it can still be read where a phone shows 360 pixels
# What is drawn with, and what it becomes: a variable of the page's style sheet, or this.
INK, PALE, GROUND = "#010203", "#040506", "#fefdfc"
PLAIN = {INK: "#1b1b1b", PALE: "#c4c4c4", GROUND: "#ffffff"}
# Told apart by people who see no red or green, too; and lines by their dashes, marks by their shape.
COLOURS = ("#0072b2", "#d55e00", "#00795a", "#a8447c", "#7a6000", "#3b8fc4", "#4d4d4d", "#6a3fb5", "#8c4b2f", "#00808c")
KNOWN = ("lean-runtime", "lean", "crun", "runc", "youki", "bwrap", "floor", "floor-host-net", "liblean", "liblean-lean")
MARKS = "os^Dv*XP"
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)))


def need():
    """Debian's matplotlib is for Debian's python3: with another one before it in PATH, go on by that."""
    try:
        import matplotlib # noqa: F401, pylint: disable=import-outside-toplevel
        return
    except ImportError:
        pass
    if os.environ.get(TRIED) != "1" and os.path.exists(DEBIAN) \
            and os.path.realpath(DEBIAN) != os.path.realpath(sys.executable):
        os.environ[TRIED] = "1"
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    raise Failure("report draws with matplotlib, which isn't installed: apt-get install python3-matplotlib "
                  "(or --no-plots for the tables alone)")


def _colour(i):
    """A colour no figure uses by itself, which says which one it is."""
    return f"#07{i % len(COLOURS):02x}5a"


def _pyplot():
    import matplotlib # pylint: disable=import-outside-toplevel
    matplotlib.use("svg")
    from matplotlib import pyplot # pylint: disable=import-outside-toplevel
    pyplot.rcParams.update({
        "svg.fonttype": "none", "text.parse_math": False, "font.size": 8.5, "font.family": ["DejaVu Sans"],
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK,
        "axes.grid": True, "axes.axisbelow": True, "grid.color": PALE, "grid.linewidth": 0.6, "text.color": INK,
        "xtick.color": INK, "ytick.color": INK, "figure.facecolor": GROUND, "axes.facecolor": GROUND,
        "savefig.facecolor": GROUND, "figure.max_open_warning": 0})
    return pyplot


class Painter:
    """The same name has the same colour in every figure of a report."""

    def __init__(self):
        self.pyplot = _pyplot()
        self.numbers = {name: i for i, name in enumerate(KNOWN)}
        self.drawn = 0

    def _look(self, label):
        """Colour, dashes and mark."""
        i = self.numbers.setdefault(label, len(self.numbers))
        other = i + i // len(COLOURS)
        return _colour(i), DASHES[other % len(DASHES)], MARKS[other % len(MARKS)]

    def svg(self, figure):
        """Whole text of the SVG with the colours that stand for others: page() or alone() puts them in."""
        rows = _lines_of(figure) if figure.kind in ("spread", "bars") else None
        height = 0.75 + 0.21 * rows[-1].end if rows else 2.9 + 0.19 * len([*figure.items, *figure.dashed])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore") # a letter that the font lacks: the reader's has it
            fig, ax = self.pyplot.subplots(figsize=(WIDTH, height), layout="constrained")
            try:
                getattr(self, "_" + figure.kind)(ax, figure, rows)
                out = io.StringIO()
                self.drawn += 1
                self.pyplot.rcParams["svg.hashsalt"] = f"lean-bench {self.drawn}"
                fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
            finally:
                self.pyplot.close(fig)
        return _named(out.getvalue(), figure, self.drawn)

    def _legend(self, ax, count):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False, ncol=1 if count > 12 else 2,
                  handlelength=3, columnspacing=1.5)

    def _ecdf(self, ax, figure, _):
        for label, points in figure.items.items():
            colour, dashes, _ = self._look(label)
            ax.step([x for x, _ in points], [share for _, share in points], where="post", color=colour, linewidth=1.6,
                    linestyle=dashes, label=_short(label, 24))
        ax.set_ylim(0, 1.02)
        ax.set_xlabel(_time_axis(ax, figure.axis, [x for points in figure.items.values() for x, _ in points]))
        ax.set_ylabel("share of runs")
        self._legend(ax, len(figure.items))

    def _curves(self, ax, figure, _):
        for label, points in figure.items.items():
            colour, dashes, shape = self._look(label)
            ax.plot([x for x, _ in points], [y for _, y in points], color=colour, linewidth=1.6, markersize=4.5,
                    linestyle=dashes, marker=shape, label=_short(label, 24))
        for label, points in figure.dashed.items():
            ax.plot([x for x, _ in points], [y for _, y in points], color=INK, linewidth=1, linestyle=":", marker="x",
                    markersize=4, label=f"other hardware:\n{_short(label, 34, 3)}")
        xs = sorted({x for points in [*figure.items.values(), *figure.dashed.values()] for x, _ in points})
        if len(xs) <= 12:
            ax.set_xticks([x for i, x in enumerate(xs) if i == 0 or x - xs[i - 1] > (xs[-1] - xs[0]) / 24])
        ys = [y for points in [*figure.items.values(), *figure.dashed.values()] for _, y in points]
        if figure.dashed and min(ys) > 0 and max(ys) / min(ys) > 10: # ours would lie on the axis
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}" if y >= 10 or y == 0 else f"{y:.3g}")
        ax.set_xlabel(figure.x_axis)
        ax.set_ylabel(figure.axis)
        self._legend(ax, len(figure.items) + len(figure.dashed))

    def _spread(self, ax, figure, rows):
        ends = []
        for row in rows:
            if row.heading:
                continue
            colour, _, shape = self._look(row.series)
            low, mid = row.value.get("min", row.value["p50"]), row.value["p50"]
            high = max(row.value.get("p99", mid), mid)
            ends += [low, high]
            ax.plot([low, high], [row.y, row.y], color=colour, linewidth=3, alpha=0.5, solid_capstyle="butt")
            ax.plot([mid], [row.y], color=colour, marker=shape, markersize=5)
        ax.set_xlabel(_time_axis(ax, figure.axis, ends) + ": min to p99, mark at p50")
        _row_labels(ax, rows)

    def _bars(self, ax, figure, rows):
        values = [row.value for row in rows if not row.heading]
        top = max([abs(v) for v in values] or [1]) or 1
        for row in rows:
            if not row.heading:
                ax.barh([row.y], [row.value], color=self._look(row.series)[0], height=0.6)
                ax.annotate(_brief(row.value), (max(row.value, 0), row.y), xytext=(3, 0), textcoords="offset points",
                            va="center", fontsize=7.5)
        ax.set_xlim(min(0, *values) * 1.05, top * 1.16)
        ax.xaxis.set_major_locator(self.pyplot.MaxNLocator(5))
        ax.xaxis.set_major_formatter(lambda x, _: _brief(x))
        if "1 is the floor" in figure.axis:
            ax.axvline(1, color=INK, linewidth=0.8, linestyle=":")
        ax.set_xlabel(figure.axis)
        _row_labels(ax, rows)


class Line:
    """One of a figure with a row for each value: a heading, or a label and its value. y grows downwards, in lines."""

    def __init__(self, y, heading, label, series, value):
        self.y, self.heading, self.series, self.value = y, heading, series, value
        self.text = _short(label, 46 if heading else 30)
        self.height = 1 + 0.65 * self.text.count("\n")
        self.y += (self.height - 1) / 2

    @property
    def end(self):
        return self.y + (self.height - 1) / 2 + 1


def _lines_of(figure):
    """A heading where the mode changes; if the mode alone tells the rows apart, it is the label."""
    rows, before = [], ""
    modes = {mode for mode, _, _ in figure.items}
    names = {label for _, label, _ in figure.items}
    by_mode = len(names) == 1 and len(modes) == len(figure.items) > 1
    for mode, label, value in figure.items:
        if mode != before and mode and not by_mode:
            rows.append(Line(rows[-1].end if rows else 0, True, mode, "", None))
        before = mode
        rows.append(Line(rows[-1].end if rows else 0, False, mode if by_mode else label,
                         label if len(names) < 12 else "", value))
    return rows


def _row_labels(ax, rows):
    ax.set_yticks([row.y for row in rows if not row.heading], [row.text for row in rows if not row.heading])
    for row in rows:
        if row.heading:
            ax.annotate(row.text, (0, row.y), xycoords=("axes fraction", "data"), xytext=(3, 0),
                        textcoords="offset points", va="center", weight="bold")
    ax.set_ylim(rows[-1].end - 0.4, -0.6)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def _short(text, width, lines=2):
    """At most so many lines; a word that is longer is cut."""
    out, rest = [], text
    while rest and len(out) < lines:
        cut = len(rest) if len(rest) <= width else max(rest.rfind(" ", 1, width + 1), 0) or width
        out.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return "\n".join(out) + ("…" if rest else "")


def _brief(x):
    return f"{x:,.0f}" if abs(x) >= 100 or x == int(x) else f"{x:.1f}" if abs(x) >= 10 else f"{x:.3g}"


def _time_axis(ax, name, values):
    """Logarithmic where what is compared is far apart; plain numbers at it in any case, in ms where µs are many.
    Returns the name of the axis."""
    from matplotlib import ticker # pylint: disable=import-outside-toplevel
    low, high = min(values, default=1), max(values, default=1)
    if low > 0 and high / low > 3:
        ax.set_xscale("log")
        # A number at each decade, and between them where there is room.
        between = (1, 2, 5) if high / low < 20 else (1, 3) if high / low < 500 else (1,)
        ax.xaxis.set_major_locator(ticker.LogLocator(subs=between))
        ax.xaxis.set_minor_locator(ticker.NullLocator())
    else:
        ax.xaxis.set_major_locator(ticker.MaxNLocator(5))
    scale = 1000 if high >= 10000 and name.endswith("µs") else 1
    ax.xaxis.set_major_formatter(lambda x, _: _brief(x / scale))
    return name.removesuffix("µs") + "ms" if scale > 1 else name


def _named(svg, figure, number):
    """Only the element itself; what a screen reader says; no id twice on a page that has many."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="([^"]*)"', rf'id="f{number}-\1"', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\1f{number}-", svg)
    head, _, rest = svg.partition(">")
    said = f'<title id="f{number}-t">{html.escape(figure.text())}</title>'
    return f'{head} role="img" aria-labelledby="f{number}-t">{said}{rest}'


def page(svg):
    """For a page that has --ink, --pale and --c0 … in its style sheet."""
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace(INK, "var(--ink)").replace(PALE, "var(--pale)").replace(GROUND, "none")
    return re.sub("#07([0-9a-f]{2})5a", lambda m: f"var(--c{int(m[1], 16)})", svg)


def alone(svg):
    for colour, plain in PLAIN.items():
        svg = svg.replace(colour, plain)
    svg = re.sub("#07([0-9a-f]{2})5a", lambda m: COLOURS[int(m[1], 16)], svg)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg
