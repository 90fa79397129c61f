# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command line: what makes no sense is refused before anything is made, with its option's name."""
import argparse


def at_least(least, of=int):
    """For add_argument(type=...)."""
    def parse(text):
        try:
            value = of(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is no {'whole ' if of is int else ''}number from {least} on")
        return value
    return parse


def several(most=None):
    """The same of a list: 1,2,4."""
    def parse(text):
        words = text.split(",")
        if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= (most or int(word)) for word in words):
            raise argparse.ArgumentTypeError(f"{text!r} isn't numbers from 1{f' to {most}' if most else ''} with commas "
                                             "between, as 1,2,4")
        return [int(word) for word in words]
    return parse
