"""Bayesian online change-point detection over many series at once.

A cell is a hypothesis: the present run of a series has begun so many iterations ago. It holds the
probability of that and the parameters of a Normal-Gamma distribution of the run's level and noise.
Each observation extends every run, or begins a new one with the probability `hazard`. The last cell
stands for all runs that are longer. An observation is an isolated outlier with the probability
`outliers`; it moves the parameters of a run only so far as the run does not take it for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from services.failslow.core.detection.limits import DetectionLimits

Floats = NDArray[np.float64]
Rows = NDArray[np.intp] | slice


@dataclass(slots=True)
class RunLengths:
    """Cells of all series, [series, run length]; `count` is the number of observations of a run."""

    probability: Floats
    count: Floats
    mean: Floats
    square: Floats
    """Sum of squared deviations within the run, halved."""

    @classmethod
    def empty(cls, series: int, limits: DetectionLimits) -> Self:
        shape = (series, limits.runs)
        cells = cls(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))
        nothing = np.zeros(series)
        cells.restart(slice(None), nothing, nothing, nothing)
        return cells

    def restart(self, rows: Rows, level: Floats, noise: Floats, count: Floats) -> None:
        """Forget the runs of these series; the longest one has so many observations behind it."""
        self.probability[rows] = 0.0
        self.probability[rows, -1] = 1.0
        self.count[rows] = count[:, None]
        self.mean[rows] = level[:, None]
        self.square[rows] = (0.5 * count * noise**2)[:, None]

    def observe(
        self, rows: Rows, values: Floats, level: Floats, noise: Floats, limits: DetectionLimits
    ) -> None:
        """Add one observation of each of these series."""
        prior_count = (noise / limits.shift_sd) ** 2
        prior_square = limits.noise_weight * noise**2
        grown = self._grow(rows, values, prior_count, prior_square, limits)
        fresh = limits.hazard * _shift_density(values - level, limits)
        probability = grown.probability * (1 - limits.hazard)
        total = np.maximum(probability.sum(axis=1) + fresh, 1e-300)
        self._shift(rows, grown, probability / total[:, None], fresh / total, values, limits)

    def _grow(
        self,
        rows: Rows,
        values: Floats,
        prior_count: Floats,
        prior_square: Floats,
        limits: DetectionLimits,
    ) -> RunLengths:
        """Return the cells with the observation in every run, and the weight of each run."""
        count, mean, square = self.count[rows], self.mean[rows], self.square[rows]
        shape = limits.noise_weight + 0.5 * count
        kappa = count + prior_count[:, None]
        deviation = values[:, None] - mean
        spread = (square + prior_square[:, None]) * (kappa + 1) / (shape * kappa)
        inlier = (1 - limits.outliers) * _student(deviation * deviation / spread, shape, spread)
        density = inlier + limits.outliers * limits.outlier_density
        weight = inlier / density
        step = weight / (kappa + weight)
        return RunLengths(
            self.probability[rows] * density,
            count + weight,
            mean + step * deviation,
            square + 0.5 * step * kappa * deviation * deviation,
        )

    def _shift(
        self,
        rows: Rows,
        grown: RunLengths,
        probability: Floats,
        fresh: Floats,
        values: Floats,
        limits: DetectionLimits,
    ) -> None:
        """Move each run to its new length; the last cell keeps the likelier of two runs."""
        older = probability[:, -1] >= probability[:, -2]
        forget = np.minimum(1.0, limits.memory / np.maximum(grown.count[:, -1], 1.0))
        first = {"count": np.ones_like(values), "mean": values, "square": np.zeros_like(values)}
        for name, begin in first.items():
            cells = getattr(grown, name)
            last = np.where(older, cells[:, -1], cells[:, -2])
            if name != "mean":
                last *= np.where(older, forget, 1.0)
            moved = np.empty_like(cells)
            moved[:, 0], moved[:, 1:-1], moved[:, -1] = begin, cells[:, :-2], last
            getattr(self, name)[rows] = moved
        moved = np.empty_like(probability)
        moved[:, 0], moved[:, 1:-1] = fresh, probability[:, :-2]
        moved[:, -1] = probability[:, -1] + probability[:, -2]
        self.probability[rows] = moved


def _student(ratio: Floats, shape: Floats, spread: Floats) -> Floats:
    """Return the density of Student's t with 2 x `shape` degrees of freedom.

    The ratio of gamma functions is that of Stirling's series, which is exact to 0.1 % from 3 on.
    """
    exponent = (shape + 0.5) * np.log1p(ratio / (2 * shape)) + 0.125 / shape
    density: Floats = np.exp(-exponent) / np.sqrt(2 * np.pi * spread)
    return density


def _shift_density(shift: Floats, limits: DetectionLimits) -> Floats:
    """Return the density of the first observation of a new run."""
    sd = limits.shift_sd
    density: Floats = np.exp(-0.5 * (shift / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    mixed: Floats = (1 - limits.outliers) * density + limits.outliers * limits.outlier_density
    return mixed
