#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A function as what lean-bench prepare, resume and touch make a seed of: set up as server.py sets it up, it does what lines
on its input say, in the way of ../seedling.c. It is mounted on /run/function.

    seedling.py         waits for lines, and does what they say
    seedling.py spin    looks at the clock, until SIGTERM

It says `ready` when it could answer. Lines, and what they print (ns):

    now                 the time, first thing
    handle              how long one request's work took
    check DIGEST        `same`, if that is SHA-256 of the last result, or else `different`

spin prints, at its end, how long a fork took, and the longest time between two looks at the clock."""
import hashlib
import os
import signal
import sys
import time

FUNCTION = "/function"
MARK = 7
over = False


def end(*_):
    global over
    over = True


def say(text):
    os.write(1, text.encode() + b"\n")


def obey(compact, handle):
    lines = os.read(0, 4096)
    arrived = time.time_ns()
    result = None
    for line in lines.decode().splitlines():
        verb, *words = line.split()
        if verb == "now":
            say(str(arrived))
        elif verb == "handle":
            begin = time.monotonic_ns()
            result = handle()
            say(str(time.monotonic_ns() - begin))
        elif verb == "check":
            result = handle() if result is None else result
            say("same" if [hashlib.sha256(compact(result).encode()).hexdigest()] == words else "different")
        else:
            return 2
    return MARK


def fork_once():
    begin = time.monotonic_ns()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    took = time.monotonic_ns() - begin
    os.waitpid(pid, 0)
    return took


def spin():
    forked, longest = fork_once(), 0
    say("ready")
    last = time.monotonic_ns()
    while not over:
        now = time.monotonic_ns()
        longest = max(longest, now - last)
        last = now
    say(f"{forked} {longest}")
    return MARK


def main():
    signal.signal(signal.SIGTERM, end)
    sys.path[:1] = [FUNCTION]
    packages = os.path.join(FUNCTION, "packages")
    if os.path.isdir(packages):
        sys.path.insert(1, packages)
    import handler  # pylint: disable=import-outside-toplevel,import-error
    import server  # pylint: disable=import-outside-toplevel,import-error

    state = handler.setup()
    if sys.argv[1:] == ["spin"]:
        return spin()
    say("ready")
    return obey(server.compact, lambda: handler.handle(state))


if __name__ == "__main__":
    sys.exit(main())
