"""Figures of one policy over the counted jobs of a recorded slice, with intervals.

Intervals are those of `simulator/metrics/bootstrap.py`: circular blocks of units of time, paired by
job where two policies are compared. A unit is an hour; a time below a day has 24 units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.metrics.bootstrap import Gain, gain
from simulator.metrics.fairness import finish_time_ratios, jain
from simulator.metrics.measures import utilisation
from simulator.metrics.outcome import HOUR_S, Bools, Floats, Ints, ScheduleOutcome

UNITS = 24
"""Units of a time below a day."""
FEWEST_UNITS = 4
"""Units with a wait, at least, for an interval: fewer say nothing of the next ones."""
LEVEL = 0.95

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Change:
    """A mean over that of the present settings, less 1; no interval where the time decides
    nothing.
    """

    gain: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class TenantRow:
    """Figures of the counted jobs of one tenant."""

    tenant: str
    jobs: int
    mean_wait_s: float
    mean_jct_s: float
    wait_change: Change | None
    stops: int
    """Stops of its jobs after they had begun, for other jobs or with their nodes."""
    rho: float
    """Mean of JCT over the JCT alone on an equal share of the pool; NaN without GPUs."""
    gpu_h: float
    """GPU-hours that its counted jobs held."""


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """Figures of one policy, cluster seconds.

    A wait is the time from arrival to end that is no work: restarts and lost work are in it.
    """

    name: str
    source: str
    """Where the row comes from: the record, the simulated pool, or the world of rounds."""
    jobs: int
    unfinished: int
    """Jobs that had not ended; their time so far is counted."""
    mean_wait_s: float
    wait_interval: Interval | None
    p99_wait_s: float
    mean_first_wait_s: float
    """Arrival to the first GPUs."""
    mean_jct_s: float
    jct_interval: Interval | None
    use: float | None
    """GPU-seconds held in the time over those of the nodes that were there."""
    jain: float
    """Jain's index of the work that tenants got done by the end of the time."""
    worst_rho: float
    stops: int
    lost_share: float
    wait_change: Change | None
    jct_change: Change | None
    use_change: Change | None
    tenants: tuple[TenantRow, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """A policy's name, the source of its row, and its outcome."""

    name: str
    source: str
    outcome: ScheduleOutcome


def rows_of(
    played: Sequence[Played], base: ScheduleOutcome, counted: Bools, tenants: Sequence[str]
) -> list[PolicyRow]:
    """Return a row for each outcome; changes are against `base`, none for `base` itself.

    Row i of every outcome and of `counted` is the same job, and `tenants` are by its code.
    """
    return [_row(one, base, counted, tenants) for one in played]


def _row(
    played: Played, base: ScheduleOutcome, counted: Bools, tenants: Sequence[str]
) -> PolicyRow:
    outcome = played.outcome
    chosen = counted & outcome.fits & base.fits
    unit = units_of(outcome, chosen)
    delay_s, jct_s = delays_s(outcome)[chosen], outcome.jct_s[chosen]
    is_base = outcome is base
    has_use = outcome.held_by_hour.size > 0 and outcome.capacity_gpus > 0
    rho = _rho(outcome, chosen)
    work = np.minimum(outcome.end_s[chosen], outcome.window_s[1]) == outcome.end_s[chosen]
    served = outcome.duration_s[chosen] * outcome.gpus[chosen] * work
    return PolicyRow(
        name=played.name,
        source=played.source,
        jobs=int(chosen.sum()),
        unfinished=int((chosen & ~outcome.ended).sum()),
        mean_wait_s=_mean(delay_s),
        wait_interval=mean_interval(delay_s, unit),
        p99_wait_s=float(np.quantile(delay_s, 0.99)),
        mean_first_wait_s=_mean(outcome.wait_s[chosen]),
        mean_jct_s=_mean(jct_s),
        jct_interval=mean_interval(jct_s, unit),
        use=utilisation(outcome) if has_use else None,
        jain=jain(_by_tenant(outcome.tenant[chosen], served)),
        worst_rho=_worst(rho, outcome.tenant[chosen]),
        stops=int(stops_of(outcome)[chosen].sum()),
        lost_share=_lost_share(outcome, chosen),
        wait_change=None if is_base else change(delays_s(base)[chosen], delay_s, unit),
        jct_change=None if is_base else change(base.jct_s[chosen], jct_s, unit),
        use_change=None if is_base or not has_use else _use_change(base, outcome),
        tenants=tuple(
            _tenant(outcome, base, chosen, code, name, is_base)
            for code, name in enumerate(tenants)
            if (chosen & (outcome.tenant == code)).any()
        ),
    )


def _tenant(
    outcome: ScheduleOutcome,
    base: ScheduleOutcome,
    chosen: Bools,
    code: int,
    name: str,
    is_base: bool,
) -> TenantRow:
    own = chosen & (outcome.tenant == code)
    delay_s = delays_s(outcome)
    unit = units_of(outcome, own)
    return TenantRow(
        name,
        int(own.sum()),
        _mean(delay_s[own]),
        _mean(outcome.jct_s[own]),
        None if is_base else change(delays_s(base)[own], delay_s[own], unit),
        int(stops_of(outcome)[own].sum()),
        _mean(_rho(outcome, chosen)[outcome.tenant[chosen] == code]),
        float((outcome.held_s * outcome.gpus)[own].sum()) / HOUR_S,
    )


def delays_s(outcome: ScheduleOutcome) -> Floats:
    """Return [n], the time of each job that is no work; nothing is shorter than its work."""
    return np.maximum(outcome.jct_s - outcome.duration_s, 0.0)


def _lost_share(outcome: ScheduleOutcome, chosen: Bools) -> float:
    """Return the share of the GPU-seconds that the chosen jobs held and that was lost."""
    held = float((outcome.held_s * outcome.gpus)[chosen].sum())
    return float((outcome.lost_s * outcome.gpus)[chosen].sum()) / held if held > 0 else 0.0


def stops_of(outcome: ScheduleOutcome) -> Ints:
    return np.maximum(outcome.starts - 1, 0)


def units_of(outcome: ScheduleOutcome, chosen: Bools) -> Ints:
    """Return the unit of time of each chosen job, by its arrival."""
    low, high = outcome.window_s
    length_s = min(HOUR_S, (high - low) / UNITS)
    unit: Ints = ((outcome.submit_s[chosen] - low) // length_s).astype(np.int64)
    return unit


def change(base: Floats, ours: Floats, unit: Ints) -> Change:
    """Return the change of a mean, paired by job."""
    measured = gain(base, ours, unit, level=LEVEL)
    return Change(float(measured.gain), _interval(measured, 0.0, base, unit))


def mean_interval(values: Floats, unit: Ints) -> Interval | None:
    """Return the interval of a mean: that of its ratio to 1."""
    measured = gain(np.ones(len(values)), values, unit, level=LEVEL)
    return _interval(measured, 1.0, values, unit)


def _interval(measured: Gain, plus: float, values: Floats, unit: Ints) -> Interval | None:
    """Return the interval of a gain about `plus`; None where too few units have any of `values`."""
    if np.count_nonzero(np.bincount(unit, values)) < FEWEST_UNITS:
        return None
    is_known = math.isfinite(measured.low) and math.isfinite(measured.high)
    return (float(measured.low + plus), float(measured.high + plus)) if is_known else None


def _use_change(base: ScheduleOutcome, ours: ScheduleOutcome) -> Change:
    """Return the change of the use, paired by the hour."""
    hours = min(len(base.held_by_hour), len(ours.held_by_hour))
    held = base.held_by_hour[:hours], ours.held_by_hour[:hours]
    return change(*held, np.arange(hours))


def _rho(outcome: ScheduleOutcome, chosen: Bools) -> Floats:
    """Return the finish-time fairness of each chosen job, tenants with equal shares."""
    if outcome.capacity_gpus <= 0:
        return np.full(int(chosen.sum()), np.nan)
    codes = np.unique(outcome.tenant[chosen]).tolist()
    return finish_time_ratios(outcome, dict.fromkeys(codes, 1.0))[chosen]


def _by_tenant(tenant: Ints, values: Floats) -> Floats:
    """Return the sum of each tenant that has jobs."""
    return np.bincount(tenant, values)[np.unique(tenant)].astype(np.float64)


def _worst(rho: Floats, tenant: Ints) -> float:
    """Return the largest mean rho of a tenant."""
    return max(_mean(rho[tenant == code]) for code in np.unique(tenant).tolist())


def _mean(values: Floats) -> float:
    return float(values.mean())
