from __future__ import annotations

from services.placement.core.pool.allocations import (
    allocations_of,
    gpus_in,
    slot_of,
    slots_by_rank,
    slots_of,
)
from services.placement.core.pool.shape import GPU, Slot
from tests.services.placement.core.lane import job, lane

SLOTS = [Slot("a", (0, 1), GPU, 2000, 3072), Slot("b", (5,), 250, 500, 512)]


def test_a_slot_becomes_an_allocation_and_is_read_back() -> None:
    allocations = allocations_of(SLOTS)
    assert [allocation.rank for allocation in allocations] == [0, 1]
    assert (allocations[1].cpus, allocations[1].mem_gib) == (0.5, 0.5)
    assert [slot_of(allocation) for allocation in allocations] == SLOTS


def test_shares_count_as_parts_of_a_gpu() -> None:
    assert gpus_in(SLOTS) == 2.25


def test_the_slots_of_a_gang_come_in_rank_order() -> None:
    pool = lane("a", "b")
    pool.run(job("g", 8, workers=2))
    gang = pool.job("g")
    gang.allocations = dict(reversed(gang.allocations.items()))
    ranked = [a.slot for a in sorted(gang.allocations.values(), key=lambda a: a.rank)]
    assert slots_by_rank(gang) == ranked
    assert sorted(slots_of(gang)) == sorted(ranked)
