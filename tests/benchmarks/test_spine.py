"""Latency from histogram buckets, and projection rates."""

import math

import pytest

from benchmarks.spine import ProjectionProgress, per_thousand, quantile_of, used


def test_a_quantile_is_interpolated_inside_its_bucket() -> None:
    before = {0.1: 5.0, 0.2: 5.0, math.inf: 5.0}
    after = {0.1: 55.0, 0.2: 105.0, math.inf: 105.0}
    assert quantile_of(before, after, 0.5) == pytest.approx(0.1)
    assert quantile_of(before, after, 0.75) == pytest.approx(0.15)


def test_beyond_the_last_bound_the_quantile_is_that_bound() -> None:
    assert quantile_of({}, {0.1: 1.0, math.inf: 100.0}, 0.99) == 0.1
    assert quantile_of({}, {}, 0.99) == 0.0


def test_cpu_is_that_of_the_time_between_also_for_a_new_process() -> None:
    assert used({"a": 1.0}, {"a": 3.0, "b": 2.0}) == {"a": 2.0, "b": 2.0}
    assert per_thousand({"b": 2.0, "a": 1.0}, 500) == {"a": 2.0, "b": 4.0}


def test_the_projection_rate_counts_all_batches_from_the_begin() -> None:
    progress = ProjectionProgress()
    progress.add(0)
    assert progress.per_s == 0.0
    progress.add(30)
    assert progress.events == 30
    progress.first, progress.last = 10.0, 13.0
    assert progress.per_s == 10.0
