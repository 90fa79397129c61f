# SPDX-License-Identifier: Apache-2.0
"""The least that a function can do: what is left is the container and the server."""


def setup():
    return "Hello, world!"


def handle(text):
    return {"text": text}
