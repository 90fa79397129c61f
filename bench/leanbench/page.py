# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page, which needs no script and fetches nothing, and as Markdown."""
import html
import re

from leanbench import plots, reading
from leanbench.reading import show, title

INTRO = ("Only rows of one table took turns with each other, so only their ratios mean something. Absolute times are "
         "those of one machine in one hour.")
MIXED = ("The files come from {} different machines or commits. Each has a section of its own: figures of one can't be "
         "compared with those of another.")
OTHER = "On other hardware, by others: for orientation, and no comparison."

STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1b1b1b; --soft: #565656; --pale: #cccccc; --shade: #f2f3f5;
  --link: #0b57a4; --warn: #8a1c00; --warnground: #fff1ec;
  LIGHT }
@media (prefers-color-scheme: dark) { :root { --ground: #14161a; --ink: #e6e6e6; --soft: #a9adb4; --pale: #3d424a;
  --shade: #1e2228; --link: #8ab8f0; --warn: #ffb59e; --warnground: #3a1e16;
  --c0: #56b4e9; --c1: #ff9a52; --c2: #3fd0a4; --c3: #f0a3cd; --c4: #e0d050; --c5: #a9d8ff; --c6: #c9c9c9;
  --c7: #c0a2ff; --c8: #d9a184; --c9: #5fd6e0 } }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, "DejaVu Sans", sans-serif }
h1, h2, h3, h4 { line-height: 1.25; margin: 1.6em 0 .5em; overflow-wrap: anywhere }
h1 { margin-top: .5em } h2 { border-bottom: 2px solid var(--pale); padding-bottom: .2em }
a { color: var(--link) }
p, li, dd, td { overflow-wrap: anywhere }
.note { border-left: .3rem solid var(--pale); background: var(--shade); padding: .5rem .8rem; margin: 1rem 0 }
.warn { border-left: .3rem solid var(--warn); background: var(--warnground); padding: .5rem .8rem; margin: 1rem 0 }
.scroll { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--pale) }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; width: 100% }
caption { text-align: left; padding: .4rem .6rem; color: var(--soft) }
th, td { padding: .25rem .6rem; text-align: right; white-space: nowrap; vertical-align: top }
thead th { border-bottom: 2px solid var(--pale); background: var(--shade) }
tbody th, th.text, td.text { text-align: left; font-weight: normal }
td.long { white-space: normal; min-width: 14rem }
tr.group > * { border-top: 1px solid var(--pale) }
td.bad { color: var(--warn); font-weight: bold }
figure { margin: 1.2rem 0; max-width: 42rem }
figcaption { font-weight: bold; margin-bottom: .3rem; overflow-wrap: anywhere }
svg { display: block; width: 100%; height: auto } svg * { stroke-linejoin: round; stroke-linecap: butt }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 } dt { color: var(--soft) }
dd { margin: 0 } code { font-size: .875em; overflow-wrap: anywhere }
summary { cursor: pointer; padding: .3rem 0 }
@media (max-width: 40rem) { tbody th { white-space: normal; min-width: 6rem } th, td { padding: .25rem .4rem } }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr } dd { margin-bottom: .5rem } }
@media print { body { max-width: none } .scroll { overflow: visible } details > * { display: block } }
""".replace("LIGHT", "; ".join(f"--c{i}: {c}" for i, c in enumerate(plots.COLOURS)))

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>lean-bench report</title>
<style>""" + STYLE + """</style>
</head>
<body>
<main>
<h1>lean-bench report</h1>
"""


def esc(text):
    return html.escape(str(text), quote=True)


