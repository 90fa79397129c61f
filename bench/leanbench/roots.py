# SPDX-License-Identifier: Apache-2.0
"""Root file systems of the functions (bench/functions), made once and kept in `functions` of the cache directory.

    lock                    whoever builds holds it alone, whoever runs containers holds it with others
    base-KEY/               oci (an image with Python), base.json
    NAME-KEY/               rootfs (with /function: server.py, handler.py, packages), root.json
    images/                 what lean-rootfs has unpacked
    new-*/                  what is being made: it is renamed when it is whole, and removed by the next that builds

KEY is a digest of what the thing is made of, so that a change makes another one; the old one goes then."""
import contextlib
import ctypes
import fcntl
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from leanbench.workspace import BENCH, Failure, progress

FUNCTIONS = os.path.join(BENCH, "functions")
NAMES = ("helloworld", "compression", "json", "pyaes", "chameleon", "image", "pagerank", "recognition")
SUITE = "bookworm"
PACKAGES = "python3.11-minimal,libpython3.11-stdlib,libstdc++6,libgcc-s1"
LEAVE_OUT = ("doc", "man", "locale", "info")
COMPILE = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]  # times do not survive an image
WHEELS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014")
ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/tmp",
               "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
               # One thread each: what runs at once are containers.
               "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"]
STEP_S = 1800
_LIBC = ctypes.CDLL(None)


class Wrong(Failure):
    """It was made, but does not do what it should."""


def default_cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lean-bench")


def _die_with_us():
    _LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _step(what, argv, **env):
    """Runs a program whose processes and mounts end with it, or with us. Its standard output."""
    if not shutil.which(argv[0]):
        raise Failure(f"{what}: {argv[0]} is not installed")
    inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--", *argv]
    try:
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=STEP_S, check=False, env={**os.environ, **env}, start_new_session=True,
                              preexec_fn=_die_with_us)
    except subprocess.TimeoutExpired as e:
        raise Failure(f"{what}: {argv[0]} takes more than {STEP_S} s") from e
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in said if re.match(r"(E:|ERROR:|error:|.*Error:)", line)]
        errors = errors or said or ["it does not say why"]
        raise Failure(f"{what}: {os.path.basename(argv[0])} failed ({done.returncode}): {errors[0].strip()[:300]}")
    return done.stdout


def _digest(*parts):
    d = hashlib.sha256()
    for part in parts:
        d.update(len(part).to_bytes(8, "big") + part)
    return d.hexdigest()[:16]


def _files(directory):
    """(path in it, bytes) of all files."""
    for top, names, files in os.walk(directory):
        names[:] = sorted(n for n in names if n != "__pycache__")
        for name in sorted(files):
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                yield os.path.relpath(path, directory), f.read()


def _megabytes(directory):
    blocks = 0
    for top, _, files in os.walk(directory):
        blocks += sum(os.lstat(os.path.join(top, name)).st_blocks for name in files)
    return round(blocks * 512 / 1e6, 1)


