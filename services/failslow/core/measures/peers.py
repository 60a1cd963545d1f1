"""Finds the workers of a gang that are slower than their peers, by a robust comparison.

A *window* holds one number per report of a worker, oldest first: the median of the iterations in
that report. Windows are compared from their newest end, so the clocks of executors do not matter.

A worker *stands apart* when it is slower than the faster half of its gang by `slowdown`. The
others, the *quiet* ones, alone define the normal time, so that several slow workers, say behind one
bad switch, do not hide each other; without a quiet majority no worker is suspected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Windows = Mapping[int, Sequence[float]]
"""Window of each rank."""

TO_SIGMA = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits for a suspicion and for a recovery; values between them change nothing."""

    slowdown: float = 1.2
    """Multiple of the quiet peers' median; FALCON's and Greyhound's bound for a suspicion."""
    pair_slowdown: float = 1.5
    """The same in a pair, which has no majority: only a wide gap shows which one deviates."""
    score: float = 3.5
    """Robust z, so that a gang whose workers differ anyway needs a wider gap."""
    healthy_below: float = 1.1
    reports: int = 3
    """Reports in a row, for either verdict."""
    noise: float = 0.02
    """Least spread assumed among peers, relative to their median."""


@dataclass(frozen=True, slots=True)
class SlowWorker:
    """Figures of a suspicion: medians over the reports that agree."""

    slowdown: float
    score: float
    iteration_s: float
    peers_s: float
    reports: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on one gang; a worker in neither field is left as it is."""

    slow: dict[int, SlowWorker]
    healthy: tuple[int, ...]
    busy: frozenset[int] = frozenset()
    """Slow workers that only wait for a processor of their host."""


NOTHING = Verdict({}, ())


@dataclass(frozen=True, slots=True)
class Comparison:
    """One report of each worker, relative to the normal time of the gang."""

    ratios: dict[int, float]
    apart: frozenset[int]
    normal_s: float

    @classmethod
    def of(cls, windows: Windows, back: int, limits: Thresholds) -> Comparison:
        """Compare the reports that are `back` from the newest, of the workers that have one."""
        values = {rank: window[-back] for rank, window in windows.items() if len(window) >= back}
        ordered = sorted(values.values())
        faster_half_s = median(ordered[: (len(ordered) + 1) // 2])
        limit_s = limits.slowdown * faster_half_s
        normal_s = median(value for value in ordered if value < limit_s)
        return cls(
            {rank: value / normal_s for rank, value in values.items()},
            frozenset(rank for rank, value in values.items() if value >= limit_s),
            normal_s,
        )

    @property
    def is_conclusive(self) -> bool:
        """Return whether most workers are quiet, or it is a pair."""
        return len(self.ratios) == 2 or 2 * len(self.apart) < len(self.ratios)

    def stands_out(self, rank: int, spread: float, limits: Thresholds) -> bool:
        """Return whether the worker is apart by ratio and by robust score."""
        least = limits.pair_slowdown if len(self.ratios) == 2 else limits.slowdown
        ratio = self.ratios.get(rank, 0.0)
        return rank in self.apart and ratio >= least and (ratio - 1) / spread >= limits.score


def judge(windows: Windows, limits: Thresholds) -> Verdict:
    """Compare the workers of one gang with each other, report by report from the newest."""
    enough = {rank: w for rank, w in windows.items() if len(w) >= limits.reports}
    if len(enough) < 2:
        return NOTHING
    comparisons = [Comparison.of(enough, back, limits) for back in range(1, limits.reports + 1)]
    if not all(comparison.is_conclusive for comparison in comparisons):
        return NOTHING
    spread = spread_of(comparisons, limits)
    slow = {
        rank: _slow(enough, rank, comparisons, spread, limits)
        for rank in sorted(comparisons[0].apart)
        if all(comparison.stands_out(rank, spread, limits) for comparison in comparisons)
    }
    healthy = (
        rank
        for rank in sorted(enough)
        if all(comparison.ratios[rank] < limits.healthy_below for comparison in comparisons)
    )
    return Verdict(slow, tuple(healthy))


def spread_of(comparisons: Sequence[Comparison], limits: Thresholds) -> float:
    """Return the relative robust standard deviation of the quiet workers over all reports."""
    deviations = (
        abs(ratio - 1)
        for comparison in comparisons
        for rank, ratio in comparison.ratios.items()
        if rank not in comparison.apart
    )
    return max(TO_SIGMA * median(deviations), limits.noise)


def _slow(
    windows: Windows,
    rank: int,
    comparisons: Sequence[Comparison],
    spread: float,
    limits: Thresholds,
) -> SlowWorker:
    slowdown = median(comparison.ratios[rank] for comparison in comparisons)
    return SlowWorker(
        slowdown=slowdown,
        score=(slowdown - 1) / spread,
        iteration_s=median(
            comparison.ratios[rank] * comparison.normal_s for comparison in comparisons
        ),
        peers_s=median(comparison.normal_s for comparison in comparisons),
        reports=_in_a_row(windows, rank, spread, limits),
    )


def _in_a_row(windows: Windows, rank: int, spread: float, limits: Thresholds) -> int:
    """Count the newest reports that agree; peers with shorter windows drop out on the way."""
    count = limits.reports
    while count < len(windows[rank]):
        comparison = Comparison.of(windows, count + 1, limits)
        if not (comparison.is_conclusive and comparison.stands_out(rank, spread, limits)):
            break
        count += 1
    return count
