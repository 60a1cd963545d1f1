"""Quotas of spot jobs over time: samples of guaranteed demand, forecasts, and the feedback."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from services.admission.core.spot.forecast import DAY_S, HOURS, Floats, SeasonalDemand
from services.admission.core.spot.guarantees import GuaranteeLog
from services.admission.core.spot.quota import QuotaFactor, adjusted, quota_gpus
from simulator.spot.jobs import HISTORY_DAYS, SpotTraceJob, organisation_shares
from simulator.spot.rules import SpotRules

STEP_S = 300
"""Seconds between two quotas, as published."""
WEEK_STEPS = 7 * DAY_S // STEP_S
HISTORY_STEPS = HISTORY_DAYS * DAY_S // STEP_S


def history_gpus(jobs: list[SpotTraceJob]) -> Floats:
    """Return the guaranteed GPUs in demand before second 0, [organisations, samples].

    Sample n is at `(n - HISTORY_STEPS) * STEP_S`; every job is taken to run from its submission.
    """
    change = np.zeros((len(organisation_shares()), HISTORY_STEPS + 1))
    for job in jobs:
        if job.is_spot or job.submit_s >= 0:
            continue
        first, end = (
            min(HISTORY_STEPS, max(0, math.ceil(at_s / STEP_S) + HISTORY_STEPS))
            for at_s in (job.submit_s, job.submit_s + job.duration_s)
        )
        change[job.organisation, first] += job.gpus
        change[job.organisation, end] -= job.gpus
    return np.asarray(change.cumsum(1)[:, :HISTORY_STEPS])


@dataclass(slots=True)
class SpotQuota:
    """The quota by guaranteed hours, renewed every `STEP_S`; without rules for one, infinite."""

    rules: SpotRules
    capacity: int
    samples: Floats
    """[organisations, samples] up to now; grows."""
    log: GuaranteeLog
    factor: QuotaFactor = QuotaFactor()
    by_hours: dict[int, float] = field(default_factory=dict)
    factors: list[float] = field(default_factory=list)
    _used: int = 0
    _season: SeasonalDemand | None = None

    def __post_init__(self) -> None:
        self._used = self.samples.shape[1]
        room = np.zeros((len(self.samples), WEEK_STEPS))
        self.samples = np.concatenate([self.samples, room], 1)

    def of(self, hours: int) -> float:
        return self.by_hours.get(hours, math.inf)

    def renew(self, now_s: float, demand_gpus: Floats, longest_wait_s: float) -> None:
        """Note the demand [organisations], and compute the quota from it."""
        self._note(demand_gpus)
        rules = self.rules
        if rules.quota == "none":
            return
        if rules.feedback:
            self.factor = adjusted(self.factor, self.log, longest_wait_s, rules.settings, now_s)
        upper = self._upper_gpus(now_s, demand_gpus)
        self.by_hours = {
            hours: quota_gpus(self.capacity, upper, hours, self.factor.value)
            for hours in range(1, HOURS + 1)
        }
        self.factors.append(self.factor.value)

    def _upper_gpus(self, now_s: float, demand_gpus: Floats) -> list[float]:
        level = self.factor.level(self.rules.settings)
        if self.rules.quota == "static":
            past = self.samples[:, :HISTORY_STEPS].sum(0)
            return [float(np.quantile(past, level))] * HOURS
        if self.rules.quota == "last_week":
            week = self.samples[:, self._used - WEEK_STEPS : self._used]
            return [float(week.sum(0).max())] * HOURS
        if self._season is None or now_s % DAY_S == 0:
            first_s = int(now_s) - HISTORY_STEPS * STEP_S
            past = self.samples[:, self._used - 1 - HISTORY_STEPS : self._used - 1]
            self._season = SeasonalDemand.of(past, STEP_S, first_s)
        upper: list[float] = (
            self._season.forecast(demand_gpus, int(now_s)).upper_gpus(level).tolist()
        )
        return upper

    def _note(self, demand_gpus: Floats) -> None:
        if self._used == self.samples.shape[1]:
            self.samples = np.concatenate([self.samples, np.zeros_like(self.samples)], 1)
        self.samples[:, self._used] = demand_gpus
        self._used += 1
