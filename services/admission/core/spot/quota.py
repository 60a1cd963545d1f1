"""The quota of spot jobs and its feedback, after Duan et al. (GFS, ASPLOS'26).

Three rules differ from the released code. There the log that the feedback reads has lost the column
of outcomes, so the factor never moves. A factor that rises is multiplied by a number from 1 to 1.5,
which the released formula turns negative for few failures. And a change is judged by what ended
after it: the published window of four hours holds failures of the quota before, for which the
factor would be lowered again every 300 s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from services.admission.core.spot.guarantees import GuaranteeLog

HIGH, LOW = 1.5, 0.5
"""Failure rates, in targets, beyond which the factor falls, and below which it may rise."""


@dataclass(frozen=True, slots=True)
class SpotQuotaSettings:
    """`level`: the quantile of guaranteed demand that is kept free; `target_rate`: of failures."""

    level: float = 0.9
    target_rate: float = 0.1
    window_s: float = 14_400.0
    """Failures are counted over so many seconds at most."""
    settle_s: float = 3600.0
    """Least time between two changes of the factor."""
    starving_s: float = 3600.0
    """The factor rises only if a spot job has waited longer."""
    least_periods: int = 10
    """Periods that must have ended since the last change before the factor falls."""
    least_factor: float = 0.1
    least_level: float = 0.05

    @property
    def most_factor(self) -> float:
        """The factor at which the quantile kept free is `least_level`."""
        return (1.0 - self.least_level) / (1.0 - self.level)


@dataclass(frozen=True, slots=True)
class QuotaFactor:
    """The state of the feedback: below 1 a part of the free GPUs, above 1 a lower quantile."""

    value: float = 1.0
    changed_s: float = -math.inf

    def level(self, settings: SpotQuotaSettings) -> float:
        """Return the quantile of demand that is kept free.

        Above 1 the factor multiplies the chance that demand is higher than the quantile.
        """
        return 1.0 - (1.0 - settings.level) * max(1.0, self.value)


def quota_gpus(capacity: int, upper_gpus: Sequence[float], hours: int, factor: float) -> float:
    """Return the GPUs that spot jobs with so many guaranteed hours may hold together.

    `upper_gpus` is the quantile of guaranteed demand in each hour ahead. The quota is at most what
    the highest of them leaves free, and never negative.
    """
    most = max(upper_gpus[:hours])
    free = capacity - min(capacity, max(0, math.ceil(most)))
    return min(1.0, max(0.0, factor)) * free


def has_room(quota: float, used_gpus: int, gang_gpus: int) -> bool:
    """Return whether a gang may start beside the spot GPUs in use, as a whole."""
    return used_gpus + gang_gpus <= quota


def adjusted(
    factor: QuotaFactor,
    log: GuaranteeLog,
    longest_wait_s: float,
    settings: SpotQuotaSettings,
    now_s: float,
) -> QuotaFactor:
    """Return the factor from now on; `longest_wait_s` is that of the spot jobs that wait.

    Between half of the target rate and one and a half of it nothing changes.
    """
    if now_s - factor.changed_s < settings.settle_s:
        return factor
    counts = log.since(max(now_s - settings.window_s, factor.changed_s))
    in_targets = counts.failure_rate / settings.target_rate
    value = factor.value
    if in_targets >= HIGH and counts.failed + counts.kept >= settings.least_periods:
        value /= in_targets
    elif in_targets <= LOW and longest_wait_s > settings.starving_s:
        value *= HIGH - in_targets
    value = min(settings.most_factor, max(settings.least_factor, value))
    return factor if value == factor.value else QuotaFactor(value, now_s)
