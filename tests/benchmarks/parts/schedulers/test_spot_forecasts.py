from __future__ import annotations

import numpy as np
import pytest

from benchmarks.parts.schedulers.spot_forecasts import (
    LEVELS,
    PUBLISHED_HOURLY,
    calibration,
    hourly_figures,
    losses_of,
)
from simulator.spot.jobs import SpotDemand, spot_trace
from simulator.spot.quotas import HISTORY_STEPS, history_gpus

DEMAND = SpotDemand(gpus=2296, days=1, seed=100)


@pytest.mark.parametrize("level", LEVELS)
def test_the_forecast_in_use_loses_a_third_less_than_the_simple_ones(level: float) -> None:
    """On the seeds that no figure counts; the published fallback has to beat last week's peak."""
    for seed in (100, 101):
        history = history_gpus(spot_trace(SpotDemand(2296, 1, seed)))
        losses = losses_of(history, level)
        assert losses["seasonal"] < 0.67 * losses["seasonal_naive"]
        assert losses["seasonal"] < 0.67 * losses["last_week_peak"]
        assert losses["seasonal"] < losses["persistence"]


def test_a_demand_that_repeats_each_week_is_forecast_without_loss() -> None:
    weekly = np.tile(np.arange(HISTORY_STEPS // 4) // 12 % 24 * 1.0, (2, 4))
    assert losses_of(weekly, 0.5)["seasonal_naive"] == pytest.approx(0)
    assert losses_of(weekly, 0.5)["seasonal"] < 1


def test_synthetic_demand_has_about_the_figures_of_the_trace() -> None:
    ours = calibration(DEMAND, [100, 101, 102])["ours"]
    for key, published in PUBLISHED_HOURLY.items():
        assert ours[key] == pytest.approx(published, rel=0.2)


def test_the_profile_of_a_demand_without_noise_is_its_own() -> None:
    by_hour = np.where(np.arange(24) < 12, 80.0, 120.0)
    noise = np.random.default_rng(0).normal(0, 0.1, HISTORY_STEPS)
    figures = hourly_figures((np.tile(np.repeat(by_hour, 12), 28) + noise)[None, :])
    assert figures["night_to_mean"] == pytest.approx(0.8, abs=0.01)
    assert figures["evening_to_mean"] == pytest.approx(1.2, abs=0.01)
