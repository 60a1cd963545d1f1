"""Times of a worker's own work, in the iterations that can be compared with those of its peers."""

from __future__ import annotations

from collections.abc import Sequence

from shared.contracts.reports import IterationTimes

TRAIN = "train"


def own_times(times: IterationTimes) -> tuple[float, ...]:
    """Return s of own work in iterations of training.

    Without own times those of whole iterations count, which are equal in a gang whose workers wait
    for each other: they show no culprit, and raise no false alarm either.
    """
    values = trained(times, times.own_s or times.iteration_s)
    return tuple(value for value in values if value is not None)


def trained(times: IterationTimes, column: Sequence[float | None]) -> list[float | None]:
    """Return the values of a column in iterations of training; none of an empty column."""
    counts = [kind == TRAIN for kind in times.kinds] or [True] * len(times.iteration_s)
    return [value for value, is_counted in zip(column, counts, strict=False) if is_counted]
