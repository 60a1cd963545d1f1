"""The nodes of a recorded pool: which were there, since when, and which took no jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned

NodeEvent = NodeJoined | NodeLost | NodeCordoned | NodeUncordoned
Change = Literal["joined", "lost", "cordoned", "draining", "open"]


class NodeChange(NamedTuple):
    """A change of a node, wall ms."""

    at: int
    node_id: str
    change: Change


class Absence(NamedTuple):
    """Time without a node, wall ms; None: before the first record, or still."""

    node_id: str
    from_at: int | None
    to_at: int | None


@dataclass(slots=True)
class RecordedNodes:
    """All nodes that ever joined, by their last description, and the changes in order."""

    known: dict[str, NodeJoined] = field(default_factory=dict)
    changes: list[NodeChange] = field(default_factory=list)
    _opens_at_join: set[str] = field(default_factory=set)

    def take(self, event: NodeEvent, at: int) -> None:
        """Add an event of a node."""
        match event:
            case NodeJoined(node_id=node_id):
                self.known[node_id] = event
                self.changes.append(NodeChange(at, node_id, "joined"))
                if node_id in self._opens_at_join:
                    self._open(node_id, at)
            case NodeLost(node_id=node_id):
                self.changes.append(NodeChange(at, node_id, "lost"))
            case NodeCordoned(node_id=node_id):
                change: Change = "draining" if event.draining else "cordoned"
                self.changes.append(NodeChange(at, node_id, change))
                if event.until_joined:
                    self._opens_at_join.add(node_id)
            case NodeUncordoned(node_id=node_id):
                self._open(node_id, at)

    def _open(self, node_id: str, at: int) -> None:
        self._opens_at_join.discard(node_id)
        self.changes.append(NodeChange(at, node_id, "open"))

    def types_of(self, node_ids: Iterable[str]) -> tuple[str, ...]:
        """Return the GPU types of some nodes."""
        return tuple(dict.fromkeys(self.known[name].gpu_type for name in node_ids))

    def inventory(self, pool: str) -> dict[str, InventoryNode]:
        """Return a virtual node for each recorded one."""
        return {name: _virtual(pool, node) for name, node in sorted(self.known.items())}

    def absences(self) -> Iterator[Absence]:
        """Yield the times in which a node was not there."""
        present: set[str] = set()
        gone_at: dict[str, int | None] = dict.fromkeys(self.known)
        for at, node_id, change in self.changes:
            if change == "joined" and node_id not in present:
                present.add(node_id)
                yield Absence(node_id, gone_at[node_id], at)
            elif change == "lost" and node_id in present:
                present.discard(node_id)
                gone_at[node_id] = at
        for node_id in self.known.keys() - present:
            yield Absence(node_id, gone_at[node_id], None)

    def cordons(self, begin: int) -> Iterator[NodeChange]:
        """Yield cordons and their ends from `begin` on, first those that held then."""
        held: dict[str, NodeChange] = {}
        later: list[NodeChange] = []
        for change in self.changes:
            if change.change in ("joined", "lost"):
                continue
            if change.at >= begin:
                later.append(change)
            elif change.change == "open":
                held.pop(change.node_id, None)
            else:
                held[change.node_id] = change._replace(at=begin)
        yield from held.values()
        yield from later

    def mean_gpus(self, low: int, high: int) -> float:
        """Return the GPUs that were there from `low` to `high`, as a mean over time."""
        total = float(sum(usable_gpus(node) for node in self.known.values()))
        span = high - low
        missing = 0.0
        for node_id, from_at, to_at in self.absences():
            begin = low if from_at is None else max(low, from_at)
            end = high if to_at is None else min(high, to_at)
            missing += usable_gpus(self.known[node_id]) * max(0, end - begin)
        return total - missing / span if span > 0 else total

    def changed_within(self, low: int, high: int) -> bool:
        """Return whether any node came, left, was cordoned or opened in [low, high)."""
        return any(low <= change.at < high for change in self.changes)


def usable_gpus(node: NodeJoined) -> int:
    """Return the GPUs of a node that it offers."""
    return node.gpus - len({gpu for gpu in node.unusable_gpus if gpu < node.gpus})


def _virtual(pool: str, node: NodeJoined) -> InventoryNode:
    return InventoryNode(
        node.node_id,
        pool,
        "virtual",
        node.gpu_type,
        usable_gpus(node),
        node.cpus,
        node.mem_gib,
        node.rack,
        tuple(sorted(node.labels.items())),
    )
