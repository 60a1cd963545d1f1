"""Finds the nodes that sent no heartbeat for longer than their lease."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from shared.contracts.reports import Alive


class Silence:
    """The time of the last heartbeat of each incarnation; times are of one clock, in seconds.

    A node that is new to this reader counts as alive, so each has one lease of grace after a
    start; a reader that was itself away (suspended, or cut off) starts over.
    """

    def __init__(self, at_s: float) -> None:
        self._last_s: dict[tuple[str, str], float] = {}
        self._looked_at_s = at_s

    def note(self, nodes: Mapping[str, Alive], at_s: float) -> None:
        """Note the heartbeats of nodes, by node id."""
        for node in ((node_id, alive.incarnation) for node_id, alive in nodes.items()):
            if node in self._last_s:
                self._last_s[node] = at_s

    def look(
        self, known: Iterable[tuple[str, str]], lease_s: float, at_s: float
    ) -> dict[str, float]:
        """Return the seconds of silence of each node of `known` whose lease is over."""
        was_away = at_s - self._looked_at_s > lease_s / 2
        self._looked_at_s = at_s
        before = {} if was_away else self._last_s
        self._last_s = {node: before.get(node, at_s) for node in known}
        return {
            node_id: at_s - last_s
            for (node_id, _), last_s in self._last_s.items()
            if at_s - last_s > lease_s
        }


def chunks(silent: Mapping[str, float], most: int) -> Iterator[list[str]]:
    """Yield at most so many nodes at a time: their consequences must fit in one record."""
    names = iter(sorted(silent))
    while some := list(islice(names, most)):
        yield some
