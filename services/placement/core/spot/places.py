"""Nodes for the workers of a gang, all of them or none, without an eviction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class SpotNodes:
    """Whole GPUs by node, [n]; of equal scores the lower row is taken."""

    free: Ints
    guaranteed: Ints
    """GPUs of guaranteed jobs."""
    spot: Ints
    """GPUs of spot jobs."""
    calm: Floats
    """The eviction score: 10,000 without recent evictions, 0 after many."""

    @classmethod
    def of(cls, gpus: Ints) -> SpotNodes:
        """Return empty nodes with so many GPUs."""
        zeros = np.zeros(len(gpus), np.int64)
        return cls(gpus.copy(), zeros, zeros.copy(), np.full(len(gpus), CALM))

    def copy(self) -> SpotNodes:
        return SpotNodes(
            self.free.copy(), self.guaranteed.copy(), self.spot.copy(), self.calm.copy()
        )

    def take(self, row: int, gpus: int, is_spot: bool) -> None:
        """Give a worker so many GPUs of a node; negative: they are free again."""
        self.free[row] -= gpus
        (self.spot if is_spot else self.guaranteed)[row] += gpus


CALM = 10_000.0
Scores = Callable[[SpotNodes, int, bool], Floats]
"""The score of each node for a worker with so many GPUs, spot or not: the least is taken."""


def first_fit(nodes: SpotNodes, gpus: int, is_spot: bool) -> Floats:
    """Return the same score for all nodes: the first with room is taken."""
    return np.zeros(len(nodes.free))


def packed(nodes: SpotNodes, gpus: int, is_spot: bool) -> Floats:
    """Return the published score: least free GPUs, then most GPUs of jobs of the same kind.

    Of equal nodes a spot job takes the one with fewest evictions, a guaranteed one that with most.
    """
    alike = nodes.spot if is_spot else nodes.guaranteed
    calm = -nodes.calm if is_spot else nodes.calm
    return (nodes.free + 1) * 100.0 - alike + calm / (10.0 * CALM)


def places(
    nodes: SpotNodes, workers: int, gpus: int, is_spot: bool, scores: Scores
) -> list[int] | None:
    """Return a row for each worker; None if not all fit. The nodes are not changed."""
    if int((nodes.free // gpus).sum()) < workers:
        return None
    trial, rows = nodes if workers == 1 else nodes.copy(), []
    for _ in range(workers):
        row = place(trial, gpus, is_spot, scores)
        assert row is not None, "workers of one size fit in any order"
        rows.append(row)
        if workers > 1:
            trial.take(row, gpus, is_spot)
    return rows


def place(nodes: SpotNodes, gpus: int, is_spot: bool, scores: Scores) -> int | None:
    """Return the node with room and the least score; None if none has room."""
    value = np.where(nodes.free >= gpus, scores(nodes, gpus, is_spot), np.inf)
    row = int(value.argmin())
    return row if np.isfinite(value[row]) else None


def calm_after(last_hour: Ints, last_day: Ints) -> Floats:
    """Return the eviction score of nodes with so many evictions in the last hour and day."""
    raised = 2.0 ** np.minimum(0.8 * last_hour + 0.2 * last_day, 10.0)
    return np.asarray(CALM * np.maximum(0.0, 1.0 - 0.01 * raised))
