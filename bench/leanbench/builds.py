# SPDX-License-Identifier: Apache-2.0
"""lean-runtime of a git revision, built in a worktree of its own and kept: it is built once."""
import hashlib
import os
import shutil
import subprocess

from leanbench import cache
from leanbench.workspace import BENCH, Failure, progress

PROGRAM = "src/cli/lean-runtime"
# What else says what the Makefile, meson and the compiler make of a revision.
SETTINGS = ("MESON_OPTIONS", "LIBC_CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "CC_LD", "PKG_CONFIG_PATH",
            "PKG_CONFIG_LIBDIR")


def _git(*words, check=True):
    """Without the repository's hooks: they are the business of whoever works in it."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-C",
                           os.path.dirname(BENCH), *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise Failure(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip() if done.returncode == 0 else None


def _key():
    """Which compiler the Makefile takes, of what version, and with what settings."""
    name = os.environ.get("LIBC_CC") or ("musl-gcc" if shutil.which("musl-gcc") else "cc")
    done = subprocess.run([*name.split(), "-dumpfullversion"], capture_output=True, text=True, check=False)
    settings = hashlib.sha256("\0".join(os.environ.get(n, "") for n in SETTINGS).encode()).hexdigest()[:8]
    return f"{os.path.basename(name.split()[0])}-{done.stdout.strip()}-{settings}".replace("/", "_")


def _build(what, commit, made, target):
    """With the least priority: the machine is somebody's."""
    tree, log = os.path.join(made, "tree"), target + ".log"
    try:
        _git("worktree", "add", "--quiet", "--detach", "--force", tree, commit)
        with open(log, "wb") as f:
            for argv in (["make", "BUILD=build", "-C", tree, "build/build.ninja"],
                         ["ninja", "-C", os.path.join(tree, "build"), PROGRAM]):
                cache.step(what, argv, f, 19)
        os.rename(os.path.join(tree, "build", PROGRAM), target)
    finally:
        _git("worktree", "remove", "--force", tree, check=False)
    os.unlink(log)


def find(what, chosen):
    """(path, {what it is}) of a program or a git revision."""
    if os.path.isfile(what):
        if not os.access(what, os.X_OK):
            raise Failure(f"{what}: is no program")
        return os.path.realpath(what), {"program": os.path.realpath(what)}
    if what.startswith("-"):
        raise Failure(f"{what}: neither a program nor a git revision")
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", what + "^{commit}", check=False)
    if not commit:
        raise Failure(f"{what}: neither a program nor a git revision")
    with cache.Directory(chosen) as kept:
        target = kept.member(f"lean-runtime-{commit}-{_key()}")
        if not os.path.exists(target):
            with kept.alone(), kept.making() as made:
                _git("worktree", "prune", check=False)  # those of one that was killed are gone
                if not os.path.exists(target):
                    progress(f"compare: building {what} ({commit[:12]})", True)
                    _build(commit[:12], commit, made, target)
    return target, {"revision": what, "commit": commit}
