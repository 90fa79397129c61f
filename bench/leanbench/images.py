# SPDX-License-Identifier: Apache-2.0
"""The images of `lifecycle`: a base, and below /srv in layers of their own what a test reads. The data is the same on
every machine, the bases are made of what this one and Debian have. What takes long to make is kept in a cache: Debian's
base, and the data. An image is written in the form of `docker save`, which all managers load."""
import hashlib
import io
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import tarfile

from leanbench import cache, debian, machine
from leanbench.workspace import Failure, progress

SHELL = ["/bin/sh", "-c", "while :; do sleep 3600; done"]  # the first process of every container
BASES = ("busybox", "debian")
DEBIAN = ("sqlite3", "lighttpd", "iputils-ping")
VERSION = 1  # of the data: other data, another number
PAGE = "It answers.\n"  # the page of the web server
# As large as the thesis' five, in bytes; tables with names as those of TPC-C.
DATABASES = {"150k": 151_600, "540k": 536_600, "2.6m": 2_600_000, "12m": 11_900_000, "112m": 111_600_000}
TABLES = ("warehouse", "district", "customer", "history", "neworder", "orders", "orderline", "item", "stock")
FILES = {str(n): n for n in (10, 100, 1000, 10_000, 100_000)}
FILE_BYTES = 4096
ALPHANUMERIC = bytes(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[i % 62] for i in range(256))
LIGHTTPD = 'server.document-root = "/srv/www"\nserver.port = 80\nindex-file.names = ( "index.html" )\n'


_problems = {}  # of a base: why it isn't there


def _debian_name():
    return f"base-debian-{debian.SUITE}-{VERSION}.tar"


def prepare_debian(chosen):
    """mmdebstrap needs the network, which the sandbox doesn't have."""
    with cache.Directory(chosen) as kept:
        if os.path.exists(kept.member(_debian_name())):
            return
        with kept.alone(), kept.making() as made:
            if os.path.exists(kept.member(_debian_name())):
                return
            progress("lifecycle: Debian's base by mmdebstrap, once", True)
            path = os.path.join(made, "base.tar")
            options = ("--format=tar", *debian.without("doc", "locale", "man"))
            try:
                debian.unpack("the base", debian.command(path, ",".join(DEBIAN), *options, variant="essential"),
                              TMPDIR=made)
                os.rename(path, kept.member(_debian_name()))
            except Failure as e:
                _problems["debian"] = str(e)


def _libraries(program):
    """What ld.so has to find for it."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", out)


def _add(tar, name, *, data=None, link=None, mode=0o755):
    """One member, the same whenever and by whomever it is made; a directory if it is neither file nor link."""
    info = tarfile.TarInfo(name)
    info.mode = mode
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
        tar.addfile(info)
    elif data is not None:
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    else:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)


def _add_host_file(tar, path, name=None):
    with open(path, "rb") as f:
        _add(tar, (name or path).lstrip("/"), data=f.read())


def _busybox():
    """A static one: it has no libraries to bring along."""
    for path in ("/bin/busybox", "/usr/bin/busybox", shutil.which("busybox")):
        if path and os.path.exists(path) and not _libraries(path):
            return path
    raise Failure("busybox-static is not installed")


def _write_busybox(path):
    """busybox with all its names, and the host's sqlite3 with its libraries if there is one."""
    busybox = _busybox()
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    sqlite = shutil.which("sqlite3")
    with tarfile.open(path, "w") as tar:
        for name in ("bin", "dev", "etc", "lib", "proc", "root", "run", "srv", "sys", "usr", "usr/bin", "var"):
            _add(tar, name)
        _add(tar, "tmp", mode=0o1777)
        _add(tar, "etc/passwd", data=b"root:x:0:0:root:/root:/bin/sh\n", mode=0o644)
        _add(tar, "etc/group", data=b"root:x:0:\n", mode=0o644)
        for name in ("resolv.conf", "hosts", "hostname"):
            _add(tar, "etc/" + name, data=b"", mode=0o644)
        _add_host_file(tar, busybox, "bin/busybox")
        for name in sorted(set(names) - {"busybox"}):
            _add(tar, "bin/" + name, link="busybox")
        if sqlite:
            _add_host_file(tar, sqlite, "usr/bin/sqlite3")
            for library in _libraries(sqlite):
                _add_host_file(tar, library)


