# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian's with what they depend on, as a tree or an archive, by mmdebstrap."""
import os

from leanbench import cache

SUITE = "bookworm"


def without(*names):
    """Options: these directories of /usr/share are left out."""
    return [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in names]


def command(target, packages, *options, variant="extract"):
    """argv, as far as it says what the result is."""
    return ["mmdebstrap", "--quiet", "--variant=" + variant, "--include=" + packages, *options, SUITE, target]


def unpack(what, argv, **env):
    """LEAN_BENCH_MIRROR names a mirror."""
    mirror = os.environ.get("LEAN_BENCH_MIRROR")
    cache.step(what, [*argv, *([mirror] if mirror else [])], **env)
