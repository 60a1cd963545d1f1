"""Guaranteed demand of the next hours, by organisation and at any quantile.

The forecast is a set of equally likely futures. Each is the change of demand after one past time of
the same kind of day and about the same time of day, less so much as an unusual present level loses
on such days. A future has all organisations at one past time, so those that grow together count as
such, and those that peak at different times are not added up. Duan et al. (GFS, ASPLOS'26) add
means and variances of hourly peaks as if organisations were independent, after one linear model
with embeddings that is trained anew each day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
HOURS = 4
"""Hours ahead that are forecast, as published."""
LEAD_S = 900
"""Seconds between two times of a future."""
HOUR_S = 3600
LEADS_OF_HOUR = HOUR_S // LEAD_S
DAY_S = 24 * HOUR_S
NEAR_S = 1800
"""A past time counts within so many seconds of the present time of day."""
WORKDAYS = 5


@dataclass(frozen=True, slots=True)
class DemandForecast:
    """Equally likely futures: `futures_gpus` [futures, organisations, leads]."""

    futures_gpus: Floats

    def upper_gpus(self, level: float) -> Floats:
        """Return the quantile of the pool's highest demand until each hour ahead, [hours]."""
        return upper(self.futures_gpus.sum(1), level)


@dataclass(frozen=True, slots=True)
class SeasonalDemand:
    """Past demand and what it changed by; made once a day, read at each forecast.

    Column n of each array is the time `first_s + n * step_s`, s since a Monday at 00:00.
    """

    step_s: int
    first_s: int
    demand_gpus: Floats
    """[organisations, samples]."""
    change_gpus: Floats
    """[organisations, samples, leads]: the demand at each lead less the present one."""

    @classmethod
    def of(cls, demand_gpus: Floats, step_s: int, first_s: int) -> SeasonalDemand:
        """Return the model of samples [organisations, samples], two days of them at least.

        Raises ValueError for fewer, or for a step that does not divide the lead.
        """
        if LEAD_S % step_s:
            raise ValueError(f"step_s: {step_s}, must divide {LEAD_S}")
        per_lead = LEAD_S // step_s
        leads = HOURS * LEADS_OF_HOUR
        samples = demand_gpus.shape[1] - leads * per_lead
        if demand_gpus.shape[1] * step_s < 2 * DAY_S:
            raise ValueError(f"demand_gpus: {demand_gpus.shape[1]} samples, must be two days")
        present = demand_gpus[:, :samples]
        later = [
            demand_gpus[:, lead * per_lead : lead * per_lead + samples]
            for lead in range(1, leads + 1)
        ]
        return cls(step_s, first_s, present, np.stack(later, -1) - present[:, :, None])

    def forecast(self, present_gpus: Floats, now_s: int) -> DemandForecast:
        """Return the forecast from the present demand [organisations]."""
        rows = self._alike(now_s)
        level, change = self.demand_gpus[:, rows], self.change_gpus[:, rows]
        slope = reversion(level, change)
        unusual = present_gpus[:, None] - level
        futures = present_gpus[:, None, None] + change + slope * unusual[:, :, None]
        return DemandForecast(np.swapaxes(np.maximum(futures, 0.0), 0, 1))

    def _alike(self, now_s: int) -> Rows:
        """Return the samples of days of this kind at about this time; of all days if none is.

        A time shortly after midnight belongs to the day of the present.
        """
        times_s = self.first_s + self.step_s * np.arange(self.demand_gpus.shape[1])
        moved_s = (now_s - times_s + DAY_S // 2) % DAY_S - DAY_S // 2
        near = np.abs(moved_s) <= NEAR_S
        alike = near & (is_workday(times_s + moved_s) == is_workday(np.array(now_s)))
        rows: Rows = np.flatnonzero(alike if alike.any() else near)
        return rows


def is_workday(times_s: NDArray[np.int64]) -> NDArray[np.bool_]:
    return times_s // DAY_S % 7 < WORKDAYS


def reversion(level: Floats, change: Floats) -> Floats:
    """Return by least squares the part of an unusual level that is lost, from -1 to 0.

    `level` [organisations, samples], `change` [organisations, samples, leads]; the result is
    [organisations, 1, leads].
    """
    unusual = level - level.mean(1, keepdims=True)
    variance = (unusual**2).sum(1)[:, None, None]
    slope = (unusual[:, :, None] * change).sum(1, keepdims=True) / np.maximum(variance, 1e-9)
    return np.asarray(np.clip(slope, -1.0, 0.0))


def upper(futures: Floats, level: float) -> Floats:
    """Return the quantile over futures of the highest value until each hour, [..., hours]."""
    highest = np.maximum.accumulate(futures, -1)[..., LEADS_OF_HOUR - 1 :: LEADS_OF_HOUR]
    return np.asarray(np.quantile(highest, level, axis=0))


def pinball_loss(actual: Floats, predicted: Floats, level: float) -> float:
    """Return the mean loss of a predicted quantile; the true quantile has the least of all."""
    above = actual - predicted
    return float(np.maximum(level * above, (level - 1.0) * above).mean())
