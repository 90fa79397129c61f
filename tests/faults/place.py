# SPDX-License-Identifier: Apache-2.0
"""A place of its own for cases: namespaces, a root directory, a container, and what is left of them.

In its pid namespace, whoever loses its parent comes to the first process; /run, /tmp and the mounts are its
own. Then "nothing is left" is a comparison and not a search.
"""
import ctypes
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

MS_REC, MS_SHARED, MNT_DETACH = 1 << 14, 1 << 20, 2
PATIENCE = 10  # seconds: for what others do on their own, as the kernel ending a process
libc = ctypes.CDLL(None, use_errno=True)


class Broken(Exception):
    """What is there without any fault does not work: no case can be made here."""


def mount(source, target, kind, flags=0, data=""):
    if libc.mount(source.encode(), str(target).encode(), kind.encode(), flags, data.encode()) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


def first_process():
    """Divides into the pid namespace's first process, which buries its dead, and the worker, who returns."""
    worker = os.fork()
    if worker == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == worker:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class Place:
    """Where a worker makes its cases."""

    def __init__(self, name, runtime, programs, criu):
        self.dir = Path("/run/faults")
        self.root = self.dir / "root"
        self.id = "c"
        self.cgroup = name
        files = {"lean-runtime": runtime, **programs}
        texts = {n: Path(f).read_bytes() for n, f in files.items()}
        # A mount goes when another program, outside, removes the directory that it is on.
        tops = ("/tmp/", "/run/", "/var/", "/mnt/", "/dev/shm/")
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            if line.split()[4].startswith(tops):
                libc.umount2(line.split()[4].encode(), MNT_DETACH)
        # As on a host: what would spread from a container's mounts is seen here.
        mount("", "/", "", MS_REC | MS_SHARED)
        for path in ("/run", "/tmp", "/dev/shm"):
            mount("tmpfs", path, "tmpfs", 0, "mode=755")
        self.dir.mkdir()
        for name, text in texts.items():
            (self.dir / name).write_bytes(text)
            (self.dir / name).chmod(0o755)
        if criu:
            (self.dir / "criu").symlink_to(criu)
        self.rootfs = self.dir / "rootfs"
        for d in "bin proc sys dev tmp run etc copy/a copy/b".split():
            (self.rootfs / d).mkdir(parents=True)
        self.go = self.rootfs / "tmp/go"
        shutil.copy(self.dir / "probe", self.rootfs / "bin/probe")
        (self.rootfs / "etc/passwd").write_text("root:x:0:0::/:/bin/probe\n")
        (self.rootfs / "copy/b/file").write_text("text\n")
        os.chdir(self.dir)
        os.environ.clear()
        os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C", FAKE_DIR=str(self.dir / "fake"))
        (self.dir / "fake").mkdir()
        self.hierarchies = [
            f[1] for f in map(str.split, open("/proc/mounts")) if f[2] in ("cgroup", "cgroup2")
        ]
        # criu connects to itself.
        with socket.socket() as s:
            fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
        self.spec()

    def spec(self):
        (self.dir / "spec").mkdir()
        subprocess.run([self.dir / "lean-runtime", "spec"], cwd=self.dir / "spec", check=True)
        self.config = json.loads((self.dir / "spec/config.json").read_text())
        self.config["process"]["terminal"] = False
        self.config["root"] = {"path": str(self.rootfs), "readonly": True}

    def bundle(self, name, edit):
        """A bundle with the configuration as edit changes it."""
        path = self.dir / "bundles" / name
        if not path.exists():
            path.mkdir(parents=True)
            config = json.loads(json.dumps(self.config))
            edit(config, self)
            (path / "config.json").write_text(json.dumps(config))
        return str(path)

    # ---- mounts of a case -------------------------------------------------------------------------

    def mount(self, source, target, kind, data):
        """It is there before the case, and is no trace of it."""
        mount(source, target, kind, 0, data)
        self.note_mounts(target)

    def unmount(self, target):
        """Whether there was one."""
        there = libc.umount2(str(target).encode(), MNT_DETACH) == 0
        self.note_mounts(target)
        return there

    def note_mounts(self, target):
        def of_it(line):
            return line.split()[4] == str(target)

        now = Path("/proc/self/mountinfo").read_text().splitlines()
        self.before["mount"] = [m for m in self.before["mount"] if not of_it(m)] + [m for m in now if of_it(m)]

    # ---- commands ----------------------------------------------------------------------------------

    def command(self, *words):
        """The words of a command line of the runtime."""
        return [str(self.dir / "lean-runtime"), "--root", str(self.root), *words]

    def do(self, words, out="out", err="err", seconds=3 * PATIENCE, beside=None, environ=None):
        """Runs that to its end: exit code, output, messages. `beside`: what is done meanwhile."""
        with open(self.dir / out, "wb") as o, open(self.dir / err, "wb") as e:
            # A keeper looks at each number that a descriptor can have.
            few = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))) if beside else None
            more = {**os.environ, **(environ or {})}
            p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=o, stderr=e, start_new_session=True, preexec_fn=few, env=more)
            if beside:
                beside(self, p)
            try:
                code = p.wait(seconds)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                return "hangs", "", ""
        return code, self.text(out), self.text(err)

    def rt(self, *words, **files):
        return self.do(self.command(*words), **files)

    def must(self, *words, **files):
        code, out, err = self.rt(*words, **files)
        if code != 0:
            raise Broken(f"{' '.join(words)}: {code}: {err.strip()}")
        return out

    def text(self, name):
        try:
            return (self.dir / name).read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def whole(self, name="out", others=frozenset()):
        """What a probe says into a file, when it has said all; in the same words in every place. `others`
        will say nothing."""
        end = time.monotonic() + PATIENCE
        alive = True
        while alive and not self.text(name).endswith("\nend\n") and time.monotonic() < end:
            alive = self.children() - others
            time.sleep(0.002)
        return self.same_words(self.text(name))

    def same_words(self, text):
        text = text.replace("/" + self.cgroup, "/CGROUP")
        return re.sub(r"lean-runtime\.[0-9a-f]{16}/[0-9a-f]+\.\d+", "SLOT", text)

    # ---- what is left ---------------------------------------------------------------------------------

    def children(self):
        """Everybody who has lost its parent, and our own."""
        found = [Path(f"/proc/{p}/task/{p}/children").read_text().split() for p in (1, os.getpid())]
        return set(found[0] + found[1]) - {str(os.getpid())}

    def nobody_but(self, keep, programs=False):
        """Who is left when some time has passed; those of `keep` may be, and `programs` of containers."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            left = self.children() - keep
            if programs:
                left = {p for p in left if self.name_of(p)[0] != "probe"}
            if not left:
                break
            time.sleep(0.002)
        return left

    @staticmethod
    def name_of(pid):
        """Its name and state."""
        try:
            text = Path("/proc", pid, "stat").read_text()
        except OSError:
            return "", ""
        name, _, rest = text.partition("(")[2].rpartition(")")
        return name, rest.split()[0]

    def cgroups(self):
        ours = (self.cgroup, "lean-runtime." + self.pool_name())
        return [f"{h}/{d}" for h in self.hierarchies for d in os.listdir(h) if d in ours or d.startswith(self.cgroup + "-")]

    def pool_name(self):
        """As the lean profile names its cgroups: by the place of the pool."""
        value = 0xCBF29CE484222325
        for c in f"{self.root}/.lean/m{os.stat('/proc/self/ns/mnt').st_ino}".encode():
            value = ((value ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        return f"{value:016x}"

    def tree(self):
        """Files that a case could leave or change, of the host and of the image."""
        found = []
        for top in ("/run", "/tmp", "/dev/shm", str(self.rootfs)):
            for path, dirs, files in os.walk(top):
                if path == str(self.dir):
                    dirs[:] = []
                    files = []
                found += [path] + [f"{path}/{f}" for f in files]
        null = os.stat("/dev/null")
        found.append(f"/dev/null {null.st_mode:o} {null.st_rdev} {null.st_uid}")
        found.append(f"host name {os.uname().nodename}")
        return found

    def snapshot(self):
        return {
            "mount": Path("/proc/self/mountinfo").read_text().splitlines(),
            "file": self.tree(),
            "cgroup": self.cgroups(),
            "record": sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*")),
        }

    def fresh(self):
        for old in (self.root, self.dir / "work"):
            shutil.rmtree(old, ignore_errors=True)
        for name in ("out", "err", "report", "more", "out2"):
            (self.dir / name).unlink(missing_ok=True)
        self.before = self.snapshot()

    def left(self, caches=(), besides=()):
        """What of a case is there that was not before it, but for those files: a list of words."""
        words = []
        words += ["process {} ({})".format(*self.name_of(p)) for p in self.nobody_but(set())]
        now = self.snapshot()
        for what, before in self.before.items():
            for item in [i for i in now[what] if i not in before]:
                if item not in besides and (what != "record" or item.split("/")[0] not in caches):
                    words.append(f"{what} {item}")
            for item in [i for i in before if i not in now[what]]:
                words.append(f"{what} is gone: {item}")
        return words
