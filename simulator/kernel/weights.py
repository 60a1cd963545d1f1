"""The learned policy's weights as one vector."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.kernel.codes import INPUTS, PER_HIDDEN

Floats = NDArray[np.float64]
BASE = np.array([-5.0, -5.0, -5.0])
"""Weights of a job's first three features before training: see `features.py`."""


def size(hidden: int) -> int:
    """Return the length of the vector."""
    return INPUTS + hidden * PER_HIDDEN


def untrained(hidden: int, seed: int) -> Floats:
    """Return the base alone: hidden units have random inputs and no output."""
    theta = np.zeros(size(hidden))
    units = theta[INPUTS:].reshape(hidden, PER_HIDDEN)
    units[:, :INPUTS] = np.random.default_rng(seed).normal(0.0, INPUTS**-0.5, (hidden, INPUTS))
    return theta


def split(theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return linear weights [12] (base included), hidden inputs [12, H], biases [H], outputs
    [H].
    """
    linear = theta[:INPUTS].copy()
    linear[: len(BASE)] += BASE
    units = theta[INPUTS:].reshape(-1, PER_HIDDEN)
    return linear, units[:, :INPUTS].T, units[:, INPUTS], units[:, INPUTS + 1]


def join(linear: Floats, inputs: Floats, biases: Floats, outputs: Floats) -> Floats:
    """Return the vector that `split` took apart."""
    own = linear.copy()
    own[: len(BASE)] -= BASE
    units = np.concatenate((inputs.T, biases[:, None], outputs[:, None]), axis=1)
    return np.concatenate((own, units.ravel()))
