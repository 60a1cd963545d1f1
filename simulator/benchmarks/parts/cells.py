"""One figure of a comparison: a base, Berth, and how sure the difference is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from simulator.metrics.bootstrap import Gain, gain, gain_at
from simulator.metrics.outcome import Floats, Ints

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

    def plain(self) -> dict[str, object]:
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One policy's jobs: what is compared, per job; `block` are jobs that share a queue."""

    delay_s: Floats
    """JCT less the work: waiting, restarts and lost work."""
    jct_s: Floats
    slowdown: Floats
    block: Ints


METRICS: dict[str, Callable[[Side, Side], Gain]] = {
    "mean_wait_s": lambda a, b: gain(a.delay_s, b.delay_s, a.block, resamples=1000),
    "p99_wait_s": lambda a, b: gain_at(a.delay_s, b.delay_s, a.block, 0.99, resamples=200),
    "mean_jct_s": lambda a, b: gain(a.jct_s, b.jct_s, a.block, resamples=1000),
    "mean_bounded_slowdown": lambda a, b: gain(a.slowdown, b.slowdown, a.block, resamples=1000),
}


def compared(
    base: Side, ours: Side, where: dict[str, object], metrics: tuple[str, ...] = tuple(METRICS)
) -> list[Cell]:
    """A cell per metric; `where` holds the other fields of a cell."""
    return [cell_of(METRICS[name](base, ours), {**where, "metric": name}) for name in metrics]


def cell_of(found: Gain, where: dict[str, object]) -> Cell:
    """Of a time: less is better, so the gain is the change with its sign turned."""
    return Cell(
        **where,  # type: ignore[arg-type]
        base_value=found.base, berth_value=found.ours,
        gain=-found.gain, ci_low=-found.high, ci_high=-found.low,
    )  # fmt: skip


def of_use(base: Floats, ours: Floats, where: dict[str, object]) -> Cell:
    """Of utilisation, one value per block: more is better."""
    found = gain(base, ours, np.arange(len(base)), resamples=1000)
    return Cell(
        **where, metric="utilisation",  # type: ignore[arg-type]
        base_value=found.base, berth_value=found.ours,
        gain=found.gain, ci_low=found.low, ci_high=found.high,
    )  # fmt: skip
