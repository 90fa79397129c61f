# SPDX-License-Identifier: Apache-2.0
"""The module without a container: a library that says what it is told stands for the real one.

python3 -m unittest discover -s tests, in this file's parent directory."""
import errno
import importlib
import os
import random
import signal
import ssl
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import lean  # noqa: E402


class Library:
    """Says one after the other; notes how long each call would have waited."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.waits = []

    def lean_seed_here(self, ms):
        self.waits.append(ms)
        answer = self.answers.pop(0)
        return answer() if callable(answer) else answer

    def lean_seed_generation(self):
        return 3


class Calls(unittest.TestCase):
    def setUp(self):
        self.kept = lean._library, lean._why
        del lean._in_child[:], lean._in_parent[:]

    def tearDown(self):
        lean._library, lean._why = self.kept
        del lean._in_child[:], lean._in_parent[:]

    def with_answers(self, *answers):
        lean._library = Library(*answers)
        return lean._library

    def test_parent_and_child_are_told_apart(self):
        self.with_answers(0, 1)
        self.assertEqual(lean.seed_here(), 0)
        self.assertEqual(lean.seed_here(), 1)
        self.assertEqual(lean.generation(), 3)

    def test_times(self):
        library = self.with_answers(0, 0, 0, 0)
        lean.seed_here()
        lean.seed_here(timeout=0)
        lean.seed_here(timeout=-5)
        lean.seed_here(timeout=1e12)
        self.assertEqual(library.waits, [-1, 0, 0, 2**31 - 1])

    def test_a_signal_is_handled_and_the_rest_is_waited(self):
        library = self.with_answers(-errno.EINTR, lambda: time.sleep(0.01) or -errno.EINTR, 0)
        self.assertEqual(lean.seed_here(timeout=100), 0)
        self.assertEqual(len(library.waits), 3)
        self.assertLess(library.waits[2], library.waits[0])

    def test_what_a_handler_raises_ends_the_call(self):
        def alarm(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, alarm)
        try:
            self.with_answers(lambda: os.kill(os.getpid(), signal.SIGUSR1) or -errno.EINTR, 0)
            with self.assertRaises(KeyboardInterrupt):
                lean.seed_here()
        finally:
            signal.signal(signal.SIGUSR1, before)

    def test_errors(self):
        self.with_answers(-errno.ETIMEDOUT, -errno.EOPNOTSUPP, -errno.EPERM)
        with self.assertRaises(TimeoutError):
            lean.seed_here(timeout=0)
        for code in errno.EOPNOTSUPP, errno.EPERM:
            with self.assertRaises(OSError) as caught:
                lean.seed_here()
            self.assertEqual(caught.exception.errno, code)

    def test_functions_are_called_in_order_for_whom_they_are(self):
        said = []
        lean.register_at_seed(after_in_child=lambda: said.append("first"))
        lean.register_at_seed(after_in_child=lambda: said.append("second"), after_in_parent=lambda: said.append("parent"))
        self.with_answers(0, 1, -errno.ETIMEDOUT)
        lean.seed_here()
        self.assertEqual(said, ["parent"])
        lean.seed_here()
        self.assertEqual(said, ["parent", "first", "second"])
        with self.assertRaises(TimeoutError):
            lean.seed_here(0)
        self.assertEqual(len(said), 3)
        with self.assertRaises(TypeError):
            lean.register_at_seed(after_in_child=3)

    def test_only_a_child_draws_new_numbers(self):
        self.with_answers(0, 1)
        random.seed(7)
        expected = [random.random() for _ in range(3)]
        random.seed(7)
        lean.seed_here()
        self.assertEqual(random.random(), expected[0])
        lean.seed_here()
        self.assertNotEqual([random.random(), random.random()], expected[1:])

    def test_a_child_stirs_openssl(self):
        stirred = []
        before = ssl.RAND_add
        ssl.RAND_add = lambda data, entropy: stirred.append((data, entropy))
        try:
            self.with_answers(0, 1, 1)
            lean.seed_here()
            self.assertEqual(stirred, [])
            lean.seed_here()
            lean.seed_here()
        finally:
            ssl.RAND_add = before
        self.assertEqual(len(stirred), 2)
        self.assertNotEqual(stirred[0][0], stirred[1][0])
        self.assertEqual(stirred[0][1], len(stirred[0][0]))


class Finding(unittest.TestCase):
    def tearDown(self):
        os.environ.pop("LEAN_LIBRARY", None)
        importlib.reload(lean)

    def test_without_the_library_the_call_says_what_is_missing(self):
        os.environ["LEAN_LIBRARY"] = "/nowhere/liblean-seed.so.0"
        importlib.reload(lean)
        self.assertEqual(lean.generation(), 0)
        with self.assertRaises(FileNotFoundError) as caught:
            lean.seed_here()
        self.assertIn("/nowhere/liblean-seed.so.0", str(caught.exception))

    def test_another_library_of_that_name_is_none(self):
        os.environ["LEAN_LIBRARY"] = "libc.so.6"
        importlib.reload(lean)
        with self.assertRaises(FileNotFoundError) as caught:
            lean.seed_here()
        self.assertIn("lean_seed_here", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
