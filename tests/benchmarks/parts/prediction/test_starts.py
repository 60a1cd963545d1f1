"""Start estimates of a replay: made before the start, learnt from after it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.prediction.starts import EstimatedStarts, estimate_starts


def starts_in_bursts(bursts: int, size: int, held: float) -> EstimatedStarts:
    """Return starts of which those of one hour all hold, or all fail."""
    hour = np.repeat(np.arange(bursts), size)
    is_held = np.random.default_rng(1).permutation(bursts) < held * bursts
    delay_s = np.where(is_held[hour], 100.0, 1000.0)
    interval_s = np.tile([50.0, 100.0, 200.0], (len(hour), 1))
    return EstimatedStarts(interval_s, delay_s, interval_s, hour.astype(np.float64) * 3600)


def test_the_interval_of_a_share_counts_bursts_and_not_jobs() -> None:
    one_by_one = starts_in_bursts(400, 1, 0.8).coverage_ends
    together = starts_in_bursts(40, 10, 0.8).coverage_ends
    assert one_by_one is not None and together is not None
    assert one_by_one[0] < 0.8 < one_by_one[1] < 0.86
    assert together[0] < 0.72 and together[1] > 0.87, "400 jobs of 40 hours say little"
    assert together[1] <= 1.0


def test_a_share_of_starts_of_one_hour_has_no_interval() -> None:
    assert starts_in_bursts(1, 30, 1.0).plain()["coverage_ends"] is None


@pytest.mark.parts
def test_the_intervals_of_a_queue_hold_about_as_often_as_they_claim() -> None:
    starts = estimate_starts("synthetic:helios", "skip")
    assert starts is not None and len(starts.delay_s) > 50
    assert (starts.delay_s > 60.0).all(), "only jobs that wait are estimated"
    assert (np.diff(starts.predicted_s, axis=1) >= 0.0).all()
    assert starts.coverage == pytest.approx(0.8, abs=0.12), "jobs that wait together hold together"
    ends = starts.coverage_ends
    assert ends is not None and ends[0] < starts.coverage < ends[1]


@pytest.mark.parts
def test_a_queue_in_which_hardly_any_job_waits_has_no_estimates() -> None:
    assert estimate_starts("synthetic:philly", "skip") is None
