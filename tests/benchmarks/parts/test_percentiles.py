"""Percentiles are values of the sample."""

from benchmarks.parts.percentiles import percentile, summarize


def test_a_percentile_is_the_value_at_the_nearest_rank() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 51, 100, 100]
    assert percentile([], 0.5) == 0.0


def test_no_times_sum_up_to_zeros() -> None:
    assert summarize([]) == {"count": 0, "p50": 0.0, "p99": 0.0, "max": 0.0}
    assert summarize([0.123, 2.0]) == {"count": 2, "p50": 2.0, "p99": 2.0, "max": 2.0}
