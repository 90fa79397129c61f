# SPDX-License-Identifier: Apache-2.0
"""What tests there are, by the names that documents call them; and the table of defences."""
import re
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def tests():
    """Every test there is, as the document names them."""
    found = set()
    for suite, prefix in (("bats", ""), ("vm", "vm/"), ("checkpoint", "checkpoint/"), ("fork", "fork/"), ("rootfs", "rootfs/")):
        for path in (ROOT / "tests" / suite).glob("*.bats"):
            for name in re.findall(r'^@test "((?:[^"\\]|\\.)*)"', path.read_text(), re.M):
                found.add(f"{prefix}{path.name}: {name}")
    for path in (ROOT / "tests" / "unit").glob("*/*.c"):
        for name in re.findall(r"^(?:TEST|IN_NS|ROOT_TEST)\((\w+)", path.read_text(), re.M):
            found.add(f"unit {path.parent.name}/{path.name}: {name}")
    return found


Defence = namedtuple("Defence", "line attack defence where test")


def defences():
    """The rows of SECURITY.md's table; cells that are missing are empty."""
    found = []
    for number, line in enumerate((ROOT / "SECURITY.md").read_text().splitlines(), 1):
        if line.startswith("|") and not line.startswith(("|---", "| Attack ")):
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            found.append(Defence(number, *(cells + [""] * 4)[:4]))
    return found
