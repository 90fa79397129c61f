# SPDX-License-Identifier: Apache-2.0
"""What prepare, resume, touch, peak and rpc share: containers of a program that fills its memory (seedling.c) or of a function
(functions/seedling.py), which become seeds, and are continued, in several ways (ways.py)."""
import contextlib
import functools
import hashlib
import os
import select
import shutil
import signal
import subprocess
import time

from leanbench import functions, hardware, machine, options, results, roots, steps, ways
from leanbench.workspace import BENCH, MARK, Failure

SIZES_MB = [1, 16, 64, 128, 256, 512, 1024]
PAGES_OF_MB = 256
PATIENCE_S = 120
COUNTED_S = 10  # lean-forkd counts what the kernel module reads twice a second
PAGE_S = 0.01  # for each that may come when it is touched
CLOCK_SET_NS = 2_000_000  # NTP turns it by 500 ns in a millisecond


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
                        help=", ".join(ways.NAMES) + " (default: all that can be had)")
    parser.add_argument("--rdma", metavar="DEVICE",
                        help="the RDMA device of remote-rdma and remote-module-rdma, or an address of it (default: the first one "
                             "that has an address)")
    parser.add_argument("--forkd", metavar="PATH", help="lean-forkd (default: this build's)")


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
        log, metrics = control + ".log", ways.metrics(control)  # it listens there last
        argv = [program, "--control", control, "serve", "--metrics", metrics, *options]
        with open(log, "wb") as said:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                            start_new_session=True,
                                            preexec_fn=functools.partial(machine.die_with_parent, signal.SIGTERM))
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists(metrics):
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                with open(log, encoding="utf-8", errors="replace") as f:
                    why = f.read().strip().splitlines()[-1:] or options
                raise Failure("lean-forkd does not start: " + " ".join(why))
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
        if not self.ways:
            raise Failure("; ".join(f"{row['runtime']}: {row['skipped']}" for row in self.skipped))
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
        there = ways.of(self.work.path)
        wanted = self.args.way or ways.NAMES
        for name in wanted:
            if name not in ways.NAMES:
                raise Failure(f"--way {name}: there are " + ", ".join(ways.NAMES))
        found = [w for w in there if w.name in wanted]
        if not self.criu:
            found = self._without(found, "criu is not installed", lambda w: w.engine == "criu")
        program = shutil.which(self.args.forkd) if self.args.forkd else forkd()
        if not program:
            why = "lean-forkd is not built" if not self.args.forkd else f"{self.args.forkd} is no program"
            return self._without(found, why, lambda w: w.hosts)
        for hosts in ways.OPTIONS:
            if any(w.hosts == hosts for w in found):
                try:
                    self._daemons(program, hosts)
                except Failure as e:
                    if hosts not in ways.NEEDS_MODULE + ways.NEEDS_RDMA:
                        raise
                    found = self._without(found, str(e), lambda w, hosts=hosts: w.hosts == hosts)
        return found

    def _daemons(self, program, hosts):
        """Those of the two hosts, if this machine has what they need."""
        if hosts in ways.NEEDS_MODULE:
            hardware.check_module()
        address = hardware.rdma_address(self.args.rdma) if hosts in ways.NEEDS_RDMA else "127.0.0.1"
        try:
            port = machine.free_port(address)
        except OSError as e:
            raise Failure(f"--rdma {address}: {e.strerror}") from None
        here, there = ways.sockets(self.work.path, hosts)
        self.daemon(program, here, ["--listen", f"{address}:{port}", *ways.OPTIONS[hosts]])
        self.daemon(program, there, ways.OPTIONS[hosts])

    def daemon(self, *words):
        """One that runs as long as this."""
        self.stack.callback(Daemon(*words).end)

    def _without(self, found, why, which):
        self.skipped += [dict(SKIPPED, runtime=w.name, skipped=why) for w in found if which(w)]
        return [w for w in found if not which(w)]

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
        exported = way.exported()
        begin = time.monotonic()
        ticket = self.call(way.save(parent.ident, images)).strip()
        seconds = time.monotonic() - begin
        seed = Seed(self, way, parent, images, ticket)
        if way.module and way.exported() <= exported:
            seed.remove()
            raise Failure("the kernel module has no page of the seed: it was copied (lean-runtime --debug says why)")
        return seed, seconds

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
        self.counted = way.counted()  # until it has grown

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
        self._check_way()
        return begin, int(words[0])

    def _check_way(self):
        """The first child has touched all of its memory: did that come as it should?"""
        end = time.monotonic() + COUNTED_S
        while self.counted is not None:
            if self.way.counted() > self.counted:
                self.counted = None
            elif time.monotonic() > end:
                raise Failure(f"memory came in another way: lean-forkd's {self.way.counts} has not grown")
            else:
                time.sleep(0.1)


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
