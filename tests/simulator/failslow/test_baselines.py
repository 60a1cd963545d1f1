from __future__ import annotations

import numpy as np
import pytest

from simulator.failslow import baselines
from simulator.failslow.series import Detection, Series


def job(size: float = 0.5, start: int = 200, end: int = 260, spike: int = 0) -> Series:
    seconds = 1 + 0.01 * np.random.default_rng(0).standard_normal(400)
    seconds[start:end] *= 1 + size
    if spike:
        seconds[spike] *= 2
    return Series("a", np.arange(400), seconds, np.ones(400), np.zeros(400, bool), ())


def at(detections: list[list[Detection]]) -> list[int]:
    return [detection.at for detection in detections[0]]


def test_the_window_declares_once_when_it_begins_to_exceed_the_one_before() -> None:
    declared = at(baselines.sliding_window([job()]))
    assert declared == [pytest.approx(201, abs=2)]


def test_a_change_point_is_declared_at_once_at_both_ends() -> None:
    declared = at(baselines.plain_change_points([job()]))
    assert declared[0] == 200
    assert any(abs(place - 260) <= 2 for place in declared)


def test_verification_keeps_the_slowdown_and_drops_the_recovery_and_a_spike() -> None:
    assert at(baselines.verified_change_points([job(spike=100)])) == [pytest.approx(208, abs=1)]


def test_a_change_below_a_tenth_is_dropped() -> None:
    assert at(baselines.verified_change_points([job(size=0.08)])) == []
