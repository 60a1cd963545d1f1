"""Scores of nodes for a worker, by policy: the highest is taken, and of equals the lowest row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.placement.core.gpu_parts.demand import Demand, Floats
from services.placement.core.gpu_parts.fragments import NOWHERE, fragments, fragments_after
from services.placement.core.gpu_parts.nodes import Ints, NodeTable, Rows
from shared.contracts.gang_needs import GPU, Shape

BAND_MILLI = 40
"""Growths of a fragment within so many thousandths of a GPU count as equal."""


class Scores(NamedTuple):
    """The score of each row and, for a share, the GPU that it would get there."""

    value: Floats
    gpu: Ints


Score = Callable[[NodeTable, Shape, Rows], Scores]


class LargestNode(NamedTuple):
    """The most cores and the most GPUs of a node, by which packing policies weigh both."""

    cpu_milli: int
    gpu_milli: int

    @classmethod
    def of(cls, table: NodeTable) -> LargestNode:
        """Return those of a table of empty nodes."""
        return cls(int(table.cpu_free.max()), int(table.gpus.max()) * GPU)


def fullest_gpu(table: NodeTable, shape: Shape, rows: Rows) -> Ints:
    """Return the GPU with room that has least free, of each row; -1 where none has."""
    free = table.free[rows]
    left = np.where(free >= shape.milli, free, GPU + 1)
    gpu = left.argmin(1)
    return np.where(left[np.arange(len(rows)), gpu] <= GPU, gpu, -1)


def first_fit(table: NodeTable, shape: Shape, rows: Rows) -> Scores:
    """Take the first node with room, and its fullest GPU."""
    return Scores(np.zeros(len(rows)), fullest_gpu(table, shape, rows))


@dataclass(frozen=True, slots=True)
class BestFit:
    """Leave the least of cores and GPUs free on the node, each by the largest node."""

    largest: LargestNode

    def __call__(self, table: NodeTable, shape: Shape, rows: Rows) -> Scores:
        left = left_of(table, shape, rows, self.largest)
        return Scores(-left.astype(np.float64), fullest_gpu(table, shape, rows))


@dataclass(frozen=True, slots=True)
class DotProduct:
    """Take the node where free and needed cores and GPUs have the least product (Tetris)."""

    largest: LargestNode

    def __call__(self, table: NodeTable, shape: Shape, rows: Rows) -> Scores:
        most_cpu, most_gpu = self.largest
        cpu = table.cpu_free[rows] / most_cpu * (shape.cpu_milli / most_cpu)
        gpu = table.free[rows].sum(1) / most_gpu * (shape.worker_milli / most_gpu)
        product: Floats = cpu + gpu
        return Scores(-product, fullest_gpu(table, shape, rows))


def gpu_packing(table: NodeTable, shape: Shape, rows: Rows) -> Scores:
    """Prefer GPUs in use, then unused GPUs of nodes in use, then the smallest empty node.

    Of GPUs in use the fullest are taken first (Xiao et al., AntMan, OSDI '20).
    """
    if not shape.gpus:
        return first_fit(table, shape, rows)
    free, gpus = table.free[rows], table.gpus[rows]
    is_empty = (free == GPU).sum(1) == gpus
    gpu = fullest_gpu(table, shape, rows)
    left = free[np.arange(len(rows)), gpu] if shape.is_share else np.full(len(rows), GPU)
    on_used_gpu = 3 * GPU - left
    value = np.where(is_empty, -gpus, np.where(left < GPU, on_used_gpu, GPU))
    return Scores(value.astype(np.float64), gpu)


def gpu_clustering(table: NodeTable, shape: Shape, rows: Rows) -> Scores:
    """Prefer nodes that hold only workers with as many GPUs, then some such, then empty nodes.

    Within these the node with least free GPUs is taken (Xiao et al., Gandiva, OSDI '18).
    """
    if not shape.gpus:
        return first_fit(table, shape, rows)
    kinds = table.workers[rows] > 0
    alike = kinds[:, 0 if shape.is_share else shape.gpus]
    number = kinds.sum(1)
    group = np.where(alike, np.where(number == 1, 3, 2), np.where(number == 0, 1, 0))
    most = table.free.shape[1] * GPU + 1
    value = group * most - table.free[rows].sum(1)
    return Scores(value.astype(np.float64), fullest_gpu(table, shape, rows))


@dataclass(frozen=True, slots=True)
class FragmentationDescent:
    """Take the node, and the GPU, where the expected fragment grows least (FGD).

    Growths within one band count as equal, and of equals the node with least left is taken, as by
    best fit. Without a band differences of a few thousandths, which say less about what arrives
    than a full node does, open new nodes.
    """

    demand: Demand
    largest: LargestNode
    band_milli: int = BAND_MILLI

    def __call__(self, table: NodeTable, shape: Shape, rows: Rows) -> Scores:
        after, gpu = fragments_after(table, rows, shape, self.demand)
        growth = np.where(after == NOWHERE, 0, after) - fragments(table, rows, self.demand)
        band = max(1, self.band_milli * int(self.demand.weight.sum()))
        left = left_of(table, shape, rows, self.largest)
        most = 2 * self.largest.cpu_milli * self.largest.gpu_milli + 1
        return Scores(-((growth // band) * most + left).astype(np.float64), gpu)


def left_of(table: NodeTable, shape: Shape, rows: Rows, largest: LargestNode) -> Ints:
    """Return the cores and GPUs free on each row with the worker, each by the largest node."""
    cpu_left = table.cpu_free[rows] - shape.cpu_milli
    gpu_left = table.free[rows].sum(1) - shape.worker_milli
    left: Ints = cpu_left * largest.gpu_milli + gpu_left * largest.cpu_milli
    return left
