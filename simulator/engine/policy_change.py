"""The rule by which a pool changes its policy: on its own past, beyond chance, once a day at most.

All candidates are simulated on the same jobs, the present settings among them. Nothing is tried on
live jobs, so the rule needs no exploration; a policy that was never used is judged as well as the
present one. `berth validate --apply` may therefore run from a timer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.engine.candidate import TrialResult
from simulator.metrics.bootstrap import Gain, gain, hours

LEAST_GAIN = 0.05
"""Share by which the mean wait must be shorter for a change."""
ERROR = 0.05
"""Probability of a change by chance, over all candidates together."""
PAUSE_H = 24.0
"""Wall hours between two changes of a pool's policy."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean wait of a candidate over that of the present settings, less 1; -0.2: a fifth less.

    The interval covers all candidates together with probability 1 - `ERROR`. It is None where the
    past decides nothing: fewer than two hours, or no waits.
    """

    gain: float
    interval: tuple[float, float] | None
    tenant_interval: tuple[float, float] | None
    """The same of the mean over tenants of their mean waits: a tenant with many small jobs does not
    choose the policy of all."""

    @property
    def text(self) -> str:
        """The gain and its interval as percentages."""
        if self.interval is None:
            return f"{self.gain:+.1%} [unknown]"
        return "{:+.1%} [{:+.1%}, {:+.1%}]".format(self.gain, *self.interval)

    def is_better(self, least_gain: float) -> bool:
        """Return whether the wait is shorter by `least_gain`, and certainly shorter at all, where
        all jobs count alike and where all tenants do.
        """
        intervals = (self.interval, self.tenant_interval)
        is_shorter = all(interval is not None and interval[1] < 0.0 for interval in intervals)
        return is_shorter and self.gain <= -least_gain


@dataclass(frozen=True, slots=True)
class Choice:
    """The trial to configure; 0: the present settings stay, for `reason`."""

    index: int
    comparisons: tuple[Comparison, ...]
    """One for each trial but the first."""
    reason: str


def choose_trial(
    trials: Sequence[TrialResult],
    least_gain: float = LEAST_GAIN,
    *,
    hours_since_change: float = math.inf,
    pause_h: float = PAUSE_H,
) -> Choice:
    """Return the best of `trials`; the first one has the present settings.

    `hours_since_change` are wall hours since the pool's policy was changed.
    """
    present, others = trials[0], trials[1:]
    level = 1 - ERROR / max(1, len(others))
    comparisons = tuple(compare(present, other, level) for other in others)
    better = [index for index, one in enumerate(comparisons, start=1) if one.is_better(least_gain)]
    if not better:
        least = f"{least_gain:.0%} shorter waits beyond chance"
        return Choice(0, comparisons, f"no other policy has {least}")
    if hours_since_change < pause_h:
        ago = f"the policy was changed {hours_since_change:.1f} h ago"
        return Choice(0, comparisons, f"{ago}, and changes once in {pause_h:g} h at most")
    index = min(better, key=lambda one: trials[one].mean_wait_s)
    return Choice(index, comparisons, f"mean wait {comparisons[index - 1].text}")


def change_reason(present: TrialResult, best: TrialResult, choice: Choice) -> str:
    """Return why the policy changes, for the event: the figures, and whether stops made waits
    longer.
    """
    before, after = (
        trial.candidate.settings.get("preemption") == "ranked" for trial in (present, best)
    )
    closes = "preemption by rank closes, as waits are longer with it; " if before > after else ""
    trial = f"{closes}{best.candidate.name}: {choice.reason}"
    return f"{trial} against the present settings, simulated on {best.jobs} recorded jobs"


def compare(present: TrialResult, other: TrialResult, level: float) -> Comparison:
    """Return the gain of `other` by the same jobs, in blocks of hours of their submission."""
    unit = hours(present.submit_s, float(present.submit_s.min()))
    by_job = gain(present.delay_s, other.delay_s, unit, level=level)
    weight = 1.0 / np.bincount(present.tenant)[present.tenant]
    by_tenant = gain(present.delay_s * weight, other.delay_s * weight, unit, level=level)
    return Comparison(by_job.gain, interval_of(by_job), interval_of(by_tenant))


def interval_of(measured: Gain) -> tuple[float, float] | None:
    """Return the interval of a gain; None where it is not known."""
    is_known = math.isfinite(measured.low) and math.isfinite(measured.high)
    return (measured.low, measured.high) if is_known else None
