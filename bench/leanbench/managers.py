# SPDX-License-Identifier: Apache-2.0
"""The container managers of `lifecycle`: by hand, Docker, Podman (as root and as an ordinary user), containerd by ctr.
Each says by which commands a container is created, started, entered and removed; daemons and data are its own."""
import json
import os
import shutil
import stat
import subprocess
import time

from leanbench import configs, sandbox
from leanbench.images import SHELL

MEMORY = 1 << 30
START_S = 60
UID = 61236
PORT = 80


class Unavailable(Exception):
    """Why something can't be measured here."""


class Life:
    """The commands of one container's life; the first three are timed. address: where its web server answers."""

    def __init__(self, create, start, enter, remove, address=None):
        self.create, self.start, self.enter, self.remove, self.address = create, start, enter, remove, address


def need(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if not path:
        raise Unavailable(f"{name} is not installed")
    return path


def call(*argv, timeout=600):
    """Something that isn't timed and has to work."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{argv[0]}: took more than {timeout} s") from None
    if done.returncode:
        raise Unavailable(f"{os.path.basename(argv[0])}: " + " ".join(done.stdout.strip().splitlines()[-1:]))
    return done.stdout


def _unmount_below(directory):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        below = [line.split()[1] for line in f if line.split()[1].startswith(directory)]
    for path in reversed(below):
        subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)


class Network:
    """Of the sandbox: a peer to ping, behind a router that is the sandbox itself, and veth pairs to it for containers
    whose manager makes none."""
    PEER = "198.51.100.2"

    def __init__(self, work):
        self.path, self.ip, self.ready = work.path, need("ip"), False

    def prepare(self):
        """Also puts right what Docker does to forwarding."""
        if not self.ready:
            for words in ("netns add peer", "link add peer0 type veth peer name eth0 netns peer",
                          "addr add 198.51.100.1/24 dev peer0", "link set peer0 up", "-n peer link set lo up",
                          f"-n peer addr add {self.PEER}/24 dev eth0", "-n peer link set eth0 up",
                          "-n peer route add default via 198.51.100.1"):
                call(self.ip, *words.split())
            for key, value in (("ip_forward", "1"), ("ping_group_range", "0 2147483647")):
                with open("/proc/sys/net/ipv4/" + key, "w", encoding="ascii") as f:
                    f.write(value)
        self.ready = True

    def forward(self):
        if shutil.which("iptables"):
            subprocess.run(["iptables", "-P", "FORWARD", "ACCEPT"], stderr=subprocess.DEVNULL, check=False)

    def veth(self, number):
        """(commands that make it, its namespace's path, the address in there, commands that remove it)"""
        name, base = f"lb{number}", number * 4 % 65536
        ours, theirs = (f"10.77.{base >> 8}.{(base & 255) + i}" for i in (1, 2))
        outside, inside = (os.path.join(self.path, f"veth-{side}-{number}") for side in ("outside", "inside"))
        with open(outside, "w", encoding="ascii") as f:
            f.write(f"netns add {name}\nlink add {name} type veth peer name eth0 netns {name}\n"
                    f"addr add {ours}/30 dev {name}\nlink set {name} up\n")
        with open(inside, "w", encoding="ascii") as f:
            f.write(f"addr add {theirs}/30 dev eth0\nlink set eth0 up\nlink set lo up\nroute add default via {ours}\n")
        return ([[self.ip, "-batch", outside], [self.ip, "-n", name, "-batch", inside]], "/run/netns/" + name, theirs,
                [[self.ip, "netns", "del", name]])


class Manager:
    name, rootless, limits = "", False, True
    storages = {}  # our name: the manager's

    def __init__(self, work, images, network):
        self.work, self.images, self.network = work, images, network
        self.storage = self.directory = None
        self.loaded = set()
        self.daemon = None
        self.run = "/run/bench-" + self.name  # the sandbox's; paths of sockets have to be short

    def program(self):
        """(name, path) of what has a version, or None; Unavailable if it isn't there."""
        return None

    def check_storage(self, storage):
        if storage not in self.storages:
            raise Unavailable(f"no storage of {self.name}'s")
        if storage == "fuse-overlayfs":
            need("fuse-overlayfs")
            if not os.path.exists("/dev/fuse"):
                raise Unavailable("there is no /dev/fuse")
        if storage == "btrfs":
            need("mkfs.btrfs")
            with open("/proc/filesystems", encoding="ascii") as f:
                if "btrfs" not in f.read().split():
                    raise Unavailable("this kernel has no btrfs")

    def begin(self, storage):
        """With an empty data directory, on the file system that the storage needs."""
        self.storage, self.loaded = storage, set()
        self.directory = os.path.join(self.work.path, f"{self.name}-{storage}")
        os.mkdir(self.directory)
        os.makedirs(self.run)
        if storage == "btrfs":
            image = self.directory + ".img"
            with open(image, "wb") as f:
                f.truncate(16 << 30)
            call(need("mkfs.btrfs"), "-q", image)
            call("mount", "-o", "loop", image, self.directory)
        os.chmod(self.directory, 0o711)
        self.backing = call("stat", "-f", "-c", "%T", self.directory).strip()
        self._begin()

    def end(self):
        if self.daemon:
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        self.daemon = None
        self.network.forward()
        if self.directory:
            for path in (self.run, self.directory):
                _unmount_below(path)
            subprocess.run(["rm", "-rf", "--one-file-system", self.run, self.directory, self.directory + ".img"],
                           check=False)
        self.storage = self.directory = None

    def load(self, base, data):
        if (base, data) not in self.loaded:
            self._load(base, data)
        self.loaded.add((base, data))

    def _begin(self):
        pass

    def _load(self, base, data):
        path = self.images.archive(base, data)
        try:
            self._load_archive(path, self.images.name(base, data))
        finally:
            os.unlink(path)

    @staticmethod
    def _answers(argv):
        try:
            return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=START_S, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def _start_daemon(self, argv, answers, **more):
        name = self.program()[0]
        log = os.path.join(self.directory, "log")
        with open(log, "w", encoding="utf-8") as f:
            self.daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, **more)
        end = time.monotonic() + START_S
        while not self._answers(answers):
            if self.daemon.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as f:
                    last = " ".join(f.read().strip().splitlines()[-1:])
                raise Unavailable(f"{name} does not start: {last}")
            time.sleep(0.1)


class ByHand(Manager):
    """The runtime alone, with what a manager does besides: the root file system, and a network where one is needed."""
    name = "none"
    storages = {"overlay": "overlay", "vfs": "cp", "btrfs": "snapshot", "fuse-overlayfs": "fuse-overlayfs",
                "shared": "the image itself, read-only"}

    def _root(self, base, data):
        return os.path.join(self.directory, f"image-{base}-{data or 'empty'}")

    def _load(self, base, data):
        whole = self.storage in ("vfs", "btrfs", "shared")
        path = self._root(base, data)
        if self.storage == "btrfs":
            call("btrfs", "-q", "subvolume", "create", path)
        else:
            os.mkdir(path)
        for i, layer in enumerate(self.images.layers(base, data)):
            directory = path if whole else os.path.join(path, str(i))
            os.makedirs(directory, exist_ok=True)
            call("tar", "-xpf", layer, "--numeric-owner", "-C", directory)

    def _storage(self, bundle, image):
        """(root, commands that make it, commands that remove it)"""
        root = os.path.join(bundle, "rootfs")
        if self.storage == "shared":
            return image, [], []
        if self.storage == "vfs":
            return root, [[need("cp"), "-a", image, root]], []
        if self.storage == "btrfs":
            return (root, [[need("btrfs"), "-q", "subvolume", "snapshot", image, root]],
                    [[need("btrfs"), "-q", "subvolume", "delete", root]])
        for name in ("rootfs", "upper", "work"):
            os.mkdir(os.path.join(bundle, name))
        lower = ":".join(os.path.join(image, n) for n in sorted(os.listdir(image), key=int, reverse=True))
        options = f"lowerdir={lower},upperdir={bundle}/upper,workdir={bundle}/work"
        if self.storage == "overlay":
            return root, [[need("mount"), "-t", "overlay", "-o", options, "overlay", root]], [[need("umount"), root]]
        return root, [[need("fuse-overlayfs"), "-o", options, root]], [[need("umount"), root]]

    def life(self, runtime, ident, number, base, data, network):
        bundle = os.path.join(self.directory, ident)
        os.mkdir(bundle)
        root, make, unmake = self._storage(bundle, self._root(base, data))
        config = configs.docker(SHELL, bundle, ident)
        config["mounts"] = [m for m in config["mounts"] if not m["destination"].startswith("/etc/")]
        config["root"] = {"path": root, "readonly": self.storage == "shared"}
        config["linux"]["cgroupsPath"] = f"/{sandbox.tag()}/{ident}"
        config["linux"]["resources"]["memory"] = {"limit": MEMORY, "swap": 2 * MEMORY}
        address = None
        if network:
            connect, path, ip, disconnect = self.network.veth(number)
            make, unmake, address = make + connect, unmake + disconnect, (ip, PORT)
            for namespace in config["linux"]["namespaces"]:
                if namespace["type"] == "network":
                    namespace["path"] = path
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        command = [runtime.path, *runtime.options, "--root", self.work.state(runtime)]
        if runtime.lean and self.storage != "shared":  # its pool must not hold on to a root that goes
            unmake = [[runtime.path, "--root", self.work.state(runtime), "pool", "drain"], *unmake]
        return Life(make + [[*command, "create", "--bundle", bundle, ident]], [[*command, "start", ident]],
                    [*command, "exec", ident], [[*command, "delete", "--force", ident], *unmake, ["rm", "-rf", bundle]],
                    address)

    def end(self):
        for runtime in self.work.runtimes:
            if runtime.lean and self.directory:
                subprocess.run([runtime.path, "--root", self.work.state(runtime), "pool", "drain"], check=False)
        super().end()


class Docker(Manager):
    name = "docker"
    storages = {"overlay": "overlay2", "vfs": "vfs", "btrfs": "btrfs", "fuse-overlayfs": "fuse-overlayfs"}

    def program(self):
        need("containerd"), need("iptables"), self._client()
        return "dockerd", need("dockerd")

    @staticmethod
    def _client():
        # Debian's client goes with Debian's daemon; another in front of it in PATH may be too new.
        return "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else need("docker")

    def _begin(self):
        d, socket = self.directory, f"unix://{self.run}/sock"
        self.command = [self._client(), "-H", socket]
        self._write_configuration(runtime_links(self.work), d)
        self._start_daemon([*self._daemon(d, self.run, socket), "--cgroup-parent", "/" + sandbox.tag(),
                            "--exec-opt", "native.cgroupdriver=cgroupfs"],
                           [*self.command, "version"])

    def _daemon(self, data, run, socket):
        return [need("dockerd"), "--config-file", data + "/daemon.json", "--data-root", data + "/data",
                "--exec-root", run + "/exec", "--pidfile", run + "/pid", "-H", socket,
                "--storage-driver", self.storages[self.storage]]

    @staticmethod
    def _write_configuration(runtimes, data):
        with open(data + "/daemon.json", "w", encoding="utf-8") as f:
            json.dump({"runtimes": {"b-" + r.name: {"path": r.path} for r in runtimes}}, f)

    def _load_archive(self, path, name):
        call(*self.command, "load", "-q", "-i", path)

    def _limits(self):
        return ["--cpus", "1", "-m", str(MEMORY)]

    def life(self, runtime, ident, number, base, data, network):
        options, address = ["--network", "bridge" if network else "none"], None
        if network == "web":
            address = ("127.0.0.1", 20000 + number % 10000)
            options += ["-p", f"127.0.0.1:{address[1]}:{PORT}"]
        create = [*self.command, "create", "--name", ident, "--runtime", "b-" + runtime.name, *options,
                  *self._limits(), self.images.name(base, data)]
        return Life([create], [[*self.command, "start", ident]], [*self.command, "exec", ident],
                    [[*self.command, "rm", "-f", "-v", ident]], address)


class Podman(Manager):
    name = "podman"
    storages = {"overlay": "overlay", "vfs": "vfs", "btrfs": "btrfs", "fuse-overlayfs": "overlay"}

    def program(self):
        need("conmon")
        return "podman", need("podman")

    def _write_configuration(self, runtimes, data):
        lines = ["[containers]", "default_ulimits = []", 'log_driver = "k8s-file"', "[engine]",
                 'cgroup_manager = "cgroupfs"', 'events_logger = "file"', "[engine.runtimes]"]
        lines += [f"b-{r.name} = [{json.dumps(r.path)}]" for r in runtimes]
        with open(self.directory + "/containers.conf", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        with open(self.directory + "/storage.conf", "w", encoding="utf-8") as f:
            f.write(f'[storage]\ndriver = "{self.storages[self.storage]}"\nrunroot = "{self.run}"\n'
                    f'graphroot = "{data}/root"\n')
        for name in ("containers.conf", "storage.conf"):
            os.chmod(os.path.join(self.directory, name), 0o644)

    def _words(self, data):
        d = self.directory
        more = ["--storage-opt", "overlay.mount_program=" + need("fuse-overlayfs")] \
            if self.storage == "fuse-overlayfs" else []
        return ["CONTAINERS_CONF=" + d + "/containers.conf", "CONTAINERS_STORAGE_CONF=" + d + "/storage.conf",
                need("podman"), "--root", data + "/root", "--runroot", self.run, "--tmpdir", self.run + "/libpod",
                "--storage-driver", self.storages[self.storage], *more]

    def _begin(self):
        self._write_configuration(runtime_links(self.work), self.directory)
        self.command = [need("env"), *self._words(self.directory)]
        call(*self.command, "info")

    def _load_archive(self, path, name):
        call(*self.command, "load", "-q", "-i", path)

    def _limits(self):
        return ["--cgroup-parent", "/" + sandbox.tag(), "--cpus", "1", "-m", str(MEMORY)]

    def life(self, runtime, ident, number, base, data, network):
        options, address = ["--network", self.connected() if network else "none"], None
        if network == "web":
            address = ("127.0.0.1", 30000 + number % 10000)
            options += ["-p", f"127.0.0.1:{address[1]}:{PORT}"]
        create = [*self.command, "--runtime", "b-" + runtime.name, "create", "--name", ident, *options,
                  *self._limits(), self.images.name(base, data)]
        return Life([create], [[*self.command, "start", ident]], [*self.command, "exec", ident],
                    [[*self.command, "rm", "-f", "-t", "0", "-v", ident]], address)

    def connected(self):
        return "bridge"


class Rootless:
    """What managers are that run as a user whom nobody else knows, with its files in the data directory. Their
    cgroups on version 1: none."""
    rootless, limits = True, False
    programs = ("newuidmap", "setpriv", "slirp4netns")

    def program(self):
        for name in self.programs:
            need(name)
        return super().program()

    def _user(self):
        place = os.path.join(self.work.path, "user")
        if os.path.exists(place):
            return
        os.mkdir(place)
        ids = "leanbench:900000:65536\n"
        for path, text in (("/etc/passwd", f"leanbench:x:{UID}:{UID}::/:/bin/sh\n"), ("/etc/subuid", ids),
                           ("/etc/group", f"leanbench:x:{UID}:\n"), ("/etc/subgid", ids)):
            sandbox.bind_copy(path, text, place)
        sandbox.bind_device("/dev/fuse", place)
        sandbox.bind_device("/dev/net/tun", place)

    def _home(self):
        """(that user's directory, what begins a command that is the user's)"""
        self._user()
        os.chmod(self.work.path, 0o711)
        above = self.work.path
        while above != "/":
            above = os.path.dirname(above)
            if not os.stat(above).st_mode & stat.S_IXOTH:
                raise Unavailable(f"{above}: other users may not enter it; another TMPDIR, or chmod o+x, helps")
        home = self.directory + "/home"
        for path in (home, home + "/xdg", home + "/tmp", self.run):
            os.makedirs(path, 0o700, exist_ok=True)
            os.chown(path, UID, UID)
        return home, [need("env"), "-i", "-C", home, "HOME=" + home, "USER=leanbench",
                      "XDG_RUNTIME_DIR=" + home + "/xdg", "TMPDIR=" + home + "/tmp",
                      "PATH=" + os.environ["PATH"] + ":/usr/sbin:/sbin", need("setpriv"), "--reuid", str(UID),
                      "--regid", str(UID), "--clear-groups"]

    def _load_archive(self, path, name):
        os.chmod(os.path.dirname(path), 0o711)
        os.chmod(path, 0o644)
        super()._load_archive(path, name)

    def _limits(self):
        return []


class PodmanRootless(Rootless, Podman):
    name = "podman-rootless"
    storages = {"overlay": "overlay", "vfs": "vfs", "fuse-overlayfs": "overlay"}

    def _begin(self):
        home, user = self._home()
        self._write_configuration(runtime_links(self.work, copies=True), home)
        self.command = [*user, need("env"), *self._words(home)]
        call(*self.command, "info")

    def connected(self):
        return "slirp4netns"


class DockerRootless(Rootless, Docker):
    """The daemon is in a user namespace that rootlesskit makes, with a network by slirp4netns. The client is that user's,
    too."""
    name = "docker-rootless"
    storages = {"overlay": "overlay2", "vfs": "vfs", "fuse-overlayfs": "fuse-overlayfs"}
    programs = (*Rootless.programs, "rootlesskit", "rootlesskit-docker-proxy")

    def _begin(self):
        home, user = self._home()
        run = self.run  # there, too, by a link of rootlesskit's
        self._write_configuration(runtime_links(self.work, copies=True), home)
        os.chmod(home + "/daemon.json", 0o644)
        self.command = [*user, self._client(), "-H", f"unix://{run}/sock"]
        self._start_daemon([*user, need("rootlesskit"), "--state-dir", run + "/kit", "--net", "slirp4netns",
                            "--port-driver", "builtin", "--disable-host-loopback", "--copy-up=/etc", "--copy-up=/run",
                            "--propagation", "rslave",
                            # What another daemon has there is a link here, to what isn't the user's.
                            "sh", "-c", 'rm -f /run/docker /run/containerd /run/xtables.lock; exec "$@"', "sh",
                            *self._daemon(home, run, f"unix://{run}/sock"), "--rootless",
                            "--userland-proxy-path", need("rootlesskit-docker-proxy")],
                           [*self.command, "version"])


class Containerd(Manager):
    """By ctr, whose containers have no network but one that it is given. `ctr container create` has no option for the
    runtime: containerd's shim runs what is `runc` in PATH, a link of ours that is changed between the turns; the lean
    profile is chosen by the annotation."""
    name = "containerd"
    storages = {"overlay": "overlayfs", "vfs": "native", "btrfs": "btrfs"}

    def program(self):
        need("ctr"), need("containerd-shim-runc-v2")
        return "containerd", need("containerd")

    def _begin(self):
        d, run = self.directory, self.run
        plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
                   "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt",
                   "io.containerd.tracing.processor.v1.otlp"]
        if self.storage != "btrfs":
            plugins.append("io.containerd.snapshotter.v1.btrfs")
        with open(d + "/config.toml", "w", encoding="utf-8") as f:
            f.write(f'version = 2\nroot = "{d}/root"\nstate = "{run}/state"\ndisabled_plugins = {json.dumps(plugins)}\n'
                    f'[grpc]\n  address = "{run}/sock"\n[ttrpc]\n  address = "{run}/ttrpc"\n')
        os.mkdir(d + "/bin")
        self.command = [need("ctr"), "-a", run + "/sock", "-n", sandbox.tag()]
        self._start_daemon([need("containerd"), "--config", d + "/config.toml"], [*self.command, "version"],
                           env={**os.environ, "PATH": d + "/bin:" + os.environ["PATH"] + ":/usr/sbin:/sbin"})

    def _load_archive(self, path, name):
        call(*self.command, "images", "import", "--snapshotter", self.storages[self.storage], path)

    def life(self, runtime, ident, number, base, data, network):
        link = self.directory + "/bin/runc"
        os.symlink(runtime.path, link + ".new")
        os.replace(link + ".new", link)
        options, make, unmake, address = [], [], [], None
        if network:
            make, path, ip, unmake = self.network.veth(number)
            options, address = ["--with-ns", "network:" + path], (ip, PORT)
        if runtime.lean:
            options += ["--annotation", "org.lean-runtime.profile=lean"]
        create = [*self.command, "containers", "create", "--snapshotter", self.storages[self.storage], "--seccomp", *options,
                  "--memory-limit", str(MEMORY), "--cpu-quota", "100000", "--cpu-period", "100000",
                  self.images.name(base, data), ident]
        return Life([*make, create], [[*self.command, "tasks", "start", "--detach", "--null-io", ident]],
                    [*self.command, "tasks", "exec", "--exec-id", "exec", ident],
                    [[*self.command, "tasks", "rm", "-f", ident], [*self.command, "containers", "rm", ident], *unmake],
                    address)


class _Link:
    def __init__(self, name, path):
        self.name, self.path = name, path


def runtime_links(work, copies=False):
    """As managers want them that take a path and nothing else: the lean profile by the program's name."""
    directory = os.path.join(work.path, "copies" if copies else "links")
    os.makedirs(directory, exist_ok=True)
    os.chmod(directory, 0o755)
    found = []
    for runtime in work.runtimes:
        name = "lean-runtime-lean" if runtime.lean else os.path.basename(runtime.path)
        path = os.path.join(directory, runtime.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            if copies:
                shutil.copy2(runtime.path, path)
            else:
                os.symlink(runtime.path, path)
        found.append(_Link(runtime.name, path))
    return found


ALL = {cls.name: cls for cls in (ByHand, Docker, Podman, Containerd, PodmanRootless, DockerRootless)}
DEFAULT = ("none", "docker", "podman", "containerd")
STORAGES = ("overlay", "vfs", "btrfs", "fuse-overlayfs", "shared")
