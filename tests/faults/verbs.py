# SPDX-License-Identifier: Apache-2.0
"""What faults are made in: for each verb what is there before, its commands, and what shows that it worked."""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from place import Broken


def config(*words):
    """Of a container that says all about itself; `stay`: and then stays."""

    def edit(config, place):
        config["process"]["args"] = ["/bin/probe", *words]
        config["linux"]["cgroupsPath"] = "/" + place.cgroup

    return edit


def many(config, place):
    """Much of what a container can have, and the child alone makes."""
    config["process"].update(
        args=["/bin/probe"],
        user={"uid": 1000, "gid": 1001, "additionalGids": [7]},
        oomScoreAdj=500,
        cwd="/copy",
        rlimits=[{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}],
    )
    config["domainname"] = "example"
    config["mounts"] += [
        {"destination": "/copy", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup", "mode=755"]},
        {"destination": "/run", "type": "bind", "source": str(place.rootfs / "etc"), "options": ["rbind", "ro", "nosuid"]},
    ]
    config["linux"].update(
        cgroupsPath="/" + place.cgroup,
        sysctl={"net.ipv4.ip_forward": "1", "kernel.msgmax": "9000"},
        devices=[{"path": "/dev/fault", "type": "c", "major": 1, "minor": 3, "fileMode": 0o640, "uid": 1, "gid": 2}],
        seccomp={
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [{"names": ["swapon", "reboot"], "action": "SCMP_ACT_ERRNO"}],
        },
    )
    config["linux"]["resources"] = {
        "memory": {"limit": 64 << 20},
        "pids": {"limit": 50},
        "devices": [{"allow": False, "access": "rwm"}],
    }


def helped(config, place):
    """What the child needs its parent for: a user namespace, hooks."""
    many(config, place)
    config["linux"]["namespaces"].append({"type": "user"})
    maps = [{"containerID": 0, "hostID": 100000, "size": 5000}]
    config["linux"].update(uidMappings=maps, gidMappings=maps)
    del config["linux"]["devices"]
    hook = {"path": "/bin/true"}
    config["hooks"] = {"createRuntime": [hook], "createContainer": [hook], "poststart": [hook], "poststop": [hook]}


def filtered(config, place):
    """The sealed page waits for start with this filter, and was born in our memory."""
    config["process"]["args"] = ["/bin/probe", "stay"]
    config["linux"]["cgroupsPath"] = "/" + place.cgroup
    config["linux"]["seccomp"] = {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["swapon", "reboot"], "action": "SCMP_ACT_ERRNO"}],
    }


def lean_config(*words):
    def edit(config, place):
        config["process"]["args"] = ["/bin/probe", *words]
        config["linux"].pop("cgroupsPath", None)

    return edit


class Verb:
    """
    setup: what is there before, without a fault. commands: those that meet it. worked: what is wrong
    though they say 0. The rest is the same for all: see worker.py.
    """

    words = ()
    edit = staticmethod(config())
    start = None  # the container is there before: `run -d` or `create`
    lean = False
    keeps = False  # a container that was there outlives a failure
    marks = False
    beside = None  # what is done while it runs, which is until all that it started have ended
    threads = False  # who is killed may be a thread of it
    ends = 0  # how it ends: an exit status, or -signal
    seeds = False  # its processes become what they were in a seed
    probes = True  # writes what a probe says
    tells = True  # the container that was there before has said it, too
    needs_criu = needs_forkd = needs_x86 = needs_rdma = False
    criu = ""  # its path
    environ = {}  # more of it, of those that are injected
    sited = False  # only calls that a place in the program has made, and not those of a library's threads
    warns = False  # what it says on standard error is no sign of a failure
    only = ""  # faults of that process alone, and those below it

    def __init__(self, name):
        self.name = name

    def setup(self, place):
        place.bundle(self.name, self.edit)
        if self.start:
            place.must(*self.start, "-b", place.bundle(self.name, self.edit), place.id, out="more")
            if self.start[0] == "run" and self.tells:
                place.whole("more")

    def commands(self, place):
        bundle = place.bundle(self.name, self.edit)
        return [place.command(*[w.format(id=place.id, bundle=bundle, criu=self.criu) for w in line.split()]) for line in self.words]

    def begin(self, place):
        """It is time for the container to say something."""

    def worked(self, place):
        return []

    def after(self, place, status, killed, before):
        """What else is wrong, when it has ended with that status; before anything is cleaned up."""
        return []

    def finish(self, place):
        """What of its own has to go before it is asked what is left. Problems, if there are any."""


class Runs(Verb):
    """Makes a container's process that says how it finds itself."""

    def __init__(self, name, *words, edit=None, start=None, lean=False, keeps=False):
        super().__init__(name)
        self.words, self.start, self.lean, self.keeps = words, start, lean, keeps
        if edit:
            self.edit = edit


class TellsPid(Runs):
    """The program waits until its pid was told."""

    def setup(self, place):
        (place.dir / "pid").unlink(missing_ok=True)
        super().setup(place)

    def worked(self, place):
        code, out, _ = place.rt("state", place.id, out="state", err="state.err")
        pid = str(json.loads(out)["pid"]) if code == 0 else ""
        if code == 0 and not pid.strip("0"):
            return []  # it has ended
        return [] if place.text("pid") == pid else [f"the pid file has {place.text('pid')!r} and not {pid!r}"]


class Changes(Verb):
    """Does something to a container that is there, after which its state is another."""

    probes = False

    def __init__(self, name, line, status, start=("run", "-d"), first=None, keeps=True):
        super().__init__(name)
        self.words, self.status, self.start, self.first, self.keeps = (line,), status, start, first, keeps
        self.edit = config("stay")

    def setup(self, place):
        super().setup(place)
        if self.first:
            line, status = self.first
            place.must(*line.format(id=place.id).split(), out="dropped")
            self.becomes(place, status)

    @staticmethod
    def becomes(place, wanted):
        for _ in range(1000):
            code, out, _ = place.rt("state", place.id, out="state", err="state.err")
            status = json.loads(out)["status"] if code == 0 else ""
            if status == wanted:
                return []
        return [f"the container is '{status}' and not '{wanted}'"]

    def worked(self, place):
        return self.becomes(place, self.status)


class Updates(Changes):
    def worked(self, place):
        want = {"memory/{}/memory.limit_in_bytes": "50331648", "pids/{}/pids.max": "77"}
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            want = {"{}/memory.max": "50331648", "{}/pids.max": "77"}
        found = [(f, v, Path("/sys/fs/cgroup", f.format(place.cgroup)).read_text().strip()) for f, v in want.items()]
        return [f"{f} is {is_} and not {v}" for f, v, is_ in found if v != is_] + super().worked(place)


