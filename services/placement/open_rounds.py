"""Has open rounds solved in another process, while their lane goes on folding."""

from __future__ import annotations

from collections.abc import Callable

from services.placement.children.process import ChildDied
from services.placement.core.pool.state import OpenRound, Pool
from services.placement.core.solver.contended import (
    instance_for_round,
    no_plan,
    plan_ready,
    work_limit,
)
from services.placement.lane_signals import LaneSignals
from services.placement.solver.process import Solver
from shared.bus.lane.lane import Lane
from shared.contracts.solver_plan import PlanReady

SEARCH_SHARE = 0.8
"""Share of the time left that the search may take; the rest is for the transfer."""


OnAnswer = Callable[[PlanReady], None]


async def solve_open_rounds(
    lane: Lane[Pool], solver: Solver, signals: LaneSignals, on_answer: OnAnswer
) -> None:
    """Have each open round of the lane solved, and offer the answer; without one greedy plans."""
    news = signals.of(lane.partition)
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
            on_answer(answer)
            lane.offer(answer)


async def solve_round(state: Pool, open_: OpenRound, solver: Solver, rest_ms: int) -> PlanReady:
    """Return the answer to this round, or the reason that there is none.

    `rest_ms` is the time until the round's end by the lane's clock, of which `until` is.
    """
    instance = instance_for_round(state)
    wall_s = rest_ms / 1000 * SEARCH_SHARE
    try:
        reply = await solver.solve(instance, work_limit(state), max(wall_s, 0.001))
    except ChildDied:
        return no_plan(open_.seq, "died")
    return plan_ready(instance, reply.solved, open_.seq, reply.solve_ms)
