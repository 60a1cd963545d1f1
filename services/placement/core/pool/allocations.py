"""Slots as the board counts them, and allocations as the contracts have them."""

from __future__ import annotations

from collections.abc import Iterable

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU, MIB, Slot
from shared.contracts.construct import construct
from shared.contracts.placement import Allocation


def slot_of(allocation: Allocation) -> Slot:
    return Slot(
        allocation.node_id,
        allocation.gpus,
        allocation.gpu_milli,
        round(allocation.cpus * 1000),
        round(allocation.mem_gib * MIB),
    )


def allocation_of(rank: int, slot: Slot) -> Allocation:
    return construct(
        Allocation,
        rank=rank,
        node_id=slot.node_id,
        gpus=slot.gpus,
        gpu_milli=slot.milli,
        cpus=slot.cpu_milli / 1000,
        mem_gib=slot.mem_mib / MIB,
    )


def allocations_of(slots: Iterable[Slot]) -> tuple[Allocation, ...]:
    """Return one allocation per slot; the place in the list is the worker's rank."""
    return tuple(allocation_of(rank, slot) for rank, slot in enumerate(slots))


def slots_of(job: Job) -> list[Slot]:
    """Return the slots that a job holds, in no particular order."""
    return [allocation.slot for allocation in job.allocations.values()]


def slots_by_rank(job: Job) -> list[Slot]:
    """Return the slot of each worker of a job on GPUs, in rank order."""
    return [
        allocation.slot
        for allocation in sorted(job.allocations.values(), key=lambda allocation: allocation.rank)
    ]


def gpus_in(slots: Iterable[Slot]) -> float:
    """Return the GPUs of the slots, in devices."""
    return sum(len(slot.gpus) * slot.milli for slot in slots) / GPU
