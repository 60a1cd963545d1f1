"""The measurements by which nodes deviate: no tenant alone has a node taken out of use.

A validation by fail-slow runs for the tenant of a slow job, beside other jobs of it, which can make
its measurements slow. One by an operator is a witness of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

AGREEING = 2
KEPT_S = 86_400.0
"""Cluster s after which a measurement is too old to agree with another one."""
NODES_KEPT = 10_000
OPERATOR = ""


@dataclass(slots=True)
class Witnesses:
    """The tenants whose jobs measured a node as deviating, with the cluster time, by node."""

    of_node: dict[str, dict[str, float]] = field(default_factory=dict)

    def note(self, node_ids: Iterable[str], tenant: str, now_s: float) -> None:
        """Note nodes that deviate; `tenant` is empty for a validation by an operator."""
        for node_id in node_ids:
            known = self.of_node.pop(node_id, {})
            recent = {who: at_s for who, at_s in known.items() if now_s - at_s <= KEPT_S}
            self.of_node[node_id] = {**recent, tenant: now_s}
        while len(self.of_node) > NODES_KEPT:
            del self.of_node[next(iter(self.of_node))]

    def clear(self, node_ids: Iterable[str]) -> None:
        """Note nodes that are as fast as their like."""
        for node_id in node_ids:
            self.of_node.pop(node_id, None)

    def agree(self, node_ids: Sequence[str]) -> bool:
        """Return whether different ones have measured each of the nodes as deviating."""
        return all(len(self.of_node.get(node_id, ())) >= AGREEING for node_id in node_ids)
