# SPDX-License-Identifier: Apache-2.0
"""Few numbers of many samples."""


def quantile(ordered, q):
    """Nearest rank: a value that was measured."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def summary(values, digits=1):
    ordered = sorted(values)
    return {"min": round(ordered[0], digits), "p50": round(quantile(ordered, 0.5), digits),
            "p99": round(quantile(ordered, 0.99), digits),
            "mean": round(sum(ordered) / len(ordered), digits)}
