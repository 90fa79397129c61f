# SPDX-License-Identifier: Apache-2.0
"""The ways in which a container becomes a seed that others continue, and the daemons of the two hosts that each takes. `criu` is
what checkpoint and restore do without another word."""
import os

from leanbench import hardware

# Of both hosts' daemons: what they may use, and no other.
OPTIONS = {"tcp": ["--module=off", "--rdma=off"], "module": ["--rdma=off"], "rdma": ["--module=off", "--rdma=require"],
           "both": ["--rdma=require"]}
NEEDS_MODULE, NEEDS_RDMA = ("module", "both"), ("rdma", "both")
NAMES = ("fork", "forkd", "forkd-prefetch", "forkd-background", "remote", "remote-prefetch", "module", "remote-module",
         "remote-rdma", "remote-module-rdma", "criu")


class Way:
    """A way to make a seed of a container, and to continue it."""

    def __init__(self, name, engine=None, hosts=None, *, here=None, there=None, prefetch=False, background=False, counts=None):
        """engine: by files. Else hosts: one of OPTIONS; here, there: sockets of their daemons; counts: a figure of there's daemon
        that grows if memory comes this way, and in no other."""
        self.name, self.engine, self.hosts, self.here, self.there = name, engine, hosts, here, there
        self.prefetch, self.background, self.counts = prefetch, background, counts

    @property
    def module(self):
        """The kernel module has the seed's pages."""
        return self.hosts in NEEDS_MODULE

    def save(self, ident, images):
        if self.here:
            return ["checkpoint", "--remote", *(["--background"] if self.background else []), "--forkd", self.here, ident]
        return ["checkpoint", f"--engine={self.engine}", "--image-path", images, "--leave-running", ident]

    def go_on(self, ident, bundle, images, ticket):
        if self.here:
            return ["restore", "--remote", ticket, "--forkd", self.there, "--bundle", bundle,
                    f"--fetch={'prefetch' if self.prefetch else 'ondemand'}", ident]
        return ["restore", f"--engine={self.engine}", "--image-path", images, "--bundle", bundle, ident]

    def exported(self):
        return hardware.figure(metrics(self.here), "exported_pages") if self.module else 0

    def counted(self):
        return hardware.figure(metrics(self.there), self.counts) if self.counts else None


def sockets(directory, hosts):
    """Of the seed's host, and of the children's."""
    return [os.path.join(directory, f"{hosts}-{end}.sock") for end in ("seed", "child")]


def metrics(control):
    return control + ".metrics"


def of(directory):
    """All of them, in the order of NAMES. "Remote" is another daemon than the seed's."""
    def by(name, hosts, remote=False, **more):
        here, there = sockets(directory, hosts)
        return Way(name, hosts=hosts, here=here, there=there if remote else here, **more)
    return [Way("fork", "fork"), by("forkd", "tcp"), by("forkd-prefetch", "tcp", prefetch=True),
            by("forkd-background", "tcp", background=True), by("remote", "tcp", True), by("remote-prefetch", "tcp", True, prefetch=True),
            by("module", "module", counts="source_pages_total"), by("remote-module", "module", True, counts="source_pages_total"),
            by("remote-rdma", "rdma", True, counts="rdma_read_bytes_total"),
            by("remote-module-rdma", "both", True, counts="source_linked_pages_total"), Way("criu", "criu")]
