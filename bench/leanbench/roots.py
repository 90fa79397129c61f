# SPDX-License-Identifier: Apache-2.0
"""Root file systems of the functions (bench/functions), made once and kept in `functions` of the cache directory.

    lock                    whoever builds holds it alone, whoever runs containers holds it with others
    base-KEY/               oci (an image with Python), base.json
    NAME-KEY/               rootfs (with /function: server.py, handler.py, packages), root.json
    images/                 what lean-rootfs has unpacked
    */checkouts/            links to the checkouts of lean-runtime that use it
    making-*/               what is being made: it is renamed when it is whole, and removed by the next that builds

KEY is a digest of what the thing is made of, so that a change makes another one; the old one goes then, unless another
checkout uses it."""
import contextlib
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import time

from leanbench import cache, configs, debian, machine
from leanbench.workspace import BENCH, Failure, progress

FUNCTIONS = os.path.join(BENCH, "functions")
MOUNTED = "/run/function"  # where whoever starts one mounts a directory of his own
NAMES = ("helloworld", "compression", "json", "pyaes", "chameleon", "image", "pagerank", "recognition")
PACKAGES = "python3.11-minimal,libpython3.11-stdlib,libstdc++6,libgcc-s1"
LEAVE_OUT = ("doc", "man", "locale", "info")
COMPILE = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]  # times do not survive an image
WHEELS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014")
ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/tmp",
               "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
               # One thread each: what runs at once are containers.
               "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"]
CHECKOUT = os.path.dirname(BENCH)


class Wrong(Failure):
    """It was made, but does not do what it should."""


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
        try:
            return json.load(f)
        except ValueError as e:
            raise Failure(f"{path} is damaged: remove {os.path.dirname(path)}, and it is made again") from e


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
    config = put("config.v1+json", {"architecture": machine.image_architecture(), "os": "linux", "config": {},
                                    "rootfs": {"type": "layers", "diff_ids": [top["digest"]]}})
    manifest = put("manifest.v1+json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                        "config": config, "layers": [top]})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": "base"}
    _write(os.path.join(directory, "index.json"), {"schemaVersion": 2, "manifests": [manifest]})
    _write(os.path.join(directory, "oci-layout"), {"imageLayoutVersion": "1.0.0"})


def _mmdebstrap(layer):
    """Debian's Python, unpacked and compiled; nothing in it is set up, and it has no devices."""
    python = PACKAGES.split("-", maxsplit=1)[0]
    compiled = f'--extract-hook=chroot "$1" {python} {" ".join(COMPILE)} /usr/lib/{python}'
    return debian.command(layer, PACKAGES, "--skip=output/dev", *debian.without(*LEAVE_OUT), compiled)


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

    def bundle(self, path, config, ident, args, source, group=None):
        """With source on MOUNTED, and, if it is said, a control group."""
        configs.write(config, path, ident, args)
        file = os.path.join(path, "config.json")
        document = _read(file)
        document["root"] = {"path": self.path, "readonly": True}
        document["process"]["env"] = self.env
        if group:
            document["linux"]["cgroupsPath"] = group
        document["mounts"].append({"destination": MOUNTED, "type": "bind", "source": source,
                                   "options": ["rbind", "rprivate", "nosuid", "nodev"]})
        _write(file, document)


