# SPDX-License-Identifier: Apache-2.0
"""What takes long to make, and is kept for the next time: programs, trees, images, roots. Programs out of it run as
root, so its directory is the caller's own; what is in it by its name is whole."""
import contextlib
import fcntl
import glob
import os
import re
import shutil
import subprocess
import tempfile

from leanbench import machine
from leanbench.workspace import Failure, progress

STEP_S = 1800
_MAKING = "making-"


def default():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lean-bench")


def directory(chosen):
    return os.path.realpath(chosen or default())


def _own(path):
    os.makedirs(path, 0o700, exist_ok=True)
    about = os.stat(path)
    if about.st_uid != os.geteuid():
        raise Failure(f"{path} belongs to somebody else: choose another --cache")
    if about.st_mode & 0o022:
        raise Failure(f"{path}: others may write to it: chmod go-w, or choose another --cache")


class Directory:
    """Used by `with`: nobody takes away meanwhile what is in there. name: a part of the cache."""

    def __init__(self, chosen, name=""):
        self.top = directory(chosen)
        self.path = os.path.join(self.top, name) if name else self.top
        self.lock = None

    def __enter__(self):
        try:
            _own(self.top)
            _own(self.path)
            self.lock = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_SH)
        except OSError as e:
            raise Failure(f"{self.path}: {e.strerror}") from e
        return self

    def __exit__(self, *_):
        os.close(self.lock)

    def member(self, name):
        return os.path.join(self.path, name)

    @contextlib.contextmanager
    def alone(self):
        """Nobody else makes something or uses it. What is half-made is of one that was killed."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another lean-bench, which uses {self.path}", True)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            for path in glob.glob(os.path.join(glob.escape(self.path), _MAKING + "*")):
                remove(path)
            yield
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_SH)

    @contextlib.contextmanager
    def making(self):
        """An empty directory, which goes: what is to be kept is renamed out of it when it is whole."""
        made = tempfile.mkdtemp(prefix=_MAKING, dir=self.path)
        try:
            yield made
        finally:
            remove(made)


def remove(path):
    """Never what is mounted there."""
    subprocess.run(["rm", "-rf", "--one-file-system", path], check=True)


def step(what, argv, log=None, nice=0, **env):
    """Runs a program whose processes and mounts end with it, or with us. Its standard output, or all of it to a file."""
    if not shutil.which(argv[0]):
        raise Failure(f"{what}: {argv[0]} is not installed")
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--", *argv]
    where = {"stdout": log, "stderr": log} if log else {"capture_output": True, "text": True, "errors": "replace"}

    def before():
        machine.die_with_parent()
        os.nice(nice)
    try:
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, timeout=STEP_S, check=False,
                              env={**os.environ, **env}, start_new_session=True,
                              preexec_fn=before, **where)
    except subprocess.TimeoutExpired as e:
        raise Failure(f"{what}: {argv[0]} takes more than {STEP_S} s") from e
    if done.returncode:
        said = "" if log else done.stdout + done.stderr
        said = [line for line in said.splitlines() if line.strip()]
        errors = [line for line in said if re.match(r"(E:|ERROR:|error:|.*Error:)", line)]
        errors = errors or said or ["see " + log.name if log else "it does not say why"]
        raise Failure(f"{what}: {os.path.basename(argv[0])} failed ({done.returncode}): {errors[0].strip()[:300]}")
    return done.stdout
