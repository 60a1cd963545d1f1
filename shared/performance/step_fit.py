"""Parameters of a job's step times from its measured steps (Pollux, OSDI'21, section 4.1).

The error is that of logarithms, of computing and of whole steps. Links that were not seen are taken
to cost nothing, so that a job tries them; those over nodes cost at least 1.1 times those within.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shared.performance.goodput import ALONE_S, ROUNDING, StepTimes

Floats: TypeAlias = npt.NDArray[np.float64]
LEAST = 1e-8
START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001)
"""Seconds with which the search begins, and the overlap."""
MOST_OVERLAP = 10.0
TIMES_WITHIN = 1.1
KEEP_APART, KEEP_FLAT = 1e-3, 1e-2
"""Weights that prefer little overlap, and links whose cost does not grow with the gang."""
STEPS = 80
TOLERANCE = 1e-6
SMOOTH = 1e-14
OVERLAP = 6


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A configuration that ran: its steps took `step_s`, of which the synchronisation `sync_s`."""

    nodes: int
    gpus: int
    examples_of_gpu: int
    step_s: float
    sync_s: float


def fit(measured: Sequence[MeasuredStep]) -> StepTimes:
    """Return the parameters that explain the steps best; at least one step is needed."""
    errors = _Errors(measured)
    values = errors.search()
    if not errors.is_across.any():
        values[2] = max(values[2], values[4] * TIMES_WITHIN)
        values[3] = max(values[3], values[5] * TIMES_WITHIN)
    return StepTimes(*values.tolist())


