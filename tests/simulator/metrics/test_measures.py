"""Measures of outcomes small enough to do by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from simulator.metrics.measures import measure, offered_load
from simulator.metrics.outcome import ScheduleOutcome

NAN = float("nan")


def outcome() -> ScheduleOutcome:
    """4 GPUs. Job 0 runs at once; 1 waits 100 s, is stopped after 50 s of which 20 are lost, waits
    30 s and runs 90 s (10 of them restart); 2 is still waiting at 1000; 3 is too large."""
    return ScheduleOutcome(
        submit_s=np.array([0.0, 100.0, 600.0, 700.0]),
        start_s=np.array([0.0, 200.0, NAN, NAN]),
        end_s=np.array([50.0, 370.0, NAN, NAN]),
        duration_s=np.array([50.0, 110.0, 5.0, 10.0]),
        gpus=np.array([2.0, 4.0, 1.0, 64.0]),
        tenant=np.array([0, 1, 0, 1]),
        starts=np.array([1, 2, 0, 0]),
        held_s=np.array([50.0, 140.0, 0.0, 0.0]),
        lost_s=np.array([0.0, 30.0, 0.0, 0.0]),
        fits=np.array([True, True, True, False]),
        capacity_gpus=4.0,
        window_s=(100.0, 1000.0),
        held_by_hour=np.array([560.0]),
        lost_by_hour=np.array([100.0]),
        horizon_s=1000.0,
    )


def test_jobs_that_fail_are_counted_and_never_dropped() -> None:
    measures = measure(outcome())
    assert (measures.window.jobs, measures.window.unfinished, measures.window.never_fit) == (
        3,
        1,
        1,
    )
    assert measures.window.jct_s.mean == pytest.approx((270 + 400) / 2)
    assert measures.all.jct_s.mean == pytest.approx((50 + 270 + 400) / 3)
    assert measures.window.waiting_share == 1.0
    assert measures.all.preempted_share == pytest.approx(1 / 3)


def test_measures_of_the_whole_run() -> None:
    measures = measure(outcome())
    assert measures.utilisation == pytest.approx(560 / (4 * 900))
    assert measures.makespan_s == 370.0
    assert measures.lost_share == pytest.approx(30 * 4 / (50 * 2 + 140 * 4))
    assert measures.preemptions == 1


def test_quantiles_are_those_of_the_window() -> None:
    many = 101
    plain = replace(
        outcome(),
        submit_s=np.full(many, 500.0),
        start_s=500.0 + np.arange(many, dtype=np.float64),
        end_s=600.0 + np.arange(many, dtype=np.float64),
        duration_s=np.full(many, 100.0),
        gpus=np.ones(many),
        tenant=np.zeros(many, np.int64),
        starts=np.ones(many, np.int64),
        held_s=np.full(many, 100.0),
        lost_s=np.zeros(many),
        fits=np.ones(many, np.bool_),
    )
    wait = measure(plain).window.wait_s
    assert (wait.mean, wait.median, wait.p90, wait.p99) == (50.0, 50.0, 90.0, 99.0)


def test_an_empty_window_has_no_figures() -> None:
    measures = measure(replace(outcome(), window_s=(2000.0, 2000.0)))
    assert measures.window.jobs == 0
    assert math.isnan(measures.window.jct_s.mean)
    assert math.isnan(measures.utilisation)


def test_the_offered_load_is_the_work_submitted_in_the_window() -> None:
    submit, work = np.array([0.0, 10.0, 99.0, 100.0]), np.full(4, 30.0)
    assert offered_load(submit, work, np.full(4, 3.0), 2.0, (10.0, 100.0)) == pytest.approx(1.0)
