"""A bound on how much of a pool mitigation may take out of use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from shared.contracts.breaker import most_out_of_use


@dataclass(frozen=True, slots=True)
class Breaker:
    """At most `share` of a pool's nodes are out of use; one of several always may be, unless 0."""

    share: float = 0.1

    def most(self, nodes: int) -> int:
        """Return how many nodes may be out of use."""
        return most_out_of_use(self.share, nodes)

    def allowed(
        self, requested: Sequence[str], nodes: int, cordoned: Collection[str]
    ) -> tuple[str, ...]:
        """Return those of the requested nodes, first ones first, that may be cordoned as well."""
        room = max(0, self.most(nodes) - len(cordoned))
        return tuple(node for node in requested if node not in cordoned)[:room]
