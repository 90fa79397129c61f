# SPDX-License-Identifier: Apache-2.0
"""What tests there are, by the names that documents call them."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def tests():
    """Every test there is, as the document names them."""
    found = set()
    for suite, prefix in (("bats", ""), ("vm", "vm/")):
        for path in (ROOT / "tests" / suite).glob("*.bats"):
            for name in re.findall(r'^@test "((?:[^"\\]|\\.)*)"', path.read_text(), re.M):
                found.add(f"{prefix}{path.name}: {name}")
    for path in (ROOT / "tests" / "unit").glob("*/*.c"):
        for name in re.findall(r"^(?:TEST|IN_NS|ROOT_TEST)\((\w+)", path.read_text(), re.M):
            found.add(f"unit {path.parent.name}/{path.name}: {name}")
    return found
