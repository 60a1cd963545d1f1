"""Waits with reports over those without, per trace and pool, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.parts.goals import met
from benchmarks.parts.progress.replays import PartOutcome, TracePart, play, scenario_of
from simulator.metrics.bootstrap import Gain, gain, hours
from simulator.metrics.outcome import Floats, Ints

SHARE = 1.0
"""Share of the jobs that report, on the other side of the comparison."""


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """One part without reports, and with them by each seed."""

    name: str
    without: PartOutcome
    reported: tuple[PartOutcome, ...]

    @property
    def gains(self) -> list[float]:
        """Return the gain in mean delay of each seed; 0 where no job waits."""
        base = float(self.without.delay_s.mean())
        return [float(one.delay_s.mean()) / base - 1.0 if base else 0.0 for one in self.reported]

    @property
    def reported_s(self) -> Floats:
        """Delays with reports, the mean over the seeds."""
        mean: Floats = np.mean([one.delay_s for one in self.reported], axis=0)
        return mean

    @property
    def largest_share(self) -> float:
        """Share of the difference in the sum of delays that one job makes, of all absolute ones."""
        difference = np.abs(self.reported_s - self.without.delay_s)
        total = float(difference.sum())
        return float(difference.max()) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class ProgressCell:
    """A trace under one setting; `gain` below 0: waits are shorter with reports."""

    trace: str
    setting: str
    jobs: int
    delay_s: float
    reported_delay_s: float
    gain: float
    low: float
    high: float
    part_gains: dict[str, list[float]]
    """Gain of each seed, by part."""
    largest_share: float
    lost_share: float
    reported_lost_share: float

    @property
    def goals(self) -> dict[str, str]:
        """Return the verdicts by the interval; one that is not known shows nothing."""
        return {
            "reports shorten waits": met(self.high < 0.0),
            "reports do not lengthen waits": met(not self.low > 0.0),
        }

    def plain(self) -> dict[str, object]:
        return asdict(self) | {"goals": self.goals}


def compare(trace: str, setting: str, parts: Sequence[TracePart], seeds: int) -> ProgressCell:
    """Replay every part without and with reports."""
    return summarise(trace, setting, [compare_part(part, setting, seeds) for part in parts])


def compare_part(part: TracePart, setting: str, seeds: int) -> ComparedPart:
    scenario = scenario_of(part, setting)
    reported = tuple(play(scenario, SHARE, seed) for seed in range(seeds))
    return ComparedPart(part.name, play(scenario, 0.0, 0), reported)


def summarise(trace: str, setting: str, parts: Sequence[ComparedPart]) -> ProgressCell:
    """Pool the jobs of all parts; the interval is that of their hours."""
    whole = pooled_gain(parts)
    return ProgressCell(
        trace,
        setting,
        sum(len(part.without.delay_s) for part in parts),
        round(whole.base, 1),
        round(whole.ours, 1),
        round(whole.gain, 4),
        round(whole.low, 4),
        round(whole.high, 4),
        {part.name: [round(value, 4) for value in part.gains] for part in parts},
        round(max(part.largest_share for part in parts), 3),
        round(float(np.mean([part.without.lost_share for part in parts])), 4),
        round(float(np.mean([one.lost_share for part in parts for one in part.reported])), 4),
    )


def pooled_gain(parts: Sequence[ComparedPart]) -> Gain:
    return gain(
        np.concatenate([part.without.delay_s for part in parts]),
        np.concatenate([part.reported_s for part in parts]),
        units_of([part.without.submit_s for part in parts]),
    )


def units_of(submits_s: Sequence[Floats]) -> Ints:
    """Return the hour of each job; the hours of a part follow those of the one before it."""
    units: list[Ints] = []
    first = 0
    for submit_s in submits_s:
        units.append(hours(submit_s, float(submit_s[0])) + first)
        first = int(units[-1].max()) + 1
    return np.concatenate(units)
