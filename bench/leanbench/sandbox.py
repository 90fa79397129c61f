# SPDX-License-Identifier: Apache-2.0
"""A place for daemons: mount, network, ipc and pid namespaces of our own. What is started in there ends with it, and so
does what was mounted and every network; its directory and its control groups go when it has ended, however it ended."""
import glob
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from leanbench import machine
from leanbench.workspace import Failure

STAGE = "LEAN_BENCH_SANDBOX"
TAG = "LEAN_BENCH_TAG"
WAIT_S = 20
HIDES = ("/run", "/dev/shm")  # what is there on the host isn't seen inside


def tag():
    """The control group that everything has to be below, in each hierarchy."""
    return os.environ[TAG]


def enter(args, prepare):
    """Returns inside. Outside, prepare() is called first, which still has the host's network."""
    stage = os.environ.get(STAGE)
    if stage == "inside":
        return
    if stage == "first":
        sys.exit(_first())
    for path in (getattr(args, "output", None), getattr(args, "cache", None)):
        if path and os.path.realpath(path).startswith(tuple(hidden + "/" for hidden in HIDES)):
            raise Failure(f"{path}: is not seen in the sandbox, choose a place outside of {' and '.join(HIDES)}")
    prepare()
    sys.exit(_outside())


class _Stopped(Exception):
    pass


def _stop(*_):
    raise _Stopped


def _outside():
    child, directory = None, None
    name = os.environ.get(TAG) or "leanbench-" + secrets.token_hex(5)  # who gives one knows what to look for
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        signal.signal(number, _stop)
    try:
        directory = tempfile.mkdtemp(prefix="lean-bench-")
        os.chmod(directory, 0o711)  # ordinary users run in there, too
        environment = {**os.environ, STAGE: "first", TAG: name, "TMPDIR": directory}
        # A session of its own: a terminal's ^C comes to us alone.
        child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--ipc", "--pid",
                                  "--fork", "--kill-child=KILL", "--mount-proc", sys.executable, *sys.argv],
                                 stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        return child.wait()
    except _Stopped:
        print("lean-bench: stopped", file=sys.stderr)
        return 1
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        if child:
            _end(child)
        _remove_cgroups(name)
        if directory:
            subprocess.run(["rm", "-rf", "--one-file-system", directory], check=False)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def _end(child):
    """With the first process of a pid namespace the kernel ends all others, and then that one."""
    first = children(child.pid)
    child.kill()
    child.wait()
    end = time.monotonic() + WAIT_S
    while any(os.path.exists(f"/proc/{pid}") for pid in first) and time.monotonic() < end:
        time.sleep(0.02)


def _remove_cgroups(name):
    """Deepest first, of each hierarchy."""
    end = time.monotonic() + WAIT_S
    while True:
        tops = [*glob.glob("/sys/fs/cgroup/" + name), *glob.glob("/sys/fs/cgroup/*/" + name)]
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


def _first():
    """Process 1 of the sandbox: sets it up, and reaps what daemons leave to it."""
    for path, mode in (("/run", "755"), ("/dev/shm", "1777")):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=" + mode, "tmpfs", path], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ[machine.HIDDEN] = "1"  # this mount namespace is our own already
    os.environ[STAGE] = "inside"
    main = subprocess.Popen([sys.executable, *sys.argv])
    while True:
        pid, status = os.wait()
        if pid == main.pid:
            return os.waitstatus_to_exitcode(status) & 0xff


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