class Stops(Changes):
    """`delete` of what has ended, and by force of what runs."""

    def __init__(self, name, line, **more):
        super().__init__(name, line, "", **more)


class Shows(Verb):
    """Says something about a container that is there, and changes nothing. `partly`: what it cannot tell, it
    warns of."""

    start = ("run", "-d")
    edit = staticmethod(config("stay"))
    keeps = True
    probes = False

    def __init__(self, name, line, partly=False):
        super().__init__(name)
        self.words, self.partly = (line,), partly

    def setup(self, place):
        super().setup(place)
        self.want = place.must(*self.words[0].format(id=place.id).split(), out="dropped")

    def worked(self, place):
        said = place.text("out")
        told = self.partly and place.text("err")
        return [] if said == self.want or told else [f"it says {said!r} and not {self.want!r}"]


class Pool(Verb):
    lean = True
    probes = False
    edit = staticmethod(lean_config())

    def __init__(self, name, line, warm=0):
        super().__init__(name)
        self.words, self.warm = (line,), warm

    def setup(self, place):
        bundle = place.bundle(self.name, self.edit)
        if self.warm:
            place.must("--lean", "pool", "warm", "--bundle", bundle, "--count", str(self.warm))

    def worked(self, place):
        slots = json.loads(place.must("pool", "status", "--format", "json", out="state"))["slots"]
        free = sum(s["free"] for s in slots)
        want = 0 if self.warm else 2
        return [] if free == want else [f"{free} slots are free and not {want}"]


class LeanRuns(Runs):
    def __init__(self, name, *words, edit, warm):
        super().__init__(name, *words, edit=edit, lean=True)
        self.warm = warm

    def setup(self, place):
        bundle = place.bundle(self.name, self.edit)
        if self.warm:
            place.must("--lean", "pool", "warm", "--bundle", bundle)


class Library(Verb):
    marks = True

    def __init__(self, name, profile):
        super().__init__(name)
        self.profile = profile
        self.lean = profile == "lean"
        self.edit = lean_config("stay") if self.lean else config("stay")

    def commands(self, place):
        bundle = place.bundle(self.name, self.edit)
        return [[str(place.dir / "host"), bundle, str(place.root), place.id, self.profile]]


class Checkpoints(Verb):
    """
    A container that was not saved goes on, and tells so. Of one that was, the images are good: also where the
    verb was killed before it could take the container away.
    """

    needs_criu = True
    start = ("run", "-d")
    edit = staticmethod(config("waits", "stay"))
    probes = tells = False

    def __init__(self, name, options="", lives=False, criu="criu/criu"):
        super().__init__(name)
        self.words = (f"--criu {{criu}} checkpoint --image-path img {options} {{id}}",)
        self.lives, self.criu = lives, criu

    def setup(self, place):
        shutil.rmtree(place.dir / "img", ignore_errors=True)
        super().setup(place)

    def status(self, place):
        code, out, _ = place.rt("state", place.id, out="state", err="state.err")
        return json.loads(out)["status"] if code == 0 else ""

    def answers(self, place):
        """Its program runs, and is the one that it was."""
        if self.status(place) != "running":
            return [f"the container is '{self.status(place)}' and not 'running'"]
        place.go.touch()
        return [] if place.whole("more").endswith("\nend\n") else ["the container says nothing any more"]

    def restores(self, place):
        """After it there is a container."""
        place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        place.go.touch()
        bundle = place.bundle(self.name, self.edit)
        code, _, err = place.rt(*f"--criu criu/criu restore -d --image-path img -b {bundle} {place.id}".split(), out="out2", err="err2")
        if code != 0:
            return [f"the images are of no use: {err.strip()}"]
        return [] if place.whole("out2").endswith("\nend\n") else ["the restored container says nothing"]

    def worked(self, place):
        if self.lives:
            return self.answers(place)
        if self.status(place):
            return ["the container is still there"]
        return self.restores(place)

    def after(self, place, status, killed, before):
        if status == 0:
            return []
        left = place.nobody_but(before)  # criu puts things right, if nobody waits for it, too
        problems = ["left: process {} ({})".format(*place.name_of(p)) for p in left]
        said = place.text("err")
        saved = killed or "the container is saved" in said or "the container has ended" in said
        if saved and not self.lives and not self.goes_on(place):
            return problems + self.restores(place)
        return problems + self.answers(place)

    def goes_on(self, place):
        return self.status(place) == "running"

    def finish(self, place):
        place.go.unlink(missing_ok=True)


class ChecksPaused(Checkpoints):
    """One that was paused is paused again after a failure, and goes on when it is resumed."""

    def setup(self, place):
        super().setup(place)
        place.must("pause", place.id, out="dropped")

    def goes_on(self, place):
        """Who pauses it may do so when the runtime is gone."""
        for _ in range(60):
            if self.status(place) != "running":
                break
            time.sleep(0.1)
        return self.status(place) == "paused"

    def answers(self, place):
        if not self.goes_on(place):
            return [f"the container is '{self.status(place)}' and not 'paused'"]
        code, _, err = place.rt("resume", place.id, out="resumed", err="resumed.err")
        return [f"it can't be resumed: {err}"] if code else super().answers(place)


class Restores(Verb):
    """A failure leaves nothing, also without `delete`."""

    needs_criu = True

    def __init__(self, name, options, *words):
        super().__init__(name)
        self.words = (f"--criu {{criu}} restore {options} --image-path images-{name} --work-path work -b {{bundle}} {{id}}",)
        self.edit = config("waits", *words)
        self.criu = "criu/criu"

    def setup(self, place):
        images = place.dir / f"images-{self.name}"
        if not images.exists():
            bundle = place.bundle(self.name, self.edit)
            place.must("run", "-d", "-b", bundle, place.id, out="more")
            place.must("--criu", self.criu, "checkpoint", "--image-path", str(images), place.id, out="dropped")
        place.go.touch()

    def after(self, place, status, killed, before):
        # One that was restored, and was waited for, has to be deleted if we could not.
        if status <= 0 or killed or place.text("out").endswith("\nend\n"):
            return []
        return ["failed, and left: " + w for w in place.left((".seccomp",), besides=(str(place.go),))]

    def finish(self, place):
        place.go.unlink(missing_ok=True)


def lives(*words):
    """A world that looks after itself, with a filter."""

    def edit(config, place):
        filtered(config, place)
        config["process"]["args"] = ["/bin/probe", "lives", *words]

    return edit


