"""The cost of a stop of each job: as the trace says, else drawn; restarts by the gang's size."""

from __future__ import annotations

import numpy as np

from simulator.workload.stop_costs import LONGEST_S, SHORTEST_S, checkpoint_intervals_s, restarts_s

UNKNOWN = np.full(10_000, np.nan)


def test_without_a_spread_each_job_has_the_median() -> None:
    assert set(checkpoint_intervals_s(UNKNOWN, 1800.0).tolist()) == {1800.0}


def test_drawn_intervals_lie_around_the_median_within_bounds() -> None:
    drawn = checkpoint_intervals_s(UNKNOWN, 1800.0, 1.0)
    assert abs(float(np.median(drawn)) / 1800.0 - 1.0) < 0.05
    assert drawn.min() >= SHORTEST_S and drawn.max() <= LONGEST_S
    # A tenth of a log-normal distribution lies below exp(-1.28) of the median.
    assert abs(float(np.quantile(drawn, 0.1)) / 500.0 - 1.0) < 0.1


def test_what_the_trace_says_is_kept() -> None:
    known = np.array([np.nan, 600.0, 0.0])
    assert checkpoint_intervals_s(known, 1800.0, 1.0)[1:].tolist() == [600.0, 0.0]
    assert checkpoint_intervals_s(known, 0.0, 1.0).tolist() == [0.0, 600.0, 0.0]


def test_restarts_grow_with_the_gang() -> None:
    gpus = np.array([0.5, 1.0, 8.0, 64.0])
    assert restarts_s(gpus, 60.0).tolist() == [60.0] * 4
    assert restarts_s(gpus, 60.0, 1 / 3).tolist() == [60.0, 60.0, 120.0, 240.0]
