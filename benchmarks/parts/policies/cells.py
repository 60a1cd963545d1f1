"""One figure of a comparison: the values of a base and of Berth, and the gain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.parts.rounding import rounded
from simulator.metrics.bootstrap import Gain, gain, gain_at
from simulator.metrics.outcome import Floats
from simulator.metrics.policy_jobs import PolicyJobs

GAIN = "share by which Berth is better than its base: positive is better, of a time and of use"
"""Definition of a gain, written into the JSON."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one policy over one base.

    `gain` is positive where Berth is better; the interval is a paired block bootstrap of 95 %,
    NaN where one cannot be given.
    """

    trace: str
    protocol: str
    load: float | None
    mode: str
    base: str
    runtime_source: str
    """Run times that the base uses: oracle, history, or blind."""
    policy: str
    metric: str
    base_value: float
    berth_value: float
    gain: float
    ci_low: float
    ci_high: float
    block_units: int
    """Length of a block of the bootstrap: hours of a replay, or batches."""
    worst_seed: float | None = None
    """Smallest gain of the networks of all training seeds; None if they were not evaluated."""

    def plain(self) -> dict[str, object]:
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in rounded(self, 4).items()
        }


class Metric(NamedTuple):
    """The computation of a metric from the jobs of one side."""

    of: Callable[[PolicyJobs], Floats]
    quantile: float | None = None
    """None: the mean."""
    resamples: int = 1000


USES = frozenset({"utilisation", "productive_utilisation"})
"""Metrics of which more is better: a value per unit of time, not per job."""
METRICS = {
    "mean_wait_s": Metric(lambda side: side.delay_s),
    "p99_wait_s": Metric(lambda side: side.delay_s, quantile=0.99, resamples=200),
    "mean_jct_s": Metric(lambda side: side.jct_s),
    "mean_bounded_slowdown": Metric(lambda side: side.slowdown),
    "utilisation": Metric(lambda side: side.use),
    "productive_utilisation": Metric(lambda side: side.productive),
}


def compare(
    base: PolicyJobs,
    ours: PolicyJobs,
    fields: dict[str, object],
    metrics: Sequence[str] = tuple(METRICS),
    seeds: Sequence[PolicyJobs] = (),
) -> list[Cell]:
    """Return a cell per metric.

    `fields` holds the other fields of a cell; `seeds` are the same jobs under the networks of all
    training seeds.
    """
    return [compare_metric(name, base, ours, fields, seeds) for name in metrics]


def compare_metric(
    name: str,
    base: PolicyJobs,
    ours: PolicyJobs,
    fields: dict[str, object],
    seeds: Sequence[PolicyJobs],
) -> Cell:
    change = change_of(name, base, ours, METRICS[name].resamples)
    low, best, high = change.low, change.gain, change.high
    seed_gains = [change_of(name, base, seed, 1).gain for seed in seeds]
    if name not in USES:
        low, best, high = -high, -best, -low
        seed_gains = [-value for value in seed_gains]
    return Cell(
        **fields,  # type: ignore[arg-type]
        metric=name,
        base_value=change.base,
        berth_value=change.ours,
        gain=best,
        ci_low=low,
        ci_high=high,
        block_units=change.block_units,
        worst_seed=min(seed_gains, default=None),
    )


def change_of(name: str, base: PolicyJobs, ours: PolicyJobs, resamples: int) -> Gain:
    """Return by how much the metric is larger than that of the base, better or not."""
    of, quantile, _ = METRICS[name]
    pair = of(base), of(ours)
    if quantile is not None:
        return gain_at(*pair, base.unit, quantile, resamples=resamples)
    unit = np.arange(len(base.use)) if name in USES else base.unit
    return gain(*pair, unit, resamples=resamples)