class Seeds(Verb):
    """What is common to those that make seeds, and continue them."""

    needs_x86 = True
    edit = staticmethod(lives("stay"))
    start = ("run", "-d")
    also = ""  # options of each checkpoint
    probes = tells = False

    def shown(self, name):
        """Options by which what a container says comes into that file, where it is not said to its standard output."""
        return ""

    def live(self, place, name="more"):
        """Until the container's world has begun."""
        for _ in range(5000):
            if place.text(name).startswith("lives\n"):
                return
            time.sleep(0.002)
        raise Broken(f"the container does not begin to live: {place.text(name)}")

    def setup(self, place):
        place.go.unlink(missing_ok=True)
        super().setup(place)
        if self.start:
            self.live(place)

    @staticmethod
    def well(place, name, dead=False):
        """It has lived as if nothing had been. `dead`: a twin that has ended may be among its children."""
        text = place.whole(name)
        lines = text.splitlines()
        want = ["lived: well"] + ([] if dead else ["children: 1"])
        problems = [line for line in lines if line.startswith("WRONG")]
        problems += [f"it does not say '{w}'" for w in want if w not in lines]
        if "a child too many" in lines and not dead:
            problems.append("a child too many")
        return [f"{name}: {p}" for p in problems]

    @staticmethod
    def status(place):
        code, out, _ = place.rt("state", place.id, out="state", err="state.err")
        return json.loads(out)["status"] if code == 0 else ""

    def finish(self, place):
        place.go.unlink(missing_ok=True)


class MakesSeed(Seeds):
    """The container lives on, whatever happens, also as the one that it was; and what is said to be a seed
    is one. `stop`: it ends with the seed."""

    def __init__(self, name, options="", stop=False):
        super().__init__(name)
        self.words = (f"checkpoint --engine=fork --image-path img {options} {{id}}",)
        self.stop = stop

    def setup(self, place):
        for images in ("img", "img2"):
            shutil.rmtree(place.dir / images, ignore_errors=True)
        super().setup(place)

    def continue_seed(self, place, source="--image-path img", name="out2"):
        bundle = place.bundle(self.name, self.edit)
        place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        place.go.touch()
        words = f"restore --engine=fork -d {source} {self.shown(name)} -b {bundle} {place.id}"
        code, _, err = place.rt(*words.split(), out=name, err="err2")
        return [f"the seed is of no use: {err.strip()}"] if code != 0 else self.well(place, name)

    def lives_on(self, place, killed=False):
        """It becomes a seed again, goes on after that, and so does what comes of that seed."""
        if self.status(place) != "running":
            return [f"the container is '{self.status(place)}' and not 'running'"]
        words = f"checkpoint --engine=fork --image-path img2 {self.also} {place.id}"
        code, _, err = place.rt(*words.split(), out="dropped", err="err2")
        problems = [f"it can't become a seed again: {err.strip()}"] if code != 0 else []
        place.go.touch()
        problems += self.well(place, "more", dead=killed)
        return problems or self.continue_seed(place, "--image-path img2")

    def worked(self, place):
        problems = []
        if self.stop:
            if self.status(place):
                problems = ["the container is still there"]
        else:
            place.go.touch()
            problems = self.well(place, "more")
        return problems + self.continue_seed(place)

    def after(self, place, status, killed, before):
        if status == 0:
            return []
        problems = ["left: process {} ({})".format(*place.name_of(p)) for p in place.nobody_but(before)]
        said = place.text("err")
        saved = self.stop and (killed or "the container is saved" in said or "the container has ended" in said)
        if saved and self.status(place) != "running":
            return problems + self.continue_seed(place)
        return problems + self.lives_on(place, killed)


class MakesSeedHere(MakesSeed):
    """A thread waits for its seed: it is told when there is one, and not before, and so is the seed's."""

    edit = staticmethod(lives("here", "stay"))

    def __init__(self, name):
        super().__init__(name, "--when-ready=20s")

    @staticmethod
    def told(place, name, who, looks=2500):
        """A thread says it when it comes to it."""
        for _ in range(looks):
            if f"here: {who}\n" in place.text(name):
                return []
            time.sleep(0.002)
        return [f"{name}: nobody is told 'here: {who}'"]

    def setup(self, place):
        self.over = False
        super().setup(place)

    def well(self, place, name, dead=False):
        problems = super().well(place, name, dead)
        if name == "more":
            return problems + self.told(place, name, 0)
        return problems if self.over else problems + self.told(place, name, 1)

    def after(self, place, status, killed, before):
        # Who was killed behind the last of it, has told; what comes of a later seed has nothing to wait for.
        self.over = killed and not self.told(place, "more", 0, 100)
        problems = ["told of a seed that failed"] if status != 0 and not killed and "here:" in place.text("more") else []
        return problems + super().after(place, status, killed, before)


class ContinuesSeed(Seeds):
    """A failure leaves nothing, also without `delete`."""

    start = None
    seeds = probes = True

    def __init__(self, name, options, *words):
        super().__init__(name)
        self.words = (f"restore --engine=fork {options} --image-path images-{name} -b {{bundle}} {{id}}",)
        self.edit = lives(*words)

    def seed(self, place, words, out):
        bundle = place.bundle(self.name, self.edit)
        place.must("run", "-d", *self.shown("more").split(), "-b", bundle, place.id, out="more")
        self.live(place)
        return place.must(*words.split(), place.id, out=out)

    def setup(self, place):
        super().setup(place)
        images = place.dir / f"images-{self.name}"
        if not images.exists():
            self.seed(place, f"checkpoint --engine=fork --stop --image-path {images}", "dropped")
        # In the foreground it says all while restore is at its last steps.
        if "-d" not in self.words[0].split():
            place.go.touch()

    def begin(self, place):
        place.go.touch()

    def worked(self, place):
        return self.well(place, "out")

    def after(self, place, status, killed, before):
        problems = ["WRONG" for line in place.text("out").splitlines() if line.startswith("WRONG")][:1]
        if status <= 0 or killed or place.text("out").endswith("\nend\n"):
            return problems
        return problems + ["failed, and left: " + w for w in place.left((".seccomp",), besides=(str(place.go),))]


def named(edit, seed):
    """A config.json that names a seed, as a manager's does."""

    def named_edit(config, place):
        edit(config, place)
        config["annotations"] = {"org.lean.seed": seed}

    return named_edit


