"""Preemption by rank under `preemption_protection=progress`, as the decider records it."""

from __future__ import annotations

from typing import Any

from services.placement.core.pool.loss_budget import cost_of
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobPreempted, JobStarted
from shared.contracts.base import Event
from shared.contracts.placement import JobHeld, PreemptionPaused
from tests.services.placement.core.lane import Lane, job, lane, only

INTERVAL_S = 600.0
SETTINGS: dict[str, object] = {
    "preemption": "ranked",
    "preemption_protection": "progress",
    "min_residency_s": 60.0,
    "start_protection_s": 600.0,
    "rank_ms": 0,
    "settle_ms": 1,
    "round_ms": 1,
    "defragment_after_s": 1e9,
}


def saving(name: str, gpus: float = 8, **more: object) -> JobAdmitted:
    fields: dict[str, Any] = {
        "checkpoint_interval_s": INTERVAL_S,
        "simulated": {"restart_s": 60.0},
        **more,
    }
    return job(name, gpus, **fields)


def pool_running(*jobs: JobAdmitted, **settings: object) -> Lane:
    """A node of 8 GPUs on which these jobs run from now on."""
    fields: dict[str, object] = {**SETTINGS, **settings}
    pool = lane("n1", gpus=8, **fields)
    pool.submit(*jobs)
    pool.wake()
    pool.ready(*(job.job_id for job in jobs))
    return pool


def outranked(pool: Lane, victim: str, by: str, after_s: float) -> list[Event]:
    """Let the job `by` come and outrank the victim that many s from now; return the round."""
    pool.submit(saving(by), after_ms=round(after_s * 1000))
    pool.score({victim: 0.0}, **{by: 5.0})
    return pool.wake()


def test_a_job_is_stopped_at_the_first_checkpoint_after_its_protection() -> None:
    pool = pool_running(saving("x"))
    began = pool.now
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=400.0))
    (held,) = [fact.event for fact in pool.facts if isinstance(fact.event, JobHeld)]
    assert held.detail["protected_by"] == "progress"
    assert held.detail["protected_until"] == float(began + 600_000)
    (stop,) = only(JobPreempted, pool.wake())
    assert isinstance(stop, JobPreempted) and pool.now == began + 600_001
    assert stop.lost_work_s == 0.001
    assert (stop.terms["restart_s"], stop.terms["starts"]) == (60.0, 1.0)


def test_a_job_out_of_phase_runs_to_its_next_checkpoint() -> None:
    pool = pool_running(saving("x"))
    began = pool.now
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=700.0))
    assert pool.facts[-1].event.again_at == began + 1_200_000  # type: ignore[attr-defined]
    assert only(JobPreempted, pool.wake()) and pool.now == began + 1_200_001


def test_a_job_that_writes_a_checkpoint_at_the_stop_waits_for_none() -> None:
    pool = pool_running(saving("x", checkpoint_cost_s=4.0))
    (stop,) = only(JobPreempted, outranked(pool, "x", "a", after_s=700.0))
    assert isinstance(stop, JobPreempted) and stop.lost_work_s == 4.0


def test_a_job_without_checkpoints_yields_to_a_higher_class_only() -> None:
    pool = pool_running(job("x", 8))
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=90_000.0))
    assert pool.state.again_at is None, "nothing will ever change that"
    assert only(JobPreempted, pool.submit(saving("b", priority_class="high")) + pool.wake())


def test_stops_pause_once_the_loss_budget_is_spent_and_go_on_when_it_is_earned() -> None:
    # 8 GPUs for 400 s at 1.5 %: 48 GPU-s; a stop costs 8 * 60 GPU-s.
    pool = pool_running(saving("x"), loss_window_s=400.0)
    events = outranked(pool, "x", "a", after_s=600.0)
    (paused,) = only(PreemptionPaused, events)
    assert isinstance(paused, PreemptionPaused)
    assert (round(paused.spent_gpu_s), round(paused.budget_gpu_s)) == (480, 48)
    pool.stopped("x")
    pool.wake()
    pool.ready("a")
    opens = paused.until
    assert opens is not None
    # Until then nobody is stopped, and the event is not repeated.
    later = outranked(pool, "a", "b", after_s=1200.0)
    assert not only(JobPreempted, later) and not only(PreemptionPaused, later)
    assert pool.now < opens
    (stop,) = only(
        JobPreempted, outranked(pool, "a", "c", after_s=(opens - pool.now) / 1000 + 1800)
    )
    assert isinstance(stop, JobPreempted) and stop.job_id == "a"


