"""Start estimates of the live rules: those that were published, against the starts of the run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.prediction.live_starts import FirstEstimates, estimate_live_starts
from shared.contracts.base import Event
from shared.contracts.ranking import JobStartEstimated, QueueChanged, Running
from shared.ledger.decider import Fact


def fact_of(event: Event, at: int) -> Fact:
    return Fact(event, "priority", 0, 1, 0, at)


def estimate(p90_at: int) -> JobStartEstimated:
    return JobStartEstimated(
        job_id="a", tenant="red", pool="p", p10_at=0, p50_at=p90_at - 100, p90_at=p90_at
    )


def placed(since: int) -> QueueChanged:
    return QueueChanged(
        pool="p", running=(Running(job_id="a", tenant="red", gpus=1.0, since=since),)
    )


def test_the_first_estimate_and_the_first_start_count() -> None:
    first = FirstEstimates()
    for at in (1_000, 2_000):
        first.note(fact_of(estimate(p90_at=at + 500), at))
        first.note(fact_of(placed(since=at + 100), at))
    at, event = first.estimates["a"]
    assert (at, event.p90_at) == (1_000, 1_500)
    assert first.starts == {"a": 1_100}


@pytest.mark.parts
def test_published_intervals_of_a_queue_that_waits_are_in_cluster_seconds() -> None:
    starts = estimate_live_starts("synthetic:helios", "skip", 2_000)
    assert starts is not None and len(starts.delay_s) >= 20
    assert (np.diff(starts.predicted_s, axis=1) >= 0.0).all()
    assert (np.diff(starts.uncalibrated_s, axis=1) >= 0.0).all()
    assert 0.0 < starts.coverage < 1.0


@pytest.mark.slow
def test_a_trace_in_which_hardly_any_job_waits_has_no_estimates() -> None:
    assert estimate_live_starts("synthetic:philly", "easy", 300) is None
