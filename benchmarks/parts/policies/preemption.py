"""One cell of the comparison of preemption by rank: a trace under one cost of stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from benchmarks.parts.policies.continuous import Replay, preemption_costs, side_of, validated_delay
from benchmarks.parts.policies.costs import StopCosts, label_of
from benchmarks.parts.policies.rules import (
    EASY_PREDICTED,
    GITTINS,
    QSSF,
    SKIP_FCFS,
    SMALLEST,
    NamedRules,
    committed,
)
from benchmarks.parts.rounding import rounded
from simulator.kernel.run import Rules
from simulator.metrics.outcome import ScheduleOutcome

Group = tuple[str, float, str]
"""Trace, share of jobs never stopped, and policy: what the goals take means over costs of."""
STARTS_MOST = 20
LOST_MOST = 0.02


@dataclass(frozen=True, slots=True)
class PreemptionCell:
    """Figures of a policy with preemption over the best one without, chosen by validation."""

    trace: str
    checkpoint_s: float
    restart_s: float
    fixed_share: float
    policy: str
    base: str
    wait_vs_best_nonpreemptive: float | None
    """Ratio of the mean waits, less 1; None where a job did not end."""
    wait_vs_skip_fcfs: float | None
    lost_share: float
    """Of the GPU time that jobs held, all jobs of the trace counted."""
    max_starts: int
    ended: bool
    checkpoint_spread: float = 0.0
    """Above 0 the interval is the median of what jobs draw."""
    restart_growth: float = 0.0
    """Above 0 the restart is that of one GPU."""

    @property
    def label(self) -> str:
        return label_of(self.checkpoint_s, self.restart_s, self.checkpoint_spread)

    def plain(self) -> dict[str, object]:
        return rounded(self, 4)


def candidates_without_preemption(family: str) -> list[NamedRules]:
    """Return the policies of which validation chooses one, FCFS first."""
    return [
        SKIP_FCFS,
        NamedRules("sjf", "history", Rules("sjf", runtime="history")),
        QSSF,
        SMALLEST,
        replace(EASY_PREDICTED, name="easy by prediction"),
        committed(preemption=False, family=family),
    ]


def policies_with_preemption(family: str) -> list[NamedRules]:
    """Return the compared policies under the rules that make progress."""
    return [GITTINS, committed(family=family)]


def choose_base(replays: list[Replay], family: str) -> NamedRules:
    """Return the best policy without preemption on the warm-up; the evaluated part is not seen."""
    candidates = candidates_without_preemption(family)
    return min(candidates, key=lambda named: validated_delay(replays, named))


def mean_wait_s(outcomes: list[ScheduleOutcome]) -> float:
    """Return the mean over the counted jobs; restarts and lost work count as waits."""
    return float(side_of(outcomes).delay_s.mean())


def run_under(costs: StopCosts, replays: list[Replay], named: NamedRules) -> list[ScheduleOutcome]:
    """Replay every cluster of a trace where stops cost so much."""
    return [replace(replay, costs=costs).run(named.rules) for replay in replays]


def cell_of(
    replays: list[Replay],
    named: NamedRules,
    base: tuple[str, float],
    fcfs_s: float,
    costs: StopCosts,
) -> PreemptionCell:
    """Run the policy; `base` is the name and the mean wait of the policy without preemption."""
    trace, outcomes = trace_of(replays), run_under(costs, replays, named)
    return cell_of_run(trace, outcomes, named, base, fcfs_s, costs)


def trace_of(replays: list[Replay]) -> str:
    return replays[0].name.split("/")[0]


def all_ended(outcomes: list[ScheduleOutcome]) -> bool:
    return all(bool(o.ended[o.fits].all()) for o in outcomes)


def cell_of_run(
    trace: str,
    outcomes: list[ScheduleOutcome],
    named: NamedRules,
    base: tuple[str, float],
    fcfs_s: float,
    costs: StopCosts,
) -> PreemptionCell:
    """Return the figures of a run of the policy, see `cell_of`."""
    ended = all_ended(outcomes)
    wait_s = mean_wait_s(outcomes) if ended else None
    lost_share, max_starts = preemption_costs(outcomes)
    return PreemptionCell(
        trace=trace,
        **asdict(costs),
        policy=named.name,
        base=base[0],
        wait_vs_best_nonpreemptive=more_than(base[1], wait_s),
        wait_vs_skip_fcfs=more_than(fcfs_s, wait_s),
        lost_share=lost_share,
        max_starts=max_starts,
        ended=ended,
    )


def more_than(base_s: float, wait_s: float | None) -> float | None:
    """Return by how much the mean wait is above the base's, as a share of it."""
    return None if wait_s is None or base_s <= 0.0 else wait_s / base_s - 1


def group_of(cell: PreemptionCell) -> Group:
    return cell.trace, cell.fixed_share, cell.policy


def mean_gains(cells: Sequence[PreemptionCell]) -> dict[Group, float | None]:
    """Return the mean over the costs, by group; None where a run did not end."""
    groups: dict[Group, list[float | None]] = {}
    for cell in cells:
        groups.setdefault(group_of(cell), []).append(cell.wait_vs_best_nonpreemptive)
    return {group: mean_or_none(gains) for group, gains in groups.items()}


def mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def worst_of(cells: Sequence[PreemptionCell]) -> dict[str, object]:
    """Return the worst figures; that of waits is of means over the settings of trace and share."""
    means = [gain for gain in mean_gains(cells).values() if gain is not None]
    return {
        "wait_vs_best_nonpreemptive": round(max(means), 4) if means else None,
        "lost_share": round(max(cell.lost_share for cell in cells), 4),
        "max_starts": max(cell.max_starts for cell in cells),
        "ended": all(cell.ended for cell in cells),
    }
