"""The place of a worker by a score, whose values are kept for the nodes that did not change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from services.placement.core.gpu_parts.demand import Floats
from services.placement.core.gpu_parts.nodes import Bools, Ints, NodeTable
from services.placement.core.gpu_parts.scores import Score
from shared.contracts.gang_needs import Shape


class Place(NamedTuple):
    """A row of the table, and the GPUs that the worker gets there."""

    row: int
    gpus: tuple[int, ...]


class Placer(Protocol):
    """Chooses places; it takes none."""

    def place(self, table: NodeTable, shape: Shape) -> Place | None: ...


@dataclass(slots=True)
class _Kept:
    """The scores of one equivalence class; `seen` is the table's `changes` at the last look."""

    value: Floats
    gpu: Ints
    seen: int = -1


@dataclass(slots=True)
class ScoredPlacer:
    """Takes the row with the highest score; of equals the first.

    A score depends on the row and the worker's needs alone, so that it is computed anew only for
    rows that changed since the same needs were placed last. One placer serves one table.
    """

    score: Score
    _kept: dict[Shape, _Kept] = field(default_factory=dict)

    def place(self, table: NodeTable, shape: Shape) -> Place | None:
        """Return where a worker of these needs goes; None if it fits nowhere."""
        if not len(table):
            return None
        kept = self._kept.get(shape)
        if kept is None:
            empty = np.full(len(table), -np.inf), np.full(len(table), -1, np.int64)
            kept = self._kept[shape] = _Kept(*empty)
        if kept.seen < table.changes:
            self._refresh(table, shape, kept)
        row = int(kept.value.argmax())
        if kept.value[row] == -np.inf:
            return None
        return Place(row, gpus_of(table, shape, row, int(kept.gpu[row])))

    def _refresh(self, table: NodeTable, shape: Shape, kept: _Kept) -> None:
        rows = np.flatnonzero(table.changed > kept.seen)
        fits: Bools = table.fits(shape, rows)
        kept.value[rows[~fits]] = -np.inf
        rows = rows[fits]
        kept.value[rows], kept.gpu[rows] = self.score(table, shape, rows)
        kept.seen = table.changes


@dataclass(slots=True)
class RandomPlacer:
    """Takes any row with room, and any GPU with room, by numbers drawn from the seed."""

    seed: int
    placed: int = 0

    def place(self, table: NodeTable, shape: Shape) -> Place | None:
        """Return a place of all that there are, with equal chances; None if there is none."""
        rows = np.flatnonzero(table.fits(shape, np.arange(len(table))))
        if not len(rows):
            return None
        self.placed += 1
        row = int(rows[draw(self.seed, 2 * self.placed, len(rows))])
        gpu = -1
        if shape.gpus and shape.is_share:
            able = np.flatnonzero(table.free[row] >= shape.milli)
            gpu = int(able[draw(self.seed, 2 * self.placed + 1, len(able))])
        return Place(row, gpus_of(table, shape, row, gpu))


def gpus_of(table: NodeTable, shape: Shape, row: int, gpu: int) -> tuple[int, ...]:
    if not shape.gpus:
        return ()
    return (gpu,) if shape.is_share else table.whole_gpus(row, shape.gpus)


def draw(seed: int, number: int, count: int) -> int:
    """Return a whole number below `count`, the same for the same seed and number (splitmix64)."""
    mask = 2**64 - 1
    bits = (seed * 0xBF58476D1CE4E5B9 + number * 0x9E3779B97F4A7C15) & mask
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & mask
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & mask
    return ((bits ^ (bits >> 31)) >> 11) * count >> 53
