"""Ranks follow the rest that a running job reports, within twice the distance to its first word."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.queue.reported import DOUBT, believed_left_s
from services.priority.core.queue.table import RUNNING
from services.priority.core.ranking.stable_order import rank_stable, score_running
from services.priority.core.state import PriorityState
from shared.contracts.pools import RuntimeSource
from shared.contracts.ranking import Progressed, Ranked, Started, Stopped
from tests.harness.decider import AT
from tests.services.priority.core.queues import change, entry, holding, queue

MINUTE_MS = 60_000
SECONDS = st.floats(0.001, 1e8)


def running(policy: str = "gittins", **settings: Any) -> PriorityState:
    """Return a queue with the job `a`, which works on a GPU since `AT`."""
    ranks = {"preemption": "ranked", "preemption_protection": "progress", "runtime": "history"}
    more: dict[str, Any] = {**ranks, **settings}
    state = queue(entry("a"), entry("waiting"), base_policy=policy, **more)
    return change(state, running=(holding("a"),), started=(Started(job_id="a", at=AT),))


def report(state: PriorityState, at: int, left_s: float) -> None:
    ends_at = at + round(left_s * 1000)
    change(state, at=at, progressed=(Progressed(job_id="a", ends_at=ends_at),))


def ranked(state: PriorityState, now: int) -> Ranked:
    """Return the running job as ranked at that time."""
    assert state.pool is not None
    (job,) = rank_stable(state, state.pool, now).running
    return job


def believed_s(state: PriorityState, now: int) -> float | None:
    """Return the rest by which a stop of the job is priced."""
    return ranked(state, now).gittins_s


@for_all(SECONDS, SECONDS, SECONDS, SECONDS)
def test_little_is_believed_only_near_the_first_word(
    left_s: float, total_s: float, attained_s: float, x: float
) -> None:
    if believed_left_s(left_s, total_s, attained_s) <= x:
        assert abs(total_s - attained_s) <= x / DOUBT


def test_an_honest_job_is_ranked_by_what_it_reports() -> None:
    state = running()
    by_history_s = believed_s(state, AT + 10 * MINUTE_MS)
    report(state, AT + 10 * MINUTE_MS, 7200)
    assert believed_s(state, AT + 10 * MINUTE_MS) == 7200 != by_history_s
    assert believed_s(state, AT + 40 * MINUTE_MS) == 5400
    report(state, AT + 40 * MINUTE_MS, 5000)
    job = ranked(state, AT + 40 * MINUTE_MS)
    assert job.gittins_s == 5000
    assert job.score == pytest.approx(-math.log(5000))


def test_a_job_that_outran_its_report_is_ranked_by_history() -> None:
    reported, silent = running(), running()
    report(reported, AT + MINUTE_MS, 60)
    for now in (AT + 2 * MINUTE_MS, AT + 9 * MINUTE_MS):
        assert ranked(reported, now) == ranked(silent, now)


@for_all(
    st.lists(st.floats(0.1, 1e5), min_size=1, max_size=200),
    st.lists(st.integers(0, 199), max_size=3),
    st.sampled_from([60.0, 600.0]),
)
def test_no_lie_lets_a_job_pass_for_long_as_one_that_is_about_to_end(
    reports: list[float], stops: list[int], x: float
) -> None:
    """Each minute it says something, and rank stops it now and then, just after a checkpoint."""
    state, ran_ms, minutes = running(), 0, 0
    for minute, left_s in enumerate(reports):
        now = AT + (minute + 1) * MINUTE_MS
        report(state, now, left_s)
        job = believed_s(state, now)
        assert job is not None
        minutes += job <= x
        if minute in stops:
            ran_ms = now - AT
            restarts = sum(stop <= minute for stop in set(stops))
            stop = Stopped(job_id="a", ran_ms=ran_ms, kept_ms=ran_ms, restarts=restarts)
            change(state, at=now, stopped=(stop,), running=(holding("a", since=now),))
            change(state, at=now, started=(Started(job_id="a", at=now),))
    assert minutes <= 2 * x / DOUBT / 60 + 1


def test_a_stopped_job_waits_with_the_rest_that_it_reported() -> None:
    state = running()
    report(state, AT + 10 * MINUTE_MS, 3000)
    stop = Stopped(job_id="a", ran_ms=20 * MINUTE_MS, kept_ms=15 * MINUTE_MS, restarts=1)
    change(state, at=AT + 20 * MINUTE_MS, stopped=(stop,), requeued=("a",))
    assert state.pool is not None
    waiting = rank_stable(state, state.pool, AT + 30 * MINUTE_MS).ranked
    (score,) = (job.score for job in waiting if job.job_id == "a")
    assert score == pytest.approx(-math.log(3000 - 600 + 300)), "and does five minutes again"


def test_a_program_that_failed_waits_by_history() -> None:
    state, silent = running(), running()
    report(state, AT + MINUTE_MS, 9000)
    stop = Stopped(job_id="a", ran_ms=5 * MINUTE_MS, kept_ms=0, restarts=0)
    for each in (state, silent):
        change(each, at=AT + 5 * MINUTE_MS, stopped=(stop,), requeued=("a",))
    row = state.jobs["a"].row
    for name in ("left_s", "gittins_s"):
        assert state.table.get(row, name) == silent.table.get(row, name)


@pytest.mark.parametrize("policy", [name for name, own in POLICIES.items() if own.stable])
@pytest.mark.parametrize("source", ["history", "user", "oracle"])
def test_only_policies_that_weigh_the_rest_follow_reports(
    policy: str, source: RuntimeSource
) -> None:
    state, silent = (running(policy, runtime=source) for _ in range(2))
    now = AT + 10 * MINUTE_MS
    report(state, now, 123_456)
    weighs_rest = POLICIES[policy].running == "by_bin"
    follows = weighs_rest and (POLICIES[policy].source or source) != "oracle"
    assert (ranked(state, now).score != ranked(silent, now).score) == follows


def test_a_report_is_looked_at_again_at_each_ranking() -> None:
    state = running("srtf")
    assert state.pool is not None
    report(state, AT + MINUTE_MS, 7200)
    now = AT + 2 * MINUTE_MS
    (place,) = score_running(state, state.pool, now, state.table.unordered(RUNNING))
    assert place.until == now
