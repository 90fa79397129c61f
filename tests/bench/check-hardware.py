#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-hardware.py BENCH: which RDMA device is taken, and what is said where there is none, with directories like those of the
kernel, whose network device is the loopback; what a daemon counts."""
import os
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

from leanbench import hardware, ways  # noqa: E402
from leanbench.workspace import Failure  # noqa: E402


def refused(words, call, *args, **kw):
    try:
        got = call(*args, **kw)
    except Failure as e:
        assert words in str(e), str(e)
        return
    raise AssertionError(f"{words}: got {got}")


def put(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def check_devices(top):
    places = {"devices": os.path.join(top, "infiniband"), "network": os.path.join(top, "net")}

    def address(wanted=None):
        return hardware.rdma_address(wanted, **places)
    refused("no RDMA device (", address)
    refused("no RDMA device (", address, "rxe0")
    os.makedirs(places["devices"] + "/down0/ports/1")
    refused("no RDMA device has a network device that is up, with an IPv4 address: down0", address)
    put(places["devices"] + "/rxe0/ports/1/gid_attrs/ndevs/0", "lo\n")
    put(places["devices"] + "/rxe0/ports/1/gid_attrs/ndevs/1")
    assert address() == "127.0.0.1" and address("rxe0") == "127.0.0.1"
    refused("no RDMA device has a network device that is up, with an IPv4 address: down0", address, "down0")
    refused("there is no RDMA device rxe1; there are down0, rxe0", address, "rxe1")
    refused("there is no RDMA device ../net; there are", address, "../net")
    put(places["network"] + "/lo/device/infiniband/down0/x")  # IPoIB: they have a parent in common
    assert address("down0") == "127.0.0.1"
    assert address("192.0.2.7") == "192.0.2.7"


def check_module(top):
    refused("lean_seed is not loaded: there is no " + top, hardware.check_module, top + "/lean-seed")
    refused(top + ": Is a directory", hardware.check_module, top)
    put(top + "/lean-seed")
    hardware.check_module(top + "/lean-seed")


def check_figures(top):
    path = os.path.join(top, "metrics")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def tell():
            for _ in range(2):
                with listener.accept()[0] as peer:
                    peer.sendall(b"# TYPE lean_forkd_sources gauge\nlean_forkd_sources_more 9\nlean_forkd_sources 7\n")
        teller = threading.Thread(target=tell)
        teller.start()
        assert hardware.figure(path, "sources") == 7
        refused("lean-forkd has no figure source", hardware.figure, path, "source")
        teller.join()
    refused("lean-forkd tells no figures", hardware.figure, path, "sources")


def check_ways():
    there = ways.of("/d")
    assert tuple(w.name for w in there) == ways.NAMES
    assert all((w.hosts in ways.OPTIONS) == bool(w.here) == bool(w.there) for w in there)
    # What takes no hardware uses none that happens to be there, and what takes it has to prove that it is used.
    for way in there:
        needs = way.hosts in ways.NEEDS_MODULE + ways.NEEDS_RDMA
        assert needs == bool(way.counts), way.name
        if way.here:
            assert ("--module=off" in ways.OPTIONS[way.hosts]) != way.module
            assert ("--rdma=require" in ways.OPTIONS[way.hosts]) == (way.hosts in ways.NEEDS_RDMA)


subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with tempfile.TemporaryDirectory() as directory:
    check_devices(directory)
    check_module(directory)
    check_figures(directory)
check_ways()
