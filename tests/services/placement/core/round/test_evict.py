"""Preemption by class: the choice of victims, and the jobs that have none."""

from __future__ import annotations

from typing import Any

import pytest

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Shape
from services.placement.core.pool.trial import Trial
from services.placement.core.round import evict
from shared.contracts.attempts import JobPreempted
from tests.services.placement.core.lane import Lane, job, kinds, lane, only


def victims(pool: Lane, *, high: dict[str, Any] | None = None, gpus: float = 1) -> list[str]:
    request = {"priority_class": "high", **(high or {})}
    events = pool.submit(job("high", gpus, **request), after_ms=100)
    return sorted(event.subject for event in only(JobPreempted, events))


def test_a_higher_class_takes_the_gpus_when_they_are_reported_free() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a"))
    (preempted,) = only(JobPreempted, pool.submit(job("high", priority_class="high")))
    assert isinstance(preempted, JobPreempted)
    assert (preempted.reason, preempted.by_job_id) == ("higher_class", "high")
    assert pool.job("high").phase == "waiting"
    pool.feed(after_ms=1000)
    assert pool.free("n1") == [0]
    assert "JobPlaced" in kinds(pool.stopped("a", after_ms=100))
    assert pool.job("high").phase == "placed" and pool.job("a").attempt == 2


@pytest.mark.parametrize(
    "victim",
    [
        {"preemptible": False},
        {"priority_class": "high"},
        {"priority_class": "system"},
        {"guaranteed_s": 60.0},
    ],
)
def test_no_job_is_evicted_without_need(victim: dict[str, Any]) -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", **victim))
    assert victims(pool) == []


def test_a_guarantee_ends_in_cluster_seconds_and_the_round_comes_back_for_it() -> None:
    pool = lane("n1", gpus=1, time_scale=10.0)
    pool.run(job("a", guaranteed_s=60.0))
    started = pool.now
    assert victims(pool) == []
    assert pool.decider.next_wake(pool.state) == started + 6000
    assert "JobPreempted" in kinds(pool.wake())


def test_spot_jobs_yield_to_any_other_job_and_stop_none() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", spot=True, priority_class="high", preemptible=False))
    events = pool.submit(job("b", priority_class="low"))
    assert [event.reason for event in only(JobPreempted, events)] == ["spot_reclaimed"]
    pool.stopped("a", after_ms=100)
    pool.ready("b")
    assert victims(pool, high={"spot": True, "priority_class": "system"}) == []


def test_spot_jobs_stop_first_then_the_lowest_class_then_the_least_lost_work() -> None:
    pool = lane("n1", gpus=4)
    pool.run(job("normal"), job("low-old", priority_class="low"))
    pool.run(job("low-new", priority_class="low"), after_ms=5000)
    pool.run(job("spot", spot=True, priority_class="high"))
    assert victims(pool) == ["spot"]
    assert victims(pool, high={"name": "x"}) == []
    pool.submit(job("high2", priority_class="high"), after_ms=1000)
    assert pool.job("low-new").makes_room_for == "high2"
    pool.submit(job("high3", priority_class="high"), after_ms=1000)
    assert pool.job("low-old").makes_room_for == "high3"


def test_work_since_the_last_checkpoint_counts_as_lost() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("checkpoints", checkpoint_interval_s=9.0), after_ms=1)
    pool.run(job("newer"), after_ms=5000)
    events = pool.submit(job("high", priority_class="high"), after_ms=4500)
    (preempted,) = only(JobPreempted, events)
    assert isinstance(preempted, JobPreempted)
    assert (preempted.job_id, preempted.lost_work_s) == ("checkpoints", 0.5)


def test_no_more_victims_than_needed_and_those_of_one_node() -> None:
    pool = lane("n1", "n2", gpus=4)
    pool.run(*(job(f"j{n}", 1) for n in range(8)))
    assert len(victims(pool, gpus=4)) == 4
    assert len({pool.nodes_of(name) for name in pool.state.reservations["high"]}) == 1


def test_no_job_is_stopped_when_it_would_not_help() -> None:
    pool = lane("n1", gpus=4)
    pool.run(job("a"), job("fixed", 3, preemptible=False))
    assert victims(pool, gpus=4) == []
    assert victims(pool, gpus=1, high={"gpu_types": ["h100"]}) == []


def test_free_gpus_are_used_before_anybody_is_stopped() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a"))
    assert victims(pool) == []
    assert pool.job("high").phase == "placed"


def test_a_gang_may_take_free_gpus_and_those_of_victims_together() -> None:
    pool = lane("n1", "n2", gpus=4)
    pool.run(job("a", 4))
    events = pool.submit(job("high", 4, workers=2, priority_class="high"))
    assert len(only(JobPreempted, events)) == 1
    pool.submit(job("thief"), job("thief2", priority_class="high"), after_ms=100)
    assert pool.job("thief").hold_reason == "behind_reservation"
    assert pool.job("thief2").phase == "waiting", "same class, but the room is already promised"
    pool.stopped("a", after_ms=100)
    assert pool.job("high").phase == "placed"


def test_no_one_else_is_stopped_while_the_first_victim_is_still_stopping() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a"), job("b"))
    assert len(victims(pool)) == 1
    assert only(JobPreempted, pool.submit(job("other"), after_ms=1000)) == []


def test_two_jobs_of_a_round_do_not_count_on_the_same_victim() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("a"), job("b"))
    events = pool.submit(job("h1", priority_class="high"), job("h2", priority_class="high"))
    assert sorted(event.by_job_id for event in only(JobPreempted, events)) == ["h1", "h2"]


def test_a_claim_ends_with_the_job_that_made_it() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a"))
    pool.submit(job("high", priority_class="high"))
    pool.cancel("high")
    pool.submit(job("b", at=1))
    pool.stopped("a", after_ms=100)
    assert pool.job("b").phase == "placed" and pool.state.reservations == {}


def test_a_preempted_share_makes_room_for_a_whole_gpu() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("a", 0.3), job("b", 0.3))
    assert victims(pool) == ["a", "b"]
    pool.stopped("a", "b", after_ms=100)
    assert pool.job("high").phase == "placed"


def test_no_search_is_made_where_all_victims_together_have_too_few_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[int] = []
    shortlist = evict.shortlist

    def counted(trial: Trial, shape: Shape, by: Job, among: list[Job]) -> list[Job]:
        searches.append(len(among))
        return shortlist(trial, shape, by, among)

    monkeypatch.setattr(evict, "shortlist", counted)
    pool = lane("n1", "n2", gpus=2)
    pool.run(job("a", 2))
    pool.run(job("b", 1))
    assert victims(pool, gpus=1, high={"workers": 5}) == []
    assert searches == []
    events = pool.submit(job("pair", 2, priority_class="high", workers=2), after_ms=100)
    assert sorted(event.subject for event in only(JobPreempted, events)) == ["a", "b"]
    assert searches == [2]