class ContinuesNamedSeed(ContinuesSeed):
    """By an annotation; `start` leaves what it could not start."""

    def __init__(self, name, *words, stays=True):
        super().__init__(name, "-d" if stays else "", *(["stay"] if stays else []))
        self.words = words
        self.seed_name = f"images-{name}"

    def commands(self, place):
        bundle = place.bundle(self.name + "-named", named(self.edit, self.seed_name))
        return [place.command(*[w.format(id=place.id, bundle=bundle) for w in line.split()]) for line in self.words]

    def after(self, place, status, killed, before):
        if len(self.words) == 1:
            return super().after(place, status, killed, before)
        return ["WRONG" for line in place.text("out").splitlines() if line.startswith("WRONG")][:1]


class ContinuesSeedTwice(ContinuesSeed):
    """All, or none; each in a cgroup of its own name."""

    probes = False  # two of them say so, at once

    def __init__(self, name):
        super().__init__(name, "-d --count 2", "stay")

    def commands(self, place):
        def own_cgroup(config, place):
            self.edit(config, place)
            del config["linux"]["cgroupsPath"]

        bundle = place.bundle(self.name + "-two", own_cgroup)
        return [place.command(*[w.format(id=place.cgroup, bundle=bundle) for w in line.split()]) for line in self.words]

    def worked(self, place):
        for _ in range(5000):
            lines = place.text("out").splitlines()
            if lines.count("end") == 2:
                break
            time.sleep(0.002)
        problems = [line for line in lines if line.startswith("WRONG")]
        return problems + [f"they say '{w}' {lines.count(w)} times" for w in ("lived: well", "children: 1", "end") if lines.count(w) != 2]

    def finish(self, place):
        super().finish(place)
        said = [place.rt("delete", "--force", f"{place.cgroup}-{i}", out="deleted", err="deleted.err") for i in (1, 2)]
        return [f"delete --force: {s}" for s in said if s != (0, "", "")]


class Console:
    """The other end of a console socket: what is shown by terminals that come there is in a file."""

    def __init__(self, place, name):
        self.path, self.name = place.dir / (name + ".sock"), place.dir / name
        self.path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                with self.socket.accept()[0] as peer:
                    fds = socket.recv_fds(peer, 4096, 1)[1]
            except OSError:
                return
            for fd in fds:
                threading.Thread(target=self.show, args=(fd,), daemon=True).start()

    def show(self, fd):
        while True:
            try:
                text = os.read(fd, 65536)
            except OSError:
                break  # nobody has it any more
            with self.name.open("ab") as f:
                f.write(text.replace(b"\r", b""))
        os.close(fd)

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.path.unlink(missing_ok=True)


class OnTerminal:
    """The container has a terminal, and its manager each one's other end."""

    consoles = ()

    def shown(self, name):
        return f"--console-socket {name}.sock"

    def setup(self, place):
        self.consoles = [Console(place, name) for name in ("more", "out", "out2")]
        super().setup(place)

    def finish(self, place):
        problems = super().finish(place)
        for c in self.consoles:
            c.end()
        self.consoles = ()
        return problems


def on_terminal(edit):
    def edit_terminal(config, place):
        edit(config, place)
        config["process"]["terminal"] = True

    return edit_terminal


def in_user_namespace(edit, first=100000):
    def edit_user(config, place):
        edit(config, place)
        config["linux"]["namespaces"].append({"type": "user"})
        maps = [{"containerID": 0, "hostID": first, "size": 5000}]
        config["linux"].update(uidMappings=maps, gidMappings=maps)

    return edit_user


class MakesTerminalSeed(OnTerminal, MakesSeed):
    edit = staticmethod(on_terminal(lives("stay")))
    start = ("run", "-d", "--console-socket", "more.sock")


class ContinuesTerminalSeed(OnTerminal, ContinuesSeed):
    def __init__(self, name):
        super().__init__(name, "-d --console-socket out.sock", "stay")
        self.edit = on_terminal(self.edit)


class MakesUserSeed(MakesSeed):
    edit = staticmethod(in_user_namespace(lives("stay")))


class ContinuesUserSeed(ContinuesSeed):
    def __init__(self, name):
        super().__init__(name, "-d", "stay")
        self.edit = in_user_namespace(self.edit)


class Layered:
    """The container's root is an overlay mount, in which it has changed what it found there. `layer`: the
    one of the next container, which begins anew with each lay()."""

    @staticmethod
    def top(place):
        return place.dir / "layer"

    def lift(self, place):
        while place.unmount(self.top(place) / "root"):
            pass

    def lay(self, place):
        top = self.top(place)
        self.lift(place)
        shutil.rmtree(top, ignore_errors=True)
        for name in ("up", "work", "root"):
            (top / name).mkdir(parents=True)
        place.mount("overlay", top / "root", "overlay", f"lowerdir={place.rootfs},upperdir={top}/up,workdir={top}/work")

    def setup(self, place):
        self.lay(place)
        super().setup(place)

    def finish(self, place):
        problems = super().finish(place) or []
        said = place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        self.lift(place)
        return problems + ([] if said == (0, "", "") else [f"delete --force: {said}"])


def layered(edit):
    def layered_edit(config, place):
        edit(config, place)
        config["root"] = {"path": str(Layered.top(place) / "root"), "readonly": False}
        # By which it is told to end; and that stays the bundle's own.
        config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(place.go.parent), "options": ["bind"]})

    return layered_edit


class MakesLayered(Layered):
    """What continues its seed has a layer in which nothing is yet."""

    edit = staticmethod(layered(lives("changes", "stay")))
    also = "--with-changes"

    def __init__(self, name):
        super().__init__(name, self.also)

    def continue_seed(self, place, *words):
        place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        self.lay(place)
        return super().continue_seed(place, *words)


class MakesLayeredSeed(MakesLayered, MakesSeed):
    pass


class ContinuesLayeredSeed(Layered, ContinuesSeed):
    def __init__(self, name, *words):
        super().__init__(name, "-d", *words)
        self.edit = layered(lives("changes", *words))

    def seed(self, place, words, out):
        super().seed(place, words + " --with-changes", out)
        self.lay(place)


