"""The cost and the effect of each level, learned from those that were applied."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.failslow.core.mitigation.levels import BY_NAME
from shared.contracts.mitigation import LevelName

PRIOR_WEIGHT = 3.0
"""Applications that the assumed figures count for."""
NEWEST_WEIGHT = 0.1
"""Least weight of the newest application, so that figures follow an installation that changes."""


@dataclass(slots=True)
class LearnedLevel:
    """Running means."""

    cost_s: float
    leaves: float
    count: float = PRIOR_WEIGHT


@dataclass(slots=True)
class CostBook:
    """The learned figures by level."""

    levels: dict[LevelName, LearnedLevel] = field(default_factory=dict)
    assumed_s: dict[LevelName, float] = field(default_factory=dict)
    """Costs that the pool's settings assume, in the place of those of the levels."""

    def of(self, name: LevelName) -> LearnedLevel:
        level = BY_NAME[name]
        assumed = LearnedLevel(self.assumed_s.get(name, level.cost_s), level.leaves)
        return self.levels.get(name) or assumed

    def note(self, name: LevelName, cost_s: float, leaves: float | None = None) -> None:
        """Note an application: what it cost the job, and what part was left, if that is known."""
        learned = self.levels.setdefault(name, self.of(name))
        learned.count += 1
        weight = max(1 / learned.count, NEWEST_WEIGHT)
        learned.cost_s += weight * (max(0.0, cost_s) - learned.cost_s)
        if leaves is not None:
            learned.leaves += weight * (min(1.0, max(0.0, leaves)) - learned.leaves)