def test_the_account_of_a_pool_is_folded_from_events_alone() -> None:
    pool = pool_running(saving("x"))
    outranked(pool, "x", "a", after_s=600.0)
    pool.stopped("x")
    pool.wake()
    assert only(JobStarted, [fact.event for fact in pool.facts])
    fresh = pool.decider.initial(0)
    for fact in pool.facts:
        pool.decider.evolve(fresh, fact)
    assert fresh.loss == pool.state.loss and fresh.loss.spent > 0
    assert {name: job.starts for name, job in fresh.jobs.items()} == {"x": 1, "a": 0}


def test_a_job_is_stopped_right_after_the_checkpoint_that_it_reports() -> None:
    pool = pool_running(saving("x"))
    pool.checkpoint_now("x", after_ms=690_000)
    began = pool.job("x").started_at
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=210.0))
    (held,) = [fact.event for fact in pool.facts if isinstance(fact.event, JobHeld)]
    assert held.detail["protected_by"] == "checkpoint"
    pool.feed(after_ms=began + 1_200_000 - pool.now)
    pool.feed(after_ms=1)
    assert pool.job("x").phase == "running", "an interval has ended, but no checkpoint was reported"
    pool.checkpoint_now("x", after_ms=179_999)
    (stop,) = only(JobPreempted, pool.wake())
    assert isinstance(stop, JobPreempted) and pool.now == began + 1_380_001
    assert stop.lost_work_s == 0.001
    assert pool.job("x").debt_ms == 60_001, "and only that is charged"
    assert pool.state.loss.spent == cost_of(8_000, 60_001)


def test_a_job_that_reports_no_more_is_stopped_at_intervals_from_its_last_report() -> None:
    pool = pool_running(saving("x"))
    began = pool.job("x").started_at
    pool.checkpoint_now("x", after_ms=690_000)
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=210.0))
    assert only(JobPreempted, pool.wake())
    assert pool.now == began + 690_000 + 2 * 600_000 + 1


def test_a_job_that_names_no_interval_is_stopped_after_a_report_alone() -> None:
    pool = pool_running(job("x", 8))
    pool.checkpoint_now("x", after_ms=700_000)
    assert not only(JobPreempted, outranked(pool, "x", "a", after_s=90_000.0))
    pool.checkpoint_now("x", after_ms=1000)
    (stop,) = only(JobPreempted, pool.wake())
    assert isinstance(stop, JobPreempted) and stop.lost_work_s == 0.001


def test_a_later_start_is_stopped_once_its_checkpoint_holds_what_the_last_stop_cost() -> None:
    pool = pool_running(job("x", 8, simulated={"restart_s": 900.0}))
    pool.checkpoint_now("x", after_ms=700_000)
    assert only(JobPreempted, outranked(pool, "x", "a", after_s=10.0))
    pool.stopped("x")
    pool.wake()
    pool.ready("a")
    pool.exited("a")
    pool.wake()
    pool.ready("x")
    began, debt_ms = pool.job("x").started_at, pool.job("x").debt_ms
    assert debt_ms == 910_001
    pool.submit(saving("b"))
    pool.score({"x": 0.0}, b=5.0)
    pool.wake()
    pool.checkpoint_now("x", after_ms=began + 900_000 + debt_ms - 1 - pool.now)
    pool.feed(after_ms=1_000)
    assert pool.job("x").phase == "running", "one ms short"
    pool.checkpoint_now("x", after_ms=40_000)
    assert pool.job("x").checkpointed_ms > debt_ms and pool.now > began
    assert only(JobPreempted, pool.wake())