def _database(path, size):
    """Nine tables, grown in turn until the file has that size."""
    rng = random.Random(size)
    letters = rng.randbytes(1 << 16).translate(ALPHANUMERIC).decode()
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 4096")
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, quantity INTEGER, name TEXT, data TEXT)")
    batch, number = max(4, size // 400_000), 0
    while db.execute("PRAGMA page_count").fetchone()[0] * 4096 < size - batch * 250:
        rows = []
        for _ in range(batch):
            number += 1
            at = rng.randrange(len(letters) - 256)
            rows.append((number, rng.randrange(100_000), letters[at:at + 16], letters[at + 16:at + 216]))
        db.executemany(f"INSERT INTO {TABLES[number // batch % len(TABLES)]} VALUES (?, ?, ?, ?)", rows)
    db.commit()
    shown, counts = hashlib.sha256(), []
    for table in TABLES:
        rows = 0
        for row in db.execute(f"SELECT * FROM {table}"):
            shown.update(("|".join(map(str, row)) + "\n").encode())
            rows += 1
        counts.append(rows)
    db.close()
    return {"bytes": os.path.getsize(path), "shown_sha256": shown.hexdigest(), "rows": counts}


def _files(count):
    """(name, contents), a thousand a directory, none as another."""
    rng = random.Random(count)
    for i in range(count):
        yield f"{i // 1000:03}/{i % 1000:03}", rng.randbytes(FILE_BYTES).translate(ALPHANUMERIC)


def _file_facts(count):
    total = sum(sum(struct.unpack(f"<{FILE_BYTES // 8}Q", data)) for _, data in _files(count))
    return {"shown": f"{count} {count * FILE_BYTES} {total % (1 << 64)}\n"}


def _write_files(tar, prefix, count):
    for name, data in _files(count):
        if name.endswith("/000"):
            _add(tar, prefix + os.path.dirname(name))
        _add(tar, prefix + name, data=data, mode=0o644)


def _write_layer(path, scratch, kind, size):
    """kind: sqlite, files or untar. The facts say what a test has to see of it."""
    with tarfile.open(path, "w") as tar:
        _add(tar, "srv")
        if kind == "sqlite":
            database = os.path.join(scratch, "data.db")
            facts = _database(database, DATABASES[size])
            info = tarfile.TarInfo("srv/data.db")
            info.size = facts["bytes"]
            with open(database, "rb") as f:
                tar.addfile(info, f)
            return facts
        if kind == "files":
            _add(tar, "srv/files")
            _write_files(tar, "srv/files/", FILES[size])
        else:
            archive = os.path.join(scratch, "files.tar")
            with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as inner:
                _write_files(inner, "", FILES[size])
            info = tarfile.TarInfo("srv/files.tar")
            info.size = os.path.getsize(archive)
            with open(archive, "rb") as f:
                tar.addfile(info, f)
            _add(tar, "srv/out")
    return _file_facts(FILES[size])


def _write_web(path):
    with tarfile.open(path, "w") as tar:
        for name in ("srv", "srv/www"):
            _add(tar, name)
        _add(tar, "srv/www/index.html", data=PAGE.encode(), mode=0o644)
        _add(tar, "srv/lighttpd.conf", data=LIGHTTPD.encode(), mode=0o644)


class Images:
    """data is None, `web`, or KIND-SIZE as sqlite-150k; an image is a base with that data."""

    def __init__(self, work, chosen):
        self.chosen, self.path = chosen, os.path.join(work.path, "images")
        os.mkdir(self.path)
        self.tools = os.path.join(self.path, "tools.tar")
        work.compile("readfiles", "-O2", "-static")
        with tarfile.open(self.tools, "w") as tar:
            _add(tar, "srv")
            _add_host_file(tar, work.program("readfiles"), "srv/readfiles")

    def base_problem(self, base):
        if base == "debian" and not os.path.exists(self._debian()):
            return _problems.get("debian", "there is no Debian base")
        return None

    def _debian(self):
        return os.path.join(cache.directory(self.chosen), _debian_name())

    def has_sqlite(self, base):
        return base == "debian" or bool(shutil.which("sqlite3"))

    def _base(self, base):
        if base == "debian":
            return self._debian()
        path = os.path.join(self.path, "busybox.tar")
        if not os.path.exists(path):
            _write_busybox(path)
        return path

    def _data(self, data):
        """(layer, facts), from the cache if they are in there."""
        if data == "web":
            path = os.path.join(self.path, "web.tar")
            if not os.path.exists(path):
                _write_web(path)
            return path, {}
        with cache.Directory(self.chosen) as kept:
            layer, facts = (kept.member(f"{data}-{VERSION}" + end) for end in (".tar", ".json"))
            found = self._facts(layer, facts)
            if not found:
                with kept.alone(), kept.making() as made:
                    found = self._facts(layer, facts)  # another one may have made it while we waited
                    if not found:
                        self._make(data, made, layer, facts)
                        found = self._facts(layer, facts)
        return layer, found

    @staticmethod
    def _facts(layer, facts):
        """What the layer has, by the file that is put there last; None if it is not there, or damaged."""
        try:
            with open(facts, encoding="utf-8") as f:
                found = json.load(f)
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) and os.path.exists(layer) else None

    @staticmethod
    def _make(data, made, layer, facts):
        progress(f"lifecycle: {data} is made, once", True)
        new_layer, new_facts = os.path.join(made, "layer.tar"), os.path.join(made, "facts.json")
        with open(new_facts, "w", encoding="utf-8") as f:
            json.dump(_write_layer(new_layer, made, *data.split("-")), f)
        os.replace(new_layer, layer)
        os.replace(new_facts, facts)

    def facts(self, data):
        return self._data(data)[1] if data else {}

    def layers(self, base, data):
        """Tar files, the lowest first."""
        found = [self._base(base)]
        if data and data.startswith(("files-", "untar-")):
            found.append(self.tools)
        if data:
            found.append(self._data(data)[0])
        return found

    @staticmethod
    def name(base, data):
        return f"lean-bench.local/{data or 'empty'}:{base}"

    def archive(self, base, data):
        """A file as `docker save` writes; the caller removes it."""
        path = os.path.join(self.path, "image.tar")
        digests, names = [], []
        with tarfile.open(path, "w") as tar:
            for i, layer in enumerate(self.layers(base, data)):
                with open(layer, "rb") as f:
                    digests.append("sha256:" + hashlib.file_digest(f, "sha256").hexdigest())
                names.append(f"layer{i}.tar")
                tar.add(layer, names[-1])
            config = {"architecture": machine.image_architecture(), "os": "linux",
                      "rootfs": {"type": "layers", "diff_ids": digests},
                      "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                                 "Cmd": SHELL}}
            manifest = [{"Config": "config.json", "RepoTags": [self.name(base, data)], "Layers": names}]
            _add(tar, "config.json", data=json.dumps(config).encode(), mode=0o644)
            _add(tar, "manifest.json", data=json.dumps(manifest).encode(), mode=0o644)
        return path
