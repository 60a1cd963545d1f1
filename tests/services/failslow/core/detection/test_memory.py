from __future__ import annotations

import numpy as np
import pytest

from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.memory import Memory

LIMITS = DetectionLimits()
ROW = np.array([0])


def filled(values: list[float]) -> Memory:
    memory = Memory.empty(1, LIMITS)
    for place, value in enumerate(values):
        memory.add(ROW, np.array([place]), np.array([value]), np.zeros(1))
    return memory


def test_the_last_iterations_are_in_order_after_the_ring_is_full() -> None:
    memory = filled([float(value) for value in range(200)])
    values, _, iteration = memory.last(0, 3)
    assert values.tolist() == [197, 198, 199]
    assert iteration.tolist() == [197, 198, 199]


def test_the_reference_leaves_the_newest_iterations_out() -> None:
    memory = filled([1.0] * 40 + [5.0] * 8)
    memory.refresh(ROW, LIMITS)
    assert memory.level[0] == 1.0
    assert memory.noise[0] == pytest.approx(LIMITS.least_noise)


def test_a_few_iterations_make_no_reference() -> None:
    memory = filled([1.0] * 5)
    memory.refresh(ROW, LIMITS)
    assert np.isnan(memory.level[0])


def test_a_trend_is_no_noise() -> None:
    memory = filled([0.01 * place for place in range(100)])
    memory.refresh(ROW, LIMITS)
    assert memory.noise[0] < 0.03


def test_what_is_forgotten_is_no_source_of_the_reference() -> None:
    memory = filled([1.0] * 40 + [2.0] * 60)
    memory.forget_before(0, 60)
    memory.refresh(ROW, LIMITS)
    assert memory.level[0] == 2.0


def test_the_newest_level_is_relative_to_the_reference() -> None:
    memory = filled([1.0] * 40 + [1.5] * 12)
    memory.refresh(ROW, LIMITS)
    assert memory.newest(ROW, 12).tolist() == [0.5]
