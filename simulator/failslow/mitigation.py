"""The share of time lost to faults that mitigation saves, beside a clairvoyant optimum.

One installation runs the trainings of all seeds one after another; the durations that it learns
begin empty and are kept from training to training. A fault loses the time of iterations beyond the
healthy ones, and that of the levels that stop the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from services.failslow.core.mitigation.durations import DurationBook, Survival
from services.failslow.core.mitigation.policy import Option, Situation, lost_share
from services.failslow.core.mitigation.redistribute import remaining_slowdown
from shared.contracts.mitigation import LevelName
from simulator.failslow.faults import (
    DETECTED_AFTER,
    GROUPS,
    ITERATION_S,
    LINK_REMAINS,
    MICROBATCHES,
    REARRANGE_S,
    REDISTRIBUTE_S,
    RESTART_S,
    DrawnFault,
    Kind,
    faults_of,
)
from simulator.failslow.policies import POLICIES, MitigationPolicy

LONG_SEEDS = range(1000, 1040)
SHORT_SEEDS = range(1000, 1006)
"""Seeds of the report; constants of the policy were chosen on seeds below 100."""
LOOKS = 0.03
"""A policy is consulted each iteration, later each time the fault has lasted 3 % longer."""


@dataclass(frozen=True, slots=True)
class FaultResult:
    """`dearest_s` is the cost of the dearest level that was applied, 0 if none was."""

    lost_s: float
    observed_s: float
    ended: bool
    dearest_s: float


@dataclass(frozen=True, slots=True)
class Mitigated:
    """`removed` is the part of the lost time that a policy saves.

    `worst_fault` is the largest loss beyond that of doing nothing, in costs of the dearest level
    that was applied to the fault.
    """

    removed: float
    worst_fault: float


def options_of(fault: DrawnFault) -> tuple[Option, ...]:
    if fault.is_compute:
        groups = [fault.slowdown, *[0.0] * (GROUPS - 1)]
        left = remaining_slowdown(groups, MICROBATCHES)
        first = Option("redistribute", REDISTRIBUTE_S, left)
    else:
        first = Option("rearrange", REARRANGE_S, LINK_REMAINS * fault.slowdown)
    return (first, Option("restart", RESTART_S, 0.0))


class FaultRun:
    """One fault under one policy, from its begin until it ends or the job has left its node."""

    def __init__(self, fault: DrawnFault) -> None:
        self._fault = fault
        self._options = options_of(fault)
        self._slowdown = fault.slowdown
        self._elapsed_s = self._lost_s = self._deficit_s = self._dearest_s = 0.0
        self._applied: tuple[LevelName, ...] = ()

    def result(self, policy: MitigationPolicy, survival: Survival) -> FaultResult:
        self._pass(DETECTED_AFTER * ITERATION_S * (1 + self._slowdown))
        while self._elapsed_s < self._fault.duration_s and "restart" not in self._applied:
            situation = Situation(
                self._elapsed_s, self._slowdown, self._lost_s, self._deficit_s, self._applied
            )
            level = policy(situation, self._options, survival)
            if level == "nothing":
                self._pass(max(ITERATION_S * (1 + self._slowdown), LOOKS * self._elapsed_s))
            else:
                self._apply(level)
        ended = "restart" not in self._applied
        return FaultResult(self._lost_s, self._elapsed_s, ended, self._dearest_s)

    def _pass(self, span_s: float) -> None:
        span_s = min(span_s, self._fault.duration_s - self._elapsed_s)
        self._elapsed_s += span_s
        self._lost_s += span_s * lost_share(self._slowdown)
        saved = lost_share(self._fault.slowdown) - lost_share(self._slowdown)
        self._deficit_s -= span_s * saved

    def _apply(self, level: LevelName) -> None:
        option = next(option for option in self._options if option.level == level)
        overlap_s = min(option.cost_s, self._fault.duration_s - self._elapsed_s)
        self._deficit_s += option.cost_s - overlap_s * lost_share(self._fault.slowdown)
        self._elapsed_s += option.cost_s
        self._lost_s += option.cost_s
        self._slowdown = min(self._slowdown, option.remaining)
        self._dearest_s = max(self._dearest_s, option.cost_s)
        self._applied += (level,)


def endured_s(fault: DrawnFault) -> float:
    return fault.duration_s * lost_share(fault.slowdown)


@lru_cache(maxsize=32)
def measure(kind: Kind, seeds: range, policy: MitigationPolicy) -> Mitigated:
    """Return what a policy saves in the trainings of the seeds."""
    book = DurationBook()
    lost_s = all_s = worst = 0.0
    for fault in (fault for seed in seeds for fault in faults_of(kind, seed)):
        result = FaultRun(fault).result(policy, book.survival())
        book.note(result.observed_s, ended=result.ended)
        lost_s += result.lost_s
        all_s += endured_s(fault)
        if result.dearest_s:
            worst = max(worst, (result.lost_s - endured_s(fault)) / result.dearest_s)
    return Mitigated(1 - lost_s / all_s, worst)


def optimum(kind: Kind, seeds: range) -> float:
    """Return what a policy would save that knows the end of each fault once it is verified."""
    drawn = [fault for seed in seeds for fault in faults_of(kind, seed)]
    return 1 - sum(map(_least_s, drawn)) / sum(map(endured_s, drawn))


def _least_s(fault: DrawnFault) -> float:
    """Return the least loss of any sequence of levels: one at once, or none.

    A level that is followed by another saves nothing that the other, applied at once, does not.
    """
    begin_s = min(DETECTED_AFTER * ITERATION_S * (1 + fault.slowdown), fault.duration_s)
    left_s = fault.duration_s - begin_s
    choices = [left_s * lost_share(fault.slowdown)]
    if left_s > 0:
        choices += [
            option.cost_s + max(0.0, left_s - option.cost_s) * lost_share(option.remaining)
            for option in options_of(fault)
        ]
    return begin_s * lost_share(fault.slowdown) + min(choices)


def rows() -> dict[str, dict[str, float]]:
    """Return what each policy saves of long and of short faults, and its worst fault."""
    table = {}
    for name, policy in POLICIES.items():
        long, short = measure("long", LONG_SEEDS, policy), measure("short", SHORT_SEEDS, policy)
        table[name] = {
            "long": round(long.removed, 3),
            "short": round(short.removed, 3),
            "worst_fault": round(max(long.worst_fault, short.worst_fault), 3),
        }
    return table


def figures() -> dict[str, float]:
    """Return what Berth's policy saves, beside the optimum of the same faults."""
    policy = POLICIES["berth"]
    long, short = measure("long", LONG_SEEDS, policy), measure("short", SHORT_SEEDS, policy)
    return {
        "long": round(long.removed, 3),
        "short": round(short.removed, 3),
        "optimum_long": round(optimum("long", LONG_SEEDS), 3),
        "optimum_short": round(optimum("short", SHORT_SEEDS), 3),
        "worst_fault": round(max(long.worst_fault, short.worst_fault), 3),
    }
