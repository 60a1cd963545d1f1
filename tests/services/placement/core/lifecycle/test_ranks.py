from __future__ import annotations

from shared.contracts.placement import RanksNoted
from tests.services.placement.core.lane import Lane, job, lane, only


def noted(pool: Lane, *ranked: str, **running: float) -> list[RanksNoted]:
    events = pool.score(running, **dict.fromkeys(ranked, 1.0))
    return [event for event in only(RanksNoted, events) if isinstance(event, RanksNoted)]


def test_ranks_of_jobs_on_gpus_are_left_out_where_rank_stops_none() -> None:
    pool = lane("n")
    pool.run(job("on"))
    pool.submit(job("waiting", 16))
    (event,) = noted(pool, "on", "waiting", "unknown", on=2.0)
    assert [entry.job_id for entry in event.ranked] == ["waiting", "unknown"]
    assert event.running == ()


def test_where_rank_may_stop_jobs_those_on_gpus_are_noted_as_well() -> None:
    pool = lane("n", preemption="ranked")
    pool.run(job("on"))
    (event,) = noted(pool, on=2.0)
    assert [entry.job_id for entry in event.running] == ["on"]


def test_a_rank_of_no_use_is_not_noted() -> None:
    pool = lane("n")
    pool.run(job("on"))
    assert noted(pool, "on") == []
