"""Verification of a change point: direction, size, persistence, and reasons other than slowness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.runs import Floats

EVEN_FROM = 10
"""Iterations from which on a segment is no series of outliers."""
SHORTEST_PERIOD = 8
"""Iterations between two pauses."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The newest iterations of a series that lie on one side of its reference."""

    length: int
    size: float
    """Difference of the robust mean from the reference."""
    score: float
    """The same in standard errors."""
    agreement: float
    """Share of the iterations beyond half the size."""
    noise: float
    """Assumed standard deviation of an iteration."""
    spread: float
    """Median absolute deviation within the segment."""
    goes_on: bool
    """Whether the newest iteration is beyond half the size."""

    @property
    def is_even(self) -> bool:
        """Return whether the iterations have one level, unlike some outliers in a row."""
        return self.length >= EVEN_FROM or self.spread <= max(3 * self.noise, self.size / 4)


def segment_above(
    values: Floats, level: float, noise: float, support: int, run: int, limits: DetectionLimits
) -> Segment:
    """Extend the run backwards over iterations that are as high, and measure it."""
    run = min(run, len(values))
    size = _robust_mean(values[-run:]) - level
    bound = level + max(0.4 * size, 0.5 * limits.size)
    length = extend(values, run, bound)
    return measure(values[-length:], level, noise * correlation(values[:-length]), support)


def extend(values: Floats, run: int, bound: float) -> int:
    """Return the length of the run with the iterations before it above the bound, bar single ones.

    The walk ends at two in a row that are not, so a ramp or an outlier does not cut the run.
    """
    length, below = run, 0
    while length + below < len(values) and below < 2:
        if values[-(length + below + 1)] > bound:
            length, below = length + below + 1, 0
        else:
            below += 1
    return length


def measure(values: Floats, level: float, noise: float, support: int) -> Segment:
    size = _robust_mean(values) - level
    above = np.sign(size) * (values - level) > 0.5 * abs(size)
    error = noise * np.sqrt(1 / len(values) + 1.5 / max(support, 8))
    spread = float(np.median(np.abs(values - np.median(values))))
    return Segment(
        length=len(values),
        size=float(size),
        score=float(size / error),
        agreement=float(above.mean()),
        noise=noise,
        spread=spread,
        goes_on=bool(above[-1]),
    )


def stands_out(values: Floats, segment: Segment, limits: DetectionLimits) -> bool:
    """Return whether the segment is above the iterations right before it: no drift, no luck."""
    near = values[: -segment.length][-limits.near :]
    if len(near) < limits.least_reference // 2:
        return True
    rise = _robust_mean(values[-segment.length :]) - float(np.median(near))
    error = segment.noise * np.sqrt(1 / segment.length + 1.5 / len(near))
    return rise >= max(limits.near_share * segment.size, float(limits.near_score * error))


def is_slow(segment: Segment, usual_pause: int, limits: DetectionLimits) -> bool:
    """Return whether the segment is a slowdown and no series of outliers, pause or noise."""
    least = limits.persistence
    if segment.size >= limits.pause_size:
        least = limits.pause_persistence
    return (
        segment.length >= max(least, usual_pause + limits.persistence if usual_pause else 0)
        and segment.length <= limits.longest
        and segment.size >= limits.size
        and segment.score >= limits.score
        and segment.agreement >= limits.agreement
        and segment.is_even
        and segment.goes_on
    )


def is_recovered(segment: Segment, size: float, limits: DetectionLimits) -> bool:
    """Return whether a slow job is as fast as before; one that is much faster may be in a pause."""
    least = limits.persistence if segment.size > -0.1 else limits.pause_persistence
    return segment.length >= least and segment.size <= limits.recovery * size


def is_work_change(values: Floats, work: Floats, length: int, size: float, noise: float) -> bool:
    """Return whether less work per iteration explains that a unit of it takes longer by `size`.

    A part of an iteration does not depend on the work, so the time per unit rises by at most as
    much as the work falls. The onset is known the less exactly the more noise there is.
    """
    onset = len(work) - length
    onset = len(work) - length
    reach = 3 + min(int(16 * (noise / max(size, noise)) ** 2), 12)
    place, fall, score = _largest_fall(work, max(onset - 20, 0), min(onset + 20, len(work)))
    is_near = abs(place - onset) <= reach
    return is_near and score >= 4 and fall > 0.04 and size <= 1.1 * fall + noise


def _largest_fall(work: Floats, first: int, last: int) -> tuple[int, float, float]:
    """Return the place of the largest fall of the mean work, its size and its score."""
    noise = max(float(np.median(np.abs(np.diff(work)))), 1e-4)
    best = (first, 0.0, 0.0)
    for place in range(max(first, 3), last - 1):
        before, after = work[max(place - 12, 0) : place], work[place : place + 12]
        fall = float(before.mean() - after.mean())
        score = fall / (noise * np.sqrt(1 / len(before) + 1 / len(after)))
        if score > best[2]:
            best = (place, fall, float(score))
    return best


def usual_pause_at(onset: int, excursions: Sequence[tuple[int, int]]) -> int:
    """Return the length of the pause that is due at this iteration, 0 if none is.

    `excursions` are starts and lengths of earlier ones that ended by themselves, oldest first.
    """
    for last in range(len(excursions) - 1, 0, -1):
        start, length = excursions[last]
        period = start - excursions[last - 1][0]
        missed = max(round((onset - start) / period), 1) if period >= SHORTEST_PERIOD else 0
        if missed and abs(onset - start - missed * period) <= 2 * missed:
            return max(length, excursions[last - 1][1])
    return 0


def is_flat(values: Floats, noise: float) -> bool:
    """Return whether both halves have one level, as a slow start has and a warm-up has not."""
    half = len(values) // 2
    difference = abs(float(np.median(values[:half]) - np.median(values[half:])))
    return difference < max(0.02, float(2.5 * noise / np.sqrt(half)))


def _robust_mean(values: Floats) -> float:
    """Return the mean after the farthest tenths, at least one value each, were cut to the rest."""
    if len(values) < 4:
        return float(np.median(values))
    cut = max(len(values) // 10, 1)
    ordered = np.sort(values)
    return float(np.clip(ordered, ordered[cut], ordered[-cut - 1]).mean())


def correlation(values: Floats) -> float:
    """Return the factor by which serial correlation widens the error of a mean."""
    if len(values) < 20:
        return 1.0
    centred = values - np.median(values)
    bound = 3 * float(np.median(np.abs(centred)))
    centred = np.clip(centred, -bound, bound)
    power = float(centred @ centred)
    rho = float(centred[1:] @ centred[:-1]) / power if power > 0 else 0.0
    rho = min(max(rho - 0.5 / np.sqrt(len(values)), 0.0), 0.9)
    return float(np.sqrt((1 + rho) / (1 - rho)))
