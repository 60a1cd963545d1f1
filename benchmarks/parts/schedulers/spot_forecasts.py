"""Forecasts of guaranteed demand against simple ones, and synthetic demand against the trace's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks.parts.schedulers.over_seeds import interval
from services.admission.core.spot.forecast import (
    DAY_S,
    HOUR_S,
    Floats,
    SeasonalDemand,
    pinball_loss,
)
from simulator.spot.jobs import SpotDemand, spot_trace
from simulator.spot.quotas import HISTORY_STEPS, STEP_S, history_gpus

LEVELS = (0.5, 0.9)
TRAINED_DAYS = 21
"""Days of the history that a forecast learns from; those after them are forecast."""
EVERY_STEPS = 6
"""Steps between two forecasts that are judged."""
HOUR_STEPS = HOUR_S // STEP_S
DAY_STEPS = DAY_S // STEP_S
TRAINED_STEPS = TRAINED_DAYS * DAY_STEPS
PUBLISHED_HOURLY = {
    "night_to_mean": 0.85,
    "evening_to_mean": 1.13,
    "spread": 0.08,
    "hour_to_hour": 0.66,
}
"""Hourly GPUs of A100 in demand over the 184 days of the trace: the least and the highest hour of a
workday in its mean, the standard deviation about that profile in the mean, and the correlation of
what remains from one hour to the next."""


def forecast_losses(demand: SpotDemand, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the pinball loss of the next hour's highest demand, GPUs, by level and forecast."""
    rows: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        history = history_gpus(spot_trace(_of_seed(demand, seed)))
        for level in LEVELS:
            for name, loss in losses_of(history, level).items():
                rows.setdefault(str(level), {}).setdefault(name, []).append(loss)
    return {
        level: {name: interval(values) for name, values in own.items()}
        for level, own in rows.items()
    }


def losses_of(history: Floats, level: float) -> dict[str, float]:
    """Return the losses over the last week of a history [organisations, samples]."""
    season = SeasonalDemand.of(history[:, :TRAINED_STEPS], STEP_S, 0)
    total = history.sum(0)
    steps = range(TRAINED_STEPS, HISTORY_STEPS - HOUR_STEPS, EVERY_STEPS)
    actual = np.array([total[step + 1 : step + 1 + HOUR_STEPS].max() for step in steps])

    def loss(predict: Callable[[int], float]) -> float:
        return pinball_loss(actual, np.array([predict(step) for step in steps]), level)

    spread = naive_errors(total).std()
    normal = NormalDist().inv_cdf(level)
    return {
        "seasonal": loss(
            lambda step: float(
                season.forecast(history[:, step], step * STEP_S).upper_gpus(level)[0]
            )
        ),
        "seasonal_naive": loss(lambda step: naive(total, step) + normal * float(spread)),
        "last_week_peak": loss(lambda step: float(total[step - 7 * DAY_STEPS : step].max())),
        "persistence": loss(lambda step: float(total[step])),
    }


def naive(total: Floats, step: int) -> float:
    """Return the mean of the highest demand in this hour of the two weeks before."""
    starts = [step - weeks * 7 * DAY_STEPS + 1 for weeks in (1, 2)]
    return float(np.mean([total[start : start + HOUR_STEPS].max() for start in starts]))


def naive_errors(total: Floats) -> Floats:
    """Return the errors of `naive` over the third week, which the forecasts may know."""
    steps = range(2 * 7 * DAY_STEPS, TRAINED_STEPS - HOUR_STEPS, EVERY_STEPS)
    return np.array(
        [total[step + 1 : step + 1 + HOUR_STEPS].max() - naive(total, step) for step in steps]
    )


def calibration(demand: SpotDemand, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the published figures of hourly demand, and those of the synthetic history."""
    own = [hourly_figures(history_gpus(spot_trace(_of_seed(demand, seed)))) for seed in seeds]
    ours = {key: round(float(np.mean([one[key] for one in own])), 3) for key in own[0]}
    return {"published": PUBLISHED_HOURLY, "ours": ours}


def hourly_figures(history: Floats) -> dict[str, float]:
    """Return the figures of `PUBLISHED_HOURLY` for samples that begin on a Monday at 00:00."""
    hourly = history.sum(0).reshape(-1, HOUR_STEPS).max(1)
    by_day = hourly.reshape(-1, 24)
    is_workday = np.arange(len(by_day)) % 7 < 5
    shape = by_day / by_day.mean(1, keepdims=True)
    profile = np.where(is_workday[:, None], shape[is_workday].mean(0), shape[~is_workday].mean(0))
    rest = (by_day - profile * by_day.mean(1, keepdims=True)).ravel()
    workday = shape[is_workday].mean(0)
    return {
        "night_to_mean": float(workday.min()),
        "evening_to_mean": float(workday.max()),
        "spread": float(rest.std() / hourly.mean()),
        "hour_to_hour": float(np.corrcoef(rest[:-1], rest[1:])[0, 1]),
    }


def _of_seed(demand: SpotDemand, seed: int) -> SpotDemand:
    return SpotDemand(demand.gpus, demand.days, seed)
