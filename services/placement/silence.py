"""Which nodes have not been heard of for longer than their lease."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice


class Silence:
    """Keeps when each incarnation was last heard; all times are of one clock, in seconds.

    A node counts as heard when this reader first meets it, so everybody has one lease of grace
    after a start; a reader that was itself away (suspended, or cut off) starts over.
    """

    def __init__(self, at_s: float) -> None:
        self._heard: dict[tuple[str, str], float] = {}
        self._looked_at_s = at_s

    def hear(self, nodes: Mapping[str, str], at_s: float) -> None:
        """Node id to incarnation, as a heartbeat names them."""
        for node in nodes.items():
            if node in self._heard:
                self._heard[node] = at_s

    def look(
        self, known: Iterable[tuple[str, str]], lease_s: float, at_s: float
    ) -> dict[str, float]:
        """Seconds of silence of each node of `known` whose lease is over."""
        was_away = at_s - self._looked_at_s > lease_s / 2
        self._looked_at_s = at_s
        before = {} if was_away else self._heard
        self._heard = {node: before.get(node, at_s) for node in known}
        return {
            node_id: at_s - heard_s
            for (node_id, _), heard_s in self._heard.items()
            if at_s - heard_s > lease_s
        }


def chunks(silent: Mapping[str, float], most: int) -> Iterator[list[str]]:
    """So few at a time that what follows of them fits in one record of the ledger."""
    names = iter(sorted(silent))
    while some := list(islice(names, most)):
        yield some
