"""The policies that are compared: each decides by situation and options which level to apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.failslow.core.mitigation.durations import Survival
from services.failslow.core.mitigation.policy import (
    Option,
    Situation,
    break_even,
    choose,
    is_helpful,
)
from shared.contracts.mitigation import LevelName

MitigationPolicy = Callable[[Situation, Sequence[Option], Survival], LevelName]


def berth(situation: Situation, options: Sequence[Option], survival: Survival) -> LevelName:
    dearest_s = max(option.cost_s for option in options)
    return choose(situation, options, survival, dearest_s).level


def ski_rental(situation: Situation, options: Sequence[Option], survival: Survival) -> LevelName:
    """Break even, as in FALCON's paper."""
    due = break_even(situation, [option for option in options if is_helpful(option, situation)])
    return due.level if due else "nothing"


def always_restart(
    situation: Situation, options: Sequence[Option], survival: Survival
) -> LevelName:
    return "restart"


def at_once(situation: Situation, options: Sequence[Option], survival: Survival) -> LevelName:
    """Apply the level for the cause, short of a restart, as soon as the fault is verified."""
    first = next(option.level for option in options if option.level != "restart")
    return "nothing" if first in situation.applied else first


def nothing(situation: Situation, options: Sequence[Option], survival: Survival) -> LevelName:
    return "nothing"


POLICIES: dict[str, MitigationPolicy] = {
    "berth": berth,
    "ski_rental": ski_rental,
    "at_once": at_once,
    "always_restart": always_restart,
}
