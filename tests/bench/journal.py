# SPDX-License-Identifier: Apache-2.0
"""journal.py STEPS FILE [OPTION...]: a benchmark of STEPS steps that measures nothing, with results.Journal and
--output FILE. It prints the name of each step that it does, and at the end the rows.

  --wait N      waits in step N, once it has printed its name
  --mark TEXT   a part of the command line
  --commit TEXT, --cpu TEXT, --program TEXT    what it says it is measured on
  --rows N      rows in each step"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench"))
sys.dont_write_bytecode = True

from leanbench import machine, results  # noqa: E402
from leanbench.workspace import Failure  # noqa: E402


class Runtime:
    name = "none"

    def __init__(self, path):
        self.path = path

    @staticmethod
    def version():
        return "1"


class Work:
    def __init__(self, program):
        self.runtimes = [Runtime(program)]


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("steps", type=int)
    p.add_argument("output")
    p.add_argument("--wait", type=int, default=0)
    p.add_argument("--mark")
    p.add_argument("--commit", default="c0ffee")
    p.add_argument("--cpu", default="a processor")
    p.add_argument("--program", default="/bin/true")
    p.add_argument("--rows", type=int, default=1)
    return p.parse_args()


def measure(args):
    machine.commit = lambda: args.commit
    describe = machine.describe
    machine.describe = lambda: {**describe(), "cpu": args.cpu}
    args.command = "none"
    results.check_output(args.output)
    # What only this program has isn't a part of the command line.
    sys.argv = [sys.argv[0], args.mark or "plain"]
    work = Work(args.program)
    journal = results.Journal(args, work, args.steps)
    for i in range(1, args.steps + 1):
        def step(number=i):
            print(f"step {number}", flush=True)
            if number == args.wait:
                time.sleep(60)
            return [{"runtime": "none", "mode": f"step {number}", "runs": 1, "failed": 0}] * args.rows
        journal.step(f"step {i}", step)
    document = results.document(args, work, journal.end())
    results.write(document, args.output)
    results.finish(args)
    print(json.dumps([row["mode"] for row in document["results"]]))


try:
    measure(arguments())
except Failure as e:
    sys.exit(f"journal: {e}")
