"""Scores of ranks relative to the fastest, as NVIDIA's resiliency extension (NVRx) names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

THRESHOLD = 0.75
"""Score below which NVRx calls a rank a straggler."""


def relative_perf_scores(own_s: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return the score of each rank that has times: 1 is best, 0.5 takes twice as long."""
    medians = {rank: median(times) for rank, times in own_s.items() if times}
    fastest_s = min(medians.values(), default=0.0)
    return {rank: fastest_s / time if time > 0 else 1.0 for rank, time in sorted(medians.items())}


def stragglers(scores: Mapping[int, float], threshold: float = THRESHOLD) -> list[int]:
    """Return the ranks below the threshold, the slowest first."""
    slow = [rank for rank, score in scores.items() if score < threshold]
    return sorted(slow, key=lambda rank: (scores[rank], rank))
