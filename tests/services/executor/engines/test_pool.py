"""An action that fails holds up no other action and no report of its pool."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from services.executor.core.engines.contract import Action, Forbid, Kill
from services.executor.core.engines.reconcile import Decided
from services.executor.engines.engine import EngineAway
from services.executor.engines.pool import EnginePool


async def carry_out(*actions: Action) -> tuple[list[Action], list[Any], bool, EngineAway | None]:
    """Return the actions tried, the reports, whether a look follows at once, and the error."""
    tried: list[Action] = []
    reported: list[Any] = []

    async def act(action: Action) -> None:
        tried.append(action)
        if action == Forbid("bad"):
            raise EngineAway("is a directory")

    async def report(reports: list[Any]) -> None:
        reported.extend(reports)

    pool: Any = SimpleNamespace(
        lane=SimpleNamespace(pool="gpu"),
        _engine=SimpleNamespace(act=act),
        _wake=asyncio.Event(),
        _report=report,
    )
    made: Any = ["report"]
    away = await EnginePool._carry_out(pool, Decided(list(actions), made))
    return tried, reported, pool._wake.is_set(), away


async def test_the_other_actions_and_the_reports_follow_one_that_failed() -> None:
    tried, reported, is_awake, away = await carry_out(Forbid("bad"), Kill("17"))
    assert tried == [Forbid("bad"), Kill("17")]
    assert reported == ["report"] and is_awake and str(away) == "is a directory"


async def test_a_gang_that_is_forbidden_again_and_again_makes_no_busy_loop() -> None:
    _, _, is_awake, away = await carry_out(Forbid("good"), Forbid("bad"))
    assert not is_awake and away is not None
