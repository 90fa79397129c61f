# SPDX-License-Identifier: Apache-2.0
"""check-page.py REPORT.html [--svgs N] [--text TEXT]...: the page has no element, attribute or address that it may not
have, whatever the result said; ids are there once; each svg is XML by itself; and each TEXT can be read on it."""
import argparse
import re
import sys
import xml.etree.ElementTree
from html.parser import HTMLParser

PAGE = set("html head meta title style body main h1 h2 h3 p nav ul li a div section figure figcaption table caption "
           "thead tbody tr th td details summary dl dt dd".split())
SVG = set("svg title defs style g path use text tspan clipPath rect line".split())
VOID = {"meta"}
ATTRIBUTES = set("lang charset name content http-equiv id class href role tabindex scope aria-label "
                 "aria-labelledby".split())


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.problems, self.ids, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if "svg" in self.open:
            self.open.append(tag)
            return
        if tag not in PAGE and tag != "svg":
            self.problems.append(f"<{tag}>")
        for name, value in attrs:
            if tag != "svg" and (name not in ATTRIBUTES or (name == "href" and not re.fullmatch("#[mr][0-9]+", value))):
                self.problems.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        if "svg" not in self.open:
            self.problems.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> ends what isn't open")

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def handle_comment(self, data):
        if "svg" not in self.open:
            self.problems.append("a comment")


def check_svg(text):
    for element in xml.etree.ElementTree.fromstring(text).iter():
        tag = element.tag.rpartition("}")[2]
        if tag not in SVG:
            yield f"svg <{tag}>"
        for name, value in element.attrib.items():
            name = name.rpartition("}")[2]
            if name.startswith("on") or (name == "href" and not value.startswith("#")):
                yield f"svg {tag} {name}={value}"
            if name == "id":
                yield ("id", value)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("page")
    p.add_argument("--svgs", type=int)
    p.add_argument("--text", action="append", default=[])
    args = p.parse_args()
    with open(args.page, encoding="utf-8") as f:
        source = f.read()
    page = Page()
    page.feed(source)
    page.close()
    problems = page.problems + [f"<{tag}> isn't closed" for tag in page.open]
    svgs = re.findall(r"<svg.*?</svg>", source, re.S)
    for svg in svgs:
        for found in check_svg(svg):
            if isinstance(found, tuple):
                page.ids.append(found[1])
            else:
                problems.append(found)
    # Ids of an svg's root were seen by both.
    twice = {i for i in page.ids if page.ids.count(i) > 1}
    problems += [f"id {i} is there twice" for i in sorted(twice)]
    if args.svgs is not None and len(svgs) != args.svgs:
        problems.append(f"{len(svgs)} figures")
    if re.search(r"url\((?!#)|@import", source):
        problems.append("its style fetches something")
    said = " ".join(page.text)
    problems += [f"doesn't say: {text}" for text in args.text if text not in said]
    print("\n".join(problems))
    sys.exit(bool(problems))


main()
