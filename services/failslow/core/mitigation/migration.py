"""Jobs that have left slow nodes, or restarted: the cost, and an estimate of what it spared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from services.failslow.core.mitigation.durations import Survival
from services.failslow.core.mitigation.policy import lost_share
from shared.contracts.mitigation import LevelName


def level_of(plan_id: str) -> LevelName:
    """Return the level of a plan, by its id `job/attempt/level/count`."""
    return cast("LevelName", plan_id.split("/")[2])


@dataclass(slots=True)
class FollowedMigration:
    """A migration or restart by a plan; times are cluster seconds."""

    plan_id: str
    fault_id: str
    tenant: str
    attempt: int
    """The attempt that stopped."""
    slowdown: float
    elapsed_s: float
    """Of its faults, when it stopped."""
    lost_work_s: float
    left_s: float
    started_s: float | None = None
    """When the job ran again."""
    cost_s: float = 0.0
    gpus: float = 0.0

    @property
    def level(self) -> LevelName:
        return level_of(self.plan_id)

    def cost_at(self, now_s: float) -> float:
        """Return the time from the stop until then, and the work that is done again."""
        return max(0.0, now_s - self.left_s) + self.lost_work_s

    def ran_s(self, now_s: float) -> float:
        return 0.0 if self.started_s is None else max(0.0, now_s - self.started_s)

    def avoided_s(self, now_s: float, survival: Survival) -> float:
        """Return the expected loss of the same work on the slow nodes.

        On them it would have taken longer by the slowdown, but not beyond the end of the fault. A
        restart leaves no node, so whether it has helped is not known: none is claimed.
        """
        if self.level == "restart":
            return 0.0
        slow_run_s = self.ran_s(now_s) * (1 + self.slowdown)
        return lost_share(self.slowdown) * survival.rest_s(self.elapsed_s, slow_run_s)
