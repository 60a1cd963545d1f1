"""Has the proposals of shadows made, in a process of its own per lane: none has any effect.

A shadow sees the views on which the scheduler of its pool decided, once that has; of a pool without
one it sees the pool every `scheduler_round_s`. It proposes for one view at a time, and passes over
those that come meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from services.placement.children.process import Child
from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.allot import PROPOSAL_MS, round_ms
from services.placement.core.scheduled.request import ProposalRequest
from services.placement.core.scheduled.shadow import (
    Seen,
    beside_queue,
    beside_scheduler,
    compared,
    request_of_shadow,
    shadow_of,
)
from services.placement.lane_signals import LaneSignals
from services.placement.open_proposals import PROGRAM, make_proposal
from shared.bus.lane.lane import Lane
from shared.contracts.pools import PoolConfigured
from shared.contracts.proposals import ProposalReady


class ShadowViews:
    """The last view of each lane on which a scheduler decided, until its shadow takes it."""

    def __init__(self) -> None:
        self.signals = LaneSignals(PoolConfigured)
        self._seen: dict[int, Seen] = {}

    def note(
        self, lane: Lane[Pool], request: ProposalRequest, viewed_at: int, answer: ProposalReady
    ) -> None:
        """Keep the view if the pool has a shadow."""
        if shadow_of(lane.state) is not None:
            self._seen[lane.partition] = beside_scheduler(request, answer, viewed_at)
            self.signals.of(lane.partition).set()

    def take(self, lane: Lane[Pool], from_ms: int) -> Seen | None:
        """Return a view of `from_ms` or later; None while there is none."""
        if lane.state.is_scheduled:
            seen = self._seen.pop(lane.partition, None)
            return seen if seen is not None and seen.viewed_at >= from_ms else None
        is_due = bool(lane.state.jobs) and lane.now_ms() >= from_ms
        return beside_queue(lane.state, lane.now_ms()) if is_due else None


async def make_shadow_proposals(
    lane: Lane[Pool], views: ShadowViews, program: Sequence[str] = PROGRAM
) -> None:
    """Have the shadow of the lane propose, and offer what it would do for the ledger."""
    news = views.signals.of(lane.partition)
    news.set()
    child, last = Child(program), ("", 0)
    try:
        while True:
            from_ms = next_ms(lane.state, last)
            await wait_for(news, rest_s(lane, from_ms))
            name = shadow_of(lane.state)
            if name is None:
                await child.close()
                continue
            seen = views.take(lane, next_ms(lane.state, last))
            if seen is None:
                continue
            last = (name, seen.viewed_at + round_ms(lane.state))
            if seen.request.view.jobs:
                request = request_of_shadow(lane.state, seen)
                answer = await make_proposal(request, request.at_seq, child, PROPOSAL_MS / 1000)
                lane.offer(compared(request, seen, answer))
    finally:
        await child.close()


def next_ms(pool: Pool, last: tuple[str, int]) -> int:
    """Return the ms of the next proposal: by the ledger, and by the last one on its way there."""
    name, until = last
    return max(pool.shadow.until, until if name == shadow_of(pool) else 0)


def rest_s(lane: Lane[Pool], from_ms: int) -> float | None:
    """Return the s until a view has to be taken; None: one comes, or no shadow sees it."""
    pool = lane.state
    if shadow_of(pool) is None or pool.is_scheduled:
        return None
    rest_ms = from_ms - lane.now_ms() if pool.jobs else round_ms(pool)
    return max(rest_ms, 0) / 1000


async def wait_for(news: asyncio.Event, limit_s: float | None) -> None:
    """Wait until something is new, or as long as the limit says, and clear it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await news.wait()
    news.clear()
