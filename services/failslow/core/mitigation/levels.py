"""The levels of mitigation, cheapest first: which causes each helps, and which program does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.contracts.mitigation import Actor, LevelName

Reason = Literal["compute", "communication", "unknown"]
ANY: frozenset[Reason] = frozenset(("compute", "communication", "unknown"))


@dataclass(frozen=True, slots=True)
class Level:
    """`cost_s` and `leaves` are assumed until history has been observed.

    `leaves` is the part of a slowdown that remains where the level helps.
    """

    name: LevelName
    helps: frozenset[Reason]
    actor: Actor
    cost_s: float
    leaves: float


LEVELS: tuple[Level, ...] = (
    Level("redistribute", frozenset(("compute",)), "framework", 5.0, 0.25),
    Level("adapt_schedule", frozenset(("communication",)), "framework", 5.0, 0.5),
    Level("rearrange", frozenset(("communication",)), "framework", 60.0, 0.2),
    Level("migrate", ANY, "berth", 120.0, 0.0),
    Level("restart", ANY, "berth", 300.0, 0.0),
)
"""`redistribute` gives slow data-parallel groups fewer micro-batches, `adapt_schedule` warms up
more of them before a slow link, `rearrange` lets a slow link carry the lightest traffic, `migrate`
moves the job off the slow nodes, `restart` starts it anew from its last checkpoint."""
BY_NAME: dict[LevelName, Level] = {level.name: level for level in LEVELS}
