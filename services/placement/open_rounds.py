"""Has open rounds solved in another process, while their lane goes on folding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.placement.core.pool.state import OpenRound, Pool
from services.placement.core.solver.contended import (
    instance_for_round,
    no_plan,
    plan_ready,
    work_limit,
)
from services.placement.solver.process import Solver, SolverDied
from shared.bus.lane.lane import Lane
from shared.contracts.placement import RoundOpened
from shared.contracts.pools import PoolConfigured
from shared.contracts.solver_plan import PlanReady
from shared.ledger.decider import Fact

SEARCH_SHARE = 0.8
"""Share of the time left that the search may take; the rest is for the transfer."""


OnAnswer = Callable[[PlanReady], None]


class LaneSignals:
    """Signals of lanes whose rounds changed; `on_answer` is called with each answer."""

    def __init__(self, on_answer: OnAnswer = lambda plan_ready: None) -> None:
        self._news: dict[int, asyncio.Event] = {}
        self.on_answer = on_answer

    def accepted(self, facts: list[Fact]) -> None:
        for fact in facts:
            if isinstance(fact.event, RoundOpened | PoolConfigured):
                self.of(fact.partition).set()

    def of(self, lane: int) -> asyncio.Event:
        return self._news.setdefault(lane, asyncio.Event())


async def solve_open_rounds(lane: Lane[Pool], solver: Solver, rounds: LaneSignals) -> None:
    """Have each open round of the lane solved, and offer the answer; without one greedy plans."""
    news = rounds.of(lane.partition)
    news.set()
    while True:
        await news.wait()
        news.clear()
        settings = lane.state.settings
        if settings is None or settings.solver != "cpsat":
            continue
        await solver.start()
        open_ = lane.state.open_round
        rest_ms = 0 if open_ is None else open_.until - lane.now_ms()
        if open_ is not None and rest_ms > 0:
            answer = await solve_round(lane.state, open_, solver, rest_ms)
            rounds.on_answer(answer)
            lane.offer(answer)


async def solve_round(state: Pool, open_: OpenRound, solver: Solver, rest_ms: int) -> PlanReady:
    """Return the answer to this round, or the reason that there is none.

    `rest_ms` is the time until the round's end by the lane's clock, of which `until` is.
    """
    instance = instance_for_round(state)
    wall_s = rest_ms / 1000 * SEARCH_SHARE
    try:
        reply = await solver.solve(instance, work_limit(state), max(wall_s, 0.001))
    except SolverDied:
        return no_plan(open_.seq, "died")
    return plan_ready(instance, reply.solved, open_.seq, reply.solve_ms)
