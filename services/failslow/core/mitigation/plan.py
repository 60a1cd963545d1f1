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
from services.failslow.core.mitigation.policy import Option, Situation, choose, is_helpful
from services.failslow.core.mitigation.redistribute import Division
from shared.contracts.mitigation import Actor, DeclinedReason, LevelName

DIVIDES: LevelName = "redistribute"


@dataclass(frozen=True, slots=True)
class OpenFault:
    """`slowdown` is that of the gang if this fault were alone."""

    fault_id: str
    node_id: str
    reason: Reason
    slowdown: float


@dataclass(frozen=True, slots=True)
class GangLoss:
    """The cost of a gang's faults since the first began, and the levels applied to them."""

    elapsed_s: float = 0.0
    lost_s: float = 0.0
    deficit_s: float = 0.0
    applied: tuple[LevelName, ...] = ()
    earlier_s: float = 0.0
    """The part of `lost_s` that was before the last recovery."""


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
    microbatches: tuple[int, ...] = ()
    """Of each data-parallel group after `redistribute`, where they are known."""


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
        division: Division | None = None,
    ) -> MitigationPlan | None:
        """Return the level to apply now, None to wait."""
        slowdown = max((fault.slowdown for fault in faults), default=0.0)
        if slowdown <= 0:
            return None
        options = self.options(faults, division)
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
            microbatches=division.microbatches if division and level.name == DIVIDES else (),
        )

    def declined(
        self, faults: Sequence[OpenFault], loss: GangLoss, division: Division | None = None
    ) -> list[tuple[LevelName, DeclinedReason]]:
        """Return the levels that no wait makes due, each with the reason."""
        slowdown = max((fault.slowdown for fault in faults), default=0.0)
        situation = Situation(loss.elapsed_s, slowdown, loss.lost_s, loss.deficit_s, loss.applied)
        options = {option.level: option for option in self.options(faults, division)}
        offered, reasons = {level.name for level in self.levels}, {f.reason for f in faults}
        dearest_s = self.dearest_s(faults)
        declined: list[tuple[LevelName, DeclinedReason]] = []
        for level in LEVELS:
            option = options.get(level.name)
            if level.name in loss.applied:
                declined.append((level.name, "planned"))
            elif not reasons & level.helps:
                declined.append((level.name, "no_help"))
            elif level.name not in offered or option is None:
                declined.append((level.name, "not_offered"))
            elif not is_helpful(option, situation):
                declined.append((level.name, "no_gain"))
            elif max(0.0, loss.deficit_s) + option.cost_s > dearest_s:
                declined.append((level.name, "too_dear"))
        return declined

    def dearest_s(self, faults: Sequence[OpenFault]) -> float:
        """Return the cost of the dearest level of all that help one of the faults."""
        reasons = {fault.reason for fault in faults}
        helping = (level.name for level in LEVELS if reasons & level.helps)
        return max((self.costs.of(name).cost_s for name in helping), default=0.0)

    def options(
        self, faults: Sequence[OpenFault], division: Division | None = None
    ) -> tuple[Option, ...]:
        """Return what each level would leave, of those that help one of the faults."""
        return tuple(
            Option(
                level.name,
                self.costs.of(level.name).cost_s,
                self._remaining(level, faults, division),
            )
            for level in self.levels
            if any(fault.reason in level.helps for fault in faults)
        )

    def _remaining(
        self, level: Level, faults: Sequence[OpenFault], division: Division | None
    ) -> float:
        others = [fault.slowdown for fault in faults if fault.reason not in level.helps]
        helped = [fault for fault in faults if fault.reason in level.helps]
        if level.name == DIVIDES and division is not None:
            left = division.remaining
        else:
            leaves = self.costs.of(level.name).leaves
            left = leaves * max(fault.slowdown for fault in helped)
        return max([left, *others])


def _evidence(faults: Sequence[OpenFault], loss: GangLoss, survival: Survival) -> tuple[str, ...]:
    worst = max(faults, key=lambda fault: fault.slowdown)
    own_s, earlier_s = loss.lost_s - loss.earlier_s, loss.earlier_s
    before = f", and {earlier_s:.0f} s before it recovered for a while" if earlier_s else ""
    return (
        f"{len(faults)} open faults, the worst {worst.slowdown:.0%} slower ({worst.reason})",
        f"{own_s:.0f} s lost in {loss.elapsed_s:.0f} s{before}",
        f"durations of {survival.count} earlier faults",
    )
