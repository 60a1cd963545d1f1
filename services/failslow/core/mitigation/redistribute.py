"""Micro-batches of data-parallel groups of unequal speed: the exact division of least makespan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from statistics import median


def redistribute(times_s: Sequence[float], microbatches: int) -> tuple[int, ...]:
    """Return the micro-batches of each group, of which each takes `times_s`; their sum is given.

    Each group has one at least. The next one goes where it ends first, which is optimal: whatever
    the others get, a group of an optimal division takes no more before another is as late.
    Raises ValueError where there are fewer than groups, or a time is not positive.
    """
    if microbatches < len(times_s):
        raise ValueError(f"microbatches: {microbatches} is below the {len(times_s)} groups")
    if not all(time_s > 0 for time_s in times_s):
        raise ValueError("times_s: each is above 0")
    counts = [1] * len(times_s)
    ends = [(2 * time_s, group) for group, time_s in enumerate(times_s)]
    heapify(ends)
    for _ in range(microbatches - len(times_s)):
        _, group = ends[0]
        counts[group] += 1
        heapreplace(ends, ((counts[group] + 1) * times_s[group], group))
    return tuple(counts)


@dataclass(frozen=True, slots=True)
class Division:
    """The best division of an iteration's micro-batches among the data-parallel groups."""

    microbatches: tuple[int, ...]
    remaining: float
    """Slowdown of the iteration with it, beside one in which all groups are as fast as most."""

    @classmethod
    def of(cls, microbatch_s: Sequence[float], microbatches: Sequence[int]) -> Division:
        """Divide anew what the groups have; each takes so many s per micro-batch."""
        total = sum(microbatches)
        counts = redistribute(microbatch_s, total)
        healthy_s = median(microbatch_s) * total / len(counts)
        return cls(counts, max(0.0, makespan_s(microbatch_s, counts) / healthy_s - 1))


def makespan_s(times_s: Sequence[float], counts: Sequence[int]) -> float:
    """Return when the last group ends."""
    return max(time_s * count for time_s, count in zip(times_s, counts, strict=True))


def remaining_slowdown(slowdowns: Sequence[float], microbatches: int) -> float:
    """Return the slowdown of the iteration after the best division, 0.25 if it takes 1.25 times.

    `slowdowns` are those of the groups; `microbatches` are those of each group before.
    """
    times_s = [1 + slowdown for slowdown in slowdowns]
    counts = redistribute(times_s, microbatches * len(times_s))
    return max(0.0, makespan_s(times_s, counts) / microbatches - 1)
