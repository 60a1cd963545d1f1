"""Units that are remembered for a window, by half-lives, or for ever."""

from __future__ import annotations

import pytest

from shared.verify.llm_meters import MOST_STEPS, HalfLifeMeter, WindowMeter


def test_a_window_forgets_at_its_end() -> None:
    meter = WindowMeter(1000.0)
    meter.add(5.0, 100)
    meter.add(3.0, 600)
    assert [meter.total(at) for at in (1099, 1100, 1600)] == [8.0, 3.0, 0.0]


def test_what_was_given_back_is_forgotten_with_what_it_lowers() -> None:
    meter = WindowMeter(1200.0)
    meter.add(5.0, 100)
    meter.add(7.0, 500)
    meter.refund(6.0, 500)
    meter.refund(2.0, 100)
    assert [meter.total(at) for at in (1299, 1300, 1699, 1700)] == [4.0, 1.0, 1.0, 0.0]


def test_a_long_window_is_kept_in_few_steps_and_forgets_none_too_late() -> None:
    meter = WindowMeter(86_400_000.0)
    for at in range(0, 3 * 86_400_000, 10_000):
        meter.add(1.0, at)
    assert len(meter.steps) > MOST_STEPS
    assert 8640 * (1 - 1 / 1000) <= meter.total(3 * 86_400_000 - 1) <= 8640
    assert len(meter.steps) <= MOST_STEPS + 1


def test_of_what_is_given_back_only_the_part_that_is_left_counts() -> None:
    meter = HalfLifeMeter(1000.0)
    meter.add(8.0, 0)
    meter.add(0.0, 2000)
    meter.refund(4.0, 0)
    assert meter.total(2000) == pytest.approx(1.0)


def test_half_is_left_after_a_half_life() -> None:
    meter = HalfLifeMeter(1000.0)
    meter.add(8.0, 0)
    meter.add(4.0, 1000)
    assert meter.total(2000) == pytest.approx(4.0)


def test_without_a_half_life_all_is_left() -> None:
    meter = HalfLifeMeter(None)
    meter.add(8.0, 0)
    assert meter.total(10**12) == 8.0
