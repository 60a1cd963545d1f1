"""A plan for a gang: one level for all its open faults, with what it costs and is worth.

A gang is as slow as its slowest worker, so its faults are one problem: to heal the lesser of two
gains nothing. A level helps the faults of the reasons that it can help, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.failslow.core.mitigation.costs import CostBook
from services.failslow.core.mitigation.durations import Survival
from services.failslow.core.mitigation.levels import LEVELS, Level, Reason
from services.failslow.core.mitigation.policy import Option, Situation, choose
from services.failslow.core.mitigation.redistribute import remaining_slowdown
from shared.contracts.mitigation import Actor, LevelName


@dataclass(frozen=True, slots=True)
class OpenFault:
    """`slowdown` is that of the gang if this fault were alone; `group` its data-parallel group."""

    fault_id: str
    node_id: str
    reason: Reason
    slowdown: float
    group: int | None = None


@dataclass(frozen=True, slots=True)
class GangShape:
    """Data-parallel groups and the micro-batches of each; 0 where they are not known."""

    groups: int = 0
    microbatches: int = 0


@dataclass(frozen=True, slots=True)
class GangLoss:
    """The cost of a gang's faults since the first began, and the levels applied to them."""

    elapsed_s: float = 0.0
    lost_s: float = 0.0
    deficit_s: float = 0.0
    applied: tuple[LevelName, ...] = ()


@dataclass(frozen=True, slots=True)
class MitigationPlan:
    """A level and its figures; the pool's setting `mitigation` says who has to approve it."""

    level: LevelName
    actor: Actor
    fault_ids: tuple[str, ...]
    node_ids: tuple[str, ...]
    expected_gain_s: float
    cost_s: float
    accumulated_loss_s: float
    remaining: float
    rule: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans by learned costs; `levels` are those that the installation can apply."""

    levels: tuple[Level, ...] = LEVELS
    costs: CostBook = field(default_factory=CostBook)

    def plan(
        self,
        faults: Sequence[OpenFault],
        loss: GangLoss,
        survival: Survival,
        shape: GangShape | None = None,
    ) -> MitigationPlan | None:
        """Return the level to apply now, None to wait."""
        slowdown = max((fault.slowdown for fault in faults), default=0.0)
        if slowdown <= 0:
            return None
        options = self.options(faults, shape or GangShape())
        situation = Situation(loss.elapsed_s, slowdown, loss.lost_s, loss.deficit_s, loss.applied)
        choice = choose(situation, options, survival, self.dearest_s(faults))
        if choice.level == "nothing":
            return None
        level = next(level for level in self.levels if level.name == choice.level)
        helped = [fault for fault in faults if fault.reason in level.helps]
        return MitigationPlan(
            level=level.name,
            actor=level.actor,
            fault_ids=tuple(fault.fault_id for fault in helped),
            node_ids=tuple(dict.fromkeys(fault.node_id for fault in helped)),
            expected_gain_s=choice.expected_gain_s,
            cost_s=choice.cost_s,
            accumulated_loss_s=loss.lost_s,
            remaining=choice.remaining,
            rule=choice.rule,
            evidence=_evidence(faults, loss, survival),
        )

    def dearest_s(self, faults: Sequence[OpenFault]) -> float:
        """Return the cost of the dearest level of all that help one of the faults."""
        reasons = {fault.reason for fault in faults}
        helping = (level.name for level in LEVELS if reasons & level.helps)
        return max((self.costs.of(name).cost_s for name in helping), default=0.0)

    def options(self, faults: Sequence[OpenFault], shape: GangShape) -> tuple[Option, ...]:
        """Return what each level would leave, of those that help one of the faults."""
        return tuple(
            Option(
                level.name, self.costs.of(level.name).cost_s, self._remaining(level, faults, shape)
            )
            for level in self.levels
            if any(fault.reason in level.helps for fault in faults)
        )

    def _remaining(self, level: Level, faults: Sequence[OpenFault], shape: GangShape) -> float:
        others = [fault.slowdown for fault in faults if fault.reason not in level.helps]
        helped = [fault for fault in faults if fault.reason in level.helps]
        if level.name == "redistribute" and _has_groups(helped, shape):
            left = remaining_slowdown(_by_group(helped, shape), shape.microbatches)
        else:
            leaves = self.costs.of(level.name).leaves
            left = leaves * max(fault.slowdown for fault in helped)
        return max([left, *others])


def _has_groups(faults: Sequence[OpenFault], shape: GangShape) -> bool:
    return shape.microbatches > 0 and all(
        fault.group is not None and fault.group < shape.groups for fault in faults
    )


def _by_group(faults: Sequence[OpenFault], shape: GangShape) -> list[float]:
    slowdowns = [0.0] * shape.groups
    for fault in faults:
        if fault.group is not None:
            slowdowns[fault.group] = max(slowdowns[fault.group], fault.slowdown)
    return slowdowns


def _evidence(faults: Sequence[OpenFault], loss: GangLoss, survival: Survival) -> tuple[str, ...]:
    worst = max(faults, key=lambda fault: fault.slowdown)
    return (
        f"{len(faults)} open faults, the worst {worst.slowdown:.0%} slower ({worst.reason})",
        f"{loss.lost_s:.0f} s lost in {loss.elapsed_s:.0f} s",
        f"durations of {survival.count} earlier faults",
    )
