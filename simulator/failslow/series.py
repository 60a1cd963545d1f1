"""One job's iteration times with the labels of its slowdowns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Label = tuple[int, int]
"""First and last slow iteration, both included."""


@dataclass(frozen=True, slots=True)
class Series:
    """One job; `masked` are evaluations and checkpoints as far as the job reports them."""

    job: str
    iteration: Ints
    seconds: Floats
    tokens: Floats
    masked: Bools
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True)
class Detection:
    """A slowdown that a detector declared at the iteration `at`, begun at `onset`."""

    onset: int
    at: int
