"""Estimates of waiting jobs: the jobs that get one, and the times of publishing."""

from __future__ import annotations

from typing import Any

import pytest

from services.priority.core.decide import REFRESH_MS, Priority
from services.priority.core.history.distributions import Floats
from services.priority.core.starts import start_estimates
from services.priority.core.starts.simulated_starts import simulate_starts
from services.priority.core.starts.start_estimates import (
    LEAST_WAIT_MS,
    PUBLISHED_MOST,
    ROUND_MS,
    SHORT_QUEUE,
    SHORT_ROUND_MS,
    estimate_starts,
    estimates_due,
    take_turns,
)
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.ranking import (
    JobStartEstimated,
    NodeGpus,
    Progressed,
    QueueRanked,
    Ranked,
    Started,
)
from tests.harness.decider import AT, fold, run
from tests.services.priority.core.lane import PRIORITY
from tests.services.priority.core.queues import change, entry, holding, queue

LATER = AT + LEAST_WAIT_MS


def busy_queue(**settings: Any) -> PriorityState:
    """Return a pool of 8 GPUs, all held by `r`, and two jobs that wait for them."""
    state = queue(entry("r", gpus=8), entry("a", gpus=8), entry("b", gpus=4), **settings)
    change(state, nodes=(NodeGpus(node_id="n", gpus=8),), running=(holding("r", gpus=8),))
    return change(state, started=(Started(job_id="r", at=AT),))


def order(*job_ids: str) -> tuple[Ranked, ...]:
    return tuple(Ranked(job_id=job_id, score=0.0) for job_id in job_ids)


def estimates(state: PriorityState, now: int) -> list[Event]:
    return [decision.event for decision in estimate_starts(state, order("a", "b"), now)]


def test_jobs_that_wait_get_an_interval_in_the_order_of_the_queue() -> None:
    state = busy_queue()
    assert estimates(state, AT) == [], "they have just come"
    a, b = estimates(state, LATER)
    assert isinstance(a, JobStartEstimated) and isinstance(b, JobStartEstimated)
    assert (a.job_id, b.job_id, a.tenant, a.coverage) == ("a", "b", "red", None)
    assert LATER <= a.p10_at < a.p50_at < a.p90_at
    assert b.p50_at > a.p50_at, "b follows a"


def test_an_estimate_that_holds_is_not_repeated() -> None:
    state = busy_queue()
    first = estimates(state, LATER)
    fold(PRIORITY, state, first, at=LATER)
    assert estimates(state, LATER + 1000) == []


