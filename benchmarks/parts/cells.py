"""One figure of a comparison: a base, Berth, and how sure the difference is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from simulator.metrics.bootstrap import Gain, gain, gain_at
from simulator.metrics.outcome import Floats
from simulator.metrics.side import PolicyJobs

GAIN = "share by which Berth is better than its base: positive is better, of a time and of use"


@dataclass(frozen=True, slots=True)
class Cell:
    """`gain` is positive where Berth is better, with a paired block bootstrap of 95 %."""

    trace: str
    protocol: str
    load: float | None
    mode: str
    base: str
    knows: str
    """What the base knows of run times: oracle, history, or blind."""
    policy: str
    metric: str
    base_value: float
    berth_value: float
    gain: float
    ci_low: float
    ci_high: float
    worst_seed: float | None = None
    """The least gain of the networks of all training seeds; None where nobody asked."""

    def plain(self) -> dict[str, object]:
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


class Metric(NamedTuple):
    of: Callable[[PolicyJobs], Floats]
    quantile: float | None = None
    """None: the mean is looked at."""
    resamples: int = 1000


USE = "utilisation"
"""More of it is better; less of all others."""
METRICS = {
    "mean_wait_s": Metric(lambda side: side.delay_s),
    "p99_wait_s": Metric(lambda side: side.delay_s, quantile=0.99, resamples=200),
    "mean_jct_s": Metric(lambda side: side.jct_s),
    "mean_bounded_slowdown": Metric(lambda side: side.slowdown),
    USE: Metric(lambda side: side.use),
}


def compared(
    base: PolicyJobs,
    ours: PolicyJobs,
    where: dict[str, object],
    metrics: Sequence[str] = tuple(METRICS),
    seeds: Sequence[PolicyJobs] = (),
) -> list[Cell]:
    """A cell per metric; `where` holds the other fields of a cell, `seeds` are what the networks
    of all training seeds made of the same."""
    return [cell_of(name, base, ours, where, seeds) for name in metrics]


def cell_of(
    name: str,
    base: PolicyJobs,
    ours: PolicyJobs,
    where: dict[str, object],
    seeds: Sequence[PolicyJobs],
) -> Cell:
    found = change(name, base, ours, METRICS[name].resamples)
    low, best, high = found.low, found.gain, found.high
    others = [change(name, base, seed, 1).gain for seed in seeds]
    if name != USE:
        low, best, high = -high, -best, -low
        others = [-each for each in others]
    return Cell(
        **where,  # type: ignore[arg-type]
        metric=name,
        base_value=found.base,
        berth_value=found.ours,
        gain=best,
        ci_low=low,
        ci_high=high,
        worst_seed=min(others, default=None),
    )


def change(name: str, base: PolicyJobs, ours: PolicyJobs, resamples: int) -> Gain:
    """By how much the metric is larger, whether that is better or not."""
    of, quantile, _ = METRICS[name]
    pair = of(base), of(ours)
    if quantile is not None:
        return gain_at(*pair, base.block, quantile, resamples=resamples)
    block = np.arange(len(base.use)) if name == USE else base.block
    return gain(*pair, block, resamples=resamples)
