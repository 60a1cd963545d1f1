"""Times of a worker's own work, in the iterations that can be compared with those of its peers."""

from __future__ import annotations

from shared.contracts.reports import IterationTimes

TRAIN = "train"


def own_times(times: IterationTimes) -> tuple[float, ...]:
    """Return s of own work in iterations of training.

    Without own times those of whole iterations count, which are equal in a gang whose workers wait
    for each other: they show no culprit, and raise no false alarm either.
    """
    trained = [kind == TRAIN for kind in times.kinds] or [True] * len(times.iteration_s)
    values = times.own_s or times.iteration_s
    return tuple(
        value for value, counts in zip(values, trained, strict=True) if counts and value is not None
    )
