# SPDX-License-Identifier: Apache-2.0
"""A place for daemons: mount, network, ipc and pid namespaces of our own. What is started in there ends with it, and so
does what was mounted and every network; its directory and its control groups go when it has ended, however it ended."""
import glob
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from leanbench import leftovers, machine
from leanbench.workspace import Failure

TAG = "LEAN_BENCH_TAG"  # who gives one knows what to look for
WAIT_S = 20
HIDES = ("/run", "/dev/shm")  # what is there on the host isn't seen inside
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_tag, _tag_is_chance = None, False


def tag():
    """The control group that everything has to be below, in each hierarchy."""
    return _tag


def _choose_tag():
    """It becomes a path: everything in those directories is removed in the end."""
    global _tag_is_chance
    _tag_is_chance = TAG not in os.environ
    name = os.environ.pop(TAG, None) or "leanbench-" + secrets.token_hex(5)
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9-]{0,63}", name):
        raise Failure(f"{TAG}={name}: letters, digits and - only, at most 64")
    there = _cgroups(name)
    if there:
        raise Failure(f"{TAG}={name}: {there[0]} is there already")
    return name


def enter(args, prepare):
    """Returns inside, in another process. prepare() is called before, which still has the host's network."""
    global _tag
    for path in (getattr(args, "output", None), getattr(args, "cache", None)):
        if path and os.path.realpath(path).startswith(tuple(hidden + "/" for hidden in HIDES)):
            raise Failure(f"{path}: is not seen in the sandbox, choose a place outside of {' and '.join(HIDES)}")
    for program in ("mount", "ip"):
        if not shutil.which(program):
            raise Failure(f"{program} is not installed, or not in PATH: the sandbox is made by it")
    _tag = _choose_tag()
    prepare()
    sys.stdout.flush()
    sys.stderr.flush()
    _outside()


class _Stopped(Exception):
    pass


def _stop(*_):
    raise _Stopped


def _outside():
    """Waits for it all, and takes away what is left: never returns, but inside."""
    child, handle, directory, status = None, None, None, 1
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    try:
        directory = tempfile.mkdtemp(prefix="lean-bench-")
        os.chmod(directory, 0o711)  # ordinary users run in there, too
        leftovers.claim(directory, [_tag] if _tag_is_chance else [])
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        child = os.fork()
        if child == 0:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            _inside(directory)
            return
        handle = os.pidfd_open(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xff
    except _Stopped:
        print("lean-bench: stopped", file=sys.stderr)
    finally:
        if child != 0:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            if child:
                _end(child, handle)
            _remove_cgroups(_tag)
            if directory:
                subprocess.run(["rm", "-rf", "--one-file-system", directory], check=False)
    os._exit(status)


def _fork_and_wait(each):
    """Returns in the child. The parent ends as that one did; it reaps whatever ends if `each`."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.waitpid(-1 if each else child, 0)
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def _inside(directory):
    """Returns in a process of the sandbox that isn't its first: that one reaps what daemons leave to it."""
    try:
        machine.die_with_parent()
        os.setsid()  # a terminal's ^C comes to the one outside alone
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        machine.new_namespaces(machine.NEW_MOUNTS | machine.NEW_IPC | machine.NEW_NETWORK)
        machine.new_namespaces(machine.NEW_PIDS)  # by itself: the next process is its first
        _fork_and_wait(False)
        machine.die_with_parent()
        subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
        for path, mode in (("/run", "755"), ("/dev/shm", "1777")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=" + mode, "tmpfs", path], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        _fork_and_wait(True)
    except (OSError, subprocess.CalledProcessError) as e:
        why = e.strerror if isinstance(e, OSError) else f"{' '.join(e.cmd)}: status {e.returncode}"
        print(f"lean-bench: the sandbox can't be made: {why} (it needs the privileges of a host's root)", file=sys.stderr)
        os._exit(1)
    except BaseException:  # not to what the one outside would do with it
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os.environ["TMPDIR"] = tempfile.tempdir = directory


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def _end(child, handle):
    """With the first process of a pid namespace the kernel ends all others, and then that one."""
    first = children(child)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # it was waited for
    end = time.monotonic() + WAIT_S
    while any(os.path.exists(f"/proc/{pid}") for pid in first) and time.monotonic() < end:
        time.sleep(0.02)


def _cgroups(name):
    name = glob.escape(name)
    return [*glob.glob("/sys/fs/cgroup/" + name), *glob.glob("/sys/fs/cgroup/*/" + name)]


def _remove_cgroups(name):
    """Deepest first, of each hierarchy."""
    end = time.monotonic() + WAIT_S
    while True:
        tops = _cgroups(name)
        for top in tops:
            for path, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
        tops = [top for top in tops if os.path.exists(top)]
        if not tops:
            return
        if time.monotonic() > end:
            print("lean-bench: left behind:", *tops, file=sys.stderr)
            return
        time.sleep(0.05)


def bind_copy(path, text, directory):
    """The file at path has that text behind its own, in here."""
    copy = os.path.join(directory, path.strip("/").replace("/", "-"))
    shutil.copyfile(path, copy)
    with open(copy, "a", encoding="utf-8") as f:
        f.write(text)
    os.chmod(copy, 0o644)
    subprocess.run(["mount", "--bind", copy, path], check=True)


def bind_device(path, directory):
    """As the device at path, but everybody may open it."""
    if not os.path.exists(path):
        return
    copy = os.path.join(directory, os.path.basename(path))
    os.mknod(copy, 0o600 | 0o020000, os.stat(path).st_rdev)
    os.chmod(copy, 0o666)
    subprocess.run(["mount", "--bind", copy, path], check=True)
