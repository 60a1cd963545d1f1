"""Times of a worker's own work, in the iterations that can be compared with those of its peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median

from shared.contracts.reports import IterationTimes

TRAIN = "train"
LEAST_S = 1e-6
"""Least own work that remains without the wait for a processor."""
TO_SIGMA = 1.4826
MEDIAN_ERROR = 1.2533
"""Standard error of a median, in those of the mean."""


@dataclass(frozen=True, slots=True)
class OwnWork:
    """One report of a worker, s."""

    net_s: float
    """Median of own work without the wait for a processor of the host."""
    delay_s: float
    """Median of that wait; 0 where it is not reported."""
    error: float
    """Standard error of `net_s` by the scatter of the iterations in the report, relative to it."""
    on_processors: bool
    """Whether that wait is reported, as a training on CPUs does and one on GPUs does not."""


def own_times(times: IterationTimes) -> tuple[float, ...]:
    """Return s of own work in iterations of training, without the wait for a processor.

    Without own times those of whole iterations count, which are equal in a gang whose workers wait
    for each other: they show no culprit, and raise no false alarm either.
    """
    values = trained(times, times.own_s or times.iteration_s)
    delays = _delays(times) or [None] * len(values)
    return tuple(
        value if not delay else max(value - delay, LEAST_S)
        for value, delay in zip(values, delays, strict=True)
        if value is not None
    )


def own_work(times: IterationTimes) -> OwnWork | None:
    """Return the figures of a report; None without iterations of training."""
    net_s = own_times(times)
    if not net_s:
        return None
    delays = [delay for delay in _delays(times) if delay is not None]
    middle_s = median(net_s)
    deviation_s = TO_SIGMA * median(abs(value - middle_s) for value in net_s)
    error = MEDIAN_ERROR * deviation_s / sqrt(len(net_s)) / max(middle_s, LEAST_S)
    return OwnWork(middle_s, median(delays) if delays else 0.0, error, bool(delays))


def trained(times: IterationTimes, column: Sequence[float | None]) -> list[float | None]:
    """Return the values of a column in iterations of training; none of an empty column."""
    counts = [kind == TRAIN for kind in times.kinds] or [True] * len(times.iteration_s)
    return [value for value, is_counted in zip(column, counts, strict=False) if is_counted]


def _delays(times: IterationTimes) -> list[float | None]:
    """Return the wait for a processor of each iteration; it is a part of own work alone."""
    return trained(times, times.delay_s) if times.own_s else []
