"""The expected fragment of a node: GPU thousandths that a random worker of the demand cannot use.

The measure of FGD (Weng et al., USENIX ATC '23). To a class of workers that fits on the node, the
free parts of those GPUs are a fragment that are smaller than its need; to a class that does not,
for GPUs, cores, memory or the type, all that is free. Classes without GPUs use none: to them all is
a fragment as well. The expectation is weighted by the number of workers of each class, and is not
divided by their sum: it is a whole number, and differences have no rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from services.placement.core.gpu_parts.demand import Demand, Floats
from services.placement.core.gpu_parts.nodes import Bools, Ints, NodeTable, Rows
from shared.contracts.gang_needs import GPU, Shape

NOWHERE = np.iinfo(np.int64).max
"""The fragment after a worker where it does not fit."""


class Parts(NamedTuple):
    """The terms of the fragment for each of [n] nodes and [m] classes."""

    free: Ints
    able: Bools
    """GPUs with room for the class, [n, GPUs, m]."""
    able_gpus: Ints
    small: Ints
    """Free thousandths on GPUs without room, [n, m]."""
    total: Ints
    """Free thousandths, [n]."""


def fragments(table: NodeTable, rows: Rows, demand: Demand) -> Ints:
    """Return the expected fragment of each row, times the number of workers of the demand."""
    free = table.free[rows]
    usable = usable_by(table, rows, demand, table.cpu_free[rows], table.mem_free[rows])
    return weigh(parts_of(free, demand), usable, demand)


def fragments_after(
    table: NodeTable, rows: Rows, shape: Shape, demand: Demand
) -> tuple[Ints, Ints]:
    """Return the least fragment of each row once it has one such worker, and the GPU of a share.

    Rows on which the worker does not fit have `NOWHERE`, and the GPU -1, as have whole GPUs.
    """
    cpu, mem = table.cpu_free[rows] - shape.cpu_milli, table.mem_free[rows] - shape.mem_mib
    usable = usable_by(table, rows, demand, cpu, mem)
    if shape.gpus and shape.is_share:
        amounts = _after_share(parts_of(table.free[rows], demand), usable, shape, demand)
        gpu = amounts.argmin(1)
        least = amounts[np.arange(len(rows)), gpu]
    else:
        after = without_whole(table.free[rows], shape.gpus)
        least = weigh(parts_of(after, demand), usable, demand)
        gpu = np.full(len(rows), -1, np.int64)
    fits = table.fits(shape, rows)
    return np.where(fits, least, NOWHERE), np.where(fits, gpu, -1)


def usable_by(
    table: NodeTable, rows: Rows, demand: Demand, cpu_free: Ints, mem_free: Ints
) -> Bools:
    """Return whether each class may run there, its GPUs aside, [n, m]."""
    usable: Bools = (cpu_free[:, None] >= demand.cpu_milli) & (mem_free[:, None] >= demand.mem_mib)
    usable &= demand.gpus > 0
    for number, shape in enumerate(demand.classes):
        if shape.types:
            usable[:, number] &= table.allowed(shape.types)[rows]
    return usable


def parts_of(free: Ints, demand: Demand) -> Parts:
    able: Bools = free[:, :, None] >= demand.milli
    small = np.where(able, 0, free[:, :, None]).sum(1)
    return Parts(free, able, able.sum(1), small, free.sum(1))


def weigh(parts: Parts, usable: Bools, demand: Demand) -> Ints:
    holds = usable & (parts.able_gpus >= demand.gpus)
    amounts: Floats = np.where(holds, parts.small, parts.total[:, None]) @ demand.weight
    return amounts.astype(np.int64)


def without_whole(free: Ints, gpus: int) -> Ints:
    """Return the GPUs without the lowest so many wholly free ones of each node."""
    if not gpus:
        return free
    whole = free == GPU
    return np.where(whole & (whole.cumsum(1) <= gpus), 0, free)


def _after_share(parts: Parts, usable: Bools, shape: Shape, demand: Demand) -> Ints:
    """Return the fragment with the share on each GPU, [n, GPUs]; `NOWHERE` without room."""
    left = parts.free - shape.milli
    able_after = left[:, :, None] >= demand.milli
    change = able_after.astype(np.int64) - parts.able
    small_before = np.where(parts.able, 0, parts.free[:, :, None])
    small_after = np.where(able_after, 0, left[:, :, None])
    small = parts.small[:, None, :] - small_before + small_after
    holds = usable[:, None, :] & (parts.able_gpus[:, None, :] + change >= demand.gpus)
    total = parts.total - shape.milli
    amounts: Floats = np.where(holds, small, total[:, None, None]) @ demand.weight
    return np.where(left >= 0, amounts.astype(np.int64), NOWHERE)
