# SPDX-License-Identifier: Apache-2.0
"""What the figures were taken on, and one view of cgroups for everyone."""
import glob
import hashlib
import os
import platform
import subprocess
import sys

HIDDEN = "LEAN_BENCH_NAMESPACE"
UNIFIED = "/sys/fs/cgroup/unified"


def cgroup_layout():
    """unified, hybrid, v1 or none: as this process sees it."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        mounts = [line.split()[1:3] for line in f]
    v1 = any(kind == "cgroup" for _, kind in mounts)
    if ["/sys/fs/cgroup", "cgroup2"] in mounts:
        return "unified"
    if [UNIFIED, "cgroup2"] in mounts:
        return "hybrid"
    return "v1" if v1 else "none"


def enter_common_view():
    """crun refuses hybrid cgroups: hide version 2 from all runtimes alike, for this run only."""
    if os.environ.get(HIDDEN) == "1":
        subprocess.run(["umount", UNIFIED], check=True)
        # Some runtimes then write plain files there: into something that ends with us.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", UNIFIED], check=True)
        os.environ[HIDDEN] = "done"
    elif cgroup_layout() == "hybrid" and HIDDEN not in os.environ:
        os.environ[HIDDEN] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                              sys.executable, *sys.argv])


def add_mounts(wanted):
    """As on a host with many containers or volumes; gone with our mount namespace."""
    if HIDDEN not in os.environ:  # no view of our own yet
        os.environ[HIDDEN] = "done"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                              sys.executable, *sys.argv])
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
    for i in range(describe()["host_mounts"], wanted):
        os.mkdir(f"/mnt/{i}")
        subprocess.run(["mount", "--bind", "/mnt", f"/mnt/{i}"], check=True)


def remove_empty_cgroups(name):
    """The parent of cgroupsPath: runtimes remove their own below it."""
    for path in glob.glob("/sys/fs/cgroup/" + name) + glob.glob("/sys/fs/cgroup/*/" + name):
        if os.environ.get(HIDDEN) == "done" and path.startswith(UNIFIED):
            continue
        try:
            os.rmdir(path)
        except OSError as e:
            print(f"lean-bench: {path}: {e.strerror}", file=sys.stderr)


def _field(path, key):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return None


def describe():
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "cgroups": cgroup_layout(),
        "host_mounts": sum(1 for _ in open("/proc/self/mountinfo", encoding="utf-8",
                                           errors="replace")),
    }


def commit():
    """Of the tree that lean-bench is in, with "-dirty" if files were changed; None outside of one."""
    here = os.path.dirname(os.path.realpath(__file__))
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", here, "describe", "--always", "--dirty",
                           "--abbrev=40", "--exclude=*"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def digest(path):
    """What tells two builds of one version apart."""
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