class Table:
    """Columns that some row has; the first ones are text and say what the row is."""

    def __init__(self, rows):
        self.rows = rows
        self.keys = [k for k in dict.fromkeys(k for row in rows for k, _ in row.group)
                     if k == "mode" or len({row.get(k) for row in rows}) > 1]
        self.keys.sort(key=lambda k: k == "mode")
        spreads = list(dict.fromkeys(k for row in rows for k in row.spreads))
        numbers = list(dict.fromkeys(k for row in rows for k in row.numbers))
        first = [k for k in ("runs", "failed") if k in numbers]
        ratios = [k for k in numbers if k.startswith("ratio")]
        self.columns = [(title(k), k, None) for k in first]
        for key in spreads:
            unit = f", {reading.unit(key)}" if key == "wall_us" else ""
            parts = ("min", "p50", "p99") if key == "wall_us" or len(spreads) <= 2 else ("p50",)
            parts = [p for p in parts if any(p in row.spreads.get(key, {}) for row in rows)]
            name = "" if key == "wall_us" else title(key) + " "
            self.columns += [(f"{name}{part}{unit}", key, part) for part in parts]
        self.columns += [(title(k), k, None) for k in [*ratios, *(k for k in numbers if k not in first + ratios)]]
        self.remarks = list(dict.fromkeys(k for row in rows for k in row.remarks))

    def heads(self):
        """[(text, is it text?)]"""
        label = [("", True)] if any(row.label for row in self.rows) else []
        figures = [(name, False) for name, _, _ in self.columns]
        remarks = [("held against" if k == "floor" else k, True) for k in self.remarks]
        return [(("" if k == "mode" else k), True) for k in self.keys] + label + figures + remarks

    def texts(self, row):
        return [row.get(k) for k in self.keys] + ([row.label] if any(r.label for r in self.rows) else [])

    def values(self, row):
        """[(text, key)]"""
        return [(show(row.spreads.get(k, {}).get(part) if part else row.numbers.get(k)), k)
                for _, k, part in self.columns]

    def html(self, caption):
        out = [f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}"><table>',
               f"<caption>{esc(caption)}</caption><thead><tr>"]
        out += [f'<th scope="col"{" class=text" if text else ""}>{esc(name)}</th>' for name, text in self.heads()]
        out.append("</tr></thead><tbody>")
        before = None
        for row in self.rows:
            new = before is not None and row.where != before
            before = row.where
            out.append('<tr class="group">' if new else "<tr>")
            out += [f'<th scope="row">{esc(text)}</th>' for text in self.texts(row)]
            for text, key in self.values(row):
                bad = ' class="bad"' if key == "failed" and text not in ("", "0") else ""
                out.append(f"<td{bad}>{esc(text)}</td>")
            out += [f'<td class="text long">{esc(row.remarks.get(k, ""))}</td>' for k in self.remarks]
            out.append("</tr>")
        return "".join(out) + "</tbody></table></div>\n"

    def markdown(self):
        heads = self.heads()
        lines = [_md_row([mark(name) for name, _ in heads]), _md_row([":--" if text else "--:" for _, text in heads])]
        lines += [_md_row([mark(t) for t in self.texts(row)] + [t for t, _ in self.values(row)]
                          + [mark(row.remarks.get(k, "")) for k in self.remarks]) for row in self.rows]
        return "\n".join(lines) + "\n"


def _md_row(cells):
    return "| " + " | ".join(cells) + " |"


def mark(text):
    """Nothing in it means anything to Markdown, nor to the HTML that Markdown lets through."""
    text = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]()#!|~$])", r"\\\1", text)
    return re.sub(r"(?i)\b(https?|ftp|www)([:.])", r"\1&#8203;\2", text) # no link by itself either


def beds(results):
    """[(name, results)]: figures of one may be compared, those of two not."""
    found = {}
    for result in results:
        found.setdefault(result.bed, []).append(result)
    out = []
    for i, of in enumerate(found.values(), 1):
        m = of[0].machine
        name = ", ".join(part for part in (m.get("cpu"), m.get("cpus") and m["cpus"] + " CPUs",
                                           m.get("kernel") and "Linux " + m["kernel"],
                                           m.get("cgroups") and "cgroups " + m["cgroups"]) if part and part != "None")
        commit = of[0].commit
        short = commit[:12] + ("-dirty" if commit.endswith("-dirty") else "")
        out.append((f"{i}. {name or 'an unknown machine'}; commit {short}", of))
    return out


def _facts(result):
    """[(what, text)] of one file."""
    facts = [("file", result.path), ("measured", result.time), ("command", " ".join(result.command))]
    facts += [(f"{name} is", version) for name, version in result.versions.items()]
    facts += [(f"SHA-256 of {name}", digest) for name, digest in result.programs.items()]
    facts += [("compared " + name, text) for name, text in result.compared.items()]
    return [(what, text) for what, text in facts if text]


def _machine(results):
    mounts = sorted({r.machine["host_mounts"] for r in results if "host_mounts" in r.machine})
    facts = [(k.replace("_", " "), v) for k, v in results[0].machine.items() if k != "host_mounts"]
    facts += [("host mounts", ", ".join(mounts))] if mounts else []
    commit = results[0].commit
    changed = " (and changes that aren't committed)" if commit.endswith("-dirty") else ""
    return facts + [("commit", commit.removesuffix("-dirty") + changed)]


def _builds(results):
    """Names that are another program in another file of the section."""
    found = {}
    for result in results:
        for name, digest in result.programs.items():
            found.setdefault(name, set()).add(digest)
    return [name for name, digests in found.items() if len(digests) > 1]


def _warnings(results):
    for name in _builds(results):
        yield f"{name} isn't the same program in all files of this section: see the digests."


def _failures(result):
    bad = result.failures()
    return f"{bad} of {len(result.rows)} rows had failures; what failed is in no figure." if bad else ""


def _dl(facts):
    return "<dl>" + "".join(f"<dt>{esc(k)}</dt><dd>{esc(v)}</dd>" for k, v in facts) + "</dl>\n"


