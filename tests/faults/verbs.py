# SPDX-License-Identifier: Apache-2.0
"""What faults are made in: for each verb what is there before, its commands, and what shows that it worked."""
import json
import os
import shutil
from pathlib import Path


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
    probes = True  # writes what a probe says
    tells = True  # the container that was there before has said it, too
    needs_criu = False
    criu = ""  # its path

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

    def worked(self, place):
        return []

    def after(self, place, status, killed, before):
        """What else is wrong, when it has ended with that status; before anything is cleaned up."""
        return []

    def finish(self, place):
        """What of its own has to go before it is asked what is left."""


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
        if saved and not self.lives and self.status(place) != "running":
            return problems + self.restores(place)
        return problems + self.answers(place)

    def finish(self, place):
        place.go.unlink(missing_ok=True)


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
    # Few kernels can tell criu what was written since; what we do is the same with a criu that is none.
    Checkpoints("checkpoint-pre-dump", "--pre-dump", lives=True, criu="./fake-criu"),
    Restores("restore", ""),
    Restores("restore-detached", "-d", "stay"),
    Library("liblean", "none"),
    Library("liblean-lean", "lean"),
]
