"""Preemption by rank inside a class, by hand: who yields, when, at what price, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from services.placement.core.pool.job import Job
from services.placement.core.round.protection import protected_ms
from shared.contracts.attempts import JobPreempted
from shared.contracts.base import Event
from tests.services.placement.core.lane import Lane, job, kinds, lane, only

RESIDENCY_MS = 300_000


def ranked(*nodes: str, gpus: int = 8, **settings: object) -> Lane:
    """A pool as simulations have it: ranks last until the next change, rounds come 1 ms later."""
    fields: dict[str, object] = {"preemption": "ranked", "rank_ms": 0, "settle_ms": 1}
    return lane(*nodes, gpus=gpus, round_ms=1, **{**fields, **settings})


def begin(pool: Lane, **gpus: int) -> None:
    """Jobs of so many GPUs run from now on."""
    pool.submit(*(job(name, n) for name, n in gpus.items()))
    pool.wake()
    pool.ready(*gpus)


def preempted(events: list[Event]) -> list[JobPreempted]:
    return [event for event in events if isinstance(event, JobPreempted)]


def victims(events: list[Event]) -> list[str]:
    return sorted(event.job_id for event in preempted(events))


def test_a_better_rank_stops_the_worst_one_when_its_residency_is_over() -> None:
    pool = ranked("n1")
    begin(pool, x=4, y=4)
    started = pool.now
    pool.submit(job("a", 4), after_ms=100_000)
    pool.score(a=10.0, running={"x": 5.0, "y": 3.0})
    assert preempted(pool.wake()) == []
    assert pool.state.again_at == started + RESIDENCY_MS
    assert pool.decider.next_wake(pool.state) == started + RESIDENCY_MS + 1
    (stop,) = preempted(pool.wake())
    assert (stop.job_id, stop.reason, stop.by_job_id) == ("y", "outranked", "a")
    assert stop.lost_work_s == 300.001
    assert stop.terms == {"score": 3.0, "by_score": 10.0, "ran_ms": 300_001}
    pool.stopped("y")
    pool.wake()
    assert pool.job("a").phase == "placed" and pool.job("y").phase == "waiting"


def test_residency_is_counted_from_the_go_in_cluster_seconds() -> None:
    pool = ranked("n1", time_scale=60.0)
    pool.submit(job("x", 8))
    pool.wake()
    pool.ready("x", after_ms=700)
    started = pool.now
    pool.submit(job("a", 8))
    pool.score(a=1.0, running={"x": 0.0})
    pool.wake()
    assert pool.state.again_at == started + 5000


def test_a_go_while_somebody_waits_is_a_change_so_that_its_residency_is_looked_at() -> None:
    pool = ranked("n1")
    pool.submit(job("x", 8), job("a", 8))
    pool.wake()
    pool.score(a=9.0, running={"x": 0.0})
    pool.wake()
    assert pool.decider.next_wake(pool.state) == pool.state.starting["x"] + 60_000
    pool.ready("x", after_ms=500)
    pool.wake()
    assert pool.state.again_at == pool.job("x").started_at + RESIDENCY_MS


@pytest.mark.parametrize(
    ("score", "margin", "stops"),
    [(5.0, 0.0, False), (5.1, 0.0, True), (7.0, 2.0, False), (7.1, 2.0, True)],
)
def test_the_lead_must_be_more_than_the_margin(score: float, margin: float, stops: bool) -> None:
    pool = ranked("n1", preempt_margin=margin)
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=score, running={"x": 5.0})
    assert bool(preempted(pool.wake())) is stops
    assert pool.state.again_at is None


def test_a_running_job_without_a_score_yields_first_and_a_waiting_one_stops_none() -> None:
    pool = ranked("n1")
    begin(pool, x=4, y=4)
    pool.submit(job("unranked", 4), job("a", 4), after_ms=RESIDENCY_MS)
    pool.score(a=1.0, running={"y": 0.0})
    (stop,) = preempted(pool.wake())
    assert (stop.job_id, stop.by_job_id) == ("x", "a")
    assert stop.terms == {"by_score": 1.0, "ran_ms": RESIDENCY_MS + 1}


@pytest.mark.parametrize(
    "victim", [{"preemptible": False}, {"guaranteed_s": 400.0}, {"priority_class": "high"}]
)
def test_no_job_yields_to_rank_without_need(victim: dict[str, Any]) -> None:
    pool = ranked("n1")
    pool.submit(job("x", 8, **victim))
    pool.wake()
    pool.ready("x")
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=9.0, running={"x": 0.0})
    assert preempted(pool.wake()) == []
    again = pool.job("x").started_at + 400_000 if "guaranteed_s" in victim else None
    assert pool.state.again_at == again


def test_in_a_pool_that_preempts_by_class_rank_stops_no_job() -> None:
    pool = ranked("n1", preemption="class")
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=9.0, running={"x": 0.0})
    assert preempted(pool.wake()) == []
    assert pool.state.ranks.scores == {"a": 9.0}


def test_lower_classes_yield_before_the_own_one_and_before_their_residency_is_over() -> None:
    pool = ranked("n1")
    begin(pool, x=4)
    pool.submit(job("low", 4, priority_class="low"))
    pool.wake()
    pool.ready("low")
    pool.submit(job("a", 4))
    pool.score(a=9.0, running={"x": 0.0, "low": 8.0})
    (stop,) = preempted(pool.wake())
    assert (stop.job_id, stop.reason) == ("low", "higher_class")


def test_spot_jobs_stop_no_job_by_rank_either() -> None:
    pool = ranked("n1")
    pool.submit(job("x", 8, spot=True))
    pool.wake()
    pool.ready("x")
    pool.submit(job("a", 8, spot=True), after_ms=RESIDENCY_MS)
    pool.score(a=9.0, running={"x": 0.0})
    assert preempted(pool.wake()) == []


def test_victims_are_the_lowest_scores_that_are_enough_and_no_more() -> None:
    pool = ranked("n1", "n2", gpus=4)
    begin(pool, a1=2, a2=2, b1=2, b2=2)
    assert pool.nodes_of("a1") == pool.nodes_of("a2") != pool.nodes_of("b1")
    pool.submit(job("big", 4), after_ms=RESIDENCY_MS)
    pool.score(big=9.0, running={"a1": 1.0, "a2": 6.0, "b1": 4.0, "b2": 5.0})
    assert victims(pool.wake()) == ["b1", "b2"], "sparing the dearest, a2, makes n2 the place"


def test_a_gang_for_which_its_victims_are_not_enough_stops_none() -> None:
    pool = ranked("n1", gpus=8)
    begin(pool, x=4, y=4)
    pool.submit(job("gang", 8), after_ms=RESIDENCY_MS)
    pool.score(gang=5.0, running={"x": 1.0, "y": 6.0})
    assert preempted(pool.wake()) == []


def test_the_claimer_starts_on_what_its_victims_left_whoever_came_meanwhile() -> None:
    pool = ranked("n1")
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=5.0, running={"x": 1.0})
    assert victims(pool.wake()) == ["x"]
    pool.submit(job("better", 8))
    pool.score(a=5.0, better=9.0)
    pool.stopped("x")
    pool.wake()
    assert pool.job("a").phase == "placed" and pool.job("better").phase == "waiting"


def test_a_job_that_stopped_another_runs_its_residency_itself() -> None:
    pool = ranked("n1")
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=5.0, running={"x": 1.0})
    pool.wake()
    pool.stopped("x")
    pool.wake()
    pool.ready("a")
    started = pool.now
    pool.score(x=9.0, running={"a": 5.0})
    assert preempted(pool.wake()) == []
    assert pool.state.again_at == started + RESIDENCY_MS


def test_a_new_rank_is_a_change_only_where_rank_stops_jobs_and_somebody_waits() -> None:
    for preemption, waits in (("ranked", True), ("ranked", False), ("class", True)):
        pool = ranked("n1", preemption=preemption)
        begin(pool, x=8)
        if waits:
            pool.submit(job("a", 8), after_ms=1)
            pool.wake()
        pool.state.changed = False
        pool.score(a=1.0, running={"x": 5.0})
        assert pool.state.changed is (preemption == "ranked" and waits)


def test_a_rank_that_turns_the_order_around_stops_a_job_at_once() -> None:
    pool = ranked("n1")
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=RESIDENCY_MS)
    pool.score(a=1.0, running={"x": 5.0})
    assert preempted(pool.wake()) == []
    pool.score(a=6.0, running={"x": 5.0})
    assert victims(pool.wake()) == ["x"]


def test_stale_ranks_stop_no_job() -> None:
    pool = ranked("n1", rank_ms=1000)
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=100)
    pool.score(a=9.0, running={"x": 5.0})
    pool.wake()
    pool.feed(after_ms=RESIDENCY_MS)
    assert only(JobPreempted, [fact.event for fact in pool.facts]) == []


def test_a_start_after_a_preemption_first_earns_what_that_preemption_cost() -> None:
    """Lost 100 s (400 s since a checkpoint of every 300 s) and 250 s of restart: 350 s > 300 s."""
    pool = ranked("n1")
    spec: dict[str, Any] = {"checkpoint_interval_s": 300.0, "simulated": {"restart_s": 250.0}}
    pool.submit(job("x", 8, **spec))
    pool.wake()
    pool.ready("x")
    pool.submit(job("a", 8), after_ms=399_999)
    pool.score(a=9.0, running={"x": 0.0})
    (stop,) = preempted(pool.wake())
    assert stop.lost_work_s == 100.0
    pool.stopped("x")
    pool.wake()
    pool.ready("a")
    pool.exited("a")
    pool.wake()
    pool.ready("x")
    assert protected_ms(pool.job("x"), RESIDENCY_MS) == 350_000
    pool.submit(job("b", 8))
    pool.score(b=9.0, running={"x": 0.0})
    pool.wake()
    assert pool.state.again_at == pool.job("x").started_at + 350_000
    (stop,) = preempted(pool.wake())
    assert stop.lost_work_s == pytest.approx(100.001), (
        "350.001 s ran, of which 250 were the restart"
    )


def test_a_preemption_before_the_go_costs_nothing_and_what_was_owed_stays_owed() -> None:
    pool = ranked("n1")
    begin(pool, x=8)
    pool.submit(job("a", 8), after_ms=500_000)
    pool.score(a=9.0, running={"x": 0.0})
    pool.wake()
    pool.stopped("x")
    pool.wake()
    pool.ready("a")
    pool.exited("a")
    pool.wake()
    owed = pool.job("x").debt_ms
    assert (pool.job("x").phase, owed) == ("placed", 500_001)
    pool.submit(job("high", 8, priority_class="high"))
    assert victims(pool.wake()) == ["x"]
    assert pool.job("x").debt_ms == owed and pool.job("x").resumes


def test_a_job_with_a_failed_program_begins_anew_and_owes_nothing() -> None:
    pool = ranked("n1")
    pool.submit(job("x", 8, retry={"max_attempts": 2}))
    pool.wake()
    pool.ready("x")
    x: Job = pool.job("x")
    x.debt_ms, x.resumes = 5, True
    pool.exited("x", code=1)
    pool.readmit("x", 2)
    assert (x.debt_ms, x.resumes) == (0, False)


def test_two_jobs_that_outrank_each_other_in_turn_both_get_on() -> None:
    """Least attained service, no checkpoints: whoever runs falls behind, but each turn is longer
    than the work that the last one lost, so neither is starved."""
    pool = ranked("n1")
    begin(pool, x=8)
    pool.submit(job("y", 8))
    turns = []
    for _ in range(6):
        runs = next(j for j in pool.state.jobs.values() if j.phase == "running")
        waits = next(j for j in pool.state.jobs.values() if j.phase == "waiting")
        pool.score(**{waits.job_id: 1.0}, running={runs.job_id: 0.0})
        while not preempted(pool.wake()):
            pass
        turns.append(pool.now - runs.started_at)
        pool.stopped(runs.job_id)
        pool.wake()
        pool.ready(waits.job_id)
    assert turns[0] == turns[1] == RESIDENCY_MS + 1
    assert all(later > turn for turn, later in zip(turns, turns[2:], strict=False))


def test_strict_and_easy_heads_preempt_by_rank_too() -> None:
    for mode in ("strict", "easy"):
        pool = ranked("n1", queue_mode=mode)
        begin(pool, x=8)
        pool.submit(job("a", 8), job("b", 1), after_ms=RESIDENCY_MS)
        pool.score(a=2.0, b=1.0, running={"x": 0.0})
        assert victims(pool.wake()) == ["x"]
        pool.stopped("x")
        assert "JobPlaced" in kinds(pool.wake())
        assert pool.job("a").phase == "placed"
