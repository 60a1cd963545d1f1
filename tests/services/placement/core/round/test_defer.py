"""Stops by rank that wait for the end of a protection are recorded for both jobs."""

from __future__ import annotations

from shared.contracts.attempts import JobPreempted
from shared.contracts.base import Event
from shared.contracts.placement import JobHeld, JobStopDeferred
from tests.services.placement.core.lane import Lane, only
from tests.services.placement.core.test_run_round_progress import outranked, pool_running, saving


def deferrals(events: list[Event]) -> list[JobStopDeferred]:
    return [event for event in events if isinstance(event, JobStopDeferred)]


def held(pool: Lane, name: str) -> list[JobHeld]:
    facts = (fact.event for fact in pool.facts)
    return [event for event in facts if isinstance(event, JobHeld) and event.job_id == name]


def test_a_deferred_stop_is_recorded_for_the_victim_and_in_the_hold_of_the_waiting_job() -> None:
    pool = pool_running(saving("x"), release=1)
    until = pool.now + 1_200_000
    (deferral,) = deferrals(outranked(pool, "x", "a", after_s=700.0))
    assert (deferral.job_id, deferral.by_job_id, deferral.until) == ("x", "a", until)
    assert (deferral.rule, deferral.victims) == ("checkpoint", 1)
    detail = held(pool, "a")[-1].detail
    assert (detail["protected_by"], detail["protected_until"]) == ("checkpoint", float(until))
    assert detail["deferred_stops"] == 1.0
    assert only(JobPreempted, pool.wake()) and pool.now == until + 1


def test_stops_of_several_victims_are_put_off_until_the_last_of_them_may_be_stopped() -> None:
    pool = pool_running(saving("x", 4), release=1)
    pool.submit(saving("y", 4), after_ms=100_000)
    pool.wake()
    pool.ready("y")
    began = pool.job("y").started_at
    pool.submit(saving("a"), after_ms=300_000)
    pool.score({"x": 0.0, "y": 0.0}, a=5.0)
    events = deferrals(pool.wake())
    assert sorted(one.job_id for one in events) == ["x", "y"]
    assert {one.until for one in events} == {began + 600_000}
    assert {one.victims for one in events} == {2}
    assert held(pool, "a")[-1].detail["deferred_stops"] == 2.0


def test_a_deferral_is_recorded_again_only_after_it_was_due() -> None:
    pool = pool_running(saving("x"), release=1)
    assert len(deferrals(outranked(pool, "x", "a", after_s=700.0))) == 1
    # Another round before it is due, which the new rank makes.
    pool.score({"x": 0.0}, a=6.0)
    assert not deferrals(pool.wake()), "the first one holds"
    assert len(held(pool, "a")) == 1


def test_nothing_is_deferred_where_all_victims_together_are_too_few() -> None:
    pool = pool_running(saving("x", 4), saving("y", 4, preemptible=False), release=1)
    assert not deferrals(outranked(pool, "x", "a", after_s=700.0))


def test_earlier_releases_read_no_deferral() -> None:
    pool = pool_running(saving("x"), release=0)
    assert not deferrals(outranked(pool, "x", "a", after_s=700.0))