def _use(path):
    """Says in there that this checkout uses it."""
    link = os.path.join(path, "checkouts", _digest(CHECKOUT.encode()))
    os.makedirs(os.path.dirname(link), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.symlink(CHECKOUT, link)


def _used_elsewhere(path):
    """By a checkout that still is where it was."""
    links = glob.glob(os.path.join(glob.escape(path), "checkouts", "*"))
    return any(os.path.exists(link) and os.readlink(link) != CHECKOUT for link in links)


class Cache:
    """The directory. Used by `with`: nobody takes a root away meanwhile."""

    def __init__(self, path, base=None):
        self.kept, self.base = cache.Directory(path, "functions"), base
        self.made_base = None

    def __enter__(self):
        self.kept.__enter__()
        return self

    def __exit__(self, *what):
        self.kept.__exit__(*what)

    @contextlib.contextmanager
    def _new(self, name, key):
        """A directory that takes its place in the cache if all goes well, and the place of those with other keys."""
        with self.kept.making() as making:
            made = os.path.join(making, "new")
            os.mkdir(made)
            yield made
            for number, old in enumerate(glob.glob(self.kept.member(name + "-*"))):
                if old == self.kept.member(f"{name}-{key}") or not _used_elsewhere(old):
                    os.rename(old, os.path.join(making, str(number)))
            os.rename(made, self.kept.member(f"{name}-{key}"))

    def get(self, name, again=False):
        """A Root; Failure, if it cannot be made here, and Wrong, if it is made, but gives a wrong answer."""
        folder = os.path.join(FUNCTIONS, name)
        with open(os.path.join(FUNCTIONS, "server.py"), "rb") as f:
            server = f.read()
        parts = [server, *(p for file, data in _files(folder) for p in (file.encode(), data)),
                 *map(str.encode, ENVIRONMENT), json.dumps([COMPILE, WHEELS]).encode()]
        base, base_key = self._base()
        path = self.kept.member(f"{name}-{_digest(base_key.encode(), *parts)}")
        built = again or not os.path.isdir(path)
        if built:
            with self.kept.alone():
                if again or not os.path.isdir(path):  # another one may have made it while we waited
                    self._build(name, folder, base, path)
        _use(path)
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
        raw = cache.step(f"the base {self.base}", ["skopeo", "inspect", "--raw", self.base])
        return self.base, _digest(raw.encode())

    def _debian_base(self):
        key = _digest(json.dumps([*_mmdebstrap("layer.tar"), platform.machine()]).encode())
        path = self.kept.member("base-" + key)
        if not os.path.isdir(path):
            with self.kept.alone():
                if not os.path.isdir(path):
                    with self._new("base", key) as made:
                        self._debian(made)
        _use(path)
        return f"oci:{path}/oci:base", key + _read(os.path.join(path, "base.json"))["layer"]

    @staticmethod
    def _debian(made):
        progress(f"functions: the base: {PACKAGES} of Debian {debian.SUITE} by mmdebstrap", True)
        began, layer = time.monotonic(), os.path.join(made, "layer.tar")
        debian.unpack("the base", _mmdebstrap(layer), TMPDIR=made, SOURCE_DATE_EPOCH="1700000000")
        about = {"suite": debian.SUITE, "packages": PACKAGES, "bytes": os.path.getsize(layer)}
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
            cache.step("the root", [tool, "from", base, "-o", root, "--only-export", "--quiet", "--cache-dir",
                                    self.kept.member("images")], TMPDIR=tmp)
            python = _python(root)
            top = os.path.join(root, "function")
            _make(root, "/function")
            _make(root, MOUNTED)
            shutil.copy(os.path.join(FUNCTIONS, "server.py"), top)
            shutil.copy(os.path.join(folder, "handler.py"), top)
            self._packages(name, folder, top, python, tmp)
            cache.step("compiling", ["chroot", root, python, *COMPILE, "/function"])
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
        cache.step("packages",
                   [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--root-user-action", "ignore", "--retries", "2", "--no-cache-dir", "--no-compile", "--no-deps",
                    "--require-hashes", "--implementation", "cp", "--python-version", version, *wheels, "--target",
                    os.path.join(top, "packages"), "-r", requirements], TMPDIR=tmp)

    @staticmethod
    def _try(name, folder, root, python):
        """The answer, if it is the right one."""
        progress(f"functions: {name}: a first answer", True)
        want = json.dumps(_read(os.path.join(folder, "expected.json")), sort_keys=True, separators=(",", ":"))
        said = cache.step("a first answer",
                          ["env", "-i", *ENVIRONMENT, "chroot", root, python, "/function/server.py", "--once"])
        if said.strip() != want:
            raise Wrong(f"a first answer: {said.strip()[:200]} instead of {want[:200]}")
        return want


def _make(root, path):
    """A directory in the root. What the base has there may be a link, which would lead to the host's."""
    above = os.path.realpath(root) + os.path.dirname(path)
    if os.path.realpath(above).rstrip("/") != above.rstrip("/"):
        raise Failure(f"the base has a link on the way to {path}")
    try:
        os.mkdir(root + path)
    except OSError as e:
        raise Failure(f"the base has no place for {path}: {e.strerror}") from e


def _python(root):
    """The path of its Python, with the version, as it is called in the root."""
    for directory in ("usr/local/bin", "usr/bin"):
        for path in sorted(glob.glob(os.path.join(root, directory, "python3.*"))):
            if re.search(r"/python3\.\d+$", path):
                return path[len(root):]
    raise Failure("the base has no python3.N in /usr/bin or /usr/local/bin")
