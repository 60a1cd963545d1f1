"""Evolution strategy on the compiled kernel: the score of a whole schedule needs no gradient.

Salimans et al. 2017: antithetic Gaussian steps, ranks instead of values, Adam. Every candidate of a
generation sees the same windows, so that what differs is the policy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.kernel.adam import Adam

Floats = NDArray[np.float64]
Loss = Callable[[Floats], float]


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """Options: `pairs` candidates and their mirror images per generation, at distance `step`."""

    generations: int = 12
    pairs: int = 10
    step: float = 0.1
    rate: float = 0.06
    decay: float = 0.002


@dataclass(slots=True)
class Evolution:
    """One training run."""

    theta: Floats
    options: EvolutionOptions
    random: np.random.Generator
    adam: Adam = field(init=False)

    def __post_init__(self) -> None:
        zero = np.zeros_like(self.theta)
        self.adam = Adam(self.options.rate, zero, zero.copy())

    def generation(self, loss: Loss) -> float:
        """Take one step; return the mean loss of its candidates."""
        noise = self.random.normal(size=(self.options.pairs, len(self.theta)))
        steps = np.concatenate((noise, -noise)) * self.options.step
        losses = np.array([loss(self.theta + step) for step in steps])
        ranks = losses.argsort().argsort() / (len(losses) - 1) - 0.5
        gradient = (ranks[:, None] * steps).sum(axis=0) / len(steps) / self.options.step**2
        self.theta = (1 - self.options.decay) * self.theta - self.adam.move(gradient)
        return float(losses.mean())
