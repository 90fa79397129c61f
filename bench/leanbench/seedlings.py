# SPDX-License-Identifier: Apache-2.0
"""What prepare, resume, touch, peak and rpc share: containers of a program that fills its memory (seedling.c), and the ways in
which one becomes a seed that others continue. `criu` is what checkpoint and restore do without another word."""
import os
import select
import shutil
import signal
import subprocess
import time

from leanbench import machine
from leanbench.workspace import BENCH, MARK, Failure

SIZES_MB = "1,16,64,128,256,512,1024"
PATIENCE_S = 120


class Way:
    """A way to make a seed of a container, and to continue it."""

    def __init__(self, name, engine, here=None, there=None, prefetch=False, background=False):
        """here, there: sockets of the daemons of the two hosts, or None: by files."""
        self.name, self.engine, self.here, self.there, self.prefetch = name, engine, here, there, prefetch
        self.background = background

    def save(self, ident, images):
        if self.here:
            return ["checkpoint", "--remote", *(["--background"] if self.background else []), "--forkd", self.here, ident]
        return ["checkpoint", f"--engine={self.engine}", "--image-path", images, "--leave-running", ident]

    def go_on(self, ident, bundle, images, ticket):
        if self.here:
            return ["restore", "--remote", ticket, "--forkd", self.there, "--bundle", bundle,
                    f"--fetch={'prefetch' if self.prefetch else 'ondemand'}", ident]
        return ["restore", f"--engine={self.engine}", "--image-path", images, "--bundle", bundle, ident]


def add_options(parser, runs):
    parser.add_argument("--mb", default=SIZES_MB, metavar="N,...", help=f"megabytes of the program ({SIZES_MB})")
    parser.add_argument("--runs", type=int, default=runs)
    add_ways(parser)


def add_ways(parser):
    parser.add_argument("--criu", metavar="PATH", help="the program (default: criu, found in PATH)")
    parser.add_argument("--way", action="append", metavar="NAME",
                        help="fork, forkd, forkd-prefetch, forkd-background, remote, remote-prefetch, criu (default: all that can be "
                             "had)")


def sizes(args):
    found = [int(n) for n in args.mb.split(",") if n.isdigit()]
    if not found or min(found) < 1 or args.runs < 1:
        raise Failure("--mb are numbers from 1, as 1,16,128, and --runs begins at 1")
    return found


def row_of(way, mode, good, problem):
    """A way's row but for its figures: after its first failure it is left out."""
    row = {"runtime": way.name, "config": "default", "mode": mode, "runs": good + bool(problem),
           "failed": int(bool(problem))}
    if problem:
        row["error"] = problem
    return row


