# SPDX-License-Identifier: Apache-2.0
"""What prepare, resume, touch, peak and rpc share: containers of a program that fills its memory (seedling.c) or of a function
(functions/seedling.py), and the ways in which one becomes a seed that others continue. `criu` is what checkpoint and restore do
without another word."""
import contextlib
import functools
import hashlib
import os
import select
import shutil
import signal
import subprocess
import time

from leanbench import functions, machine, options, results, roots, steps
from leanbench.workspace import BENCH, MARK, Failure

SIZES_MB = [1, 16, 64, 128, 256, 512, 1024]
PAGES_OF_MB = 256
PATIENCE_S = 120
PAGE_S = 0.01  # for each that may come when it is touched
CLOCK_SET_NS = 2_000_000  # NTP turns it by 500 ns in a millisecond


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


class Memory:
    """A program with so many megabytes."""

    def __init__(self, mb):
        self.mode, self.about, self.pages = f"{mb} MB", {"mb": mb}, mb * PAGES_OF_MB
        self.check = "check"
        # A page that was written has its first word still.
        self.touches = {"read " + self.mode: "read", "write " + self.mode: f"write {self.pages}"}
        self.words = ["/seedling", str(mb)]

    def bundle(self, work, ident, words):
        path = work.bundle("default", [*self.words, *words], ident)
        program = os.path.join(path, "rootfs", "seedling")
        if not os.path.exists(program):
            shutil.copy(work.program("seedling"), program)
        return path


class Function:
    """One of bench/functions, ready to answer."""

    def __init__(self, root):
        self.mode, self.about, self.root = root.name, {"function": root.name}, root
        self.pages = 64 * PAGES_OF_MB  # of those that it touches, at most
        self.check = "check " + hashlib.sha256(root.answer.encode()).hexdigest()
        self.touches = {self.mode: "handle"}
        self.words = [root.args[0], roots.MOUNTED + "/seedling.py"]

    def bundle(self, work, ident, words):
        path = os.path.join(work.path, "bundle-" + ident)
        self.root.bundle(path, "default", ident, [*self.words, *words], roots.FUNCTIONS)
        return path


def add_options(parser, sizes=None):
    """Those of every command that makes seeds: which, and how."""
    sizes = sizes or SIZES_MB
    parser.add_argument("--mb", type=options.several(), metavar="N,...",
                        help=f"megabytes of the program (default: {','.join(map(str, sizes))}, or none with --function)")
    parser.set_defaults(sizes=sizes)
    functions.options(parser, "none")
    parser.add_argument("--criu", metavar="PATH", help="the program (default: criu, found in PATH)")
    parser.add_argument("--way", action="append", metavar="NAME",
                        help="fork, forkd, forkd-prefetch, forkd-background, remote, remote-prefetch, criu (default: all that can be "
                             "had)")


def add_runs(parser, runs):
    parser.add_argument("--runs", type=options.at_least(1), default=runs)


def row_of(way, subject, mode, good, problem):
    """A way's row but for its figures: after its first failure it is left out."""
    row = {"runtime": way.name, "config": "default", "mode": mode, **subject.about, "runs": good + bool(problem),
           "failed": int(bool(problem))}
    if problem:
        row["error"] = problem
    return row


class Daemon:
    """A lean-forkd of our own."""

    def __init__(self, program, control, options):
        self.control = control
        self.process = subprocess.Popen([program, "--control", control, "serve", *options], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                        preexec_fn=functools.partial(machine.die_with_parent, signal.SIGTERM))
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


def clock_offset():
    """Of the wall clock, which a child in another time namespace sees, too, from the clock that nobody can set. It changes
    when somebody sets the wall clock."""
    return time.time_ns() - time.monotonic_ns()


def check_clock(before):
    """before: clock_offset() when the measurement began."""
    if abs(clock_offset() - before) > CLOCK_SET_NS:
        raise Failure("the machine's clock was set meanwhile: the time that was measured is wrong; begin again")


def forkd():
    return built("src", "forkd", "lean-forkd")


SKIPPED = {"config": "default", "runs": 0, "failed": 0}


