"""Detectors to compare with: a sliding window, plain change points, and verified ones.

Change points are those of Adams and MacKay as FALCON uses them (`D2`), and verified by its rules
(`D3`).
All three see seconds per iteration as they are reported, over all jobs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.failslow.series import Detection, Floats, Series
from simulator.failslow.tables import columns_of

WINDOW = 10
"""Iterations of the sliding window."""
WINDOW_SIZE = 0.10
"""Excess of the window's mean over that of the window before, at which it declares."""
FIRST = 20
"""Iterations by whose median and standard deviation a series is standardised."""
HAZARD = 1 / 250
LONGEST_RUN = 500
RECENT = 5
DECLARE, REARM = 0.8, 0.2
"""Probability of a recent change at which one is declared, and below which the next may be."""
LEAST_GAP = 10
"""Change points are dropped before this iteration and closer to the one before."""
LEAST_CHANGE = 0.10
"""Change of the mean relative to the larger one."""
OUTLIER = 3.0
"""Standard deviations from the mean of all iterations beyond which one is dropped."""
VERIFY_AFTER = 8
"""Least iterations from a change point to its declaration as verified."""


def sliding_window(jobs: Sequence[Series]) -> list[list[Detection]]:
    """Declare whenever the mean of a window begins to exceed that of the window before."""
    return [_slide(job) for job in jobs]


def _slide(job: Series) -> list[Detection]:
    sums = np.concatenate([[0.0], np.cumsum(job.seconds)])
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    is_high = means[WINDOW:] > (1 + WINDOW_SIZE) * means[:-WINDOW]
    begins = np.flatnonzero(is_high & ~np.concatenate([[False], is_high[:-1]]))
    ends = begins + 2 * WINDOW - 1
    return [
        Detection(int(job.iteration[end - WINDOW + 1]), int(job.iteration[end])) for end in ends
    ]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Places, not iteration numbers, of the change and of its declaration."""

    place: int
    declared: int


def plain_change_points(jobs: Sequence[Series]) -> list[list[Detection]]:
    """Declare every change point at once: FALCON's `D2`."""
    return [
        [Detection(int(job.iteration[p.place]), int(job.iteration[p.declared])) for p in points]
        for job, points in zip(jobs, change_points(jobs), strict=True)
    ]


def verified_change_points(jobs: Sequence[Series]) -> list[list[Detection]]:
    """Declare the change points that FALCON's `D3` keeps, if they are slowdowns.

    The rule compares whole segments, which are known only later. It is given them, to its favour,
    and its declaration counts from `VERIFY_AFTER` iterations on. It keeps recoveries too; these are
    not declared, as they end a slowdown.
    """
    return [_verify(job, points) for job, points in zip(jobs, change_points(jobs), strict=True)]


def _verify(job: Series, points: Sequence[ChangePoint]) -> list[Detection]:
    kept: list[ChangePoint] = []
    for point in points:
        before = kept[-1].place if kept else 0
        if point.place - before > LEAST_GAP:
            kept.append(point)
    bounds = [0, *(point.place for point in kept), len(job.seconds)]
    means = [_clean_mean(job.seconds[a:b], job.seconds) for a, b in pairwise(bounds)]
    return [
        Detection(int(job.iteration[point.place]), int(job.iteration[at]))
        for point, left, right in zip(kept, means[:-1], means[1:], strict=True)
        if right - left > LEAST_CHANGE * right
        and (at := max(point.place + VERIFY_AFTER, point.declared)) < len(job.seconds)
    ]


def _clean_mean(segment: Floats, everything: Floats) -> float:
    """Return the mean without outliers among all iterations, which FALCON drops beforehand."""
    score = np.abs(segment - everything.mean()) / max(float(everything.std()), 1e-12)
    kept = segment[score <= OUTLIER]
    return float(kept.mean() if len(kept) else segment.mean())


def change_points(jobs: Sequence[Series]) -> list[list[ChangePoint]]:
    """Return the change points of all jobs, by the reference parameters."""
    table = columns_of([job.seconds for job in jobs])
    known = [job.seconds[:FIRST] for job in jobs]
    centre = np.array([np.median(first) for first in known])
    scale = np.array([max(float(first.std()), 1e-9) for first in known])
    lengths = np.array([len(job.seconds) for job in jobs])
    points: list[list[ChangePoint]] = [[] for _ in jobs]
    armed = np.ones(len(jobs), bool)
    model = ReferenceRuns(len(jobs))
    for place, values in enumerate(table):
        recent = model.observe((values - centre) / scale)
        probability = recent.sum(axis=1)
        declared = armed & (probability > DECLARE) & (place > RECENT) & (place < lengths)
        for row in np.flatnonzero(declared):
            points[row].append(ChangePoint(place - int(recent[row].argmax()), place))
        armed = (armed & ~declared) | (probability < REARM)
    return points


class ReferenceRuns:
    """Normal-Gamma run lengths with prior mean 0 and other priors 1, up to `LONGEST_RUN`."""

    def __init__(self, series: int) -> None:
        self._probability = np.ones((series, 1))
        self._mean = np.zeros((series, 1))
        self._rate = np.ones((series, 1))
        self._kappa = np.ones(1)

    def observe(self, values: Floats) -> Floats:
        """Return the probabilities of runs of 0 to `RECENT` observations after this one."""
        kappa, shape = self._kappa, 0.5 + 0.5 * self._kappa
        deviation = values[:, None] - self._mean
        spread = self._rate * (kappa + 1) / (shape * kappa)
        density = np.exp(
            LOG_GAMMA_RATIO[: len(kappa)]
            - (shape + 0.5) * np.log1p(deviation * deviation / spread / (2 * shape))
        ) / np.sqrt(2 * np.pi * shape * spread)
        weight = self._probability * density
        fresh = weight.sum(axis=1, keepdims=True) * HAZARD
        grown = np.concatenate([fresh, weight * (1 - HAZARD)], axis=1)
        grown /= np.maximum(grown.sum(axis=1, keepdims=True), 1e-300)
        rate = self._rate + kappa * deviation * deviation / (2 * (kappa + 1))
        mean = (kappa * self._mean + values[:, None]) / (kappa + 1)
        self._probability = grown[:, :LONGEST_RUN]
        self._rate = _prepend(rate, 1.0)
        self._mean = _prepend(mean, 0.0)
        self._kappa = np.concatenate([[1.0], kappa + 1])[:LONGEST_RUN]
        return self._probability[:, : RECENT + 1]


def _prepend(cells: Floats, prior: float) -> Floats:
    first = np.full((len(cells), 1), prior)
    return np.concatenate([first, cells], axis=1)[:, :LONGEST_RUN]


def _log_gamma_ratio() -> Floats:
    """Return the logarithm of gamma(a + 1/2) / gamma(a) for a = 1, 3/2, 2, ... by recursion."""
    from math import lgamma

    shapes = 1 + 0.5 * np.arange(LONGEST_RUN)
    return np.array([lgamma(a + 0.5) - lgamma(a) for a in shapes])


LOG_GAMMA_RATIO = _log_gamma_ratio()
