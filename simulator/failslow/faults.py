"""Faults of a training of 8 data-parallel groups, drawn from seeds.

The publication of FALCON gives costs, durations and gaps (`LONG`, `SHORT`), and neither severities
nor what a level leaves of a slowdown. Those here are ours. Always restarting is worst, as there;
each level at once is worse than break-even for short faults alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from random import Random
from typing import Literal

Kind = Literal["long", "short"]

ITERATION_S = 1.0
ITERATIONS = 40_000
DETECTED_AFTER = 12
"""Iterations from the begin of a fault until it is verified."""
GROUPS = 8
MICROBATCHES = 16
"""Of each group, before any is given to another."""
SEVERITY = (0.12, 0.8)
COMPUTE_SHARE = 0.5
LINK_REMAINS = 0.1
"""Part of a slow link's slowdown that is left once it carries the lightest traffic."""
REDISTRIBUTE_S, REARRANGE_S, RESTART_S = 5.0, 60.0, 300.0
LONG_GAP_S, LONG_MEDIAN_S, LONG_SIGMA, LONGEST_S = 3600.0, 1200.0, 1.3, 36_000.0
SHORT_GAP_S, SHORT_MEAN_S, SHORT_DEVIATION_S, SHORTEST_S = 240.0, 120.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class DrawnFault:
    """A slow GPU (`is_compute`) or a slow link; `slowdown` is that of the iteration."""

    duration_s: float
    slowdown: float
    is_compute: bool


def faults_of(kind: Kind, seed: int) -> list[DrawnFault]:
    """Return the faults during one training, in order."""
    random = Random(f"{kind} {seed}")
    ends_s = 0.0
    faults: list[DrawnFault] = []
    while True:
        gap_s, duration_s = _draw_times(kind, random)
        ends_s += gap_s + duration_s
        if ends_s > ITERATIONS * ITERATION_S:
            return faults
        slowdown = random.uniform(*SEVERITY)
        faults.append(DrawnFault(duration_s, slowdown, random.random() < COMPUTE_SHARE))


def _draw_times(kind: Kind, random: Random) -> tuple[float, float]:
    if kind == "short":
        duration_s = max(SHORTEST_S, random.gauss(SHORT_MEAN_S, SHORT_DEVIATION_S))
        return random.expovariate(1 / SHORT_GAP_S), duration_s
    duration_s = min(LONGEST_S, random.lognormvariate(log(LONG_MEDIAN_S), LONG_SIGMA))
    return random.expovariate(1 / LONG_GAP_S), duration_s
