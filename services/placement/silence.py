"""Counts how long each node was not heard; times are of one monotonic clock, in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from services.placement.core.pool.node import Node, NotedSilence
from shared.contracts.reports import Alive, Heartbeats

T = TypeVar("T")


class SilenceKey(NamedTuple):
    """A count of silence is of one incarnation, and begins anew when it drops older terms."""

    node_id: str
    incarnation: str
    terms_id: str


def silence_key(node: Node) -> SilenceKey:
    return SilenceKey(node.node_id, node.incarnation, node.oldest_terms)


@dataclass(slots=True)
class SilenceCount:
    """The heartbeats of a node that this reader has read so far."""

    key: SilenceKey
    heard_s: float
    """When a heartbeat that counts was read last, or the key was first seen."""
    from_offset: int = 0
    """Heartbeats before it were read by an earlier reader."""
    sent_boot_ms: int = -1
    """Highest time of sending so far: a heartbeat that is not newer does not count."""
    noted_ms: int = 0
    """Silence that the ledger has."""

    def counts(self, offset: int, alive: Alive) -> bool:
        """Return whether a heartbeat is a new one of this incarnation."""
        if alive.incarnation != self.key.incarnation or offset < self.from_offset:
            return False
        return alive.sent_boot_ms is None or alive.sent_boot_ms > self.sent_boot_ms

    def silent_ms(self, at_s: float) -> int:
        return max(0, int((at_s - self.heard_s) * 1000))


class Silence:
    """The silence of the nodes of one pool, as far as heartbeats were read."""

    def __init__(self) -> None:
        self._nodes: dict[str, SilenceCount] = {}
        self._heard: dict[str, None] = {}
        """Nodes that were heard, in that order: what is decided of them has it too."""

    def resume(self, key: SilenceKey, noted: NotedSilence, at_s: float) -> None:
        """Go on with a count of an earlier reader; it must read on from `noted.offset`."""
        self._nodes[key.node_id] = SilenceCount(
            key,
            heard_s=at_s - noted.silent_ms / 1000,
            from_offset=noted.offset,
            noted_ms=noted.silent_ms,
        )

    def begin_anew(self, at_s: float) -> None:
        """Begin all counts anew: heartbeats may be missing from what was read."""
        self._nodes = {name: SilenceCount(node.key, at_s) for name, node in self._nodes.items()}
        self._heard.clear()

    def watch(self, keys: Iterable[SilenceKey], at_s: float) -> None:
        """Count for exactly these keys; those not seen before are heard now."""
        known = self._nodes
        self._nodes = {}
        for key in keys:
            old = known.get(key.node_id)
            is_known = old is not None and old.key == key
            self._nodes[key.node_id] = old if old and is_known else SilenceCount(key, at_s)

    def note(self, offset: int, heartbeats: Heartbeats, at_s: float) -> None:
        """Note heartbeats that were read at `at_s`, however long ago they were sent."""
        for node_id, alive in heartbeats.nodes.items():
            node = self._nodes.get(node_id)
            if node is not None and node.counts(offset, alive):
                node.heard_s, node.noted_ms = at_s, 0
                self._heard[node_id] = None
                if alive.sent_boot_ms is not None:
                    node.sent_boot_ms = alive.sent_boot_ms

    def take_heard(self) -> list[SilenceKey]:
        """Return the keys of the nodes that were heard since the last call, in that order."""
        names, self._heard = self._heard, {}
        return [self._nodes[name].key for name in names if name in self._nodes]

    def note_silent(self, node_id: str, silent_ms: int) -> None:
        """Note a silence that the ledger has: heartbeats read before it do not end it."""
        self._nodes[node_id].noted_ms = silent_ms
        self._heard.pop(node_id, None)

    def of(self, node_id: str) -> SilenceCount:
        return self._nodes[node_id]


def chunks(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Yield at most so many at a time: their consequences should fit in one record."""
    for begin in range(0, len(items), most):
        yield items[begin : begin + most]
