"""Fairness between tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.metrics.outcome import Floats, ScheduleOutcome

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Fairness:
    """`jain` is 1 where every tenant got the same service per weight, 1/n where one got all.

    `rho` is Themis' finish-time fairness: a tenant's mean of JCT over the JCT that it would have
    had alone on its share of the pool (fluid, first come first served, gangs never split in
    time): above 1 it would have been better off alone. Of tenants with jobs in the window.
    """

    tenants: int
    jain: float
    rho_mean: float
    rho_worst: float


def fairness(outcome: ScheduleOutcome, weights: Mapping[int, float] | None = None) -> Fairness:
    """Return the fairness over the window's jobs; a tenant code that `weights` lacks weighs 1."""
    chosen = outcome.in_window & outcome.fits
    codes = np.unique(outcome.tenant[chosen])
    if not codes.size:
        return Fairness(0, NAN, NAN, NAN)
    weight = np.array([(weights or {}).get(int(code), 1.0) for code in codes])
    place = np.searchsorted(codes, outcome.tenant[chosen])
    served = outcome.duration_s * outcome.gpus * outcome.ended
    service = np.bincount(place, served[chosen], codes.size)
    rho = finish_time_ratios(outcome, dict(zip(codes.tolist(), weight.tolist(), strict=True)))
    mean_rho = np.bincount(place, rho[chosen], codes.size) / np.bincount(place)
    return Fairness(
        len(codes), jain(service / weight), float(mean_rho.mean()), float(mean_rho.max())
    )


def finish_time_ratios(outcome: ScheduleOutcome, weights: Mapping[int, float]) -> Floats:
    """Return [n], the rho of each job of the tenants that share the pool by their `weights`; NaN
    of other jobs.
    """
    rho = np.full(len(outcome), NAN)
    total = sum(weights.values())
    for code, weight in weights.items():
        own = np.flatnonzero((outcome.tenant == code) & outcome.fits)
        rho[own] = outcome.jct_s[own] / alone_s(
            outcome.submit_s[own],
            outcome.duration_s[own],
            outcome.gpus[own],
            weight / total * outcome.capacity_gpus,
        )
    return rho


def jain(values: Floats) -> float:
    """Return Jain's index (sum x)^2 / (n sum x^2); 1 where all are 0."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else 1.0


def alone_s(submit_s: Floats, duration_s: Floats, gpus: Floats, share_gpus: float) -> Floats:
    """Return the JCT of each of a tenant's jobs (by submit) alone on its own `share_gpus`, as a
    fluid.

    Job i ends at C_i = max(submit_i, C_i-1) + work_i / share, unrolled to sums and a running
    maximum; a gang needs at least its own run time.
    """
    order = np.argsort(submit_s, kind="stable")
    spent = np.cumsum(duration_s[order] * gpus[order]) / share_gpus
    before = np.concatenate((np.zeros(1), spent[:-1]))
    through = spent + np.maximum.accumulate(submit_s[order] - before)
    jct = np.maximum(through - submit_s[order], duration_s[order])
    jct_s = np.empty_like(jct)
    jct_s[order] = jct
    return np.maximum(jct_s, 1e-3)
