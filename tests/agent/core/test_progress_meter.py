"""The pace is that of the node's clock since the first report of a total."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.progress_meter import LEAST_MS, MeasuredProgress, ProgressMeter


def test_the_mean_counts_what_lies_between_the_iterations() -> None:
    meter = ProgressMeter()
    for step, at_ms in ((10, 0), (11, 1000), (12, 2000), (13, 30_000)):
        meter.note(step, 100, at_ms)
    assert meter.measured() == MeasuredProgress(13, 100, 10.0, 30_000)


def test_nothing_is_known_at_first_and_beyond_the_total() -> None:
    meter = ProgressMeter()
    assert meter.measured() is None
    meter.note(10, 100, 0)
    assert meter.measured() is None
    meter.note(20, 100, LEAST_MS - 1)
    assert meter.measured() is None
    meter.note(20, 100, LEAST_MS)
    assert meter.measured() is not None
    meter.note(101, 100, 2 * LEAST_MS)
    assert meter.measured() is None


def test_fewer_iterations_or_another_total_begin_anew() -> None:
    for step, total in ((5, 100), (30, 200)):
        meter = ProgressMeter()
        meter.note(10, 100, 0)
        meter.note(20, 100, 10_000)
        meter.note(step, total, 20_000)
        assert meter.measured() is None
        meter.note(step + 1, total, 30_000)
        assert meter.measured() == MeasuredProgress(step + 1, total, 10.0, 30_000)


@given(st.lists(st.tuples(st.integers(0, 2**53 - 1), st.integers(1, 2**53 - 1))))
def test_whatever_is_reported_the_pace_is_a_time(reports: list[tuple[int, int]]) -> None:
    meter = ProgressMeter()
    for number, (step, total) in enumerate(reports):
        meter.note(step, total, number * 1000)
        if (measured := meter.measured()) is not None:
            assert measured.step <= measured.steps_total
            assert 0 < measured.iteration_s <= number
