"""Start intervals follow what came true."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.open_estimates import OpenEstimates
from services.priority.core.history.start_calibration import (
    PERIOD_S,
    RECENT,
    StartCalibration,
    StartInterval,
    shift_interval,
    simulated_intervals,
    weighted_quantile,
)
from shared.contracts.ranking import JobStartEstimated

SURE = np.linspace(0.9, 1.1, 12)


def simulated(delays_s: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> StartInterval:
    (interval,) = simulated_intervals(delays_s[None, :])
    assert interval is not None
    return interval


def test_without_starts_the_interval_is_the_simulated_one() -> None:
    interval = simulated(np.arange(1.0, 13.0) * 60.0)
    assert interval == (120.0, 360.0, 660.0)
    assert shift_interval(interval, StartCalibration().shifts()) == pytest.approx(interval)


def test_a_job_that_mostly_never_starts_has_no_interval() -> None:
    assert simulated_intervals(np.array([[10.0, np.inf, np.inf]])) == [None]


@pytest.mark.parametrize("open_at_a_time", [0, 60])
def test_the_interval_covers_its_claim_although_the_simulation_is_too_sure_and_too_early(
    open_at_a_time: int,
) -> None:
    """Also where a start is known only after many more jobs were estimated."""
    draw = np.random.default_rng(5)
    calibration = StartCalibration()
    inside: list[bool] = []
    unknown: list[tuple[StartInterval, float]] = []
    for _ in range(2000):
        middle_s = float(10 ** draw.uniform(2.0, 4.0))
        raw = simulated(middle_s * SURE)
        low_s, _, high_s = shift_interval(raw, calibration.shifts())
        delay_s = 3.0 * middle_s * float(np.exp(draw.standard_normal()))
        inside.append(low_s <= delay_s <= high_s)
        unknown.append((raw, delay_s))
        if len(unknown) > open_at_a_time:
            calibration.learn(*unknown.pop(0))
    assert np.mean(inside[200:]) == pytest.approx(0.8, abs=0.04)


def test_a_simulation_that_becomes_wrong_is_corrected_within_some_dozens_of_starts() -> None:
    draw = np.random.default_rng(7)
    calibration = StartCalibration()
    inside: list[bool] = []
    for start in range(500):
        raw = simulated(3600.0 * SURE)
        low_s, _, high_s = shift_interval(raw, calibration.shifts())
        bias = 1.0 if start < 200 else 0.1
        delay_s = 3600.0 * bias * float(np.exp(0.3 * draw.standard_normal()))
        inside.append(low_s <= delay_s <= high_s)
        calibration.learn(raw, delay_s)
    assert np.mean(inside[300:]) > 0.7


def test_a_job_that_outlives_its_estimate_widens_those_of_others() -> None:
    calibration = StartCalibration()
    raw = StartInterval(60.0, 120.0, 180.0)
    for _ in range(10):
        calibration.learn(raw, 120.0)
    before = calibration.shifts()
    after = calibration.shifts([(raw, 10_000.0)] * 4)
    assert after[2] > before[2]
    assert calibration.shifts([(raw, 1.0)] * 4) == before, "they may still start in time"


def test_only_the_last_starts_are_remembered() -> None:
    calibration = StartCalibration()
    for _ in range(RECENT + 5):
        calibration.learn((1.0, 2.0, 3.0), 1e9)
    assert len(calibration.errors) == RECENT


def test_a_weighted_quantile_is_the_first_value_that_reaches_the_share() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert weighted_quantile(values, [1.0, 1.0, 2.0], 0.25) == 1.0
    assert weighted_quantile(values, [1.0, 1.0, 2.0], 0.26) == 2.0
    assert weighted_quantile(values, [1.0, 1.0, 2.0], 1.0) == 3.0


def test_the_interval_holds_where_the_jobs_of_a_burst_are_all_late_or_early_together() -> None:
    """They are estimated before any of them starts: by many bursts, and not by the last one."""
    draw = np.random.default_rng(11)
    calibration = StartCalibration()
    inside: list[bool] = []
    for burst in range(600):
        middle_s = float(10 ** draw.uniform(3.0, 4.0))
        raw = simulated(middle_s * SURE)
        low_s, _, high_s = shift_interval(raw, calibration.shifts())
        delay_s = middle_s * float(np.exp(draw.standard_normal()))
        jobs = int(draw.integers(1, 400))
        samples = [calibration.sample(burst * 86_400_000 + job * 1000, 1.0) for job in range(jobs)]
        assert sum(samples) == jobs.bit_length()
        if burst >= 50:
            inside += [low_s <= delay_s <= high_s] * jobs
        for is_sample in samples:
            if is_sample:
                calibration.learn(raw, delay_s)
    assert 0.7 < np.mean(inside) < 0.9


@pytest.mark.parametrize(("large_spread", "small_spread"), [(0.2, 1.0), (1.0, 0.4)])
def test_most_jobs_come_in_few_bursts_and_their_intervals_hold_as_often_as_claimed(
    large_spread: float, small_spread: float
) -> None:
    """The other bursts, of one job each, have larger or smaller errors and teach nearly as much."""
    draw = np.random.default_rng(13)
    estimates = OpenEstimates()
    inside: list[bool] = []
    raw = simulated(3600.0 * SURE)
    for burst in range(2000):
        jobs = 60 if burst % 4 == 0 else 1
        at = burst * 86_400_000
        low_s, middle_s, high_s = shift_interval(raw, estimates.calibration.shifts())
        times = [at + round(s * 1000) for s in (low_s, middle_s, high_s)]
        late = (large_spread if jobs > 1 else small_spread) * float(draw.standard_normal())
        for job in range(jobs):
            estimates.note(published(f"{job}", times, raw), at, 1.0)
            delay_s = 3600.0 * float(np.exp(late + 0.1 * draw.standard_normal()))
            estimates.start(f"{job}", at + round(delay_s * 1000), 1.0)
            inside.append(low_s <= delay_s <= high_s)
    assert np.mean(inside[2000:]) == pytest.approx(0.8, abs=0.03)


def published(job_id: str, times: list[int], raw: StartInterval) -> JobStartEstimated:
    p10_at, p50_at, p90_at = times
    return JobStartEstimated(
        job_id=job_id,
        tenant="red",
        pool="p",
        p10_at=p10_at,
        p50_at=p50_at,
        p90_at=p90_at,
        simulated_s=raw,
    )


def test_a_clock_that_was_set_back_does_not_end_the_learning() -> None:
    calibration = StartCalibration()
    for at in (10**12, 10**9):
        assert [calibration.sample(at, 1.0) for _ in range(4)] == [True, True, False, True]
    end_at = 10**9 + round(PERIOD_S * 1000)
    assert [calibration.sample(at, 1.0) for at in (end_at - 1, end_at)] == [False, True]
