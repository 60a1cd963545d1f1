"""Ends that follow from reported iterations: recorded seldom, as far as they can be true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.lifecycle.forecasts import REPORT_GAP_MS
from shared.contracts.attempts import JobProgressed
from shared.contracts.base import Event
from shared.contracts.reports import ProgressReported, WorkerProgressed
from tests.services.placement.core.lane import Lane, job, lane

RAN_MS = 1_000_000


def running(walltime_s: float | None = None, **settings: object) -> Lane:
    """A gang of two that has run for 1000 s."""
    pool = lane("a", gpus=8, **{"use_progress": True, **settings})
    pool.submit(job("x", 1, workers=2, walltime_s=walltime_s))
    if pool.job("x").phase == "waiting":
        pool.wake()
    pool.ready("x")
    pool.now += RAN_MS
    return pool


def report(pool: Lane, after_ms: int = 0, rank: int = 0, **changes: Any) -> list[Event]:
    """A job of 100 iterations, 40 done, reports now that one takes 10 s."""
    ran_ms = pool.now + after_ms - pool.job("x").started_at
    fields = {"job_id": "x", "ran_ms": ran_ms, "step": 40, "steps_total": 100, "iteration_s": 10.0}
    name = pool.ids_of("x")[rank]
    one = WorkerProgressed.model_validate({"allocation_id": name, **fields, **changes})
    message = ProgressReported(executor_id="e1", progress=(one,))
    events = pool.feed(pool.an("reports", message), after_ms=after_ms)
    return [event for event in events if isinstance(event, JobProgressed)]


def test_the_rest_is_the_iterations_to_come_at_the_pace_so_far() -> None:
    pool = running()
    [event] = report(pool)
    assert event == JobProgressed(
        job_id="x",
        tenant="t",
        attempt=1,
        step=40,
        steps_total=100,
        ends_at=pool.now + 600_000,
        restart_ms=600_000,
    )
    forecast = pool.job("x").forecast
    assert forecast is not None and forecast.ends_at == pool.now + 600_000


def test_the_time_of_a_report_is_that_of_the_node() -> None:
    [event] = report(running(), ran_ms=900_000)
    assert isinstance(event, JobProgressed)
    pool = running()
    assert event.ends_at == pool.now - 100_000 + 600_000
    [ahead] = report(pool, ran_ms=2**53 - 1)
    assert isinstance(ahead, JobProgressed) and ahead.ends_at == pool.now + 600_000


def test_the_walltime_bounds_it() -> None:
    pool = running(walltime_s=1200)
    [event] = report(pool)
    assert isinstance(event, JobProgressed)
    assert event.ends_at == pool.job("x").started_at + 1_200_000


@pytest.mark.parametrize(
    "changes",
    [
        {"rank": 1},
        {"step": 100},
        {"step": 101},
        {"iteration_s": 0.0},
        {"job_id": "y"},
        {"allocation_id": "0/1/0/0"},
    ],
)
def test_a_report_that_says_nothing_of_the_rest_is_ignored(changes: dict[str, Any]) -> None:
    assert report(running(), **changes) == []


def test_pools_of_earlier_releases_record_none() -> None:
    assert report(running(use_progress=False)) == []
    unnamed = lane("a", gpus=8)
    assert unnamed.state.settings is not None and not unnamed.state.settings.use_progress


def test_what_is_no_news_is_not_recorded() -> None:
    pool = running()
    assert report(pool)
    assert report(pool, REPORT_GAP_MS - 1, step=80) == [], "too soon"
    assert report(pool, 1, step=46) == [], "as expected"
    assert report(pool, 1, step=50), "a tenth of the iterations more"
    assert report(pool, REPORT_GAP_MS, step=51, iteration_s=15.0), "it became slower"


def test_a_job_that_ran_past_its_report_is_not_believed_again() -> None:
    pool = running()
    assert report(pool)
    late_ms = 600_000 + REPORT_GAP_MS
    assert report(pool, late_ms + 1, step=50) == []
    other = running()
    assert report(other)
    assert report(other, late_ms, step=50), "it may have had no chance to correct it"


def test_a_job_that_always_ends_soon_is_believed_only_for_twice_its_first_report() -> None:
    pool = running()
    assert report(pool, step=99), "10 s are left of 1010 s"
    reported_ms = pool.now + 10_000 - pool.job("x").started_at
    recorded = []
    for minute in range(60):
        recorded += report(pool, REPORT_GAP_MS, step=990 - minute, steps_total=1000 - minute)
    started_at = pool.job("x").started_at
    ends = [event.ends_at - started_at for event in recorded if isinstance(event, JobProgressed)]
    assert ends and max(ends) <= 2 * reported_ms + REPORT_GAP_MS + 100_000


def test_a_new_start_has_reported_nothing() -> None:
    pool = running()
    report(pool)
    pool.cancel("x")
    pool.stopped("x")
    pool.run(job("z", 1))
    assert pool.job("z").forecast is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**53 - 1),
            st.integers(1, 2**53 - 1),
            st.floats(0, 1e9),
            st.integers(0, 200_000),
        ),
        max_size=30,
    )
)
def test_whatever_is_reported_an_end_lies_ahead_within_the_walltime_and_seldom_changes(
    reports: list[tuple[int, int, float, int]],
) -> None:
    pool = running(walltime_s=5000)
    latest, recorded = pool.job("x").started_at + 5_000_000, []
    for step, total, iteration_s, after_ms in reports:
        fields: dict[str, Any] = {"step": step, "steps_total": total, "iteration_s": iteration_s}
        for event in report(pool, after_ms, **fields):
            assert isinstance(event, JobProgressed) and pool.now < event.ends_at <= latest
            recorded.append(pool.now)
    gaps = [later - earlier for earlier, later in zip(recorded, recorded[1:], strict=False)]
    assert all(gap >= REPORT_GAP_MS for gap in gaps)
