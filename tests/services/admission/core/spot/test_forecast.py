from __future__ import annotations

import numpy as np
import pytest

from services.admission.core.spot.forecast import (
    DAY_S,
    HOURS,
    LEADS_OF_HOUR,
    DemandForecast,
    SeasonalDemand,
    pinball_loss,
    upper,
)

STEP_S = 300
DAY_STEPS = DAY_S // STEP_S
WEEKS = 4


def daily_swing(organisations: int = 2) -> np.ndarray:
    """Return four weeks from a Monday on: 100 GPUs, and 300 from 10:00 to 20:00 on workdays."""
    steps = np.arange(WEEKS * 7 * DAY_STEPS)
    of_day_h = steps % DAY_STEPS / 12
    is_day = (of_day_h >= 10) & (of_day_h < 20) & (steps // DAY_STEPS % 7 < 5)
    return np.tile(np.where(is_day, 300.0, 100.0), (organisations, 1))


SEASON = SeasonalDemand.of(daily_swing(), STEP_S, -WEEKS * 7 * DAY_S)


def test_a_rise_that_comes_each_workday_is_forecast_before_it_begins() -> None:
    """At 9:30 on a Monday the next hour has the rise to 300 of both organisations; at 4:00 not."""
    present = np.full(2, 100.0)
    assert SEASON.forecast(present, 9 * 3600 + 1800).upper_gpus(0.5)[0] == 600
    assert SEASON.forecast(present, 4 * 3600).upper_gpus(0.9).tolist() == [200] * HOURS
    half_past_six = SEASON.forecast(present, 6 * 3600 + 1800)
    assert half_past_six.upper_gpus(0.5).tolist() == [200, 200, 200, 600]


def test_a_weekend_is_forecast_from_weekends() -> None:
    saturday_s = 5 * DAY_S + 9 * 3600 + 1800
    assert SEASON.forecast(np.full(2, 100.0), saturday_s).upper_gpus(0.99).max() == 200


def test_midnight_belongs_to_the_day_of_the_present() -> None:
    """Half an hour before the first Saturday, samples of Friday night count, before and after."""
    forecast = SEASON.forecast(np.full(2, 100.0), 5 * DAY_S - 900)
    assert forecast.futures_gpus.shape[0] > 5 * WEEKS
    assert forecast.upper_gpus(0.9).tolist() == [200] * HOURS


def test_the_quantile_rises_with_level_and_hours_and_is_that_of_the_futures() -> None:
    draws = np.random.default_rng(0)
    forecast = DemandForecast(draws.gamma(4.0, 25.0, (400, 3, HOURS * LEADS_OF_HOUR)))
    uppers = np.array([forecast.upper_gpus(level) for level in (0.1, 0.5, 0.9)])
    assert (np.diff(uppers, axis=0) > 0).all()
    assert (np.diff(uppers, axis=1) > 0).all()
    highest = forecast.futures_gpus.sum(1)[:, :LEADS_OF_HOUR].max(1)
    assert (highest <= uppers[2, 0]).mean() == pytest.approx(0.9, abs=0.005)


def test_organisations_that_peak_at_different_times_are_not_added_up() -> None:
    leads = HOURS * LEADS_OF_HOUR
    futures = np.zeros((10, 2, leads))
    futures[:, 0, 0] = futures[:, 1, 1] = 100.0
    forecast = DemandForecast(futures)
    assert forecast.upper_gpus(0.9)[0] == 100
    assert upper(futures, 0.9)[:, 0].tolist() == [100, 100]


def test_an_unusual_level_is_lost_as_far_as_it_was_in_the_past() -> None:
    """A level that alternates between 0 and 100 by hour is forecast to leave the present one."""
    hourly = np.tile(np.repeat([0.0, 100.0, 100.0, 0.0], DAY_STEPS), (1, 7))
    wave = hourly + np.random.default_rng(1).normal(0, 1, hourly.shape)
    season = SeasonalDemand.of(wave, STEP_S, -28 * DAY_S)
    futures = season.forecast(np.array([100.0]), 12 * 3600).futures_gpus
    assert futures.mean() == pytest.approx(100, abs=2)
    noise = np.random.default_rng(2).normal(100, 30, (1, 28 * DAY_STEPS))
    reverting = SeasonalDemand.of(noise, STEP_S, -28 * DAY_S)
    futures = reverting.forecast(np.array([190.0]), 12 * 3600).futures_gpus
    assert futures.mean() == pytest.approx(100, abs=10)


def test_the_forecast_is_pure_and_never_negative() -> None:
    present = np.array([0.0, 5.0])
    first, again = (SEASON.forecast(present, 21 * 3600).futures_gpus for _ in range(2))
    assert (first == again).all()
    assert first.min() >= 0


def test_the_true_quantile_has_the_least_pinball_loss() -> None:
    actual = np.arange(1000.0)
    losses = {q: pinball_loss(actual, np.full(1000, q), 0.9) for q in (800.0, 900.0, 990.0)}
    assert min(losses, key=losses.__getitem__) == 900.0


@pytest.mark.parametrize(
    ("samples", "step_s", "message"),
    [(100, 300, "100 samples, must be two days"), (4000, 400, "must divide 900")],
)
def test_too_little_history_is_refused(samples: int, step_s: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SeasonalDemand.of(np.zeros((1, samples)), step_s, 0)
