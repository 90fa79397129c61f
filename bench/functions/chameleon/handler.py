# SPDX-License-Identifier: Apache-2.0
"""Renders a table of 200 by 200 cells by a Chameleon template."""
import hashlib

from chameleon import PageTemplate

ROWS = COLUMNS = 200
TEMPLATE = """<table xmlns="http://www.w3.org/1999/xhtml" xmlns:tal="http://xml.zope.org/namespaces/tal">
<tr tal:repeat="row rows"><td tal:repeat="cell row" tal:content="cell.text" tal:attributes="class cell.kind"></td></tr>
</table>"""


class Cell:
    def __init__(self, row, column):
        self.kind = "odd" if (row + column) % 2 else None
        self.text = f"{row} < {column}" if row < column else str(row * column)


def setup():
    template = PageTemplate(TEMPLATE)
    rows = [[Cell(row, column) for column in range(COLUMNS)] for row in range(ROWS)]
    template(rows=rows[:1])  # compiled by the first use
    return template, rows


def handle(state):
    template, rows = state
    page = template(rows=rows)
    return {"cells": page.count("<td"), "sha256": hashlib.sha256(page.encode()).hexdigest()}
