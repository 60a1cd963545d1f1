"""Figures of the nodes that have an identity, for dashboards and alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from shared.contracts.base import Millis
from shared.contracts.node_registry import IdentityState, NodeRegistry
from shared.telemetry.figures import Figure

STATES: tuple[IdentityState, ...] = get_args(IdentityState)


def figures(registry: NodeRegistry, now: Millis) -> Iterator[Figure]:
    """Yield the nodes of each pool by state, and when the next credential of each expires."""
    # A copy: the scrape is another thread than the fold.
    nodes = [
        (node.pool, node.state(now), node.expires_at) for node in list(registry.nodes.values())
    ]
    states = Counter((pool, state) for pool, state, _ in nodes)
    for pool in sorted({pool for pool, _, _ in nodes}):
        for state in STATES:
            yield Figure("berth_nodes_enrolled", states[pool, state], (pool, state))
        ends = [end for name, state, end in nodes if name == pool and state == "approved"]
        if ends:
            left_s = (min(ends) - now) / 1000
            yield Figure("berth_node_credential_expires_seconds", left_s, (pool,))
