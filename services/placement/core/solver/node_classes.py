"""Nodes that every job of the window treats alike, as one class each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.board import Board
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import FreeNode, NextWorker, NodeClass, VictimShare
from services.placement.core.solver.window import Window

Shares = Mapping[str, Sequence[VictimShare]]
"""Node id -> the shares of victims there."""


@dataclass(slots=True)
class NodeClasses:
    """The classes of a board's nodes, by number."""

    classes: list[NodeClass] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    """One node of each class."""
    class_of: dict[str, int] = field(default_factory=dict)
    """Node id -> class."""
    full: int = 0
    """Nodes without room for any job of the window; they are in no class."""


class NodeFeatures(NamedTuple):
    """The features of a node by which jobs of the window could differ."""

    gpu_type: str
    gpus: int
    whole: int
    partial: tuple[int, ...]
    cpu_milli: int
    mem_mib: int
    rack: str
    health: tuple[float, ...]
    """As a whole, without its slow GPUs, and the slowdowns of its free ones, the worst last."""
    victim_shares: tuple[VictimShare, ...]
    avoided_by: tuple[int, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """The most of a resource that jobs of the window could use on a node."""

    per_gpu: int
    more: int
    is_open: bool = False

    def on(self, node: Node) -> int:
        return 1 << 60 if self.is_open else self.per_gpu * node.kind.gpus + self.more


def group_nodes(board: Board, window: Window, shares: Shares) -> NodeClasses:
    """Group the nodes with room, in order of name."""
    features = features_of(board, window, shares)
    without_gpus = any(not candidate.shape.gpus for candidate in window.candidates)
    grouped = NodeClasses()
    groups: dict[NodeFeatures, list[Node]] = {}
    for name in sorted(board.nodes):
        node = board.nodes[name]
        if not node.indexed:
            continue
        if node.node_id in shares or any(node.free) or without_gpus:
            groups.setdefault(features(node), []).append(node)
        else:
            grouped.full += 1
    racks: dict[str, int] = {}
    for number, (key, nodes) in enumerate(groups.items()):
        grouped.class_of.update((node.node_id, number) for node in nodes)
        grouped.classes.append(node_class(key, nodes, racks.setdefault(key.rack, len(racks))))
        grouped.nodes.append(nodes[0])
    return grouped


def features_of(board: Board, window: Window, shares: Shares) -> Callable[[Node], NodeFeatures]:
    """Return the function that gives a node its features."""
    cpu, mem = most_cpu_mem(window)
    labelled = any(candidate.shape.selector for candidate in window.candidates)
    avoided_by: dict[str, list[int]] = {}
    for index, candidate in enumerate(window.candidates):
        for name in candidate.avoid:
            avoided_by.setdefault(name, []).append(index)

    def of(node: Node) -> NodeFeatures:
        return NodeFeatures(
            node.kind.gpu_type,
            node.kind.gpus,
            node.whole,
            tuple(sorted(milli for milli in node.free if 0 < milli < GPU)),
            min(node.cpu_free, cpu.on(node)),
            min(node.mem_free, mem.on(node)),
            node.rack,
            health_of(board, node),
            tuple(shares.get(node.node_id, ())),
            tuple(avoided_by.get(node.node_id, ())),
            node.kind.labels if labelled else (),
        )

    return of


def health_of(board: Board, node: Node) -> tuple[float, ...]:
    """Return the health of a node as far as jobs could differ by it."""
    if node.node_id not in board.slow:
        return (1.0,)
    free = (node.slow_gpus.get(gpu, 1.0) for gpu in node.offered() if node.slow_gpus)
    return board.health(node.node_id), board.health(node.node_id, ()), *free


def most_cpu_mem(window: Window) -> tuple[ResourceBound, ResourceBound]:
    """Return the cores and memory beyond which more of them make no difference on a node."""
    shapes = [candidate.shape for candidate in window.candidates]
    shapes += [shape for shape in (window.blocked,) if shape]
    if any(not shape.gpus for shape in shapes):
        return ResourceBound(0, 0, True), ResourceBound(0, 0, True)
    needs = [(shape.cpu_milli, shape.mem_mib, shape.worker_milli) for shape in shapes]
    worker = next_worker(window)
    cpu = max((-(-cpu * GPU // milli) for cpu, _, milli in needs), default=0)
    mem = max((-(-mem * GPU // milli) for _, mem, milli in needs), default=0)
    return ResourceBound(cpu, worker.cpu_milli), ResourceBound(mem, worker.mem_mib)


def next_worker(window: Window) -> NextWorker:
    """Return what a worker of the first job that does not fit needs."""
    shape = window.blocked
    return NextWorker(shape.gpus, shape.cpu_milli, shape.mem_mib) if shape else NextWorker()


def node_class(features: NodeFeatures, nodes: list[Node], rack: int) -> NodeClass:
    return NodeClass(
        features.gpus,
        features.whole,
        features.partial,
        features.cpu_milli,
        features.mem_mib,
        rack,
        tuple(free_node(node) for node in nodes),
        features.victim_shares,
    )


def free_node(node: Node) -> FreeNode:
    slow = sorted(node.slow_gpus, key=lambda gpu: (node.slow_gpus[gpu], gpu))
    return FreeNode(node.node_id, tuple(node.free), tuple(slow))
