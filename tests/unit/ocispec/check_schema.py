#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds libocispec's tables against the JSON schema of the OCI runtime specification.

usage: check_schema.py DUMP_TABLES

Every property of the schema (Linux part) must be in a table, with a type that takes all values
the schema allows; and what the tables know beyond the schema must be listed below with the
version of the specification that added it. The schema is that of Debian's package
golang-github-opencontainers-specs-dev (1.1); without it the test is skipped.
"""
import json
import os
import subprocess
import sys

SCHEMA = "/usr/share/gocode/src/github.com/opencontainers/runtime-spec/schema"
SKIP = 77

OTHER_PLATFORMS = {"windows", "solaris", "vm", "zos"}

# In our tables, not yet in the packaged schema. "x" stands for x and all below it.
NEWER = {
    "config": {
        "process.scheduler": "1.1",
        "process.ioPriority": "1.1",
        "linux.timeOffsets": "1.1",
        "process.execCPUAffinity": "1.3",
        "linux.netDevices": "1.3",
        "linux.memoryPolicy": "1.3",
        "linux.intelRdt.schemata": "1.3",
        "linux.intelRdt.enableMonitoring": "1.3",
    },
    "state": {
        "rootfs": "addition of runc",
        "created": "addition of runc",
        "owner": "addition of runc",
    },
}

# In the schema, deliberately not in our tables.
DROPPED = {
    "config": {
        "linux.intelRdt.enableCMT": "removed by 1.3 in favour of enableMonitoring",
        "linux.intelRdt.enableMBM": "removed by 1.3 in favour of enableMonitoring",
    },
    "state": {},
}

# Narrower than the schema on purpose: what the kernel interface can take.
NARROWER = {
    ("config", "process.consoleSize.height"): "u16: struct winsize",
    ("config", "process.consoleSize.width"): "u16: struct winsize",
}

# Required by the schema, but runc and its callers do well without.
NOT_REQUIRED = {
    ("config", "linux.resources.pids.limit"): "optional since 1.3",
}

RANGES = {
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
}


class Schema:
    def __init__(self, folder):
        self.folder = folder
        self.files = {}

    def load(self, name):
        if name not in self.files:
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                self.files[name] = json.load(f)
        return self.files[name]

    def follow(self, node, file):
        """The node without $ref, anyOf of one, allOf: (merged node, file)."""
        while "$ref" in node:
            target, _, pointer = node["$ref"].partition("#")
            file = target or file
            siblings = {k: v for k, v in node.items() if k != "$ref"}
            node = self.load(file)
            for part in pointer.strip("/").split("/"):
                node = node[part]
            # Keywords beside $ref count for nothing in draft 4; type and description only here.
            assert set(siblings) <= {"type", "description"}, siblings
        if len(node.get("anyOf", [])) == 1:
            return self.follow(node["anyOf"][0], file)
        if "allOf" in node:
            merged = {"type": "object", "properties": {}, "required": []}
            for part in node["allOf"]:
                part, part_file = self.follow(part, file)
                for name, sub in part.get("properties", {}).items():
                    merged["properties"][name] = self.follow(sub, part_file)[0]
                merged["required"] += part.get("required", [])
            return merged, file
        return node, file

    def walk(self, node, file, path, out):
        node, file = self.follow(node, file)
        required = node.get("required", [])
        for name, sub in node.get("properties", {}).items():
            if not path and name in OTHER_PLATFORMS:
                continue
            sub_path = f"{path}.{name}" if path else name
            sub, sub_file = self.follow(sub, file)
            out[sub_path] = (self.kind(sub, sub_file, sub_path, out), name in required)

    def kind(self, node, file, path, out):
        """What our tables would have to say; descends into objects."""
        kind = node.get("type")
        if kind == "object" and "properties" in node:
            self.walk(node, file, path, out)
            return "object"
        if kind == "object":
            values = node.get("additionalProperties") or next(
                iter(node["patternProperties"].values()))
            values, values_file = self.follow(values, file)
            inner = self.kind(values, values_file, path + "{}", out)
            return "map-of-" + name_of(inner)
        if kind == "array":
            items, items_file = self.follow(node["items"], file)
            inner = self.kind(items, items_file, path + "[]", out)
            return "list-of-" + name_of(inner)
        if kind == "boolean":
            return "bool"
        if kind == "integer":
            return (node.get("minimum"), node.get("maximum"))
        assert kind == "string", (path, node)
        return "string"


def name_of(kind):
    """Integers within lists: u32 is the only one that occurs."""
    if isinstance(kind, tuple):
        assert kind == (0, 2**32 - 1), kind
        return "u32"
    return kind


def compatible(ours, theirs):
    if not isinstance(theirs, tuple):
        return ours == theirs
    if ours not in RANGES:
        return False
    low, high = theirs
    ours_low, ours_high = RANGES[ours]
    # An "integer" without a lower bound is an int in Go: ours must be signed; 32 bits will do.
    return ours_low <= (-1 if low is None else low) and (high is None or high <= ours_high)


def is_listed(path, listed):
    return any(path == p or path.startswith((p + ".", p + "{}", p + "[]")) for p in listed)


def check(document, theirs, ours):
    problems = []
    for path, (kind, required) in sorted(theirs.items()):
        if path in DROPPED[document]:
            if path in ours:
                problems.append(f"{path}: listed as dropped, but a table has it")
            continue
        if path not in ours:
            problems.append(f"{path}: in the schema, in no table")
            continue
        our_kind, our_required = ours[path]
        if not compatible(our_kind, kind) and (document, path) not in NARROWER:
            problems.append(f"{path}: the schema says {kind}, the table {our_kind}")
        if required and not our_required and (document, path) not in NOT_REQUIRED:
            problems.append(f"{path}: required by the schema, not by the table")
    for path in sorted(ours):
        if path not in theirs and not is_listed(path, NEWER[document]):
            problems.append(f"{path}: in a table, neither in the schema nor listed as newer")
    for path in NEWER[document]:
        if path not in ours:
            problems.append(f"{path}: listed as newer, in no table")
        if path in theirs:
            problems.append(f"{path}: now in the schema, take it off the list")
    for path in DROPPED[document]:
        if path not in theirs:
            problems.append(f"{path}: no longer in the schema, take it off the list")
    return problems


def main():
    if not os.path.isdir(SCHEMA):
        print(f"SKIP: {SCHEMA} is missing (package golang-github-opencontainers-specs-dev)")
        return SKIP
    out = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    ours = {"config": {}, "state": {}}
    for line in out.splitlines():
        document, path, kind, required = line.split()
        ours[document][path] = (kind, required == "required")
    schema = Schema(SCHEMA)
    problems = []
    for document, file in (("config", "config-schema.json"), ("state", "state-schema.json")):
        theirs = {}
        schema.walk(schema.load(file), file, "", theirs)
        found = check(document, theirs, ours[document])
        print(f"{document}: {len(theirs)} properties in the schema, {len(ours[document])} in our "
              f"tables, {len(found)} problems")
        problems += [f"{document} {p}" for p in found]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