class Nursery:
    """The ways there are, with what they need; a context."""

    def __init__(self, args, work):
        self.args, self.work, self.skipped = args, work, []
        self.limit_s = 2 * args.timeout or None  # that of a command which writes memory
        self.runtime = work.runtimes[0]
        self.criu = shutil.which(args.criu or "criu")
        self.stack = contextlib.ExitStack()
        work.compile_seedling()

    def __enter__(self):
        with self.stack:
            self.ways = self._find()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *what):
        return self.stack.__exit__(*what)

    def measure(self, rows_of):
        """rows_of(subject) for each that is asked for. Each is a step, kept if the next one is stopped."""
        args = self.args
        names = args.function or []
        megabytes = args.mb or ([] if names else args.sizes)
        journal = results.Journal(args, self.work, len(megabytes) + len(names))
        steps.again(journal)
        for mb in megabytes:
            journal.step(f"{mb} MB", steps.timed(functools.partial(rows_of, Memory(mb))))
        with roots.Cache(args.cache, args.base) if names else contextlib.nullcontext() as kept:
            for name in names:
                journal.step(name, steps.timed(functools.partial(self._function, kept, name, rows_of)))
        return journal.end() + self.skipped

    @staticmethod
    def _function(kept, name, rows_of):
        try:
            root = kept.get(name)
        except (Failure, OSError) as e:
            return [{**functions.problem(name, e), "config": "default"}]
        return rows_of(Function(root))

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
                self.daemon(program, a, ["--listen", f"127.0.0.1:{machine.free_port()}"])
                self.daemon(program, b, [])
            else:
                ways = self._without(ways, lambda w: w.here, "lean-forkd is not built")
        return ways

    def daemon(self, *words):
        """One that runs as long as this."""
        self.stack.callback(Daemon(*words).end)

    def _without(self, ways, which, why):
        self.skipped += [dict(SKIPPED, runtime=w.name, skipped=why) for w in ways if which(w)]
        return [w for w in ways if not which(w)]

    # ---- containers ----------------------------------------------------------------------------

    def argv(self, words):
        criu = ["--criu", self.criu] if self.criu else []
        return [self.runtime.path, *criu, "--root", self.work.state(self.runtime), *words]

    def call(self, words, **kw):
        try:
            done = subprocess.run(self.argv(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, errors="replace", timeout=self.limit_s, check=False, **kw)
        except subprocess.TimeoutExpired:
            raise Failure(f"{words[0]}: no end within {self.limit_s} s") from None
        if done.returncode:
            raise Failure(f"{words[0]}: " + (done.stderr.strip().splitlines() or ["status %d" % done.returncode])[-1])
        return done.stdout

    def parent(self, name, subject, *words):
        """A container of it that has said that it is ready. Input and output are pipes, which every way can give
        to a child anew."""
        ident = self.work.ident(self.runtime, name)
        bundle = subject.bundle(self.work, ident, words)
        keep, writer = os.pipe()  # nobody writes to it: the parent waits
        reader, said = os.pipe()
        try:
            status = subprocess.run(self.argv(["run", "--detach", "--bundle", bundle, ident]), stdin=keep, stdout=said,
                                    stderr=said, timeout=self.limit_s, check=False).returncode
        except subprocess.TimeoutExpired:
            status = None
        finally:
            os.close(keep)
            os.close(said)
        parent = Parent(self, ident, writer, reader, subject)
        if status is None:
            raise Failure(f"run: no end within {self.limit_s} s")
        heard = parent.words(1)
        if status:
            raise Failure(" ".join([f"run: status {status}:", *heard[-40:]]))
        if heard != ["ready"]:
            parent.remove()
            raise Failure(" ".join(["the program did not get ready:", *heard[-12:]]))
        return parent

    def seed(self, way, parent):
        """Makes it one; what `go_on` needs, and the seconds that the command took."""
        images = os.path.join(self.work.path, "images-" + way.name)
        shutil.rmtree(images, ignore_errors=True)
        begin = time.monotonic()
        ticket = self.call(way.save(parent.ident, images)).strip()
        return Seed(self, way, parent, images, ticket), time.monotonic() - begin

    @contextlib.contextmanager
    def seeds(self, subject):
        """A container of it, as a seed of each way: {its name: the seed}, and {its name: why there is none}."""
        made, problems = {}, {}
        with contextlib.ExitStack() as taken_away:
            parent = self.parent("parent", subject)
            taken_away.callback(parent.remove)
            for way in self.ways:
                try:
                    seed = made[way.name] = self.seed(way, parent)[0]
                    taken_away.callback(seed.remove)
                except Failure as e:
                    problems[way.name] = str(e)
            yield made, problems


class Parent:
    def __init__(self, nursery, ident, writer, reader, subject):
        self.nursery, self.ident, self.subject = nursery, ident, subject
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
        self.nursery, self.way, self.subject, self.images, self.ticket = nursery, way, parent.subject, images, ticket

    def remove(self):
        """What lean-forkd holds is memory."""
        if self.ticket:
            self.nursery.call(["seed", "rm", "--forkd", self.way.here, self.ticket.split(":")[3]])

    def command(self, ident):
        bundle = self.subject.bundle(self.nursery.work, ident, [])
        return self.nursery.argv(self.way.go_on(ident, bundle, self.images, self.ticket))

    def child(self, name, lines):
        """Continues it in a container, and does the lines; when the command was begun (ns), and the words that were
        said."""
        nursery = self.nursery
        ident = nursery.work.ident(nursery.runtime, name)
        argv = self.command(ident)
        orders, writer = os.pipe()
        reader, said = os.pipe()
        wrong, errors = os.pipe()  # criu continues pipes alone as what they are
        os.write(writer, "\n".join(lines).encode() + b"\n")
        os.close(writer)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((orders, said, errors))]
        offset, begin = clock_offset(), time.time_ns()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setpgroup=0)
        for fd in (orders, said, errors):
            os.close(fd)
        patience = nursery.limit_s and nursery.limit_s + self.subject.pages * PAGE_S
        text, why = _heard(nursery, ident, (reader, wrong), pid, patience)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if text is None:
            raise Failure(f"restore: no end within {patience:.0f} s")
        if status != MARK:
            raise Failure(f"restore: status {status}: " + " ".join(why.splitlines()[-1:]))
        check_clock(offset)
        return begin, text.split()

    def does(self, name, line):
        """A child that does the line, and has its parent's memory: when the command was begun, and what the child said (ns)."""
        begin, words = self.child(name, [line, self.subject.check])
        if words[1:] != ["same"]:
            raise Failure("memory is not what it was: " + " ".join(words))
        return begin, int(words[0])


def _heard(nursery, ident, pipes, pid, patience):
    """What comes out of the pipes until nobody writes to them any more; None if that takes too long: the command ends then,
    and its container, too."""
    said, left, began = {fd: b"" for fd in pipes}, list(pipes), time.monotonic()
    while left:
        ready = select.select(left, [], [], max(0, began + patience - time.monotonic()) if patience else None)[0]
        if not ready:
            os.killpg(pid, signal.SIGKILL)  # with what it has started
            nursery.work.remove_container(ident)
            said = dict.fromkeys(pipes)
            break
        for fd in ready:
            more = os.read(fd, 65536)
            said[fd] += more
            if not more:
                left.remove(fd)
    for fd in pipes:
        os.close(fd)
    return [text if text is None else text.decode(errors="replace") for text in said.values()]
