"""Intervals of start times that hold, learnt from the jobs that started.

The simulated p10, p50 and p90 of a delay are shifted on a logarithmic scale by the same quantiles
of the errors that the simulation made at the last starts, where recent ones count more: split
conformal prediction with fading weights (Barber et al. 2023). Errors are those of the simulation
and not of the intervals, so that the many estimates which are open while a queue is long do not
correct the same error again and again; an open estimate that the job has outlived counts as an
error of at least that size, as long as a start of its time would be remembered: jobs that never
start say less and less of those that do.

Jobs that come in one burst wait for the same ends and start early or late together. Hundreds of
them say little more than one, and would drive everything else out of memory: intervals that are
learnt from the last burst alone fail the next one. So of the estimates that are made within
`PERIOD_S` the first, second, fourth, eighth and so on teach. That gives each burst little weight,
and every job its own in the goal: the share that is left outside follows all starts
(`outside_share`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.history.intervals import QUANTILES
from services.priority.core.history.outside_share import OutsideShare
from shared.contracts.checkpoint import wall_ms

RECENT = 200
"""Starts that are remembered."""
FADE = 100.0
"""Starts after which an old one counts 1/e."""
PRIOR = 2.0
"""Starts that the simulation is worth as it is before the first one; this fades as well."""
PERIOD_S = 3600.0
"""Cluster seconds in which estimates are of one burst. In replays of Philly, ITP, Venus and PAI
half an hour to three hours did about as well."""
FLOOR_S = 600.0
"""Added to a delay before its logarithm: errors of delays far below it count for little. Of 30 s to
20 min, ten minutes gave the narrowest intervals that hold on the shared traces."""


class StartInterval(NamedTuple):
    """Delays in s that a tenth, half and nine tenths of such starts do not exceed."""

    p10_s: float
    p50_s: float
    p90_s: float


Shifts = tuple[float, ...]


def simulated_intervals(delays_s: Floats) -> list[StartInterval | None]:
    """Return the quantiles of simulated delays [n, scenarios]; None where most never end."""
    scenarios = delays_s.shape[1]
    ranks = [math.ceil(q * scenarios) - 1 for q in QUANTILES]
    rows = np.sort(delays_s, axis=1)[:, ranks].tolist()
    return [StartInterval(*row) if math.isfinite(row[-1]) else None for row in rows]


def shift_interval(simulated: Sequence[float], shifts: Shifts) -> StartInterval:
    """Return simulated quantiles shifted by these shifts of their logarithms."""
    pairs = zip(simulated, shifts, strict=True)
    return StartInterval(
        *sorted(max(0.0, (s + FLOOR_S) * math.exp(shift) - FLOOR_S) for s, shift in pairs)
    )


def errors_of(simulated: Sequence[float], delay_s: float) -> list[float]:
    """Return the error of each simulated quantile: the logarithm of the truth over it."""
    true = math.log(delay_s + FLOOR_S)
    return [true - math.log(s + FLOOR_S) for s in simulated]


@dataclass(slots=True)
class StartCalibration:
    """Errors at the last starts, the oldest first: a list per start, one error per quantile."""

    errors: list[list[float]] = field(default_factory=list)
    learnt: int = 0
    """Starts that were learnt from in all."""
    period_at: int | None = None
    """When the period of the last estimate began, wall ms; None: there was none yet."""
    in_period: int = 0
    """Estimates that were made in it."""
    outside: OutsideShare = field(default_factory=OutsideShare)

    def sample(self, at: int, time_scale: float) -> bool:
        """Count an estimate made at that wall ms, and return whether it is to teach.

        A clock that was set back begins a period.
        """
        period_ms = wall_ms(PERIOD_S, time_scale)
        if self.period_at is None or not 0 <= at - self.period_at < period_ms:
            self.period_at, self.in_period = at, 0
        self.in_period += 1
        return self.in_period.bit_count() == 1

    def learn(self, simulated: Sequence[float], delay_s: float) -> None:
        """Learn from a job that started after `delay_s`, if its estimate is to teach."""
        self.errors.append(errors_of(simulated, delay_s))
        del self.errors[:-RECENT]
        self.learnt += 1

    def remembers(self, learnt: int) -> bool:
        """Return whether a start would count still after which so many had been learnt from."""
        return self.learnt - learnt < RECENT

    def shifts(self, outlived: Iterable[tuple[Sequence[float], float]] = ()) -> Shifts:
        """Return how far each quantile moves.

        `outlived`: simulated quantiles of jobs that still wait, and their delays up to now.
        """
        count = len(self.errors)
        weights = [
            PRIOR * math.exp(-count / FADE),
            *(math.exp((at + 1 - count) / FADE) for at in range(count)),
        ]
        errors = np.array([[0.0] * len(QUANTILES), *self.errors])
        levels = self.outside.levels()
        known = tuple(weighted_quantile(errors[:, at], weights, q) for at, q in enumerate(levels))
        late = np.array([errors_of(*one) for one in outlived])
        if not len(late):
            return known
        shifts = []
        for at, (q, shift) in enumerate(zip(levels, known, strict=True)):
            more = late[:, at][late[:, at] > shift]
            both = np.concatenate((errors[:, at], more))
            shifts.append(weighted_quantile(both, [*weights, *(1.0 for _ in more)], q))
        return tuple(shifts)


def weighted_quantile(values: Floats, weights: Sequence[float], level: float) -> float:
    """Return the least value up to which the weights are that share of their sum."""
    order = np.argsort(values, kind="stable")
    ended = np.add.accumulate(np.asarray(weights)[order])
    at = int(np.searchsorted(ended, level * ended[-1]))
    return float(values[order[min(at, len(values) - 1)]])
