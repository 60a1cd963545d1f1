"""RLScheduler's scorer of waiting jobs (Zhang et al., SC'20): one small network, job by job.

Jobs are scored each alone, so that their order in the queue changes nothing. Eight features, each
above 0 and below 1; of those that a pool does not have the value of a missing one, 1, is given.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

LAYERS = ((8, 32), (32, 16), (16, 8), (8, 1))
WINDOW = 128
"""Jobs that are scored at once, at most."""
LEAST, MOST = 1e-5, 1.0 - 1e-5
WAIT_S = 43_200.0
"""Wait at which its feature is full."""


class Limits(NamedTuple):
    """The values at which features are full: requested run time in s, and processors."""

    request_s: float
    gpus: float


def size() -> int:
    """Return the number of weights of the network."""
    return sum(inputs * outputs + outputs for inputs, outputs in LAYERS)


def features(
    wait_s: Floats, request_s: Floats, gpus: Floats, fits: NDArray[np.bool_], limits: Limits
) -> Floats:
    """Return the features [n, 8] of jobs; `fits`: whether each could start now."""
    rows = np.full((len(wait_s), LAYERS[0][0]), MOST)
    rows[:, 0] = wait_s / WAIT_S
    rows[:, 1] = request_s / limits.request_s
    rows[:, 2] = gpus / limits.gpus
    rows[:, 7] = np.where(fits, MOST, LEAST)
    clipped: Floats = np.clip(rows, LEAST, MOST)
    return clipped


def scores(weights: Floats, rows: Floats) -> Floats:
    """Return the score [n] of each job, the highest first in the queue; `weights` [`size()`]."""
    values, at = rows, 0
    for number, (inputs, outputs) in enumerate(LAYERS):
        matrix = weights[at : at + inputs * outputs].reshape(inputs, outputs)
        at += inputs * outputs
        values = values @ matrix + weights[at : at + outputs]
        at += outputs
        if number < len(LAYERS) - 1:
            values = np.maximum(values, 0.0)
    result: Floats = values[:, 0]
    return result


def window(request_s: Floats, gpus: Floats) -> NDArray[np.intp]:
    """Return the rows of at most `WINDOW` jobs: the shortest and the smallest in turn.

    The released code draws a third list at random and then takes the shortest again.
    """
    if len(request_s) <= WINDOW:
        return np.arange(len(request_s))
    by_time, by_size = np.lexsort((request_s,)), np.lexsort((gpus,))
    both = np.stack((by_time, by_size), axis=1).ravel()
    _, first = np.unique(both, return_index=True)
    chosen: NDArray[np.intp] = both[np.sort(first)][:WINDOW]
    return chosen
