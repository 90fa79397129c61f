# SPDX-License-Identifier: Apache-2.0
"""Makes one case after another in a place of its own; requests and answers are lines of JSON.

    worker.py NAME PROGRAMS        with NAME the one of its cgroups, PROGRAMS a JSON object of paths
"""
import json
import sys
import time

from place import Broken, Place, first_process
from verbs import VERBS

WATCHDOG = 20  # seconds: longer than anything waits on purpose, on a busy machine
CACHES = (".seccomp",)
WORDS = {  # what a message says of an error
    "EIO": "input/output error", "ENOMEM": "cannot allocate memory", "EPERM": "not permitted",
    "EMFILE": "too many open files", "ENOSPC": "no space left", "EINTR": "interrupted",
}  # fmt: skip


class Worker:
    def __init__(self, name, programs):
        self.place = Place(name, programs.pop("lean-runtime"), programs, programs.pop("criu", None))
        self.verbs = {v.name: v for v in VERBS}
        self.golden = {}

    def inject(self, verb, case):
        """The verb's commands under the injector; what its report says."""
        place = self.place
        words = [str(place.dir / "inject"), "-t", str(WATCHDOG)]
        words += ["-m"] if verb.marks else []
        words += ["-r"] if verb.seeds else []
        words += ["-a"] if verb.beside else []
        words += ["-f", case] if case else []
        words.append(str(place.dir / "report"))
        for i, command in enumerate(verb.commands(place)):
            words += ([";"] if i else []) + command
        code, _, err = place.do(words, seconds=len(verb.commands(place)) * WATCHDOG + 10, beside=verb.beside, environ=verb.environ)
        report = {"call": [], "hit": [], "crash": [], "stuck": [], "end": []}
        for line in place.text("report").splitlines():
            kind, _, rest = line.partition(" ")
            report[kind].append(rest)
        if not report["end"]:
            raise Broken(f"the injector: {code}: {err.strip()}")
        return report

    def clean(self, verb):
        """One `delete --force`, and what is left after it."""
        place = self.place
        problems = verb.finish(place) or []
        code, out, err = place.rt("delete", "--force", place.id, out="deleted", err="deleted.err")
        if code != 0 or out or err:
            problems.append(f"delete --force: {code}: {(out + err).strip()}")
        if verb.lean:
            code, out, err = place.rt("pool", "status", "--format", "json", out="state", err="state.err")
            if code != 0:
                problems.append(f"pool status: {code}: {err.strip()}")
            elif any(s["used"] for s in json.loads(out)["slots"]):
                problems.append(f"a slot is in use: {out.strip()}")
            code, out, err = place.rt("pool", "drain", out="deleted", err="deleted.err")
            if code != 0 or out or err:
                problems.append(f"pool drain: {code}: {(out + err).strip()}")
        return problems + ["left: " + w for w in place.left(CACHES)]

    def undisturbed(self, verb, times=1):
        """The calls that it makes each time, and what a container says when nothing fails."""
        calls = None
        if verb.name not in self.golden:
            for again in range(times + 1):  # the first one makes mount points and caches
                self.place.fresh()
                verb.setup(self.place)
                report = self.inject(verb, None)
                verb.begin(self.place)
                said = self.place.whole() if verb.probes else ""
                wrong = verb.worked(self.place)
                err = "" if verb.warns else self.place.text("err")
                if int(report["end"][0].split()[0]) != verb.ends or wrong or err:
                    raise Broken(f"{verb.name} without a fault: {report['end']} {wrong} {err}")
                left = self.clean(verb)
                if left and again:
                    raise Broken(f"{verb.name} without a fault: {left}")
                if again:
                    # PROCESS CALL N; what is asked of it may be another each time, as an address is.
                    met = {c.rsplit(" ", 2)[0] for c in report["call"]}
                    calls = [c for c in calls or report["call"] if c.rsplit(" ", 2)[0] in met]
            if verb.probes and not said.endswith("end\n"):
                raise Broken(f"{verb.name} without a fault: the container says nothing")
            self.golden[verb.name] = said
        return calls

    def check(self, verb, case, report, before):
        """How it ended, and what is wrong with that."""
        place, problems = self.place, []
        status, cpu = map(int, report["end"][0].split())
        error = place.text("err").strip()
        fault, of_program = case.split("=")[1], "." not in case.split(":")[0]
        killed = fault == "ORPHAN" or (fault == "KILL" and (of_program or verb.threads and status == -9))
        problems += ["crashes: " + c for c in report["crash"]]
        problems += ["hangs in " + s for s in report["stuck"]]
        if cpu > 5000:
            problems.append(f"spins: {cpu} ms of processor time")
        if not report["hit"]:
            return "missed", problems
        if status < 0 and status != verb.ends and not killed and not report["stuck"]:
            problems.append(f"dies by signal {-status}")
        if status == verb.ends:
            verb.begin(place)
            said = place.whole(others=before) if verb.probes else ""
            if sorted(said.splitlines()) != sorted(self.golden[verb.name].splitlines()):
                problems.append("says 0, but the container is another: " + difference(self.golden[verb.name], said))
            problems += ["says 0, but " + w for w in verb.worked(place)]
        elif status > 0:
            if not error:
                problems.append(f"ends with {status} and says nothing")
            elif fault in WORDS and WORDS[fault] not in error:
                problems.append(f"its error is another: {error}")
            if status == 2 and verb.marks:
                problems.append(error)
        problems += verb.after(place, status, killed, before)
        if verb.keeps:
            # A program that was executed goes on when nobody waits for it any more.
            left = place.nobody_but(before, killed) if status != 0 else ()
            problems += ["left in the container: {} ({})".format(*place.name_of(p)) for p in left]
            if before - place.children():
                problems.append("the container has ended")
        return "killed" if killed else "harmless" if status == 0 else "told", problems

    def case(self, name, case):
        verb, place = self.verbs[name], self.place
        self.undisturbed(verb)
        place.fresh()
        verb.setup(place)
        before = place.children()
        began = time.monotonic()
        report = self.inject(verb, case)
        how, problems = self.check(verb, case, report, before)
        said = place.text("err").strip()
        left = self.clean(verb)
        return {
            "how": how,
            "hit": report["hit"],
            "problems": problems + left,
            "broken": bool(left),
            "said": said,
            "seconds": round(time.monotonic() - began, 3),
        }


def difference(want, got):
    """The first lines that differ."""
    want, got = want.splitlines(), got.splitlines()
    words = [f"-{w}" for w in want if w not in got] + [f"+{w}" for w in got if w not in want]
    return "; ".join(words[:4]) or "a line more or less often"


def main():
    first_process()
    worker = Worker(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "calls" in request:
                # More than once: who waits for others asks them now more, now less often.
                answer = {"calls": worker.undisturbed(worker.verbs[request["calls"]], 3)}
            else:
                answer = worker.case(request["verb"], request["case"])
        except Broken as e:
            answer = {"how": "broken", "problems": [str(e)], "broken": True, "said": "", "hit": [], "seconds": 0}
        if answer.get("broken"):
            answer["cgroups"] = worker.place.cgroups()
        print(json.dumps(answer), flush=True)
        if answer.get("broken"):
            return  # the kernel ends what we leave; but for cgroups


main()
