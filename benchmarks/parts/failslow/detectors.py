"""The compared detectors, over jobs in portions that fit the processor's cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from simulator.failslow import baselines, berth
from simulator.failslow.scores import Score, score_all
from simulator.failslow.series import Detection, Series

Detect = Callable[[Sequence[Series]], list[list[Detection]]]
DETECTORS: dict[str, Detect] = {
    "berth": berth.detect,
    "bocd_verified": baselines.verified_change_points,
    "bocd": baselines.plain_change_points,
    "sliding": baselines.sliding_window,
}
PORTION = 300
"""Jobs that are followed at once."""
Plain = dict[str, float | None]


def score_of(jobs: Sequence[Series], detect: Detect) -> Score:
    return score_all(jobs, [own for portion in portions_of(jobs) for own in detect(portion)])


def compare(jobs: Sequence[Series]) -> dict[str, Plain]:
    """Return the scores of each detector."""
    return {name: score_of(jobs, detect).plain() for name, detect in DETECTORS.items()}


def observations_per_s(jobs: Sequence[Series]) -> int:
    """Return iterations per CPU second of one core, of Berth's detector."""
    began = time.process_time()
    for portion in portions_of(jobs):
        berth.detect(portion)
    used_s = time.process_time() - began
    return round(sum(len(job.seconds) for job in jobs) / max(used_s, 1e-9))


def portions_of(jobs: Sequence[Series]) -> Iterator[Sequence[Series]]:
    for first in range(0, len(jobs), PORTION):
        yield jobs[first : first + PORTION]