def _write(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def _read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def _layout(directory, layer):
    """An OCI layout, tagged `base`, with one layer: the archive, which is moved into it."""
    blobs = os.path.join(directory, "blobs/sha256")
    os.makedirs(blobs)

    def put(kind, document):
        data = json.dumps(document).encode()
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(blobs, digest), "wb") as f:
            f.write(data)
        return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(data)}

    with open(layer, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
    top = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "sha256:" + digest,
           "size": os.path.getsize(layer)}
    os.rename(layer, os.path.join(blobs, digest))
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = put("config.v1+json", {"architecture": machine, "os": "linux", "config": {},
                                    "rootfs": {"type": "layers", "diff_ids": [top["digest"]]}})
    manifest = put("manifest.v1+json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                        "config": config, "layers": [top]})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "base"}
    _write(os.path.join(directory, "index.json"), {"schemaVersion": 2, "manifests": [manifest]})
    _write(os.path.join(directory, "oci-layout"), {"imageLayoutVersion": "1.0.0"})


def _mmdebstrap(layer):
    """Debian's Python, unpacked and compiled; nothing in it is set up, and it has no devices."""
    python = PACKAGES.split("-", maxsplit=1)[0]
    return ["mmdebstrap", "--quiet", "--variant=extract", "--include=" + PACKAGES, "--skip=output/dev",
            *(f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in LEAVE_OUT),
            f'--extract-hook=chroot "$1" {python} {" ".join(COMPILE)} /usr/lib/{python}', SUITE, layer]


class Root:
    """A function that is ready to be started."""

    def __init__(self, name, path, built):
        self.name, self.built = name, built
        self.path = os.path.join(path, "rootfs")
        self.about = _read(os.path.join(path, "root.json"))
        self.args = [self.about["python"], "/function/server.py"]
        self.env = ENVIRONMENT
        # What follows "result": in every right answer, without spaces.
        self.answer = self.about["answer"]


class Cache:
    """The directory. Used by `with`: nobody takes a root away meanwhile."""

    def __init__(self, path, base=None):
        self.path, self.base = os.path.join(os.path.abspath(path or default_cache()), "functions"), base
        self.made_base = None

    def __enter__(self):
        os.makedirs(self.path, 0o700, exist_ok=True)
        if os.stat(self.path).st_uid != os.geteuid():
            raise Failure(f"{self.path} belongs to somebody else: choose another --cache")
        self.lock = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_SH)
        return self

    def __exit__(self, *_):
        os.close(self.lock)

    @contextlib.contextmanager
    def _alone(self):
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"functions: waiting for another lean-bench, which uses {self.path}", True)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            for path in glob.glob(os.path.join(self.path, "new-*")):
                subprocess.run(["rm", "-rf", "--one-file-system", path], check=True)
            yield
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_SH)

    @contextlib.contextmanager
    def _new(self, name, key):
        """A directory that takes its place in the cache if all goes well, and the place of those with other keys."""
        made = tempfile.mkdtemp(prefix="new-", dir=self.path)
        try:
            yield made
            os.chmod(made, 0o755)
            for old in glob.glob(os.path.join(self.path, name + "-*")):
                gone = os.path.join(self.path, "new-old-" + os.path.basename(old))
                os.rename(old, gone)
                subprocess.run(["rm", "-rf", "--one-file-system", gone], check=True)
            os.rename(made, os.path.join(self.path, f"{name}-{key}"))
        finally:
            subprocess.run(["rm", "-rf", "--one-file-system", made], check=False)

    def get(self, name, again=False):
        """A Root; Failure, if it cannot be made here, and Wrong, if it is made, but gives a wrong answer."""
        folder = os.path.join(FUNCTIONS, name)
        with open(os.path.join(FUNCTIONS, "server.py"), "rb") as f:
            server = f.read()
        parts = [server, *(p for file, data in _files(folder) for p in (file.encode(), data)),
                 *map(str.encode, ENVIRONMENT), json.dumps([COMPILE, WHEELS]).encode()]
        base, base_key = self._base()
        path = os.path.join(self.path, f"{name}-{_digest(base_key.encode(), *parts)}")
        built = again or not os.path.isdir(path)
        if built:
            with self._alone():
                if again or not os.path.isdir(path):  # another one may have made it while we waited
                    self._build(name, folder, base, path)
        return Root(name, path, built)

    def _base(self):
        """(image for lean-rootfs, key); made if it is not there. A failure is remembered: all have the same."""
        if self.made_base is None:
            try:
                self.made_base = self._foreign_base() if self.base else self._debian_base()
            except Failure as e:
                self.made_base = e
        if isinstance(self.made_base, Failure):
            raise self.made_base
        return self.made_base

    def _foreign_base(self):
        raw = _step(f"the base {self.base}", ["skopeo", "inspect", "--raw", self.base])
        return self.base, _digest(raw.encode())

    def _debian_base(self):
        key = _digest(json.dumps([*_mmdebstrap("layer.tar"), platform.machine()]).encode())
        path = os.path.join(self.path, "base-" + key)
        if not os.path.isdir(path):
            with self._alone():
                if not os.path.isdir(path):
                    with self._new("base", key) as made:
                        self._debian(made)
        return f"oci:{path}/oci:base", key + _read(os.path.join(path, "base.json"))["layer"]

    @staticmethod
    def _debian(made):
        progress(f"functions: the base: {PACKAGES} of Debian {SUITE} by mmdebstrap", True)
        began, layer = time.monotonic(), os.path.join(made, "layer.tar")
        _step("the base", _mmdebstrap(layer), TMPDIR=made, SOURCE_DATE_EPOCH="1700000000")
        about = {"suite": SUITE, "packages": PACKAGES, "bytes": os.path.getsize(layer)}
        with open(layer, "rb") as f:
            about["layer"] = hashlib.file_digest(f, "sha256").hexdigest()
        _layout(os.path.join(made, "oci"), layer)
        about["seconds"] = round(time.monotonic() - began, 1)
        _write(os.path.join(made, "base.json"), about)

    def _build(self, name, folder, base, path):
        began = time.monotonic()
        key = path.rpartition("-")[2]
        with self._new(name, key) as made:
            root, tmp = os.path.join(made, "rootfs"), os.path.join(made, "tmp")
            os.mkdir(tmp, 0o700)
            progress(f"functions: {name}: the root by lean-rootfs", True)
            tool = os.path.join(os.path.dirname(BENCH), "contrib/lean-rootfs/lean-rootfs")
            tool = tool if os.path.exists(tool) else "lean-rootfs"
            _step("the root", [tool, "from", base, "-o", root, "--only-export", "--quiet", "--cache-dir",
                               os.path.join(self.path, "images")], TMPDIR=tmp)
            python = _python(root)
            top = os.path.join(root, "function")
            os.mkdir(top)
            os.mkdir(os.path.join(root, "run/function"))
            shutil.copy(os.path.join(FUNCTIONS, "server.py"), top)
            shutil.copy(os.path.join(folder, "handler.py"), top)
            self._packages(name, folder, top, python, tmp)
            _step("compiling", ["chroot", root, python, *COMPILE, "/function"])
            shutil.rmtree(tmp)
            answer = self._try(name, folder, root, python)
            _write(os.path.join(made, "root.json"),
                   {"function": name, "python": python, "answer": answer, "base": base,
                    "seconds": round(time.monotonic() - began, 1), "root_mb": _megabytes(root),
                    "packages_mb": _megabytes(os.path.join(top, "packages")),
                    "packages": sorted(os.path.basename(p)[:-len(".dist-info")]
                                       for p in glob.glob(os.path.join(top, "packages/*.dist-info")))})

    @staticmethod
    def _packages(name, folder, top, python, tmp):
        """By pip, exactly those of requirements.txt, for the base's Python."""
        requirements = os.path.join(folder, "requirements.txt")
        with open(requirements, encoding="utf-8") as f:
            if not any(line.split("#")[0].strip() for line in f):
                return
        progress(f"functions: {name}: packages by pip", True)
        version = re.search(r"3\.\d+$", python).group()
        wheels = [word for kind in WHEELS for word in ("--platform", f"{kind}_{platform.machine()}")]
        _step("packages", [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                           "--root-user-action", "ignore", "--retries", "2", "--no-cache-dir", "--no-compile",
                           "--no-deps", "--require-hashes", "--implementation", "cp", "--python-version", version,
                           *wheels, "--target", os.path.join(top, "packages"), "-r", requirements], TMPDIR=tmp)

    @staticmethod
    def _try(name, folder, root, python):
        """The answer, if it is the right one."""
        progress(f"functions: {name}: a first answer", True)
        want = json.dumps(_read(os.path.join(folder, "expected.json")), sort_keys=True, separators=(",", ":"))
        said = _step("a first answer",
                     ["env", "-i", *ENVIRONMENT, "chroot", root, python, "/function/server.py", "--once"])
        if said.strip() != want:
            raise Wrong(f"a first answer: {said.strip()[:200]} instead of {want[:200]}")
        return want


def _python(root):
    """The path of its Python, with the version, as it is called in the root."""
    for directory in ("usr/local/bin", "usr/bin"):
        for path in sorted(glob.glob(os.path.join(root, directory, "python3.*"))):
            if re.search(r"/python3\.\d+$", path):
                return path[len(root):]
    raise Failure("the base has no python3.N in /usr/bin or /usr/local/bin")
