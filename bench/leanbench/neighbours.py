# SPDX-License-Identifier: Apache-2.0
"""Containers that aren't OCI's: bubblewrap, systemd-nspawn and LXC. Each starts a program in new pid, mount, ipc,
uts and network namespaces, with a /proc and a /dev of its own, and ends with the program's status."""
import glob
import os
import subprocess
import sys

from leanbench import machine

NAMES = ("bwrap", "systemd-nspawn", "lxc-execute")
# Where they keep what they know of their containers. We lay something of our own over it, in our mount namespace.
STATES = {"systemd-nspawn": "/run/systemd/nspawn", "lxc-execute": "/run/lxc"}
NSPAWN_CGROUPS = ("payload", "supervisor")  # made by --keep-unit in the caller's cgroup, and left there
DIRECTORIES = ("usr",)  # without it systemd-nspawn takes nothing for a root file system


def _bwrap(_work, runtime, _name, root, what, data):
    where = ["--bind", root, "/"]
    if data:
        where = ["--die-with-parent", "--ro-bind", root, "/", "--bind", data, "/mnt", "--chdir", "/mnt"]
    return [runtime.path, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", *where,
            "--proc", "/proc", "--dev", "/dev", "--as-pid-1", *what]


def _nspawn(_work, runtime, name, root, what, data):
    where = ["--read-only", f"--bind={data}:/mnt", "--chdir=/mnt"] if data else []
    # No machined and no unit of systemd's: neither is everywhere. Nothing of the host's goes into /etc.
    return [runtime.path, "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
            "--resolv-conf=off", "--timezone=off", "--link-journal=no", f"--machine=lean-bench-{os.getpid()}-{name}",
            f"--directory={root}", *where, "--", *what]


def lxc_cgroup():
    return f"lean-bench-lxc-{os.getpid()}"


def _lxc_path(work):
    path = os.path.join(work.run_dir, "lxc-execute")
    os.makedirs(path, exist_ok=True)
    return path


def _lxc(work, runtime, name, root, what, data):
    """lxc-execute and not lxc-start: that ends with 0 whatever its program ended with. Its init is pid 1."""
    lines = {"lxc.uts.name": "bench", "lxc.rootfs.path": "dir:" + root, "lxc.net.0.type": "empty",
             "lxc.mount.auto": "proc:mixed sys:ro", "lxc.autodev": "1"}
    for place in ("monitor", "container", "monitor.pivot"):
        lines["lxc.cgroup.dir." + place] = f"{lxc_cgroup()}/{name}-{place.rpartition('.')[2]}"
    if data:
        lines.update({"lxc.rootfs.options": "ro", "lxc.mount.entry": f"{data} mnt none bind,rw 0 0",
                      "lxc.init.cwd": "/mnt"})
    config = os.path.join(work.path, f"lxc-{name}.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.writelines(f"{key} = {value}\n" for key, value in lines.items())
    return [runtime.path, "-P", _lxc_path(work), "-n", name, "-f", config, "--", *what]


_COMMANDS = {"bwrap": _bwrap, "systemd-nspawn": _nspawn, "lxc-execute": _lxc}


def command(work, runtime, name, root, what, data=None):
    """argv that runs `what` in `root`; with `data`, that is /mnt and the current directory, and the root read-only."""
    return _COMMANDS[runtime.name](work, runtime, name, root, what, data)


def stop(work, runtime, name):
    """For lxc-execute, whose container outlives it; the others' end with them."""
    if runtime.name == "lxc-execute":
        program = os.path.join(os.path.dirname(runtime.path), "lxc-stop")
        subprocess.run([program, "-k", "-P", _lxc_path(work), "-n", name], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=30, check=False)


class Traces:
    """What they'd leave on the machine, and the taking away of it."""

    def __init__(self, runtimes):
        self.names = [r.name for r in runtimes]
        self.made, self.covered = [], []
        self.nspawn = [path for path in self._nspawn_cgroups() if not os.path.exists(path)]
        for name in self.names:
            if name in STATES:
                self._cover(STATES[name])

    def _nspawn_cgroups(self):
        if "systemd-nspawn" not in self.names:
            return []
        own = machine.own_cgroups(("name=systemd", ""))
        return [os.path.join(path, name) for path in own for name in NSPAWN_CGROUPS]

    def _cover(self, path):
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            os.mkdir(path)
            self.made.append(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path], check=True)
        self.covered.append(path)

    def remove(self):
        for path in self.covered:
            subprocess.run(["umount", "-l", path], check=False)
        cgroups = [path for path in self.nspawn if os.path.isdir(path)]
        # LXC takes its directories relative to its caller's group, or not, as the hierarchy is.
        tops = {os.path.join(path, lxc_cgroup()) for path in machine.own_cgroups()}
        for top in sorted(tops | set(machine.cgroup_directories(lxc_cgroup()))):
            cgroups += [path.rstrip("/") for path in sorted(glob.glob(top + "/**/", recursive=True), reverse=True)]
        for path in [*cgroups, *reversed(self.made)]:
            try:
                os.rmdir(path)
            except OSError as e:
                print(f"lean-bench: {path}: {e.strerror}", file=sys.stderr)
