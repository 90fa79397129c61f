#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-cache.py BENCH DIR: what leanbench/cache.py promises, tried in DIR."""
import os
import sys
import types

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

from leanbench import cache, images  # noqa: E402
from leanbench.workspace import Failure  # noqa: E402

TOP = sys.argv[2]


def refused(path, why):
    try:
        with cache.Directory(path):
            pass
    except Failure as e:
        assert why in str(e), e
        return
    raise AssertionError(f"{path} was taken")


def check_owner():
    path = os.path.join(TOP, "owner")
    os.makedirs(path)
    os.chmod(path, 0o775)
    refused(path, "others may write to it")
    os.chmod(path, 0o755)
    with cache.Directory(path):
        pass
    os.chown(path, 65534, 65534)
    refused(path, "belongs to somebody else")


def check_half_made():
    with cache.Directory(os.path.join(TOP, "half"), "part") as kept:
        with kept.alone(), kept.making() as killed:
            os.mkdir(os.path.join(killed, "x"))
            os.rename(killed, killed + "-left")
            os.mkdir(killed)
        assert os.listdir(kept.path) != ["lock"]
        with kept.alone():
            assert os.listdir(kept.path) == ["lock"]
        try:
            with kept.alone(), kept.making():
                raise Failure("half-way")
        except Failure:
            assert os.listdir(kept.path) == ["lock"]


def make(number):
    """A line of what was made, and how often."""
    write = images._write_layer

    def counted(*args):
        with open(os.path.join(TOP, "made"), "a", encoding="ascii") as f:
            f.write(f"{number}\n")
        return write(*args)
    images._write_layer = counted
    store = types.SimpleNamespace(chosen=os.path.join(TOP, "both"), _facts=images.Images._facts, _make=images.Images._make)
    layer, facts = images.Images._data(store, "files-1000")
    assert facts["shown"].startswith("1000 4096000 ") and os.path.getsize(layer) > 4096000


def check_two_at_once():
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                make(number)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    with open(os.path.join(TOP, "made"), encoding="ascii") as f:
        assert len(f.readlines()) == 1
    assert sorted(os.listdir(os.path.join(TOP, "both"))) == ["files-1000-1.json", "files-1000-1.tar", "lock"]


check_owner()
check_half_made()
check_two_at_once()