class _Errors:
    """The error of parameters, its gradient, and the search for the least one.

    Parameters are searched as logarithms, the overlap as a logit, so that bounds need no care.
    """

    def __init__(self, measured: Sequence[MeasuredStep]) -> None:
        nodes = np.array([step.nodes for step in measured], np.float64)
        self.gpus = np.array([step.gpus for step in measured], np.float64)
        self.examples = np.array([step.examples_of_gpu for step in measured], np.float64)
        step_s = np.array([step.step_s for step in measured], np.float64)
        computing_s = step_s - np.array([step.sync_s for step in measured], np.float64)
        self.log_computing, self.log_step = np.log(computing_s), np.log(step_s)
        self.is_across = nodes > 1
        self.is_within = (nodes == 1) & (self.gpus > 1)
        self.beyond_two = np.maximum(self.gpus - 2, ROUNDING)
        values = list(START)
        is_free = [True] * len(START)
        if len(set(self.examples.tolist())) == 1:
            values[0], is_free[0] = float(computing_s.mean()) / 2, False
        for number, is_seen in (
            (2, self.is_across.any()),
            (3, self.is_across.any()),
            (4, self.is_within.any()),
            (5, self.is_within.any()),
        ):
            if not is_seen:
                values[number], is_free[number] = LEAST, False
        if not (self.gpus > 2).any():
            for number in (3, 5):
                values[number], is_free[number] = LEAST, False
        self.values = np.array(values)
        self.free = np.flatnonzero(is_free)

    def search(self) -> Floats:
        """Return the parameters at the end of a quasi-Newton search (BFGS)."""
        at = _encoded(self.values)[self.free]
        error, slope = self._error_at(at)
        inverse = np.eye(len(at))
        for _ in range(STEPS):
            if np.abs(slope).max() < TOLERANCE:
                break
            direction = -inverse @ slope
            if direction @ slope >= 0:
                inverse, direction = np.eye(len(at)), -slope
            direction *= min(1.0, 2.0 / max(np.abs(direction).max(), 1e-12))
            stepped = self._along(at, direction, error, slope)
            if stepped is None:
                break
            moved, error, turned = stepped
            change, bend = moved - at, turned - slope
            inverse = _updated(inverse, change, bend)
            at, slope = moved, turned
        return self._decoded(at)

    def _along(
        self, at: Floats, direction: Floats, error: float, slope: Floats
    ) -> tuple[Floats, float, Floats] | None:
        """Return the first point along the direction that lowers the error enough."""
        length = 1.0
        for _ in range(30):
            moved = at + length * direction
            lower, turned = self._error_at(moved)
            if lower <= error + 1e-4 * length * (direction @ slope):
                return moved, lower, turned
            length /= 2
        return None

    def _decoded(self, at: Floats) -> Floats:
        encoded = _encoded(self.values)
        encoded[self.free] = at
        values = np.exp(np.clip(encoded, math.log(LEAST), 10.0))
        values[OVERLAP] = 1.0 + (MOST_OVERLAP - 1.0) / (1.0 + math.exp(-encoded[OVERLAP]))
        fixed = np.ones(len(values), bool)
        fixed[self.free] = False
        values[fixed] = self.values[fixed]
        return values

    def _error_at(self, at: Floats) -> tuple[float, Floats]:
        values = self._decoded(at)
        error, slope = self.error(values)
        inner = values.copy()
        above = (values[OVERLAP] - 1.0) / (MOST_OVERLAP - 1.0)
        inner[OVERLAP] = (MOST_OVERLAP - 1.0) * above * (1.0 - above)
        return error, (slope * inner)[self.free]

    def error(self, values: Floats) -> tuple[float, Floats]:
        """Return the error of the parameters and its gradient."""
        power = float(values[OVERLAP])
        computing = values[0] + values[1] * self.examples
        across = values[2] + values[3] * self.beyond_two
        within = values[4] + values[5] * self.beyond_two
        alone = ALONE_S + ALONE_S * self.beyond_two
        syncing = np.where(self.is_across, across, np.where(self.is_within, within, alone))
        log_computing, log_syncing = np.log(computing), np.log(syncing)
        # The larger one is taken out of the powers, which then stay finite.
        largest = np.maximum(log_computing, log_syncing)
        powered = np.exp(power * (log_computing - largest))
        synced = np.exp(power * (log_syncing - largest))
        both = powered + synced
        log_step = largest + np.log(both) / power
        share = powered / both
        off_computing, off_step = log_computing - self.log_computing, log_step - self.log_step
        count = len(off_step)
        first = math.sqrt(float(off_computing @ off_computing) / count + SMOOTH)
        second = math.sqrt(float(off_step @ off_step) / count + SMOOTH)
        by_computing = (off_computing / first + off_step * share / second) / count / computing
        by_syncing = off_step * (1.0 - share) / second / count / syncing
        by_power = (share * log_computing + (1.0 - share) * log_syncing - log_step) / power
        slope = np.zeros(len(values))
        slope[0] = by_computing.sum()
        slope[1] = by_computing @ self.examples
        for number, is_of in ((2, self.is_across), (4, self.is_within)):
            part = by_syncing[is_of]
            slope[number] = part.sum()
            slope[number + 1] = part @ self.beyond_two[is_of]
        slope[OVERLAP] = float(off_step @ by_power) / second / count
        slope[OVERLAP] += 2 * KEEP_APART * (power - 1.0)
        error = first + second + KEEP_APART * (power - 1.0) ** 2
        for number in (2, 4):
            ratio = values[number + 1] / values[number]
            error += KEEP_FLAT * ratio**2
            slope[number] -= 2 * KEEP_FLAT * ratio**2 / values[number]
            slope[number + 1] += 2 * KEEP_FLAT * ratio / values[number]
        return float(error), slope


def _encoded(values: Floats) -> Floats:
    encoded: Floats = np.log(values)
    above = (values[OVERLAP] - 1.0) / (MOST_OVERLAP - 1.0)
    encoded[OVERLAP] = math.log(above / (1.0 - above))
    return encoded


def _updated(inverse: Floats, change: Floats, bend: Floats) -> Floats:
    """Return the inverse Hessian with one more pair of step and change of slope."""
    curvature = float(change @ bend)
    if curvature <= 1e-12:
        return inverse
    outer = np.eye(len(change)) - np.outer(change, bend) / curvature
    updated: Floats = outer @ inverse @ outer.T + np.outer(change, change) / curvature
    return updated