def test_starts_are_simulated_at_the_first_ranking_of_each_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second round's simulation is not repeated, although it has no news."""
    for waiting, round_ms in ((SHORT_QUEUE, SHORT_ROUND_MS), (SHORT_QUEUE + 1, ROUND_MS)):
        assert not estimates_due(waiting, round_ms, 2 * round_ms - 1)
        assert estimates_due(waiting, 2 * round_ms - 1, 2 * round_ms)
    simulated: list[int] = []

    def counted(*load: Any) -> Floats:
        simulated.append(1)
        return simulate_starts(*load)

    monkeypatch.setattr(start_estimates, "simulate_starts", counted)
    state, first = busy_queue(), (AT // ROUND_MS + 1) * ROUND_MS
    for now in (first, first + SHORT_ROUND_MS - 1, first + REFRESH_MS, first + 2 * REFRESH_MS - 1):
        run(PRIORITY, state, [], now)
    assert len(simulated) == 2


def test_a_start_is_judged_by_the_estimate_and_the_record_is_shown() -> None:
    state = busy_queue()
    a, b = estimates(state, LATER)
    fold(PRIORITY, state, [a, b], at=LATER)
    assert isinstance(a, JobStartEstimated)
    change(state, at=a.p50_at, left=("r",), running=(holding("a", gpus=8, since=a.p50_at),))
    assert state.starts.coverage.inside == 1.0
    assert set(state.starts.by_job) == {"b"}
    again = [d.event for d in estimate_starts(state, order("b"), 10 * a.p90_at)]
    assert [(e.coverage, e.samples) for e in again if isinstance(e, JobStartEstimated)] == [
        (1.0, 1)
    ]


def test_a_report_of_the_job_before_sharpens_the_estimate() -> None:
    """`r` ends in an hour by its own reports; until it has outrun them."""
    state = busy_queue()
    vague, _ = estimates(state, LATER)
    ends_at = LATER + 3_600_000
    change(state, progressed=(Progressed(job_id="r", ends_at=ends_at),))
    sharp, _ = estimates(state, LATER)
    assert isinstance(vague, JobStartEstimated) and isinstance(sharp, JobStartEstimated)
    assert sharp.p10_at <= ends_at <= sharp.p90_at
    assert sharp.p90_at - sharp.p10_at < min(900_000, vague.p90_at - vague.p10_at)
    past, _ = estimates(state, ends_at)
    silent, _ = estimates(busy_queue(), ends_at)
    assert past == silent


def test_a_job_that_leaves_takes_its_estimate_along() -> None:
    state = busy_queue()
    fold(PRIORITY, state, estimates(state, LATER), at=LATER)
    change(state, left=("a", "b"))
    assert state.starts.by_job == {}


def test_the_decider_estimates_after_it_has_ranked() -> None:
    state = busy_queue()
    events = [decision.event for decision in Priority().decide(state, [], LATER)]
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["QueueRanked", "JobStartEstimated", "JobStartEstimated"]


def test_a_pool_that_an_earlier_release_configured_publishes_no_predictions() -> None:
    state = busy_queue(publish_predictions=False)
    (decision,) = Priority().decide(state, [], LATER)
    assert isinstance(decision.event, QueueRanked)


def test_every_waiting_job_gets_an_estimate_those_without_one_first() -> None:
    """Beyond the ranked jobs too: they follow in the order of their submission."""
    jobs = [entry(f"j{n:04d}", at=AT + n % 7) for n in range(2 * PUBLISHED_MOST)]
    state = queue(entry("r", gpus=8), *jobs)
    change(state, nodes=(NodeGpus(node_id="n", gpus=8),), running=(holding("r", gpus=8),))
    ranked, later = order("j0009", "j0003"), LATER + 10
    first = [d.event for d in estimate_starts(state, ranked, later)]
    assert len(first) == PUBLISHED_MOST
    assert [e.subject for e in first[:4]] == ["j0009", "j0003", "j0000", "j0007"]
    fold(PRIORITY, state, first, at=later)
    second = [d.event for d in estimate_starts(state, ranked, later + 1)]
    fold(PRIORITY, state, second, at=later + 1)
    assert set(state.starts.by_job) == {job.job_id for job in jobs}


def test_tenants_take_turns_where_too_many_jobs_have_no_estimate() -> None:
    assert take_turns(["a", "a", "a", "b", "b", "c"]) == [0, 3, 5, 1, 4, 2]
    assert take_turns([]) == []


def test_a_job_that_no_node_fits_is_estimated_ever_more_rarely() -> None:
    """By its number of GPUs it could start at once, so each estimate of the simulation is over."""
    state = queue(entry("a", gpus=8))
    state = change(state, nodes=(NodeGpus(node_id="n", gpus=8),))
    for _ in range(100):
        state.starts.calibration.learn((600.0, 600.0, 600.0), 600.0)
    published: list[int] = []
    hour_ms = 3_600_000
    for now in range(LATER, LATER + 30 * hour_ms, SHORT_ROUND_MS):
        estimate = state.starts.by_job.get("a")
        if estimate is not None and now <= estimate.p90_at:
            continue
        (event,) = estimates(state, now)
        fold(PRIORITY, state, [event], at=now)
        published.append(now)
    assert len(published) < 90
    assert 3 * hour_ms < published[-1] - published[-2] < 5 * hour_ms
