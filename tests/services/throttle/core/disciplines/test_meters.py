from __future__ import annotations

import math

import pytest

from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.disciplines.seam import DAY_MS


def test_half_is_left_after_a_half_life() -> None:
    meter = HalfLife(1000).meter()
    meter.add(80, 0)
    assert meter.total(1000) == 40
    meter.add(10, 1000)
    assert meter.total(2000) == 25
    assert meter.wait_ms(12.5, 2000) == 1000
    assert meter.wait_ms(25, 2000) == DAY_MS


def test_without_a_half_life_nothing_is_forgotten() -> None:
    meter = HalfLife().meter()
    meter.add(5, 0)
    assert meter.total(10**15) == 5
    assert meter.wait_ms(1, 0) == DAY_MS


def test_a_window_forgets_what_is_older() -> None:
    meter = SlidingWindow(1200).meter()
    meter.add(5, 0)
    meter.add(7, 600)
    assert meter.total(1200) == 12
    assert meter.total(1300) == 7
    assert meter.wait_ms(3, 1200) == 100
    assert meter.wait_ms(12, 1200) == 700
    assert meter.wait_ms(13, 1200) == DAY_MS


def test_a_window_does_not_grow() -> None:
    meter = SlidingWindow(1200).meter()
    for at in range(0, 100_000, 10):
        meter.add(1, at)
    assert len(meter.steps) <= 14  # type: ignore[attr-defined]


@pytest.mark.parametrize("memory", [HalfLife(1000), SlidingWindow(1000)])
def test_a_clock_that_goes_back_forgets_nothing_and_counts_nothing_twice(memory: Memory) -> None:
    meter = memory.meter()
    meter.add(4, 5000)
    meter.add(4, 100)
    assert meter.total(5000) == 8


@pytest.mark.parametrize("make", [lambda: HalfLife(0), lambda: SlidingWindow(0)])
def test_a_memory_of_no_time_is_an_error(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"(half_life|window)_ms: 0"):
        make()


def test_the_wait_is_a_time_after_which_the_units_are_forgotten() -> None:
    for memory in (HalfLife(777), SlidingWindow(777)):
        meter = memory.meter()
        for at in range(0, 2000, 90):
            meter.add(at % 7 + 1, at)
        total = meter.total(2000)
        wait_ms = meter.wait_ms(total / 3, 2000)
        assert meter.total(2000 + wait_ms) <= total * 2 / 3 + 1e-9
        assert not math.isinf(wait_ms)
