# SPDX-License-Identifier: Apache-2.0
"""lean-runtime of a git revision, built in a worktree of its own and kept: it is built once."""
import fcntl
import os
import shutil
import subprocess

from leanbench.workspace import BENCH, Failure, progress

PROGRAM = "src/cli/lean-runtime"


def cache_directory(chosen):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.abspath(chosen or os.path.join(base, "lean-bench"))


def _git(*words, check=True):
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", os.path.dirname(BENCH), *words], capture_output=True,
                          text=True, check=False)
    if check and done.returncode != 0:
        raise Failure(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip() if done.returncode == 0 else None


def _run(what, log, *argv):
    """With the least priority: the machine is somebody's."""
    with open(log, "ab") as f:
        done = subprocess.run(["nice", "-n", "19", *argv], stdin=subprocess.DEVNULL, stdout=f, stderr=f, check=False)
    if done.returncode != 0:
        raise Failure(f"{what}: {argv[0]} ended with {done.returncode}; see {log}")


def _compiler():
    """Which one the Makefile takes, and of what version: another one gives another program."""
    name = "musl-gcc" if shutil.which("musl-gcc") else "cc"
    done = subprocess.run([name, "-dumpfullversion"], capture_output=True, text=True, check=False)
    return f"{name}-{done.stdout.strip()}".replace("/", "_")


def _build(commit, tree, target):
    log = target + ".log"
    open(log, "wb").close()
    try:
        _git("worktree", "add", "--quiet", "--detach", "--force", tree, commit)
        _run(commit[:12], log, "make", "-C", tree, "build/build.ninja")
        _run(commit[:12], log, "ninja", "-C", os.path.join(tree, "build"), PROGRAM)
        shutil.copy(os.path.join(tree, "build", PROGRAM), target + ".new")
        os.replace(target + ".new", target)
    finally:
        _remove(tree)
    os.unlink(log)


def _remove(tree):
    _git("worktree", "remove", "--force", tree, check=False)
    shutil.rmtree(tree, ignore_errors=True)
    _git("worktree", "prune", check=False)


def find(what, cache):
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
    directory = cache_directory(cache)
    try:
        os.makedirs(directory, exist_ok=True)
        target = os.path.join(directory, f"lean-runtime-{commit}-{_compiler()}")
        with open(os.path.join(directory, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tree = os.path.join(directory, "tree-" + commit)
            if os.path.exists(tree): # of one that was killed
                _remove(tree)
            if not os.path.exists(target):
                progress(f"compare: building {what} ({commit[:12]})", True)
                _build(commit, tree, target)
    except OSError as e:
        raise Failure(f"{directory}: {e.strerror}") from e
    return target, {"revision": what, "commit": commit}
