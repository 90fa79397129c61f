# SPDX-License-Identifier: Apache-2.0
"""The PageRank of a Barabási-Albert graph of 100,000 vertices."""
import random

import igraph

VERTICES = 100_000
EDGES_EACH = 10


def setup():
    random.seed(3)
    igraph.set_random_number_generator(random)
    return igraph.Graph.Barabasi(VERTICES, EDGES_EACH)


def handle(graph):
    ranks = graph.pagerank()
    best = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)[:5]
    return {"vertices": len(ranks), "edges": graph.ecount(), "best": best, "sum": round(sum(ranks), 6)}