class RefusesRoot(ContinuesLayeredSeed):
    """Another container has that root: whatever fails, nothing of it is changed."""

    probes = False
    ends = 1
    warns = True

    def commands(self, place):
        """By a bundle with another cgroup."""

        def own_cgroup(config, place):
            self.edit(config, place)
            config["linux"]["cgroupsPath"] = f"/{place.cgroup}-second"

        bundle = place.bundle(self.name + "-second", own_cgroup)
        return [place.command(*[w.format(id="second", bundle=bundle) for w in line.split()]) for line in self.words]

    def setup(self, place):
        super().setup(place)
        place.must("run", "-d", "-b", place.bundle(self.name, self.edit), place.id, out="more")
        self.live(place)
        self.had = self.files(place)

    def files(self, place):
        up = self.top(place) / "up"
        return sorted(f"{p} {p.lstat().st_ino} {p.lstat().st_mtime_ns}" for p in up.rglob("*"))

    def worked(self, place):
        if self.files(place) != self.had:
            return ["the root of another container was changed"]
        place.go.touch()
        return self.well(place, "more")

    def after(self, place, status, killed, before):
        problems = ["it takes the root of another container"] if status == 0 else []
        return problems + (self.worked(place) if status != self.ends else [])

    def finish(self, place):
        said = place.rt("delete", "--force", "second", out="deleted", err="deleted.err")
        problems = [] if said == (0, "", "") else [f"delete --force second: {said}"]
        return problems + super().finish(place)


def listening(edit):
    """Not as root: whose a socket is goes along, too. In /tmp, where it is told to end, it may write."""

    def listening_edit(config, place):
        edit(config, place)
        config["process"]["user"] = {"uid": 1000, "gid": 1000}
        place.go.parent.chmod(0o777)
        config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(place.go.parent), "options": ["bind"]})

    return listening_edit


class MakesListeningSeed(MakesSeed):
    """What has no name for others, or somebody at its other end."""

    edit = staticmethod(listening(lives("listens", "talks", "deleted", "stay")))
    also = "--tcp-close"

    def __init__(self, name):
        super().__init__(name, self.also)


class ContinuesListeningSeed(ContinuesSeed):
    def __init__(self, name, *words):
        super().__init__(name, "-d", *words)
        self.edit = listening(lives("listens", "talks", "deleted", *words))

    def seed(self, place, words, out):
        super().seed(place, words + " --tcp-close", out)


def with_rights(edit, *rights):
    """With what its program takes to set up what it has."""

    def rights_edit(config, place):
        edit(config, place)
        for allowed in config["process"]["capabilities"].values():
            allowed += rights

    return rights_edit


# Its child's root and priority; and other users' pairs of sockets and pipes.
SETTINGS_TAKE = ("CAP_SYS_CHROOT", "CAP_SYS_NICE")
PAIRS_TAKE = ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", "CAP_FOWNER")


class MakesSeedWithSettings(MakesSeed):
    edit = staticmethod(with_rights(lives("settings", "stay"), *SETTINGS_TAKE))


class ContinuesSeedWithSettings(ContinuesSeed):
    def __init__(self, name, *words):
        super().__init__(name, "-d", *words)
        self.edit = with_rights(lives("settings", *words), *SETTINGS_TAKE)


class MakesSeedWithPairs(MakesSeed):
    edit = staticmethod(with_rights(lives("pairs", "stay"), *PAIRS_TAKE))


class ContinuesSeedWithPairs(ContinuesSeed):
    def __init__(self, name, *words):
        super().__init__(name, "-d", *words)
        self.edit = with_rights(lives("pairs", *words), *PAIRS_TAKE)


class MakesSeedWithoutExec(MakesSeed):
    """What `exec` sent in stands still meanwhile, runs on then, and is not in the seed."""

    also = "--without-exec"

    def __init__(self, name):
        super().__init__(name, self.also)

    def setup(self, place):
        super().setup(place)
        before = place.children()
        place.must("exec", "-d", place.id, "/bin/probe", "stay", out="dropped")
        self.sent = [p for p in place.children() - before if place.name_of(p)[0] == "probe"]
        if len(self.sent) != 1:
            raise Broken(f"exec sends in {self.sent}")

    def runs(self, place):
        """The last seed has ended it, with the container."""
        for _ in range(1000):
            name, state = place.name_of(self.sent[0])
            if not name or state not in "tT":
                return []
            time.sleep(0.002)
        return ["what exec sent in stands still"]

    def worked(self, place):
        return self.runs(place) + super().worked(place)

    def after(self, place, status, killed, before):
        return self.runs(place) + super().after(place, status, killed, before)


class Forkd:
    """A lean-forkd at the loopback of the worker's own network."""

    control = "/run/faults/forkd"
    ticket = "/run/faults/ticket"

    def __init__(self, place, keep="0"):
        self.place = place
        self.process = subprocess.Popen(self.command(keep=keep), stdin=subprocess.DEVNULL, stderr=open(place.dir / "forkd.log", "wb"))
        if not self.answers():
            raise Broken("lean-forkd does not begin: " + place.text("forkd.log"))

    @staticmethod
    def command(rdma="off", keep="0"):
        # Whether a host has libraries of RDMA must not change what is called; and no keeper waits for a next daemon,
        # if that is not asked for.
        return ["/run/faults/lean-forkd", "--control", Forkd.control, "serve", "--listen", "127.0.0.1:7411", "--rdma", rdma, "--keep", keep]

    @staticmethod
    def ask(place, *words):
        return place.do(["/run/faults/lean-forkd", "--control", Forkd.control, *words], out="answer", err="answer.err")

    def answers(self):
        for _ in range(200):
            if self.ask(self.place, "list")[0] == 0:
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        return False

    @staticmethod
    def add(place, directory):
        """The ticket is in its file; an error's text, or ''."""
        code, out, err = Forkd.ask(place, "add", str(directory))
        if code == 0:
            path = Path(Forkd.ticket)
            path.unlink(missing_ok=True)
            path.touch(0o600)
            path.write_text(out)
        return "" if code == 0 else err or "it ends with " + str(code)

    @staticmethod
    def memories(pid):
        """How many it has that something may be missing of."""
        n = 0
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            try:
                n += "userfaultfd" in os.readlink(fd)
            except OSError:
                pass
        return n

    @staticmethod
    def forgets(pid):
        """Whether it gives back what it had of children that have ended."""
        for _ in range(500):
            try:
                if not Forkd.memories(pid):
                    return True
            except OSError:
                return True
            time.sleep(0.02)
        return False

    def end(self):
        problems = [] if self.forgets(self.process.pid) else ["lean-forkd keeps memory of who has ended"]
        self.process.terminate()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait() and "hangs"
        return problems + ([f"lean-forkd ends with {code}: {self.place.text('forkd.log')}"] if code != 0 else [])


class Remote(Seeds):
    """With a daemon, which has to be as before in the end."""

    needs_forkd = True
    daemon = None

    def setup(self, place):
        self.daemon = Forkd(place)
        super().setup(place)

    def finish(self, place):
        super().finish(place)
        place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        daemon, self.daemon = self.daemon, None
        return daemon.end() if daemon else []


