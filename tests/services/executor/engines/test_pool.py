"""An action that fails holds up no other action and no report of its pool."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

from services.executor.core.engines.contract import Action, EngineJob, EnginePhase, Forbid, Kill
from services.executor.core.engines.reconcile import Decided
from services.executor.engines.engine import EngineAway
from services.executor.engines.pool import EnginePool

JOB = EngineJob("17", "good", EnginePhase.RUNNING, "job 17")


async def carry_out(
    *actions: Action, at_once: int = 1
) -> tuple[list[Action], list[Any], bool, EngineAway | None]:
    """Return the actions begun, the reports, whether a look follows at once, and the error."""
    begun: list[Action] = []
    reported: list[Any] = []

    async def act(action: Action) -> None:
        begun.append(action)
        await asyncio.sleep(0)
        if action == Forbid("bad"):
            raise EngineAway("is a directory")

    async def report(reports: list[Any]) -> None:
        reported.extend(reports)

    pool: Any = SimpleNamespace(
        lane=SimpleNamespace(pool="gpu"),
        _at_once=asyncio.Semaphore(at_once),
        _engine=SimpleNamespace(act=act),
        _wake=asyncio.Event(),
        _report=report,
    )
    pool._act = partial(EnginePool._act, pool)
    made: Any = ["report"]
    away = await EnginePool._carry_out(pool, Decided(list(actions), made), [JOB])
    return begun, reported, pool._wake.is_set(), away


async def test_the_other_actions_and_the_reports_follow_one_that_failed() -> None:
    begun, reported, is_awake, away = await carry_out(Forbid("bad"), Kill("17"))
    assert begun == [Forbid("bad"), Kill("17")]
    assert reported == ["report"] and is_awake and str(away) == "is a directory"


async def test_a_gang_that_is_forbidden_again_and_again_makes_no_busy_loop() -> None:
    _, _, is_awake, away = await carry_out(Forbid("good"), Forbid("bad"))
    assert not is_awake and away is not None


async def test_gangs_are_acted_on_together_and_the_actions_of_one_in_their_order() -> None:
    actions = Forbid("good"), Kill("17"), Forbid("other")
    begun, *_ = await carry_out(*actions, at_once=2)
    assert begun == [Forbid("good"), Forbid("other"), Kill("17")], "job 17 is of the gang `good`"
    one_by_one, *_ = await carry_out(*actions)
    assert one_by_one == [Forbid("good"), Kill("17"), Forbid("other")]
