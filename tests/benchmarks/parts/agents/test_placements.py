"""Times of jobs in the ledger of placement."""

from __future__ import annotations

from benchmarks.parts.agents.placements import Placements


def test_a_placement_is_named_by_the_allocation_of_rank_0_and_ends_with_the_start() -> None:
    placements = Placements()
    placements.note("job.placed.v1", "j", "2/7/1", 5_000)
    placements.note("job.started.v1", "other", "2/8/0", 5_500)
    placements.note("job.started.v1", "j", "2/8/1", 6_000)
    assert placements.allocation_ms == {"2/7/1/0": 5_000}
    assert placements.job_ms == {"j": 5_000} and placements.ready_ms == {"j": 1_000}
