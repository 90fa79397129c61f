# SPDX-License-Identifier: Apache-2.0
"""Root file systems that hold a program of the host's or of Debian's, and how the host runs the same program."""
import contextlib
import glob
import os
import platform
import re
import shutil
import subprocess

from leanbench import cache, debian
from leanbench.workspace import Failure, progress

# What runtimes mount over, and would make if they could.
DIRECTORIES = ("dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr", "var")


def _mount_points(root):
    for name in DIRECTORIES:
        os.makedirs(os.path.join(root, name), exist_ok=True)


def of_debian(package, chosen):
    """A tree with a package of Debian's and what that depends on; made once and kept."""
    with cache.Directory(chosen) as kept:
        root = kept.member(f"{package}-{debian.SUITE}-{platform.machine()}")
        if not os.path.isdir(root):
            with kept.alone(), kept.making() as made:
                if not os.path.isdir(root):  # another one may have made it while we waited
                    progress(f"making {root}", True)
                    tree = os.path.join(made, "tree")
                    debian.unpack(root, debian.command(tree, package))
                    _mount_points(tree)
                    os.rename(tree, root)
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
