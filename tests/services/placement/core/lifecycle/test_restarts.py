"""A job on real nodes shows how long its restart takes by the first report of each start."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.lifecycle.restarts import RESTART_MOST_S
from shared.contracts.attempts import JobPreempted, JobStarted
from shared.contracts.reports import ProgressReported, WorkerProgressed
from tests.services.placement.core.lane import Lane, job, only
from tests.services.placement.core.test_run_round_progress import outranked, pool_running

ASSUMED = {"assumed_restart_s": 90.0, "use_progress": True}


def trained(interval_s: float | None = 600.0) -> Lane:
    """A pool in which the job x runs on all GPUs of its node."""
    return pool_running(job("x", 8, checkpoint_interval_s=interval_s), **ASSUMED)


def report(pool: Lane, ran_s: float, step: int, iteration_s: float) -> None:
    """Let the worker of x report a step when it has run for so long."""
    x = pool.job("x")
    fields: dict[str, Any] = {"job_id": "x", "step": step, "steps_total": 10**9}
    one = WorkerProgressed(
        allocation_id=pool.ids_of("x")[0],
        ran_ms=round(ran_s * 1000),
        iteration_s=iteration_s,
        **fields,
    )
    after_ms = x.started_at + one.ran_ms - pool.now
    message = ProgressReported(executor_id="e1", progress=(one,))
    pool.feed(pool.an("reports", message), after_ms=after_ms)


def stop_x(pool: Lane, by: str) -> JobPreempted:
    """Let a job outrank x until it is stopped."""
    events = outranked(pool, "x", by, after_s=1.0)
    while not only(JobPreempted, events):
        events = pool.wake()
    (stop,) = only(JobPreempted, events)
    assert isinstance(stop, JobPreempted)
    return stop


def test_until_a_job_has_reported_the_pool_says_what_its_stop_costs() -> None:
    stop = stop_x(trained(), "a")
    assert stop.terms["restart_s"] == 90.0 and "restart_measured" not in stop.terms


def test_the_first_report_of_a_start_shows_what_the_next_restart_takes() -> None:
    pool = trained()
    report(pool, ran_s=55.0, step=3, iteration_s=5.0)
    report(pool, ran_s=500.0, step=4, iteration_s=5.0)
    assert pool.job("x").restart_wall_ms == 40_000, "later reports of the start show nothing"
    stop = stop_x(pool, "a")
    assert (stop.terms["restart_s"], stop.terms["restart_measured"]) == (40.0, 1.0)
    lost_ms = round(stop.lost_work_s * 1000)
    assert pool.job("x").debt_ms == 40_000 + lost_ms, "the loss budget and the debt count it"


def test_iterations_count_from_the_checkpoint_that_the_start_went_on_from() -> None:
    pool = trained()
    pool.checkpoint_now("x", after_ms=300_000)
    x = pool.job("x")
    x.checkpoint_step, x.checkpointed_ms = 1000, 0
    report(pool, ran_s=400.0, step=1030, iteration_s=10.0)
    assert x.restart_wall_ms == 100_000
    pool = trained()
    report(pool, ran_s=400.0, step=5030, iteration_s=10.0)
    assert pool.job("x").restart_wall_ms == 390_000, "it went on from a step of its own"


def test_checkpoints_show_a_restart_by_the_interval_between_them() -> None:
    pool = trained()
    pool.checkpoint_now("x", after_ms=645_000)
    assert pool.job("x").restart_wall_ms == 45_000
    pool = trained(interval_s=None)
    pool.checkpoint_now("x", after_ms=645_000)
    assert not pool.job("x").has_shown_restart, "nothing says how long it worked"


def test_a_simulated_job_has_the_restart_that_it_declares() -> None:
    pool = pool_running(job("x", 8, simulated={"restart_s": 7.0}), **ASSUMED)
    report(pool, ran_s=55.0, step=3, iteration_s=5.0)
    assert pool.job("x").restart_ms(1.0) == 7_000 and not pool.job("x").has_shown_restart


@given(st.floats(1, 1e6), st.integers(0, 2**53 - 1), st.floats(0, 1e9))
def test_whatever_a_job_reports_its_restart_is_bounded(
    ran_s: float, step: int, iteration_s: float
) -> None:
    pool = trained()
    report(pool, ran_s, step, iteration_s)
    assert 0 <= pool.job("x").restart_wall_ms <= min(RESTART_MOST_S, max(90.0, ran_s)) * 1000


def test_measured_restarts_are_folded_from_events_alone() -> None:
    pool = trained()
    report(pool, ran_s=55.0, step=3, iteration_s=5.0)
    assert only(JobStarted, [fact.event for fact in pool.facts])
    fresh = pool.decider.initial(0)
    for fact in pool.facts:
        pool.decider.evolve(fresh, fact)
    assert fresh.jobs["x"] == pool.job("x") and fresh.jobs["x"].has_shown_restart
