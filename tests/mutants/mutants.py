# SPDX-License-Identifier: Apache-2.0
"""The mutants of the defences: one patch or more for each row of SECURITY.md, which takes the defence out.

A patch is a file in patches/. Before its diff stand lines `Key: value`:
    Row:   the attack of the row, letter by letter
    Test:  (optional) the test that has to fail, where it is not the row's own
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "house"))
from suites import ROOT, defences  # noqa: E402

PATCHES = Path(__file__).resolve().parent / "patches"
APPLY = ["git", "apply", "-C1", "--recount", "--whitespace=nowarn"]


class Mutant:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        self.keys, lines = {}, path.read_text().splitlines(keepends=True)
        while lines and not lines[0].startswith("--- "):
            key, colon, value = lines.pop(0).partition(":")
            if colon:
                self.keys[key.strip()] = value.strip()
        self.diff = "".join(lines)

    @property
    def row(self):
        return self.keys.get("Row", "")

    def files(self):
        return re.findall(r"^\+\+\+ b/(\S+)", self.diff, re.M)

    def changes(self, source):
        """Whether it changes that file, as a row calls it."""
        return any(f in (f"src/{source}.c", f"src/{source}.h", source) for f in self.files())

    def test(self, rows):
        return self.keys.get("Test") or rows[self.row].test

    def apply(self, tree, check=False):
        """None, or why the patch does not fit."""
        p = subprocess.run(APPLY + (["--check"] if check else []), cwd=tree, input=self.diff, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return p.stdout.strip() or "does not apply" if p.returncode else None


def sources(row):
    return [s.strip().strip("`") for s in row.where.split(",")]


def mutants():
    return [Mutant(p) for p in sorted(PATCHES.glob("*.patch"))]


def problems():
    """What is wrong with the patches as they lie there."""
    rows, found, covered, elsewhere = {d.attack: d for d in defences()}, [], set(), {}
    for m in mutants():
        if m.row not in rows:
            found.append(f'{m.path.name}: SECURITY.md has no row "{m.row}"')
            continue
        covered.add(m.row)
        elsewhere[m.row] = elsewhere.get(m.row, True) and not any(m.changes(s) for s in sources(rows[m.row]))
        why = m.apply(ROOT, check=True)
        if why:
            found.append(f"{m.path.name}: {why}")
    found += [f'no mutant takes this defence out: "{a}"' for a in rows if a not in covered]
    found += [f'no mutant of this defence changes {rows[a].where}: "{a}"' for a, other in elsewhere.items() if other]
    return found
