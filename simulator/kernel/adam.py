"""Adam's steps (Kingma and Ba 2015), for the trainings of networks that rank jobs.

The squares are averaged over 100 steps (0.99) instead of 1,000: trainings here have some hundred.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Adam:
    """The running means of one parameter vector, [n]; `rate` is the length of a step."""

    rate: float
    mean: Floats
    square: Floats
    count: int = 0

    def move(self, gradient: Floats) -> Floats:
        """Return what the parameters go down by, [n]."""
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        mean = self.mean / (1 - 0.9**self.count)
        square = self.square / (1 - 0.99**self.count)
        step: Floats = self.rate * mean / (np.sqrt(square) + 1e-8)
        return step
