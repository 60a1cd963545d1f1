"""Units that are remembered for a window, by half-lives, or for ever."""

from __future__ import annotations

import pytest

from shared.verify.llm_meters import HalfLifeMeter, WindowMeter


def test_a_window_forgets_at_its_end() -> None:
    meter = WindowMeter(1000.0)
    meter.add(5.0, 100)
    meter.add(3.0, 600)
    assert [meter.total(at) for at in (1099, 1100, 1600)] == [8.0, 3.0, 0.0]


def test_what_was_given_back_is_remembered_a_step_longer() -> None:
    meter = WindowMeter(1200.0)
    meter.add(5.0, 100)
    meter.add(-2.0, 200)
    assert [meter.total(at) for at in (1299, 1300, 1500, 1502)] == [3.0, -2.0, -2.0, 0.0]


def test_half_is_left_after_a_half_life() -> None:
    meter = HalfLifeMeter(1000.0)
    meter.add(8.0, 0)
    meter.add(4.0, 1000)
    assert meter.total(2000) == pytest.approx(4.0)


def test_without_a_half_life_all_is_left() -> None:
    meter = HalfLifeMeter(None)
    meter.add(8.0, 0)
    assert meter.total(10**12) == 8.0
