"""An action that fails holds up no other action and no report of its pool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from services.executor.core.engines.contract import (
    Action,
    EngineJob,
    EnginePhase,
    Forbid,
    Kill,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.reconcile import Decided
from services.executor.engines.engine import EngineAway
from services.executor.engines.pool import EnginePool
from tests.patience import PATIENCE_S
from tests.services.executor.core.engines.looks import gang_of, placed_history

JOB = EngineJob("17", "good", EnginePhase.RUNNING, "job 17")


def pool_of(
    act: Callable[[Action], Awaitable[None]],
    reported: list[Any],
    at_once: int,
    actions_s: float | None = None,
) -> Any:
    async def report(reports: list[Any]) -> None:
        reported.extend(reports)

    pool: Any = SimpleNamespace(
        lane=SimpleNamespace(pool="gpu"),
        _at_once=asyncio.Semaphore(at_once),
        _submits_at_once=asyncio.Semaphore(at_once),
        _actions_s=actions_s,
        _acting={},
        _engine=SimpleNamespace(act=act),
        _wake=asyncio.Event(),
        _report=report,
    )
    pool._act = partial(EnginePool._act, pool)
    pool._ended_actions = partial(EnginePool._ended_actions, pool)
    return pool


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

    pool = pool_of(act, reported, at_once)
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


async def test_a_gang_that_is_acted_on_for_long_holds_up_no_look() -> None:
    goes_on = asyncio.Event()

    async def act(action: Action) -> None:
        if action == Forbid("slow"):
            await goes_on.wait()
            raise EngineAway("late")

    pool = pool_of(act, [], at_once=2, actions_s=0.0)
    await EnginePool._carry_out(pool, Decided([Forbid("slow"), Forbid("fast")]), [])
    async with asyncio.timeout(PATIENCE_S):
        while pool._acting.keys() != {"slow"}:
            assert pool._ended_actions() is None
            await asyncio.sleep(0)
        goes_on.set()
        await asyncio.wait(pool._acting.values())
    assert str(pool._ended_actions()) == "late" and not pool._acting


async def test_submissions_hold_up_no_start_and_no_end() -> None:
    gang, goes_on, begun = gang_of(placed_history()), asyncio.Event(), list[Action]()

    async def act(action: Action) -> None:
        begun.append(action)
        if isinstance(action, Submit):
            await goes_on.wait()

    pool = pool_of(act, [], at_once=2, actions_s=0.0)
    submits = [Submit(EngineGang(name, gang.workers)) for name in ("a", "b", "c")]
    others: list[Action] = [Start(gang, "17"), Kill("18")]
    await EnginePool._carry_out(pool, Decided([*submits, *others]), [])
    async with asyncio.timeout(PATIENCE_S):
        while len(begun) < 4:
            await asyncio.sleep(0)
        assert begun == [*submits[:2], *others]
        goes_on.set()
        await asyncio.wait(pool._acting.values())
    assert begun == [*submits[:2], *others, submits[2]]
