#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves one function, the handler.py beside this file, over a Unix socket.

The protocol. The socket is /run/function/socket: whoever starts the container mounts a directory of his own on
/run/function. The socket appears (by a rename) when the function is ready: its packages are imported, and what
setup() makes, as a graph or a network, is there. A connection is one request and one answer, a line of JSON each:

    {"id": 17}                      -> {"id":17,"result":{"text":"Hello, world!"}}
    {"id": 17} (the work failed)    -> {"id":17,"error":"ValueError: why"}
    anything else                   -> {"id":null,"error":"why"}

The id is an integer. Answers have no spaces and sorted keys, and a result has neither times nor anything else that
changes: it equals expected.json of the function's folder, so the caller knows the answer to the byte. A result is
made of what was computed, so that nobody can answer without the work. Then the server closes the connection;
requests are served one after the other. SIGTERM ends it.

    server.py               serves
    server.py --once        sets up, prints one result as it would stand in an answer, and ends

A handler has setup(), which returns a state, and handle(state), which returns the result."""
import json
import os
import signal
import socket
import sys

DIRECTORY = "/run/function"
REQUEST_MAX = 65536
BACKLOG = 64
PATIENCE_S = 60  # for the rest of a request that began


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def answer(handle, line):
    """The answer's line to a request's."""
    ident = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict) or type(request.get("id")) is not int:
            raise ValueError('a request is {"id": NUMBER}')
        ident = request["id"]
        return compact({"id": ident, "result": handle()})
    except Exception as e:  # whatever it is, the caller has to hear of it  # noqa: BLE001
        return compact({"id": ident, "error": f"{type(e).__name__}: {e}"})


def receive(connection):
    """A line without its end; None: the caller went away."""
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(REQUEST_MAX)
        if not part:
            return None
        line += part
        if len(line) > REQUEST_MAX:
            return b"too long"
    return line


def serve(handle):
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(DIRECTORY)  # the path of a socket is short
    for name in ("socket", "socket.new"):
        if os.path.lexists(name):
            os.unlink(name)
    listener.bind("socket.new")
    listener.listen(BACKLOG)
    os.rename("socket.new", "socket")
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            try:
                line = receive(connection)
                if line is not None:
                    connection.sendall(answer(handle, line).encode() + b"\n")
            except OSError:
                pass  # the caller went away


def main():
    # The first process of a pid namespace ignores what it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    here = os.path.dirname(os.path.abspath(__file__))
    packages = os.path.join(here, "packages")
    if os.path.isdir(packages):
        sys.path.insert(1, packages)
    import handler  # pylint: disable=import-outside-toplevel,import-error

    state = handler.setup()
    if sys.argv[1:] == ["--once"]:
        print(compact(handler.handle(state)))
    else:
        serve(lambda: handler.handle(state))


if __name__ == "__main__":
    main()
