"""The goals of preemption by rank, computed from the cells of its comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import geometric_mean

from benchmarks.parts.goals import met
from benchmarks.parts.policies.preemption import (
    LOST_MOST,
    STARTS_MOST,
    Group,
    PreemptionCell,
    group_of,
    mean_gains,
)
from benchmarks.parts.policies.rules import LEARNED

WORSE_MOST, BETTER_LEAST = 0.03, -0.15
EARNED_LEAST = 0.1
OFTEN_PREEMPTIBLE = 0.5
"""Share of jobs that are never stopped up to which preemption has to pay."""
HALF_HOURLY, VENUS_LESS = (1800.0, 60.0), -0.8


def goals_of(cells: Sequence[PreemptionCell]) -> dict[str, str]:
    """Return `met`, `not met` or `not measured`, with the worst figure, per goal."""
    gains = mean_gains(cells)
    paying = {group: gain for group, gain in gains.items() if group[1] <= OFTEN_PREEMPTIBLE}
    venus = {
        group_of(cell): cell.wait_vs_skip_fcfs
        for cell in cells
        if (cell.checkpoint_s, cell.restart_s) == HALF_HOURLY
        and not cell.checkpoint_spread
        and cell.trace == "helios_venus"
        and cell.fixed_share == 0.0
    }
    unended = sum(not cell.ended for cell in cells)
    return {
        "every run ends": f"{met(unended == 0)}: {unended} of {len(cells)} do not",
        f"at most {LOST_MOST:.0%} of GPU time lost": at_most(
            [(group_of(cell), cell.lost_share) for cell in cells], LOST_MOST
        ),
        f"at most {STARTS_MOST} starts of one job": at_most(
            [(group_of(cell), cell.max_starts) for cell in cells], STARTS_MOST, "d"
        ),
        "mean over the costs of a trace and share at most 3 % worse": at_most(
            gains.items(), WORSE_MOST
        ),
        "at least 15 % better where half of the jobs or more can be stopped": at_most(
            paying.items(), BETTER_LEAST
        ),
        "Venus with half-hourly checkpoints at least 80 % below FCFS that skips": at_most(
            venus.items(), VENUS_LESS
        ),
        "the network waits 10 % less than Gittins, geometric mean of all cells": earned(cells),
    }


def earned(cells: Sequence[PreemptionCell]) -> str:
    """Return the verdict on the network's waits over those of Gittins, cell by cell."""
    waits: dict[tuple[object, ...], dict[bool, float]] = {}
    for cell in cells:
        gain = cell.wait_vs_best_nonpreemptive
        if gain is not None and gain > -1.0:
            place = (cell.trace, cell.label, cell.fixed_share)
            waits.setdefault(place, {})[cell.policy.startswith(LEARNED)] = 1.0 + gain
    ratios = [pair[True] / pair[False] for pair in waits.values() if len(pair) == 2]
    if not ratios:
        return "not measured"
    mean = geometric_mean(ratios)
    return f"{met(mean <= 1.0 - EARNED_LEAST)}: {mean - 1.0:+.1%}"


def at_most(values: Iterable[tuple[Group, float | None]], most: float, form: str = ".1%") -> str:
    """Return the verdict on the largest value and where it is; a run that did not end fails."""
    ordered = sorted(values, key=lambda pair: float("inf") if pair[1] is None else pair[1])
    if not ordered:
        return "not measured"
    (trace, share, policy), worst = ordered[-1]
    where = f"{trace}, {share:.0%} never stopped, {policy}"
    if worst is None:
        return f"not met: a run did not end ({where})"
    return f"{met(worst <= most)}: {worst:{form}} ({where})"