def _paper_html(paper):
    out = [f'<details><summary>Elsewhere: {esc(paper["title"])}</summary><p class="note">{OTHER} {esc(paper["what"])} '
           f'{esc(paper["hardware"])}. Source: {esc(paper["source"])}.</p>'
           f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(paper["title"])}, other hardware"><table>'
           f'<caption>{esc(paper["title"])}: other hardware</caption><thead><tr>']
    out += [f'<th scope="col">{esc(name)}</th>' for name in paper["columns"]]
    out.append("</tr></thead><tbody>")
    for row in paper["rows"]:
        out.append(f'<tr><th scope="row">{esc(_paper_cell(row[0]))}</th>'
                   + "".join(f"<td>{esc(_paper_cell(v))}</td>" for v in row[1:]) + "</tr>")
    return "".join(out) + "</tbody></table></div></details>\n"


def _paper_cell(value):
    return value if isinstance(value, str) else show(value)


def _result_html(number, result, figures, papers):
    name = f"{result.benchmark}: {result.path}"
    out = [f'<section aria-labelledby="r{number}"><h3 id="r{number}">{esc(name)}</h3>\n']
    if _failures(result):
        out.append(f'<p class="warn">{esc(_failures(result))}</p>')
    for figure, svg in figures:
        left = f" ({figure.left_out} more in the table)" if figure.left_out else ""
        out.append(f"<figure><figcaption>{esc(figure.title)}{left}</figcaption>{plots.page(svg)}</figure>\n")
    for heading, rows in result.outers():
        out.append(Table(rows).html(": ".join(part for part in (result.benchmark, heading) if part)))
    out += [_paper_html(paper) for paper in papers]
    out.append("<details><summary>Command line, versions and programs</summary>"
               f"{_dl(_facts(result))}</details></section>\n")
    return "".join(out)


def as_html(results, figures, papers):
    """figures: {id(result): [(figure, svg)]}"""
    sections = beds(results)
    out = [HEAD, f'<p class="note">{INTRO}</p>\n']
    if len(sections) > 1:
        out.append(f'<p class="warn" role="note">{MIXED.format(len(sections))}</p>\n')
    numbers = {id(result): i for i, result in enumerate(results)}
    out.append("<nav aria-label=\"Contents\"><ul>")
    for i, (name, of) in enumerate(sections):
        out.append(f'<li><a href="#m{i}">{esc(name)}</a><ul>' + "".join(
            f'<li><a href="#r{numbers[id(r)]}">{esc(r.benchmark)}: {esc(r.path)}</a></li>' for r in of) + "</ul></li>")
    out.append("</ul></nav>\n")
    for i, (name, of) in enumerate(sections):
        out.append(f'<h2 id="m{i}">{esc(name)}</h2>\n{_dl(_machine(of))}')
        out += [f'<p class="warn">{esc(text)}</p>\n' for text in _warnings(of)]
        out += [_result_html(numbers[id(r)], r, figures.get(id(r), ()), papers(r)) for r in of]
    return "".join(out) + "</main>\n</body>\n</html>\n"


def _result_markdown(result, images, papers):
    out = [f"### {mark(result.benchmark)}: {mark(result.path)}\n\n"]
    if _failures(result):
        out.append(f"**{mark(_failures(result))}**\n\n")
    out += [f"![{mark(figure.text())}]({path})\n\n" for figure, path in images]
    for heading, rows in result.outers():
        out.append((f"#### {mark(heading)}\n\n" if heading else "") + Table(rows).markdown() + "\n")
    for paper in papers:
        out.append(f"#### Elsewhere: {mark(paper['title'])}\n\n{OTHER} {mark(paper['what'])} {mark(paper['hardware'])}. "
                   f"Source: {mark(paper['source'])}.\n\n" + _md_row([mark(c) for c in paper["columns"]]) + "\n"
                   + _md_row(["--:"] * len(paper["columns"])) + "\n"
                   + "".join(_md_row([mark(_paper_cell(v)) for v in row]) + "\n" for row in paper["rows"]) + "\n")
    return "".join(out) + "".join(f"- {mark(what)}: {mark(text)}\n" for what, text in _facts(result)) + "\n"


def as_markdown(results, images, papers):
    """images: {id(result): [(figure, path)]}"""
    sections = beds(results)
    out = [f"# lean-bench report\n\n{INTRO}\n\n"]
    if len(sections) > 1:
        out.append(f"**{MIXED.format(len(sections))}**\n\n")
    for name, of in sections:
        out.append(f"## {mark(name)}\n\n" + "".join(f"- {mark(k)}: {mark(v)}\n" for k, v in _machine(of)) + "\n")
        out += [f"**{mark(text)}**\n\n" for text in _warnings(of)]
        out += [_result_markdown(r, images.get(id(r), ()), papers(r)) for r in of]
    return "".join(out)
