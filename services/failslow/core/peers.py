"""Who in a gang is slower than its peers: a robust comparison, pure and without memory.

A *window* holds one number per report of a worker, oldest first: the median of the iterations in
that report. Windows are compared from their newest end, so the clocks of executors do not matter.

A worker *stands apart* when it is slower than the faster half of its gang by `slowdown`. What is
normal is then said by the others alone, the *quiet* ones, so that several slow workers, say behind
one bad switch, do not hide each other; when no majority is quiet, nobody can be blamed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Windows = Mapping[int, Sequence[float]]
"""By rank."""

TO_SIGMA = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a worker is called slow, and when healthy again; what lies between changes nothing."""

    slowdown: float = 1.2
    """Over the median of the quiet peers; FALCON's and Greyhound's bound for a suspicion."""
    pair_slowdown: float = 1.5
    """In a pair there is no majority: only a wide gap says who deviates."""
    score: float = 3.5
    """Robust z, so that a gang whose workers differ anyway needs a wider gap."""
    healthy_below: float = 1.1
    reports: int = 3
    """In a row, for either verdict."""
    noise: float = 0.02
    """Peers are never taken to agree better than this, relative to their median."""


@dataclass(frozen=True, slots=True)
class SlowWorker:
    """The numbers behind a suspicion: medians over the reports that agree."""

    slowdown: float
    score: float
    iteration_s: float
    peers_s: float
    reports: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one gang; a worker in neither is left as it is."""

    slow: dict[int, SlowWorker]
    healthy: tuple[int, ...]


NOTHING = Verdict({}, ())


@dataclass(frozen=True, slots=True)
class Comparison:
    """One report of each worker, in units of what is normal in the gang."""

    ratios: dict[int, float]
    apart: frozenset[int]
    normal_s: float

    @classmethod
    def of(cls, windows: Windows, back: int, limits: Thresholds) -> Comparison:
        """The report that is `back` from the newest, of the workers that have one."""
        values = {rank: window[-back] for rank, window in windows.items() if len(window) >= back}
        ordered = sorted(values.values())
        faster_half_s = median(ordered[: (len(ordered) + 1) // 2])
        line_s = limits.slowdown * faster_half_s
        normal_s = median(value for value in ordered if value < line_s)
        return cls(
            {rank: value / normal_s for rank, value in values.items()},
            frozenset(rank for rank, value in values.items() if value >= line_s),
            normal_s,
        )

    @property
    def is_telling(self) -> bool:
        """Most are quiet, or it is a pair."""
        return len(self.ratios) == 2 or 2 * len(self.apart) < len(self.ratios)

    def stands_out(self, rank: int, spread: float, limits: Thresholds) -> bool:
        least = limits.pair_slowdown if len(self.ratios) == 2 else limits.slowdown
        ratio = self.ratios.get(rank, 0.0)
        return rank in self.apart and ratio >= least and (ratio - 1) / spread >= limits.score


def judge(windows: Windows, limits: Thresholds) -> Verdict:
    """Compare the workers of one gang with each other, report by report from the newest."""
    enough = {rank: w for rank, w in windows.items() if len(w) >= limits.reports}
    if len(enough) < 2:
        return NOTHING
    rounds = [Comparison.of(enough, back, limits) for back in range(1, limits.reports + 1)]
    if not all(each.is_telling for each in rounds):
        return NOTHING
    spread = spread_of(rounds, limits)
    slow = {
        rank: _slow(enough, rank, rounds, spread, limits)
        for rank in sorted(rounds[0].apart)
        if all(each.stands_out(rank, spread, limits) for each in rounds)
    }
    healthy = (
        rank
        for rank in sorted(enough)
        if all(each.ratios[rank] < limits.healthy_below for each in rounds)
    )
    return Verdict(slow, tuple(healthy))


def spread_of(rounds: Sequence[Comparison], limits: Thresholds) -> float:
    """Robust standard deviation of the quiet workers, relative; all reports together say it."""
    away = (
        abs(ratio - 1)
        for each in rounds
        for rank, ratio in each.ratios.items()
        if rank not in each.apart
    )
    return max(TO_SIGMA * median(away), limits.noise)


def _slow(
    windows: Windows, rank: int, rounds: Sequence[Comparison], spread: float, limits: Thresholds
) -> SlowWorker:
    slowdown = median(each.ratios[rank] for each in rounds)
    return SlowWorker(
        slowdown=slowdown,
        score=(slowdown - 1) / spread,
        iteration_s=median(each.ratios[rank] * each.normal_s for each in rounds),
        peers_s=median(each.normal_s for each in rounds),
        reports=_in_a_row(windows, rank, spread, limits),
    )


def _in_a_row(windows: Windows, rank: int, spread: float, limits: Thresholds) -> int:
    """Reports from the newest back that agree; peers with shorter windows drop out on the way."""
    count = limits.reports
    while count < len(windows[rank]):
        each = Comparison.of(windows, count + 1, limits)
        if not (each.is_telling and each.stands_out(rank, spread, limits)):
            break
        count += 1
    return count
