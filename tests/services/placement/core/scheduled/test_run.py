"""A round of a pool with a scheduler: its proposal first, then what the proposal lets start."""

from __future__ import annotations

from services.placement.core.scheduled.run import plan_round
from shared.contracts.placement import JobPlaced
from shared.contracts.schedules import GpusAllotted
from tests.services.placement.core.lane import job, only
from tests.services.placement.core.scheduled.pools import typed


def test_a_round_records_the_proposal_before_what_starts_by_it() -> None:
    pool = typed()
    events = pool.submit(job("one", 4))
    kinds = [type(event) for event in events if isinstance(event, GpusAllotted | JobPlaced)]
    assert kinds == [GpusAllotted, JobPlaced]


def test_a_round_behind_a_refused_proposal_is_run_by_rank() -> None:
    pool = typed("no_such_scheduler")
    events = pool.submit(job("one", 4))
    (proposal,) = only(GpusAllotted, events)
    assert "no_such_scheduler" in proposal.refused
    assert plan_round(pool.state, pool.now) is None
    assert [placed.job_id for placed in only(JobPlaced, events)] == ["one"]
