"""The pace is that of the node's clock since the first report of a total."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.pace import LEAST_MS, Measured, Pace


def test_the_mean_counts_what_lies_between_the_iterations() -> None:
    pace = Pace()
    for step, at_ms in ((10, 0), (11, 1000), (12, 2000), (13, 30_000)):
        pace.note(step, 100, at_ms)
    assert pace.measured() == Measured(13, 100, 10.0, 30_000)


def test_nothing_is_known_at_first_and_beyond_the_total() -> None:
    pace = Pace()
    assert pace.measured() is None
    pace.note(10, 100, 0)
    assert pace.measured() is None
    pace.note(20, 100, LEAST_MS - 1)
    assert pace.measured() is None
    pace.note(20, 100, LEAST_MS)
    assert pace.measured() is not None
    pace.note(101, 100, 2 * LEAST_MS)
    assert pace.measured() is None


def test_fewer_iterations_or_another_total_begin_anew() -> None:
    for step, total in ((5, 100), (30, 200)):
        pace = Pace()
        pace.note(10, 100, 0)
        pace.note(20, 100, 10_000)
        pace.note(step, total, 20_000)
        assert pace.measured() is None
        pace.note(step + 1, total, 30_000)
        assert pace.measured() == Measured(step + 1, total, 10.0, 30_000)


@given(st.lists(st.tuples(st.integers(0, 2**53 - 1), st.integers(1, 2**53 - 1))))
def test_whatever_is_reported_the_pace_is_a_time(reports: list[tuple[int, int]]) -> None:
    pace = Pace()
    for number, (step, total) in enumerate(reports):
        pace.note(step, total, number * 1000)
        if (measured := pace.measured()) is not None:
            assert measured.step <= measured.steps_total
            assert 0 < measured.iteration_s <= number