class MakesRemoteSeed(Remote, MakesSeed):
    def __init__(self, name, options="", stop=False):
        super().__init__(name, options, stop)
        self.words = (f"checkpoint --remote --forkd {Forkd.control} {options} {{id}}",)

    def continue_seed(self, place, source="", name="out2"):
        if not source:
            path = Path(Forkd.ticket)
            path.unlink(missing_ok=True)
            path.touch(0o600)
            path.write_text(place.text("out"))
            source = f"--remote file:{path} --forkd {Forkd.control}"
        return super().continue_seed(place, source, name)

    def after(self, place, status, killed, before):
        problems = super().after(place, status, killed, before)
        if status > 0 and not killed and "the container is saved" not in place.text("err"):
            held = [s for s in Forkd.ask(place, "list")[1].splitlines() if " held " in s]
            problems += [f"failed, and left with lean-forkd: {s}" for s in held]
        return problems


class MakesRemoteLayeredSeed(MakesLayered, MakesRemoteSeed):
    pass


class MakesRemoteSeedLater(MakesRemoteSeed):
    """Who copies may fail when the ticket is told: then lean-forkd calls the seed damaged."""

    @staticmethod
    def seeds(place):
        """When all are whole, or over."""
        for _ in range(2500):
            lines = Forkd.ask(place, "list")[1].splitlines()
            if all(s.endswith(" missing=0") or " held " not in s for s in lines):
                break
            time.sleep(0.002)
        return lines

    def well(self, place, name, dead=False):
        # Who was killed after the ticket has left a twin.
        return super().well(place, name, dead or name == "more")

    def worked(self, place):
        damaged = any(" damaged " in s for s in self.seeds(place))
        return self.lives_on(place, True) if damaged else super().worked(place)

    def after(self, place, status, killed, before):
        problems = [f"waits for ever: {s}" for s in self.seeds(place) if " held " in s and not s.endswith(" missing=0")]
        return problems + super().after(place, status, killed, before)


class ContinuesRemoteSeed(Remote, ContinuesSeed):
    def __init__(self, name, options, *words):
        super().__init__(name, options, *words)
        self.words = (f"restore --remote file:{Forkd.ticket} --forkd {Forkd.control} {options} -b {{bundle}} {{id}}",)

    def setup(self, place):
        super().setup(place)
        wrong = Forkd.add(place, place.dir / f"images-{self.name}")
        if wrong:
            raise Broken("lean-forkd add: " + wrong)

    def after(self, place, status, killed, before):
        # The daemon is no part of it, and must not be taken for what is left.
        problems = ["WRONG" for line in place.text("out").splitlines() if line.startswith("WRONG")][:1]
        return problems


class TellsFigures(ContinuesRemoteSeed):
    """What it cost is told, or that this can't be."""

    warns = True

    def __init__(self, name):
        super().__init__(name, "-d --fetch=eager --stats", "stay")

    def worked(self, place):
        problems, said = super().worked(place), place.text("err")
        try:
            told = json.loads("".join(line for line in said.splitlines() if line.startswith("{")))
            ok = told["id"] == place.id and told["bytesBefore"] == told["bytes"] > 0 and told["us"]["all"] > 0
        except ValueError:
            ok = "the figures can't be told" in said
        return problems if ok else problems + [f"its figures are wrong: {said!r}"]


class ListsChildren(Remote):
    """Of whom lean-forkd fills the memory: `seed children`."""

    keeps = True
    start = None

    def __init__(self, name):
        super().__init__(name)
        self.words = (f"seed children --forkd {Forkd.control} --format json",)

    def setup(self, place):
        super().setup(place)
        images = place.dir / f"images-{self.name}"
        bundle = place.bundle(self.name, self.edit)
        if not images.exists():
            place.must("run", "-d", "-b", bundle, place.id, out="more")
            self.live(place)
            place.must("checkpoint", "--engine=fork", "--stop", "--image-path", str(images), place.id, out="dropped")
        wrong = Forkd.add(place, images)
        if wrong:
            raise Broken("lean-forkd add: " + wrong)
        place.must(*f"restore --remote file:{Forkd.ticket} --forkd {Forkd.control} -d -b {bundle} {place.id}".split(), out="out2", err="err2")
        self.pid = json.loads(place.must("state", place.id, out="state"))["pid"]

    def worked(self, place):
        try:
            told = json.loads(place.text("out"))
        except ValueError:
            return [f"it says {place.text('out')!r}"]
        return [] if [c["state"] for c in told if c["pid"] == self.pid] == ["coming"] else [f"it says {told}"]

    def after(self, place, status, killed, before):
        place.go.touch()
        return self.well(place, "out2")


class ContinuesNamedTicket(Remote, ContinuesNamedSeed):
    def __init__(self, name, *words):
        super().__init__(name, *words)
        self.seed_name = "ticket"

    def setup(self, place):
        super().setup(place)
        wrong = Forkd.add(place, place.dir / f"images-{self.name}")
        if wrong:
            raise Broken("lean-forkd add: " + wrong)


