"""GPUs of the running jobs: a chain of allocations, one per node, out of a common store."""

from __future__ import annotations

from simulator.kernel.board import shift
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Allocations, Ints, JobRow, PoolState


@compiled
def lowest(bits: int, count: int) -> int:
    """Return the lowest `count` of these bits."""
    lowest_bits = 0
    left = bits
    for _ in range(count):
        bit = left & -left
        lowest_bits |= bit
        left ^= bit
    return lowest_bits


@compiled
def assign(
    pool: PoolState,
    allocations: Allocations,
    bits: Ints,
    job: JobRow,
    placed: Allocations,
    count: int,
) -> None:
    """Allocate what `place` took to the job, the lowest free GPUs of each node."""
    last = -1
    for at in range(count):
        new = pool.spare_allocation
        allocation = allocations[new]
        pool.spare_allocation = allocation.next
        allocation.node = placed[at].node
        allocation.gpus = placed[at].gpus
        allocation.bits = lowest(bits[allocation.node], allocation.gpus)
        bits[allocation.node] ^= allocation.bits
        allocation.next = last
        last = new
    job.first_allocation = last


@compiled
def shift_all(free: Ints, levels: Ints, allocations: Allocations, first: int, sign: int) -> None:
    """Return (1) or take again (-1) the GPUs of the chain that begins there."""
    at = first
    while at >= 0:
        allocation = allocations[at]
        shift(free, levels, allocation.node, sign * allocation.gpus)
        at = allocation.next


@compiled
def clear(pool: PoolState, allocations: Allocations, bits: Ints, job: JobRow) -> None:
    """Return the job's allocations to the store and mark their GPUs as free."""
    at = job.first_allocation
    job.first_allocation = -1
    while at >= 0:
        allocation = allocations[at]
        following = allocation.next
        bits[allocation.node] |= allocation.bits
        allocation.next = pool.spare_allocation
        pool.spare_allocation = at
        at = following
