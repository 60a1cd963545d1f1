"""The network of each training seed against the Gittins rank, on data that none was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from benchmarks.parts.policies.continuous import Replay, side_of
from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.rules import GITTINS, committed, seeds
from benchmarks.parts.rounding import rounded
from simulator.metrics.bootstrap import gain
from simulator.metrics.policy_jobs import PolicyJobs

COSTS = 1800.0, 60.0
"""Seconds between checkpoints and of a restart under which the default is chosen."""


@dataclass(frozen=True, slots=True)
class SeedComparison:
    """The mean wait under one seed's network over that under the Gittins rank, less 1.

    The interval is a paired block bootstrap of 95 %, None where one cannot be given.
    """

    trace: str
    fixed_share: float
    seed: str
    shipped: bool
    wait_vs_gittins: float
    ci_low: float | None
    ci_high: float | None

    def plain(self) -> dict[str, object]:
        return rounded(self, 4)


def compare_seeds(
    replays: Sequence[Replay], shares: Sequence[float], family: str
) -> list[SeedComparison]:
    """Return a cell per share of jobs never stopped and training seed."""
    cells: list[SeedComparison] = []
    network = committed(family=family)
    for share in shares:
        costly = [replace(replay, costs=StopCosts(*COSTS, share)) for replay in replays]
        gittins = side_of([replay.run(GITTINS.rules) for replay in costly])
        for seed in seeds(network):
            ours = side_of([replay.run(seed.rules) for replay in costly])
            shipped = bool((seed.rules.theta == network.rules.theta).all())
            trace = replays[0].name.split("/")[0]
            cells.append(compare(trace, share, (seed.name, shipped), gittins, ours))
    return cells


def compare(
    trace: str, share: float, seed: tuple[str, bool], gittins: PolicyJobs, ours: PolicyJobs
) -> SeedComparison:
    """Return the cell of a seed, given its name and whether it ships."""
    change = gain(gittins.delay_s, ours.delay_s, gittins.unit)
    ends = [None if end != end else end for end in (change.low, change.high)]
    return SeedComparison(trace, share, *seed, change.gain, *ends)


def means_by_seed(cells: Sequence[SeedComparison]) -> dict[str, float]:
    """Return the geometric mean of each seed's ratios over all traces and shares, less 1."""
    names = dict.fromkeys(cell.seed for cell in cells)
    return {
        name: geometric_mean([1 + cell.wait_vs_gittins for cell in cells if cell.seed == name]) - 1
        for name in names
    }
