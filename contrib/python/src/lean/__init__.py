# SPDX-License-Identifier: Apache-2.0
"""Where the children of a container that becomes a seed go on.

    import lean
    import something_heavy

    something_heavy.warm_up()
    lean.seed_here()  # 0: there is a seed, and this is its parent; 1: this is a child of it
    serve()

Outside, `lean-runtime checkpoint --engine=fork --when-ready ...` makes the seed, and `restore` its children. The
functions are liblean-seed's (lean_seed_here(3)): a library of the image's, or the one that LEAN_LIBRARY names.

All children have what the parent had in memory. What has to be secret in each of them, or different, has to be drawn
again. seed_here does that for `random`, `numpy.random` and `ssl`, if they were imported; for all else, give functions
to register_at_seed. What asks the kernel each time (secrets, os.urandom, uuid.uuid4) needs nothing. The hash seed of str
and bytes stays what it was, and so do keys that were made before. The functions of os.register_at_fork are not called.
A child has all threads of its parent. They go on at once, and may draw numbers before seed_here returns."""
import ctypes
import errno
import os
import sys
import time

__all__ = ["generation", "register_at_seed", "seed_here"]

_NAMES = ("liblean-seed.so.0", "liblean.so.0")
_MOST_MS = 2**31 - 1

_in_child = []
_in_parent = []


def _load():
    """The library, or None, and why not."""
    named = os.environ.get("LEAN_LIBRARY")
    why = "no " + " and no ".join(_NAMES)
    for name in (named,) if named else _NAMES:
        try:
            library = ctypes.CDLL(name)
            library.lean_seed_here.argtypes = [ctypes.c_int]
            library.lean_seed_here.restype = ctypes.c_int
            library.lean_seed_generation.argtypes = []
            library.lean_seed_generation.restype = ctypes.c_uint
        except (OSError, AttributeError) as e:
            why = str(e) if named else why
        else:
            return library, None
    return None, why


_library, _why = _load()


def generation():
    """How many seeds lie between the program's start and this process: 0 in a process that is no child."""
    return _library.lean_seed_generation() if _library else 0


# It marks the process: a child of a seed that is made from here on can be told that it is one.
generation()


def register_at_seed(*, after_in_child=None, after_in_parent=None):
    """Has seed_here call these functions, without arguments and in the order of registration, before it returns."""
    for function, known in ((after_in_child, _in_child), (after_in_parent, _in_parent)):
        if function is None:
            continue
        if not callable(function):
            raise TypeError("a function is expected")
        known.append(function)


def _draw_again():
    """New numbers for the generators that are Python's own and whose state is in memory."""
    random = sys.modules.get("random")
    if random:
        random.seed()
    numpy = sys.modules.get("numpy.random")
    if numpy:
        numpy.seed()
    ssl = sys.modules.get("ssl")
    if ssl:
        # OpenSSL tells a fork by its process id, and a child's is its parent's.
        ssl.RAND_add(os.urandom(48), 48.0)


_WORDS = {
    errno.ETIMEDOUT: "no seed was made",
    errno.EOPNOTSUPP: "no seed can be made of this process: it is in no container, or not on x86-64",
}


def _call(deadline):
    """The library's call, again after each signal: only between two calls can Python run the signal's handler."""
    while True:
        if deadline is None:
            ms = -1
        else:
            ms = min(max(0, int((deadline - time.monotonic()) * 1000 + 0.999)), _MOST_MS)
        r = _library.lean_seed_here(ms)
        if r == -errno.EINTR or (r == -errno.ETIMEDOUT and ms == _MOST_MS):
            continue
        return r


def seed_here(timeout=None):
    """Waits until a seed was made of the container, at most `timeout` seconds (None: without an end; 0: not at all).

    Returns 0 in the parent, and 1 in each child of the seed. If the seed was made while no thread was in this call, the
    next call in a child returns 1 at once. Raises TimeoutError, or OSError with the errno: EOPNOTSUPP where no seed can
    ever be made, ENOENT without the library."""
    if not _library:
        raise OSError(errno.ENOENT, "liblean-seed is not to be had: " + _why)
    r = _call(None if timeout is None else time.monotonic() + max(0, timeout))
    if r < 0:
        raise OSError(-r, _WORDS.get(-r, os.strerror(-r)))
    if r:
        _draw_again()
    for function in _in_child if r else _in_parent:
        function()
    return r