class DaemonServes(Seeds):
    """The daemon itself: of a seed that it holds a container comes to be, whose memory it fills. `kill`: it is
    killed while memory is missing, and its keeper has to end the container."""

    start = None
    needs_forkd = threads = True

    def __init__(self, name, kill=False):
        super().__init__(name)
        self.kill = kill
        self.ends = -9 if kill else 0

    def commands(self, place):
        return [Forkd.command()]

    def setup(self, place):
        super().setup(place)
        self.wrong = []
        Path(Forkd.ticket).unlink(missing_ok=True)
        images = place.dir / f"images-{self.name}"
        if not images.exists():
            place.must("run", "-d", "-b", place.bundle(self.name, self.edit), place.id, out="more")
            self.live(place)
            place.must("checkpoint", "--engine=fork", "--stop", "--image-path", str(images), place.id, out="dropped")

    def use(self, place):
        """What a client is told when it does not work; ''."""
        images = place.dir / f"images-{self.name}"
        wrong = Forkd.add(place, images)
        if "held already" in wrong and not Path(Forkd.ticket).exists():  # and nobody was told
            Forkd.ask(place, "rm", Forkd.ask(place, "list")[1].split()[0])
            wrong = Forkd.add(place, images)
        if wrong and "held already" not in wrong:
            return "add: " + wrong
        words = f"restore --remote file:{Forkd.ticket} --forkd {Forkd.control} -d -b {place.bundle(self.name, self.edit)} {place.id}"
        code, _, err = place.rt(*words.split(), out="out2", err="err2")
        return "" if code == 0 else err.strip() or f"restore ends with {code} and says nothing"

    def beside(self, place, inject):
        for _ in range(300):
            if Forkd.ask(place, "list")[0] == 0 or inject.poll() is not None:
                break
            time.sleep(0.01)
        try:
            pid = int(Path(f"/proc/{inject.pid}/task/{inject.pid}/children").read_text().split()[0])
        except (OSError, IndexError):
            return
        self.wrong = [self.use(place)]
        if self.wrong[0]:
            place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
            self.wrong.append(self.use(place))
        if not self.kill:
            place.go.touch()
            self.says_all(place)
            place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
            Forkd.forgets(pid)
        try:
            os.kill(pid, signal.SIGKILL if self.kill else signal.SIGTERM)
        except OSError:
            pass

    def says_all(self, place):
        """Until it has, or has ended."""
        for _ in range(100):
            if place.text("out2").endswith("\nend\n") or self.status(place) != "running":
                break
            time.sleep(0.02)

    def truth(self, place):
        """Nothing false was ever said."""
        return ["out2: " + line for line in place.text("out2").splitlines() if line.startswith("WRONG")]

    def worked(self, place):
        problems = self.truth(place)
        if len(self.wrong) > 1 and self.wrong[1] and not (self.kill and "connect to lean-forkd" in self.wrong[1]):
            problems.append(f"it fails twice: {self.wrong}")
        elif not self.kill and "processes end: " not in place.text("err"):
            problems += self.well(place, "out2")
        elif self.kill:
            problems += self.ends_soon(place)
        return problems

    def ends_soon(self, place):
        for _ in range(500):
            if self.status(place) != "running":
                return []
            time.sleep(0.02)
        return ["the container outlives the daemon, and misses memory"]

    def after(self, place, status, killed, before):
        problems = self.truth(place)
        if status != self.ends and self.status(place) == "running" and not place.text("out2").endswith("\nend\n"):
            problems += self.ends_soon(place)
        return problems


class DaemonFollows(DaemonServes):
    """A daemon that takes over what one before it held, which was killed. Whatever becomes of it, the seed is with it, or with
    the next one."""

    keep = "60s"
    warns = True  # its log says what it took

    def __init__(self, name):
        super().__init__(name)
        self.first = self.last = None
        self.told_to_end = False

    def commands(self, place):
        return [Forkd.command(keep=self.keep)]

    def setup(self, place):
        super().setup(place)
        self.first = self.begin_daemon(place)
        wrong = Forkd.add(place, place.dir / f"images-{self.name}")
        if wrong:
            raise Broken("lean-forkd add: " + wrong)
        self.first.process.kill()
        self.first.process.wait()

    def begin_daemon(self, place):
        return Forkd(place, self.keep)

    def use(self, place):
        words = f"restore --remote file:{Forkd.ticket} --forkd {Forkd.control} -d -b {place.bundle(self.name, self.edit)} {place.id}"
        code, _, err = place.rt(*words.split(), out="out2", err="err2")
        if code == 0:
            place.go.touch()
            self.says_all(place)
        place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        place.go.unlink(missing_ok=True)
        return "" if code == 0 else err.strip() or f"restore ends with {code} and says nothing"

    @staticmethod
    def first_child(process):
        for _ in range(500):
            try:
                return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            except (OSError, IndexError):
                if process.poll() is not None:
                    return 0
                time.sleep(0.01)
        return 0

    @staticmethod
    def lives(place, pid):
        return pid and place.name_of(str(pid))[1] not in ("", "Z", "X")

    def answers(self, place, pid):
        for _ in range(1000):
            if Forkd.ask(place, "list")[0] == 0:
                return True
            if not self.lives(place, pid):
                return False
            time.sleep(0.01)
        return False

    def beside(self, place, inject):
        pid = self.first_child(inject)
        self.wrong, self.lost, self.told_to_end = [], "", False
        if self.answers(place, pid):
            self.wrong = [self.use(place)]
            if self.wrong[0] and self.lives(place, pid):
                self.wrong.append(self.use(place))
        if not self.lives(place, pid):
            self.follow(place)
            return
        os.kill(pid, signal.SIGINT)
        self.told_to_end = True
        if self.keeps_on(place, pid):
            self.follow(place)

    def keeps_on(self, place, pid):
        """Who is killed before it hears that it is to end: its keeper waits for the next one."""
        name, patience = Path(Forkd.control + ".keeper"), 100
        while patience and name.exists():
            patience -= not self.lives(place, pid)
            time.sleep(0.01)
        return name.exists()

    def follow(self, place):
        """By a daemon that nothing happens to; who can't hand over says that it is to be started again."""
        for _ in range(2):
            try:
                self.last = Forkd(place)
                break
            except Broken as e:
                self.lost = str(e)
        if self.last:
            self.lost = self.use(place)

    def worked(self, place):
        problems = self.truth(place)
        if len(self.wrong) > 1 and self.wrong[1] and "is not any more: " not in place.text("err"):
            problems.append(f"it fails twice: {self.wrong}")
        return problems

    def after(self, place, status, killed, before):
        problems = self.truth(place)
        # Who is killed at its very end may have told the keeper already that the seed is over.
        over = self.told_to_end and "lean-forkd ends" in place.text("err") and "no such seed" in self.lost
        return problems + ([f"the seed is lost: {self.lost}"] if self.lost and not over else [])

    def finish(self, place):
        super().finish(place)
        last, self.last = self.last, None
        problems = []
        if last:
            last.process.send_signal(signal.SIGINT)
            try:
                last.process.wait(10)
            except subprocess.TimeoutExpired:
                last.process.kill()
                problems = ["the next lean-forkd does not end"]
        return problems


class DaemonHandsOver(DaemonFollows):
    """A keeper whose daemon is killed, and that gives the seed to the next one."""

    only = "1.1"

    def __init__(self, name):
        super().__init__(name)
        self.ends = -signal.SIGKILL

    def setup(self, place):
        DaemonServes.setup(self, place)

    def beside(self, place, inject):
        pid = self.first_child(inject)
        self.wrong, self.lost, self.told_to_end = [], "", False
        if self.answers(place, pid):
            wrong = Forkd.add(place, place.dir / f"images-{self.name}")
            if self.lives(place, pid):
                self.lost = wrong and "add: " + wrong
                os.kill(pid, signal.SIGKILL)
        if Path(Forkd.ticket).exists() and not self.lost:
            self.follow(place)

    def worked(self, place):
        return self.truth(place)


