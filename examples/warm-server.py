#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that is warm before anybody asks it.

    warm-server.py SOCKET

It imports its packages and makes its model, once, which takes a second. Then it says where its children go on. Only
after that it opens its socket, as a seed can't carry an open one. Parent and children answer, each at its own SOCKET: give
each container another directory there, by a mount or by a copy of the root file system.

    lean-runtime run --detach --bundle B warm
    lean-runtime checkpoint --engine=fork --when-ready=1m --image-path seed warm
    lean-runtime restore --engine=fork --image-path seed --bundle B2 --detach warm-2

A request is a line, {"text": "..."}, and so is the answer: the words of the text that the model finds likely, which
model that is (it was made once), how many seeds lie before this process, and a random number."""
import collections
import json
import os
import random
import re
import secrets
import socketserver
import ssl
import sys
import uuid
import xml.dom.minidom  # noqa: F401 - what a function of this kind would import

import lean

REQUEST_MAX = 65536


class Model:
    """What takes long to make: how often each word occurs in the documentation of the loaded modules."""

    def __init__(self):
        self.id = uuid.uuid4().hex
        self.counts = collections.Counter()
        for module in list(sys.modules.values()):
            for thing in [module, *vars(module).values()]:
                text = getattr(thing, "__doc__", None)
                if isinstance(text, str):
                    self.counts.update(re.findall(r"[a-z]+", text.lower()))

    def likely(self, text):
        return [word for word in re.findall(r"[a-z]+", text.lower()) if self.counts[word] > 20]


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            text = json.loads(self.rfile.readline(REQUEST_MAX))["text"]
            said = {
                "words": self.server.model.likely(text),
                "model": self.server.model.id,
                "generation": lean.generation(),
                "random": random.random(),
                "ssl": ssl.RAND_bytes(16).hex(),
                "secret": secrets.token_hex(16),
            }
        except (ValueError, TypeError, KeyError) as e:
            said = {"error": f"{type(e).__name__}: {e}"}
        self.wfile.write(json.dumps(said).encode() + b"\n")


def serve(path, model):
    """Who sees the socket can connect to it: it gets its name when the server listens."""
    if os.path.lexists(path):
        os.unlink(path)
    with socketserver.ThreadingUnixStreamServer(path + ".new", Handler) as server:
        server.model = model
        os.rename(path + ".new", path)
        server.serve_forever()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model = Model()
    # Numbers were drawn already, as they would be in a real one: a child draws others.
    random.random()
    ssl.RAND_bytes(1)
    who = "a child" if lean.seed_here() else "the parent"
    print(f"{who}, of generation {lean.generation()}, serves at {sys.argv[1]}", flush=True)
    serve(sys.argv[1], model)


if __name__ == "__main__":
    main()
