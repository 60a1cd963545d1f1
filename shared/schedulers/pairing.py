"""Pairs of largest total weight in a general graph (Edmonds' blossoms), by rustworkx."""

from __future__ import annotations

from collections.abc import Mapping

import rustworkx as rx

UNITS = 1_000_000_000
"""The library takes whole numbers: weights have nine decimals."""


def best_pairs(count: int, weights: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Return pairs of the numbers below `count`, none in two pairs, ordered.

    `weights` has those above 0; a pair that is missing is never made.
    """
    graph: rx.PyGraph[int, int] = rx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(count))
    edges = [(one, two, round(own * UNITS)) for (one, two), own in sorted(weights.items())]
    graph.add_edges_from(edges)
    pairs = rx.max_weight_matching(graph, max_cardinality=False, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in pairs)
