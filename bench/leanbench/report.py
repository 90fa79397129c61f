# SPDX-License-Identifier: Apache-2.0
"""report: result files as one HTML page and one Markdown file, with plots. It measures nothing and needs no root."""
import contextlib
import os
import re
import secrets

from leanbench import figures, page, plots, reading
from leanbench.results import papers
from leanbench.workspace import Failure, progress


def add(sub, _common):
    s = sub.add_parser("report", help="result files as a page with plots, and as Markdown (no root needed)")
    s.add_argument("results", nargs="+", metavar="RESULT.json")
    s.add_argument("--output", required=True, metavar="DIR", help="report.html and report.md are written there")
    s.add_argument("--plots", metavar="DIR", help="each plot also as an SVG file there, which report.md shows")
    s.add_argument("--no-plots", action="store_true", help="tables alone: needs no matplotlib")


def _write(path, text):
    """Whole or not at all, and never through a link that waits there: nobody can foretell the new name."""
    new = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(new, "x", encoding="utf-8") as f:
            f.write(text)
        os.replace(new, path)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise Failure(f"{path}: {e.strerror}") from e


def _directory(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}") from e


def _svg(painter, figure, result):
    """None: figures as far apart as a double can hold have no axis."""
    try:
        return painter.svg(figure)
    except (ValueError, ArithmeticError, LookupError) as e: # what matplotlib has met there
        progress(f"report: {result.path}: {figure.title}: no figure, see the table: {reading.clean(str(e), 100)}", True)
        return None


def _draw(results):
    """{id(result): [(figure, svg)]}"""
    painter, drawn = plots.Painter(), {}
    for result in results:
        wanted, count = figures.of(result, papers(result.benchmark))
        if count > len(wanted):
            progress(f"report: {result.path}: {count - len(wanted)} figures are left out; the tables have all", True)
        drawn[id(result)] = [pair for pair in ((figure, _svg(painter, figure, result)) for figure in wanted) if pair[1]]
        progress(f"report: {result.path}: {len(wanted)} figures")
    return drawn


def _files(results, drawn, directory, output):
    """{id(result): [(figure, path from report.md)]}"""
    images, used = {}, set()
    _directory(directory)
    for result in results:
        for figure, svg in drawn[id(result)]:
            base = re.sub(r"[^a-z0-9]+", "-", figure.title.lower()).strip("-")[:60] or "figure"
            name, n = base, 1
            while name in used:
                n += 1
                name = f"{base}-{n}"
            used.add(name)
            path = os.path.join(directory, name + ".svg")
            _write(path, plots.alone(svg))
            images.setdefault(id(result), []).append((figure, os.path.relpath(path, output)))
    return images


def main(args):
    if args.no_plots and args.plots:
        raise Failure("--plots and --no-plots exclude each other")
    results = reading.load_all(args.results)
    if not args.no_plots:
        plots.need()
    _directory(args.output)
    drawn = {} if args.no_plots else _draw(results)
    images = _files(results, drawn, args.plots, args.output) if args.plots else {}

    def of(result):
        return papers(result.benchmark)

    _write(os.path.join(args.output, "report.html"), page.as_html(results, drawn, of))
    _write(os.path.join(args.output, "report.md"), page.as_markdown(results, images, of))
    progress("")
    print(os.path.join(args.output, "report.html"))
    return 0
