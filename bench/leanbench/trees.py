# SPDX-License-Identifier: Apache-2.0
"""Root file systems that hold a program of the host's or of Debian's, and how the host runs the same program."""
import contextlib
import glob
import os
import platform
import re
import shutil
import subprocess
import tempfile

from leanbench.workspace import Failure, progress

SUITE = "bookworm"
# What runtimes mount over, and would make if they could.
DIRECTORIES = ("dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr", "var")


def _mount_points(root):
    for name in DIRECTORIES:
        os.makedirs(os.path.join(root, name), exist_ok=True)


def debian(package, cache):
    """A tree with a package of Debian's and what that depends on, unpacked by mmdebstrap; made once and kept."""
    root = os.path.join(cache, f"{package}-{SUITE}-{platform.machine()}")
    if os.path.isdir(root):
        return root
    if not shutil.which("mmdebstrap"):
        raise Failure(f"{root} is to be made by mmdebstrap, which isn't installed")
    progress(f"making {root}", True)
    os.makedirs(cache, exist_ok=True)
    new = tempfile.mkdtemp(prefix="making-", dir=cache)
    try:
        tree = os.path.join(new, "tree")
        mirror = os.environ.get("LEAN_BENCH_MIRROR")
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", f"--include={package}", SUITE, tree,
                               *([mirror] if mirror else [])], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise Failure("mmdebstrap: " + " ".join(done.stderr.split("\n")[-4:]))
        _mount_points(tree)
        try:
            os.rename(tree, root)
        except OSError:
            if not os.path.isdir(root): # else another lean-bench was faster
                raise
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", new], check=False)
    return root


def of_host(program, root):
    """A tree in `root` with a program of the host's, /usr/bin/NAME there, and the libraries that ldd finds for it."""
    path = shutil.which(program)
    if not path:
        raise Failure(f"{program}: not installed")
    found = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    if "not found" in found.stdout:
        raise Failure(f"ldd {path}: {found.stdout}")
    _mount_points(root)
    files = {library: library for library in re.findall(r"(/\S+) \(0x", found.stdout)}
    files[path] = "/usr/bin/" + program
    for source, target in files.items():
        os.makedirs(os.path.dirname(root + target), exist_ok=True)
        shutil.copy(source, root + target) # what a link points to
    return root


def given(root):
    for name in DIRECTORIES:
        if not os.path.isdir(os.path.join(root, name)):
            raise Failure(f"--root {root}: it lacks {name}, which some runtime mounts over or looks for")
    return os.path.realpath(root)


@contextlib.contextmanager
def read_only(root, place):
    """The root, where nobody can change it: systemd-nspawn adds what it misses before it makes a root read-only. The
    mount is the directory above, since the lean profile has other ways with a root that is a mount point."""
    above, name = os.path.split(os.path.realpath(root))
    if not name:
        raise Failure(f"{root}: is the host's own")
    os.mkdir(place)
    subprocess.run(["mount", "--bind", above, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield os.path.join(place, name)
    finally:
        subprocess.run(["umount", "-l", place], check=False)
        os.rmdir(place)


def _inside(root, path):
    """Where a path of the root is, with links followed as they are meant there."""
    for _ in range(40):
        here = root + path
        if not os.path.islink(here):
            return here
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(here)))
    raise Failure(f"{root}{path}: too many links")


def on_host(root, program):
    """argv that runs the root's program with the root's loader and libraries, but not in the root."""
    path = root + program
    try:
        with open(path, "rb") as f:
            head = f.read(4096)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}") from e
    loader = re.search(rb"\0(/lib[^\0]*/ld[^\0]+)\0", head)
    if not head.startswith(b"\x7fELF") or not loader:
        return [path] # a script, or static
    directories = [d for top in ("lib", "usr/lib") for d in (*glob.glob(f"{root}/{top}/*-linux-*"), f"{root}/{top}")]
    return [_inside(root, loader.group(1).decode()), "--library-path",
            ":".join([*directories, root + "/lib64"]), path]
