# SPDX-License-Identifier: Apache-2.0
"""What a lean-bench that was killed (SIGKILL, no memory) has left: its directory, and containers with their control groups.
Each locks its directory for as long as it lives, and has written down there what its containers are called."""
import fcntl
import glob
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

TOP = "/sys/fs/cgroup"
PREFIX = "lean-bench-"
OWNER = "owner"
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}")
WAIT_S = 5


def claim(path, tags):
    """tags: words in the names of its control groups, and in nobody else's. The lock lasts as long as the process."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with open(os.path.join(path, OWNER), "w", encoding="utf-8") as f:
        json.dump({"tags": tags}, f)
    return fd


def _tags(path):
    try:
        with open(os.path.join(path, OWNER), encoding="utf-8") as f:
            tags = json.load(f)["tags"]
        return [tag for tag in tags if WORD.fullmatch(tag)]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _groups(tags):
    """Control groups that have such a word in their name, the deepest first."""
    name = re.compile("(?<![A-Za-z0-9])(" + "|".join(map(re.escape, tags)) + ")(?![A-Za-z0-9])")
    return [top for top, _, _ in os.walk(TOP, topdown=False) if name.search(os.path.basename(top))]


def _below(groups):
    return [path for group in groups for path, _, _ in os.walk(group, topdown=False)]


def _write(path, text):
    try:
        with open(path, "r+", encoding="ascii") as f:
            f.write(text)
    except OSError:
        pass


def _end(group):
    """Kills all that is in there. What is frozen ends only when it is thawed."""
    try:
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as f:
            pids = [int(word) for word in f.read().split()]
    except OSError:
        pids = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    _write(os.path.join(group, "freezer.state"), "THAWED")
    _write(os.path.join(group, "cgroup.freeze"), "0")


def remove_groups(tags):
    """Ends what is in control groups with such words, and removes them; returns those that are there after WAIT_S."""
    end = time.monotonic() + WAIT_S
    while tags:
        found = _below(_groups(tags))
        for group in found:
            _end(group)
        for group in found:
            try:
                os.rmdir(group)
            except OSError:
                pass
        left = [group for group in found if os.path.exists(group)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
    return []


def _lock_of_dead(path):
    """Its lock; None if a lean-bench that lives has it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd
    except OSError:
        os.close(fd)
        return None


def _is_ours(path):
    try:
        st = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(st.st_mode) and st.st_uid == os.geteuid()


def _places():
    """Others may put directories there, too: what is in those, which may be a pipe, is not even opened."""
    return filter(_is_ours, glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), PREFIX + "*")))


def sweep():
    """Says what it finds, and takes it away."""
    owned = {path: tags for path, tags in ((path, _tags(path)) for path in _places()) if tags is not None}
    locks = {path: _lock_of_dead(path) for path in owned}
    # One that lives may have been given the same word.
    living = {tag for path, tags in owned.items() if locks[path] is None for tag in tags}
    for path, lock in locks.items():
        if lock is not None:
            print(f"lean-bench: removing {path} and its containers, which a lean-bench that was killed has left", file=sys.stderr)
            left = remove_groups([tag for tag in owned[path] if tag not in living])
            if left:
                print("lean-bench: left behind:", *left, file=sys.stderr)
            subprocess.run(["rm", "-rf", "--one-file-system", path], check=False)
            os.close(lock)
