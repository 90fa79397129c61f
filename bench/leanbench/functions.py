# SPDX-License-Identifier: Apache-2.0
"""functions: makes the root file systems of the functions (bench/functions), or says that they are there.

Seconds are those that a root took when it was made: from the base image to a right first answer."""
from leanbench import cache, results, roots, steps
from leanbench.workspace import Failure, progress

COLUMNS = (("", "state", str), ("seconds", "seconds", str), ("root MB", "root_mb", str),
           ("packages MB", "packages_mb", str), ("", "packages", " ".join))


def options(parser, default="all"):
    """Those that every command has that starts functions."""
    parser.add_argument("--function", action="append", metavar="NAME", choices=roots.NAMES,
                        help=f"{', '.join(roots.NAMES)} (repeatable; default: {default})")
    parser.add_argument("--cache", metavar="DIR", help=f"where their roots are kept (default: {cache.default()})")
    parser.add_argument("--base", metavar="IMAGE",
                        help="an image with Python 3.11, as oci:DIR:TAG, instead of one that mmdebstrap makes")


def add(sub, common):
    s = sub.add_parser("functions", parents=[common], help="make the roots of the functions")
    options(s)
    s.add_argument("--again", action="store_true", help="make those anew that are there")


def problem(name, error):
    """The row of a function that is not to be had: left out, or, if its answer is wrong, failed."""
    if isinstance(error, roots.Wrong):
        return {"function": name, "mode": name, "runs": 1, "failed": 1, "error": str(error)}
    return {"function": name, "mode": name, "skipped": str(error)}


def _row(kept, name, again):
    try:
        root = kept.get(name, again)
    except (Failure, OSError) as e:
        progress(f"functions: {name}: {e}", True)
        return problem(name, e)
    about = {k: root.about[k] for k in ("seconds", "root_mb", "packages_mb", "packages", "base", "python")}
    return {"function": name, "mode": name, "state": "built" if root.built else "cached", "root": root.path, **about}


def run(args, work):
    names = args.function or roots.NAMES
    journal = results.Journal(args, work, len(names))
    steps.again(journal)
    with roots.Cache(args.cache, args.base) as kept:
        for name in names:
            journal.step(name, steps.timed(lambda name=name: [_row(kept, name, args.again)]))
    return journal.end()
