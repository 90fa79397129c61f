# SPDX-License-Identifier: Apache-2.0
"""What the figures were taken on, and one view of cgroups for everyone."""
import ctypes
import errno
import glob
import hashlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIXED = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "CC", "LIBC_CC", "CFLAGS", "LDFLAGS", "MESON_OPTIONS",
        "XDG_CACHE_HOME", "DOCKER_CONFIG", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PREFIXES = ("LEAN_BENCH_", "PIP_", "SSL_CERT_")
PLACES = ("LEAN_BENCH_TAG", "LEAN_BENCH_MIRROR")
UNIFIED = "/sys/fs/cgroup/unified"
NEW_MOUNTS, NEW_IPC, NEW_PIDS, NEW_NETWORK = 0x20000, 0x8000000, 0x20000000, 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


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


def new_namespaces(kinds):
    """For this process itself: nothing has to tell it, after another exec, that it is in there already. What is mounted
    from now on stays inside."""
    if _LIBC.unshare(kinds) != 0:
        raise OSError(ctypes.get_errno(), "unshare: " + os.strerror(ctypes.get_errno()))
    if kinds & NEW_MOUNTS:
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def die_with_parent(number=signal.SIGKILL):
    """With the thread that began this process, to be exact."""
    _LIBC.prctl(1, number, 0, 0, 0)  # PR_SET_PDEATHSIG


def enter_own_view(keep_cgroups):
    """A mount namespace of our own, so that mounts end with us. crun refuses hybrid cgroups: unless they are to be
    kept, version 2 is hidden from all runtimes alike."""
    new_namespaces(NEW_MOUNTS)
    if not keep_cgroups and cgroup_layout() == "hybrid":
        subprocess.run(["umount", UNIFIED], check=True)
        # Some runtimes then write plain files there: into something that ends with us.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", UNIFIED], check=True)


def fix_environment():
    """What everybody is started with. Variables steer runtimes (LEAN_RUNTIME_PROFILE, GODEBUG, GLIBC_TUNABLES), so only
    those stay that somebody needs who makes a root or a program."""
    kept = {k: v for k, v in os.environ.items() if k in KEPT or k.lower().endswith("_proxy") or k.startswith(PREFIXES)}
    os.environ.clear()
    os.environ.update({"PATH": PATH, **kept, **FIXED})


def environment():
    """What of it may matter, for the result. Places differ each time, and what has to do with the network is secret."""
    return {k: v for k, v in sorted(os.environ.items()) if k in ("PATH", *FIXED) or k.startswith("LEAN_BENCH_")
            and k not in PLACES}


def filesystem(path):
    """The type of the file system that the directory is on, as far as that can be told."""
    device = os.stat(path).st_dev
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        found = {words[2]: words[words.index("-") + 1] for words in map(str.split, f)}
    return found.get(f"{os.major(device)}:{os.minor(device)}")


def below_mnt(path):
    """/mnt is covered by a tmpfs of ours in some commands; what is to stay can't be there."""
    return bool(path) and os.path.realpath(path).startswith("/mnt/")


def add_mounts(wanted):
    """As on a host with many containers or volumes; gone with our mount namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
    places = [f"/mnt/{i}" for i in range(describe()["host_mounts"], wanted)]
    for place in places:
        os.mkdir(place)
    if places:  # by one process: in emulation, a thousand are minutes
        with open("/mnt/fstab", "w", encoding="utf-8") as f:
            f.writelines(f"/mnt {place} none bind 0 0\n" for place in places)
        subprocess.run(["mount", "-a", "-T", "/mnt/fstab"], check=True)


def cgroup_directories(name):
    """Those of that name, in whatever hierarchies are mounted."""
    hidden = cgroup_layout() != "hybrid"
    return [path for path in glob.glob("/sys/fs/cgroup/" + name) + glob.glob("/sys/fs/cgroup/*/" + name)
            if not (hidden and path.startswith(UNIFIED))]


def own_cgroups(which=None):
    """Where this process is in each hierarchy, or in those of these controllers ("": version 2)."""
    unified = {"hybrid": UNIFIED, "unified": "/sys/fs/cgroup"}.get(cgroup_layout())
    found = []
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        for line in f:
            _, names, path = line.rstrip("\n").split(":", 2)
            top = "/sys/fs/cgroup/" + names.removeprefix("name=") if names else unified
            if top and (which is None or names in which) and os.path.isdir(top + path):
                found.append((top + path).rstrip("/"))
    return found


def remove_empty_cgroups(name):
    """The parent of cgroupsPath: runtimes remove their own below it. Somebody else may have some there, too."""
    for path in cgroup_directories(name):
        try:
            os.rmdir(path)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EBUSY, errno.ENOTEMPTY):
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


def free_port(address="127.0.0.1"):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def image_architecture():
    """As images have it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


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
    if not shutil.which("git"):
        return None
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", here, "describe", "--always", "--dirty",
                           "--abbrev=40", "--exclude=*"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def digest(path):
    """What tells two builds of one version apart."""
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
