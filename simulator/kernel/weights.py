"""The learned policy's weights as one vector, as the kernel wants them and the network has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.kernel.codes import INPUTS, PER_HIDDEN

Floats = NDArray[np.float64]
BASE = np.array([-5.0, -5.0, -5.0])
"""What the first three features of a job weigh before anything is learnt: see `features.py`."""


def size(hidden: int) -> int:
    return INPUTS + hidden * PER_HIDDEN


def untrained(hidden: int, seed: int) -> Floats:
    """The base alone: hidden units look at their inputs at random and say nothing yet."""
    found = np.zeros(size(hidden))
    units = found[INPUTS:].reshape(hidden, PER_HIDDEN)
    units[:, :INPUTS] = np.random.default_rng(seed).normal(0.0, INPUTS**-0.5, (hidden, INPUTS))
    return found


def split(theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Linear weights [12] (base included), hidden inputs [12, H], biases [H], outputs [H]."""
    linear = theta[:INPUTS].copy()
    linear[: len(BASE)] += BASE
    units = theta[INPUTS:].reshape(-1, PER_HIDDEN)
    return linear, units[:, :INPUTS].T, units[:, INPUTS], units[:, INPUTS + 1]


def join(linear: Floats, inputs: Floats, biases: Floats, outputs: Floats) -> Floats:
    """What `split` took apart."""
    own = linear.copy()
    own[: len(BASE)] -= BASE
    units = np.concatenate((inputs.T, biases[:, None], outputs[:, None]), axis=1)
    return np.concatenate((own, units.ravel()))
