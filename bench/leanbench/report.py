# SPDX-License-Identifier: Apache-2.0
"""report: result files as one HTML page and one Markdown file, with plots. It measures nothing and needs no root."""
import json
import os
import re

from leanbench import figures, page, plots, reading
from leanbench.workspace import BENCH, Failure, progress

PAPERS = os.path.join(BENCH, "leanbench", "papers.json")


def add(sub, _common):
    s = sub.add_parser("report", help="result files as a page with plots, and as Markdown (no root needed)")
    s.add_argument("results", nargs="+", metavar="RESULT.json")
    s.add_argument("--output", required=True, metavar="DIR", help="report.html and report.md are written there")
    s.add_argument("--plots", metavar="DIR", help="each plot also as an SVG file there, which report.md shows")
    s.add_argument("--no-plots", action="store_true", help="tables alone: needs no matplotlib")


def _write(path, text):
    try:
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(path + ".new", path)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}") from e


def _directory(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}") from e


def _draw(results, papers):
    """{id(result): [(figure, svg)]}"""
    painter, drawn = plots.Painter(), {}
    for result in results:
        wanted, count = figures.of(result, papers)
        if count > len(wanted):
            progress(f"report: {result.path}: {count - len(wanted)} figures are left out; the tables have all", True)
        drawn[id(result)] = [(figure, painter.svg(figure)) for figure in wanted]
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
    with open(PAPERS, encoding="utf-8") as f:
        papers = json.load(f)
    _directory(args.output)
    drawn = {} if args.no_plots else _draw(results, papers)
    images = _files(results, drawn, args.plots, args.output) if args.plots else {}

    def of(result):
        return [paper for paper in papers if paper["benchmark"] == result.benchmark]

    _write(os.path.join(args.output, "report.html"), page.as_html(results, drawn, of))
    _write(os.path.join(args.output, "report.md"), page.as_markdown(results, images, of))
    progress("")
    print(os.path.join(args.output, "report.html"))
    return 0
