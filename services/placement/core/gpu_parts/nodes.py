"""Nodes as arrays: what is free of each, in whole numbers, and which workers fit where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shared.contracts.gang_needs import GPU, NodeKind, Shape

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(slots=True)
class NodeTable:
    """Nodes in a fixed order: row n of each array is node n, and equal scores go to lower rows."""

    types: tuple[str, ...]
    """GPU types, which `type_code` counts."""
    type_code: Ints
    gpus: Ints
    free: Ints
    """Free thousandths of each GPU, [n, most GPUs of a node]; 0 where a node has no such GPU."""
    cpu_free: Ints
    """Free thousandths of a core of each node, [n]."""
    mem_free: Ints
    """Free MiB of memory of each node, [n]."""
    workers: Ints
    """Workers on each node, [n, 1 + most GPUs]: in column 0 those with a part of a GPU, in column
    k those with k whole ones. Workers without GPUs are not counted."""
    changed: Ints
    """`changes` at the last change of each row."""
    changes: int = 0
    """Number of workers taken and given so far."""
    _allowed: dict[tuple[str, ...], Bools] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Sequence[NodeKind]) -> NodeTable:
        """Return the table of empty nodes of these kinds."""
        types = tuple(sorted({kind.gpu_type for kind in kinds}))
        codes = {name: code for code, name in enumerate(types)}
        gpus = ints(kind.gpus for kind in kinds)
        most = int(gpus.max(initial=0))
        return cls(
            types=types,
            type_code=ints(codes[kind.gpu_type] for kind in kinds),
            gpus=gpus,
            free=np.where(np.arange(most) < gpus[:, None], GPU, 0),
            cpu_free=ints(kind.cpu_milli for kind in kinds),
            mem_free=ints(kind.mem_mib for kind in kinds),
            workers=np.zeros((len(kinds), most + 1), np.int64),
            changed=np.zeros(len(kinds), np.int64),
        )

    def __len__(self) -> int:
        return len(self.gpus)

    def allowed(self, types: tuple[str, ...]) -> Bools:
        """Return which nodes have one of these GPU types, [n]; all for none."""
        if types not in self._allowed:
            codes = [code for code, name in enumerate(self.types) if not types or name in types]
            self._allowed[types] = np.isin(self.type_code, codes)
        return self._allowed[types]

    def fits(self, shape: Shape, rows: Rows) -> Bools:
        """Return on which of these rows one worker fits now, labels aside."""
        fits = (self.cpu_free[rows] >= shape.cpu_milli) & (self.mem_free[rows] >= shape.mem_mib)
        if shape.gpus:
            fits &= self.allowed(shape.types)[rows]
            fits &= (self.free[rows] >= shape.milli).sum(1) >= shape.gpus
        return fits

    def take(self, row: int, gpus: Iterable[int], shape: Shape) -> None:
        self._shift(row, tuple(gpus), shape, -1)

    def give(self, row: int, gpus: Iterable[int], shape: Shape) -> None:
        self._shift(row, tuple(gpus), shape, 1)

    def _shift(self, row: int, gpus: tuple[int, ...], shape: Shape, sign: int) -> None:
        self.cpu_free[row] += sign * shape.cpu_milli
        self.mem_free[row] += sign * shape.mem_mib
        for gpu in gpus:
            self.free[row, gpu] += sign * shape.milli
        if shape.gpus:
            self.workers[row, 0 if shape.is_share else shape.gpus] -= sign
        self.changes += 1
        self.changed[row] = self.changes

    def note_free(self, row: int, free: Sequence[int], cpu_free: int, mem_free: int) -> None:
        """Set what is free of a node: thousandths of its GPUs and of cores, MiB of memory.

        `workers` is not kept then; scores that count workers need `take` and `give`.
        """
        self.free[row, : len(free)] = free
        self.cpu_free[row], self.mem_free[row] = cpu_free, mem_free
        self.changes += 1
        self.changed[row] = self.changes

    def whole_gpus(self, row: int, count: int) -> tuple[int, ...]:
        """Return the lowest wholly free GPUs of a node, so many of them."""
        return tuple(np.flatnonzero(self.free[row] == GPU)[:count].tolist())


def ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
