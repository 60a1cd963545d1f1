"""The pool's free capacity, indexed so that the search for a job's node need not visit all."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.suspicions import Fading, slowest, slowest_by_gpu
from shared.contracts.gang_needs import NodeKind


@dataclass(slots=True)
class Board:
    """All nodes; the indexes hold only those where something may start."""

    nodes: dict[str, Node] = field(default_factory=dict)
    by_whole: dict[str, list[list[str]]] = field(default_factory=dict)
    """GPU type -> number of wholly free GPUs -> node ids, sorted."""
    shares: dict[str, list[tuple[int, str, int]]] = field(default_factory=dict)
    """GPU type -> (free thousandths, node id, GPU) of partly used GPUs, sorted."""
    free_gpus: dict[str, int] = field(default_factory=dict)
    """GPU type -> wholly free GPUs."""
    kinds: dict[NodeKind, int] = field(default_factory=dict)
    slow: dict[str, dict[str, float]] = field(default_factory=dict)
    """Node id -> slowdown by suspicion; healthy nodes are not in it."""
    fading: dict[str, Fading] = field(default_factory=dict)
    """By id of the suspicion."""
    slow_gpus: dict[str, int] = field(default_factory=dict)
    """Number of the GPU on its node, by id of the suspicions that name one."""

    def suspect(
        self,
        node_id: str,
        fault_id: str,
        slowdown: float,
        until: int | None,
        gpu: int | None = None,
        tenant: str = "",
    ) -> None:
        """Note a suspicion, perhaps of one GPU of the node; a slowdown of 1 ends it."""
        self.fading.pop(fault_id, None)
        self.slow_gpus.pop(fault_id, None)
        if slowdown > 1:
            if gpu is not None:
                self.slow_gpus[fault_id] = gpu
            self.slow.setdefault(node_id, {})[fault_id] = slowdown
            if until is not None:
                self.fading[fault_id] = Fading(until, node_id, tenant)
        elif (slowdowns := self.slow.get(node_id)) is not None:
            slowdowns.pop(fault_id, None)
            if not slowdowns:
                del self.slow[node_id]
        self.order_gpus(node_id)

    def order_gpus(self, node_id: str) -> None:
        """Let a node offer its slow GPUs last."""
        node = self.nodes.get(node_id)
        if node is not None and (node.slow_gpus or self.slow_gpus):
            node.slow_gpus = slowest_by_gpu(self.slow.get(node_id, {}), self.slow_gpus)

    def health(self, node_id: str, gpus: Collection[int] | None = None) -> float:
        """Return a node's health in (0, 1], for a job that has these GPUs of it, None for all.

        1 is healthy, 0.5 runs at half the speed of its peers.
        """
        slowdowns = self.slow.get(node_id)
        return 1 / slowest(slowdowns, self.slow_gpus, gpus) if slowdowns else 1.0

    def health_for(self, node_id: str, gpus: int) -> float:
        """Return the health of so many free GPUs, the healthiest; of all parts if fewer are."""
        if node_id not in self.slow:
            return 1.0
        free = self.nodes[node_id].offered()
        return self.health(node_id, free[:gpus] if gpus <= len(free) else None)

    def rack(self, node_id: str) -> str:
        """Return the node's label `rack`, else the rack its agent reported; empty if unknown."""
        return self.nodes[node_id].rack

    def healthy_first(self, names: Iterable[str], gpus: int) -> Iterable[str]:
        """Return the same nodes, the healthiest for so many GPUs first, else in their order."""
        if not self.slow:
            return names
        return sorted(names, key=lambda name: -self.health_for(name, gpus))

    def index(self, node: Node) -> None:
        """Put a node on the indexes: something may start on it."""
        if node.indexed:
            return
        node.indexed = True
        kind = node.kind
        levels = self.by_whole.setdefault(kind.gpu_type, [])
        while len(levels) <= kind.gpus:
            levels.append([])
        insort(levels[node.whole], node.node_id)
        self.free_gpus[kind.gpu_type] = self.free_gpus.get(kind.gpu_type, 0) + node.whole
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        partly = self.shares.setdefault(kind.gpu_type, [])
        for gpu, milli in enumerate(node.free):
            if 0 < milli < GPU:
                insort(partly, (milli, node.node_id, gpu))

    def unindex(self, node: Node) -> None:
        if not node.indexed:
            return
        node.indexed = False
        kind = node.kind
        discard(self.by_whole[kind.gpu_type][node.whole], node.node_id)
        self.free_gpus[kind.gpu_type] -= node.whole
        self.kinds[kind] -= 1
        if not self.kinds[kind]:
            del self.kinds[kind]
        for gpu, milli in enumerate(node.free):
            if 0 < milli < GPU:
                discard(self.shares[kind.gpu_type], (milli, node.node_id, gpu))

    def shift(self, slot: Slot, sign: int) -> None:
        """Take (-1) or give back (+1) what a slot holds."""
        node = self.nodes[slot.node_id]
        node.cpu_free += sign * slot.cpu_milli
        node.mem_free += sign * slot.mem_mib
        free, step, before = node.free, sign * slot.milli, node.whole
        is_indexed_share = slot.milli != GPU and node.indexed
        whole = before
        for gpu in slot.gpus:
            old = free[gpu]
            new = free[gpu] = old + step
            whole += (new == GPU) - (old == GPU)
            if is_indexed_share:
                self._move_share(node, gpu, old, new)
        node.whole = whole
        if node.indexed and whole != before:
            self._move_whole(node, before)

    def _move_whole(self, node: Node, before: int) -> None:
        gpu_type = node.kind.gpu_type
        levels = self.by_whole[gpu_type]
        discard(levels[before], node.node_id)
        insort(levels[node.whole], node.node_id)
        self.free_gpus[gpu_type] += node.whole - before

    def _move_share(self, node: Node, gpu: int, old: int, new: int) -> None:
        partly = self.shares[node.kind.gpu_type]
        if 0 < old < GPU:
            discard(partly, (old, node.node_id, gpu))
        if 0 < new < GPU:
            insort(partly, (new, node.node_id, gpu))

    def is_indexed(self, slot: Slot) -> bool:
        """Return whether something may start on the slot's node."""
        node = self.nodes.get(slot.node_id)
        return node is not None and node.indexed

    def are_free(self, slots: Iterable[Slot]) -> bool:
        """Return whether something may start now on exactly these slots, on all of them at once."""
        cpu_milli: Counter[str] = Counter()
        mem_mib: Counter[str] = Counter()
        milli: Counter[tuple[str, int]] = Counter()
        for slot in slots:
            if not self.is_indexed(slot):
                return False
            cpu_milli[slot.node_id] += slot.cpu_milli
            mem_mib[slot.node_id] += slot.mem_mib
            for gpu in slot.gpus:
                milli[slot.node_id, gpu] += slot.milli
        nodes = self.nodes
        return all(
            nodes[name].cpu_free >= cpu_milli[name] and nodes[name].mem_free >= mem_mib[name]
            for name in cpu_milli
        ) and all(
            gpu < len(nodes[name].free) and nodes[name].free[gpu] >= needed
            for (name, gpu), needed in milli.items()
        )

    def tables(self, types: tuple[str, ...]) -> list[list[list[str]]]:
        if not types:
            return list(self.by_whole.values())
        return [self.by_whole[name] for name in types if name in self.by_whole]

    def upward(self, types: tuple[str, ...], gpus: int) -> Iterator[str]:
        """Yield nodes with at least so many free GPUs: fewest, then healthiest, then by name."""
        tables = self.tables(types)
        for level in range(gpus, max(map(len, tables), default=0)):
            yield from self.healthy_first(merge_level(tables, level), gpus)

    def downward(self, types: tuple[str, ...], gpus: int) -> Iterator[str]:
        """Yield the same nodes, most free GPUs first, then healthiest, then name."""
        tables = self.tables(types)
        for level in range(max(map(len, tables), default=0) - 1, gpus - 1, -1):
            yield from self.healthy_first(merge_level(tables, level), gpus)

    def best_fit(self, shape: Shape, workers: int, avoid: Container[str]) -> list[Slot]:
        """Return slots for as many of these workers as their best place holds; none if none fits.

        That is one GPU for a share, else one node: the one that holds all workers and has least
        over, or the roomiest.
        """
        if shape.is_share:
            slot = self.best_share(shape, avoid)
            return [slot] if slot else []
        node = self.snuggest(shape, workers, avoid) or self.roomiest(shape, avoid)
        return node.slots(shape, min(workers, node.room(shape))) if node else []

    def snuggest(self, shape: Shape, workers: int, avoid: Container[str]) -> Node | None:
        """Return the node with the fewest free GPUs that holds so many workers."""
        for name in self.upward(shape.types, workers * shape.gpus):
            node = self.nodes[name]
            if node.room(shape) >= workers and name not in avoid:
                return node
        return None

    def roomiest(self, shape: Shape, avoid: Container[str]) -> Node | None:
        """Return the node with the most free GPUs that holds a worker."""
        for name in self.downward(shape.types, shape.gpus):
            node = self.nodes[name]
            if node.room(shape) and name not in avoid:
                return node
        return None

    def best_share(self, shape: Shape, avoid: Container[str]) -> Slot | None:
        """Return a slot on the fullest GPU with room; an unused one is opened if none has."""
        types = shape.types or tuple(self.shares)
        candidates = [best for name in types if (best := self.fullest_gpu(name, shape, avoid))]
        if candidates:
            _, node_id, gpu = min(candidates)
            return Slot(node_id, (gpu,), shape.milli, shape.cpu_milli, shape.mem_mib)
        node = self.snuggest(shape, 1, avoid)
        return node.slots(shape, 1)[0] if node else None

    def fullest_gpu(
        self, gpu_type: str, shape: Shape, avoid: Container[str]
    ) -> tuple[int, str, int] | None:
        """Return the fullest GPU in use that has room, as an entry of `shares`.

        Of equals it is the healthiest, then by the name of its node.
        """
        partly = self.shares.get(gpu_type, [])
        best: tuple[int, str, int] | None = None
        for at in range(bisect_left(partly, (shape.milli, "", 0)), len(partly)):
            name = partly[at][1]
            if best is not None and partly[at][0] > best[0]:
                break
            if self.nodes[name].hosts(shape) and name not in avoid:
                health = self.health(name, partly[at][2:])
                if health == 1:
                    return partly[at]
                if best is None or health > self.health(best[1], best[2:]):
                    best = partly[at]
        return best

    @property
    def gpus(self) -> int:
        """GPUs of the nodes in use."""
        return sum(kind.gpus * count for kind, count in self.kinds.items())

    def free_of(self, types: tuple[str, ...]) -> int:
        if not types:
            return sum(self.free_gpus.values())
        return sum(self.free_gpus.get(name, 0) for name in types)


def merge_level(tables: list[list[list[str]]], level: int) -> Iterable[str]:
    rows = [table[level] for table in tables if level < len(table) and table[level]]
    return rows[0] if len(rows) == 1 else heapq.merge(*rows)


Key = TypeVar("Key", str, tuple[int, str, int])


def discard(items: list[Key], item: Key) -> None:
    del items[bisect_left(items, item)]


def named_nodes(board: Board, shape: Shape) -> list[Node]:
    """Return the nodes that a shape names, of which a worker could run there, if cordoned too."""
    nodes = (board.nodes.get(name) for name in shape.nodes)
    return [
        node
        for node in nodes
        if node and node.is_alive and node.takes_work and node.kind.workers(shape)
    ]


def could_hold(board: Board, shape: Shape, avoid: Collection[str]) -> int:
    """Return how many workers the nodes in use would hold if they were empty."""
    if shape.nodes:
        return len(named_nodes(board, shape))
    workers = sum(kind.workers(shape) * count for kind, count in board.kinds.items())
    for name in avoid:
        node = board.nodes.get(name)
        if node is not None and node.indexed:
            workers -= node.kind.workers(shape)
    return workers
