"""Start estimates of a replay: made before the start, learnt from after it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.prediction.starts import estimate_starts

pytestmark = pytest.mark.parts


def test_the_intervals_of_a_queue_hold_about_as_often_as_they_claim() -> None:
    starts = estimate_starts("synthetic:helios", "skip")
    assert starts is not None and len(starts.delay_s) > 50
    assert (starts.delay_s > 60.0).all(), "only jobs that wait are estimated"
    assert (np.diff(starts.predicted_s, axis=1) >= 0.0).all()
    assert starts.coverage == pytest.approx(0.8, abs=0.12), "jobs that wait together hold together"


def test_a_queue_in_which_hardly_any_job_waits_has_no_estimates() -> None:
    assert estimate_starts("synthetic:philly", "skip") is None