class DaemonServesByRdma(DaemonServes):
    """Pages come by RDMA, with libraries that pretend to have an adapter (tests/forkd/fake_rdma.c). The daemon
    reads from itself, so both ends are in it."""

    needs_rdma = sited = warns = True
    environ = {"LD_LIBRARY_PATH": "/run/faults", "FAKE_RDMA": "/run/faults/fabric"}

    def __init__(self, name, how, kill=False):
        super().__init__(name, kill)
        self.how = how

    def commands(self, place):
        return [[*Forkd.command(self.how), "--patience", "5s"]]

    def setup(self, place):
        fabric = Path(self.environ["FAKE_RDMA"])
        shutil.rmtree(fabric, ignore_errors=True)
        fabric.mkdir()
        super().setup(place)

    def worked(self, place):
        # The log may be what fails.
        read = "hit " in place.text("report") or self.how == "auto" or "is read by RDMA" in place.text("err")
        return super().worked(place) + ([] if read else ["nothing was read by RDMA"])


VERBS = [
    Runs("run", "run -b {bundle} {id}"),
    Runs("run-many", "run -b {bundle} {id}", edit=many),
    Runs("run-helped", "run -b {bundle} {id}", edit=helped),
    Runs("run-detached", "run -d -b {bundle} {id}", edit=config("stay")),
    TellsPid("run-pid-file", "run -d --pid-file pid -b {bundle} {id}", edit=filtered),
    Runs("create-start-filtered", "create -b {bundle} {id}", "start {id}", edit=filtered),
    Runs("create-start-many", "create -b {bundle} {id}", "start {id}", edit=many),
    Runs("create-start", "create -b {bundle} {id}", "start {id}", edit=config("stay")),
    Runs("create-start-helped", "create -b {bundle} {id}", "start {id}", edit=helped),
    Runs("exec", "exec {id} /bin/probe exec", start=("run", "-d"), edit=config("stay"), keeps=True),
    Runs("exec-detached", "exec -d {id} /bin/probe stay", start=("run", "-d"), edit=config("stay"), keeps=True),
    Changes("kill", "kill {id} KILL", "stopped", keeps=False),
    Changes("pause", "pause {id}", "paused"),
    Changes("resume", "resume {id}", "running", first=("pause {id}", "paused")),
    Updates("update", "update --memory 50331648 --pids-limit 77 {id}", "running"),
    Shows("state", "state {id}"),
    Shows("list", "list", partly=True),
    Shows("ps", "ps --format json {id}"),
    Stops("delete", "delete {id}", first=("kill {id} KILL", "stopped"), keeps=False),
    Stops("delete-force", "delete --force {id}", keeps=False),
    LeanRuns("lean-run", "--lean run -b {bundle} {id}", edit=lean_config(), warm=True),
    LeanRuns("lean-run-cold", "--lean run -b {bundle} {id}", edit=lean_config(), warm=False),
    Pool("pool-warm", "--lean pool warm --bundle {bundle} --count 2"),
    Pool("pool-drain", "pool drain", warm=2),
    Checkpoints("checkpoint"),
    Checkpoints("checkpoint-leave-running", "--leave-running", lives=True),
    ChecksPaused("checkpoint-paused"),
    ChecksPaused("checkpoint-paused-leave-running", "--leave-running", lives=True),
    # Few kernels can tell criu what was written since; what we do is the same with a criu that is none.
    Checkpoints("checkpoint-pre-dump", "--pre-dump", lives=True, criu="./fake-criu"),
    Restores("restore", ""),
    Restores("restore-detached", "-d", "stay"),
    MakesSeed("checkpoint-fork"),
    MakesSeed("checkpoint-fork-stop", "--stop", stop=True),
    MakesSeedHere("checkpoint-fork-here"),
    MakesTerminalSeed("checkpoint-fork-terminal"),
    MakesUserSeed("checkpoint-fork-userns"),
    MakesSeedWithoutExec("checkpoint-fork-without-exec"),
    MakesLayeredSeed("checkpoint-fork-changes"),
    MakesListeningSeed("checkpoint-fork-listening"),
    MakesSeedWithSettings("checkpoint-fork-settings"),
    ContinuesSeed("restore-fork", ""),
    ContinuesSeed("restore-fork-detached", "-d", "stay"),
    ContinuesTerminalSeed("restore-fork-terminal"),
    ContinuesUserSeed("restore-fork-userns"),
    ContinuesLayeredSeed("restore-fork-changes", "stay"),
    RefusesRoot("restore-fork-shared", "stay"),
    ContinuesListeningSeed("restore-fork-listening", "stay"),
    ContinuesSeedWithSettings("restore-fork-settings", "stay"),
    MakesSeedWithPairs("checkpoint-fork-pairs"),
    ContinuesSeedWithPairs("restore-fork-pairs", "stay"),
    MakesRemoteSeed("checkpoint-remote"),
    MakesRemoteLayeredSeed("checkpoint-remote-changes"),
    MakesRemoteSeed("checkpoint-remote-stop", "--stop", stop=True),
    MakesRemoteSeedLater("checkpoint-remote-background", "--background"),
    ContinuesRemoteSeed("restore-remote", ""),
    ContinuesRemoteSeed("restore-remote-detached", "-d --fetch=prefetch", "stay"),
    ContinuesRemoteSeed("restore-remote-prefetch", "-d --fetch=prefetch:1", "stay"),
    TellsFigures("restore-remote-stats"),
    ListsChildren("seed-children"),
    ContinuesNamedSeed("run-seed", "--seed-dir . run -b {bundle} {id}", stays=False),
    ContinuesNamedSeed("create-start-seed", "--seed-dir . create -b {bundle} {id}", "start {id}"),
    ContinuesNamedTicket(
        "create-start-ticket", f"--seed-dir /run/faults --seed-forkd {Forkd.control} create -b {{bundle}} {{id}}", "start {id}"
    ),
    ContinuesSeedTwice("restore-fork-count"),
    DaemonServes("forkd"),
    DaemonServes("forkd-killed", kill=True),
    DaemonFollows("forkd-follows"),
    DaemonHandsOver("forkd-hands-over"),
    DaemonServesByRdma("forkd-rdma", "require"),
    DaemonServesByRdma("forkd-rdma-auto", "auto"),
    DaemonServesByRdma("forkd-rdma-killed", "require", kill=True),
    Library("liblean", "none"),
    Library("liblean-lean", "lean"),
]
