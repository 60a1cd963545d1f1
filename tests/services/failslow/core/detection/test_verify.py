from __future__ import annotations

from dataclasses import replace

import numpy as np

from services.failslow.core.detection import verify
from services.failslow.core.detection.limits import DetectionLimits

LIMITS = DetectionLimits()


def segment(*newest: float, before: int = 60) -> verify.Segment:
    values = np.concatenate([np.zeros(before), newest])
    return verify.segment_above(values, 0.0, 0.01, before, len(newest), LIMITS)


def test_a_slowdown_has_direction_size_and_persistence() -> None:
    assert verify.is_slow(segment(*[0.1] * 6), 0, LIMITS)
    assert not verify.is_slow(segment(*[0.1] * 5), 0, LIMITS)
    assert not verify.is_slow(segment(*[0.04] * 6), 0, LIMITS)
    assert not verify.is_slow(segment(*[-0.1] * 6), 0, LIMITS)


def test_an_excursion_as_large_as_a_pause_has_to_last() -> None:
    assert not verify.is_slow(segment(*[1.1] * 11), 0, LIMITS)
    assert verify.is_slow(segment(*[1.1] * 12), 0, LIMITS)


def test_a_pause_that_is_due_has_to_last_longer_than_usual() -> None:
    assert not verify.is_slow(segment(*[0.3] * 15), 10, LIMITS)
    assert verify.is_slow(segment(*[0.3] * 16), 10, LIMITS)


def test_outliers_in_a_row_are_no_level() -> None:
    assert not verify.is_slow(segment(0.2, 1.1, 0.4, 0.9, 0.3, 1.0), 0, LIMITS)


def test_a_run_is_extended_over_a_single_outlier() -> None:
    values = np.array([0.0, 0.0, 0.2, 0.2, 0.0, 0.2, 0.2, 0.2])
    assert verify.extend(values, 3, 0.1) == 6


def test_a_slowdown_stands_out_from_the_iterations_right_before_it() -> None:
    drifted = np.concatenate([np.full(40, 0.04), np.full(10, 0.06)])
    own = replace(segment(*[0.06] * 10), size=0.06)
    assert not verify.stands_out(drifted, own, LIMITS)
    assert verify.stands_out(np.concatenate([np.zeros(40), np.full(10, 0.06)]), own, LIMITS)


def test_less_work_explains_at_most_as_much_as_it_falls_by() -> None:
    work = np.concatenate([np.full(40, 1.0), np.full(10, 0.5)])
    values = np.concatenate([np.zeros(40), np.full(10, 0.3)])
    assert verify.is_work_change(values, work, 10, 0.3, 0.01)
    assert not verify.is_work_change(values, work, 10, 0.7, 0.01)
    assert not verify.is_work_change(values, np.ones(50), 10, 0.3, 0.01)


def test_a_slowdown_long_after_a_change_of_work_is_one() -> None:
    work = np.concatenate([np.full(20, 1.0), np.full(30, 0.5)])
    values = np.concatenate([np.zeros(40), np.full(10, 0.3)])
    assert not verify.is_work_change(values, work, 10, 0.3, 0.01)


def test_a_pause_is_due_after_its_period() -> None:
    excursions = [(100, 5), (200, 6)]
    assert verify.usual_pause_at(301, excursions) == 6
    assert verify.usual_pause_at(350, excursions) == 0
    assert verify.usual_pause_at(300, excursions[:1]) == 0


def test_a_recovery_is_near_the_reference() -> None:
    low = verify.measure(np.full(6, 0.1), 0.0, 0.01, 60)
    assert verify.is_recovered(low, 0.5, LIMITS)
    assert not verify.is_recovered(low, 0.15, LIMITS)


def test_a_faster_pause_is_no_recovery() -> None:
    assert not verify.is_recovered(verify.measure(np.full(6, -0.9), 0.0, 0.01, 60), 0.5, LIMITS)


def test_correlated_noise_widens_the_error() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(400)
    smooth = np.convolve(noise, np.ones(5), "valid")
    assert verify.correlation(noise) < 1.2 < 1.8 < verify.correlation(smooth)