class Daemon:
    """A lean-forkd of our own."""

    def __init__(self, program, control, options):
        self.control = control
        self.process = subprocess.Popen([program, "--control", control, "serve", *options], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists(control):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure("lean-forkd does not start: " + " ".join(options))
            time.sleep(0.01)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def built(*path):
    """A program of lean-forkd's build, which is the library's where the runtime is built for another libc."""
    root = os.path.dirname(BENCH)
    for build in ("build-lib", "build"):
        found = os.path.join(root, build, *path)
        if os.access(found, os.X_OK):
            return found
    return None


def forkd():
    return built("src", "forkd", "lean-forkd")


SKIPPED = {"config": "default", "runs": 0, "failed": 0}


class Nursery:
    """The ways there are, with what they need; a context."""

    def __init__(self, args, work):
        self.args, self.work, self.daemons, self.skipped = args, work, [], []
        self.runtime = work.runtimes[0]
        self.criu = shutil.which(args.criu or "criu")
        work.compile_seedling()

    def __enter__(self):
        try:
            self.ways = self._find()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.end()

    def _find(self):
        a, b = (os.path.join(self.work.path, name) for name in ("a.sock", "b.sock"))
        there = [Way("fork", "fork"), Way("forkd", None, a, a), Way("forkd-prefetch", None, a, a, True),
                 Way("forkd-background", None, a, a, background=True), Way("remote", None, a, b), Way("remote-prefetch", None, a, b, True), Way("criu", "criu")]
        wanted = self.args.way or [w.name for w in there]
        for name in wanted:
            if name not in (w.name for w in there):
                raise Failure(f"--way {name}: there are " + ", ".join(w.name for w in there))
        ways = [w for w in there if w.name in wanted]
        if not self.criu:
            ways = self._without(ways, lambda w: w.engine == "criu", "criu is not installed")
        if any(w.here for w in ways):
            program = forkd()
            if program:
                self.daemons.append(Daemon(program, a, ["--listen", f"127.0.0.1:{machine.free_port()}"]))
                self.daemons.append(Daemon(program, b, []))
            else:
                ways = self._without(ways, lambda w: w.here, "lean-forkd is not built")
        return ways

    def _without(self, ways, which, why):
        self.skipped += [dict(SKIPPED, runtime=w.name, skipped=why) for w in ways if which(w)]
        return [w for w in ways if not which(w)]

    # ---- containers ----------------------------------------------------------------------------

    def argv(self, words):
        criu = ["--criu", self.criu] if self.criu else []
        return [self.runtime.path, *criu, "--root", self.work.state(self.runtime), *words]

    def call(self, words, **kw):
        done = subprocess.run(self.argv(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False, **kw)
        if done.returncode:
            raise Failure(f"{words[0]}: " + (done.stderr.strip().splitlines() or ["status %d" % done.returncode])[-1])
        return done.stdout

    def parent(self, name, words):
        """A container of seedling that has said that it is ready. Input and output are pipes, which every way can give
        to a child anew."""
        ident = self.work.ident(self.runtime, name)
        bundle = self.bundle(ident, words)
        keep, writer = os.pipe()  # nobody writes to it: the parent waits
        reader, said = os.pipe()
        try:
            subprocess.run(self.argv(["run", "--detach", "--bundle", bundle, ident]), stdin=keep, stdout=said,
                           stderr=said, timeout=PATIENCE_S, check=True)
        finally:
            os.close(keep)
            os.close(said)
        parent = Parent(self, ident, writer, reader, int(words[0]))
        if parent.words(1) != ["ready"]:
            parent.remove()
            raise Failure("the program did not get ready")
        return parent

    def bundle(self, ident, words=()):
        path = self.work.bundle("default", ["/seedling", *words], ident)
        program = os.path.join(path, "rootfs", "seedling")
        if not os.path.exists(program):
            shutil.copy(self.work.program("seedling"), program)
        return path

    def seed(self, way, parent):
        """Makes it one; what `go_on` needs, and the seconds that the command took."""
        images = os.path.join(self.work.path, "images-" + way.name)
        shutil.rmtree(images, ignore_errors=True)
        begin = time.monotonic()
        ticket = self.call(way.save(parent.ident, images)).strip()
        return Seed(self, way, parent, images, ticket), time.monotonic() - begin


class Parent:
    def __init__(self, nursery, ident, writer, reader, mb):
        self.nursery, self.ident, self.mb = nursery, ident, mb
        self.pipes = [writer, reader]

    def words(self, count):
        """That it says next."""
        text, end = "", time.monotonic() + PATIENCE_S
        while len(text.split()) < count or not text.endswith("\n"):
            if not select.select([self.pipes[1]], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure("the program says nothing")
            more = os.read(self.pipes[1], 4096).decode()
            if not more:
                break
            text += more
        return text.split()

    def end(self):
        """By SIGTERM: the words that it says then."""
        self.nursery.call(["kill", self.ident, "TERM"])
        return self.words(2)

    def remove(self):
        while self.pipes:
            os.close(self.pipes.pop())
        self.nursery.call(["delete", "--force", self.ident])


class Seed:
    def __init__(self, nursery, way, parent, images, ticket):
        self.nursery, self.way, self.mb, self.images, self.ticket = nursery, way, parent.mb, images, ticket

    def remove(self):
        """What lean-forkd holds is memory."""
        if self.ticket:
            self.nursery.call(["seed", "rm", "--forkd", self.way.here, self.ticket.split(":")[3]])

    def child(self, name, lines):
        """Continues it in a container, and does the lines; when the command was begun (ns), and the words that were
        said."""
        nursery = self.nursery
        ident = nursery.work.ident(nursery.runtime, name)
        argv = nursery.argv(self.way.go_on(ident, nursery.bundle(ident), self.images, self.ticket))
        orders, writer = os.pipe()
        reader, said = os.pipe()
        wrong, errors = os.pipe()  # criu continues pipes alone as what they are
        os.write(writer, "\n".join(lines).encode() + b"\n")
        os.close(writer)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((orders, said, errors))]
        begin = time.time_ns()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        for fd in (orders, said, errors):
            os.close(fd)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as f:
            words = f.read().split()
        with os.fdopen(wrong, encoding="utf-8", errors="replace") as f:
            why = " ".join(f.read().splitlines()[-1:])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status != MARK:
            raise Failure(f"restore: status {status}: {why}")
        return begin, words
