"""Has the proposals of pools with a scheduler made in another process, one per lane."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence

from services.placement.children.process import Child, ChildDied
from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.request import ProposalRequest, request_of
from services.placement.lane_signals import LaneSignals
from services.placement.proposals.messages import answer_of, pack_request
from shared.bus.lane.lane import Lane
from shared.contracts.proposals import ProposalReady

PROGRAM = (sys.executable, "-m", "services.placement.proposals")

log = logging.getLogger(__name__)

OnProposal = Callable[[ProposalReady], None]
OnView = Callable[[Lane[Pool], ProposalRequest, int, ProposalReady], None]
"""Takes a view with its ms, and the proposal that was made of it."""


def ignore_view(
    lane: Lane[Pool], request: ProposalRequest, viewed_at: int, answer: ProposalReady
) -> None:
    """Take no view."""


async def make_open_proposals(
    lane: Lane[Pool],
    signals: LaneSignals,
    on_proposal: OnProposal,
    program: Sequence[str] = PROGRAM,
    on_view: OnView = ignore_view,
) -> None:
    """Have each open proposal of the lane made, and offer it; without one the last one stands.

    A lane has a process of its own, so that no pool waits for the scheduler of another. It starts
    with the first proposal, and ends with the lane or with the pool's scheduler.
    """
    news = signals.of(lane.partition)
    news.set()
    child = Child(program)
    try:
        while True:
            await news.wait()
            news.clear()
            if not lane.state.is_scheduled:
                await child.close()
                continue
            open_ = lane.state.schedule.open
            rest_ms = 0 if open_ is None else open_.until - lane.now_ms()
            if open_ is not None and rest_ms > 0:
                request = viewed(lane.state)
                making = make_proposal(request, open_.seq, child, rest_ms / 1000)
                answer = await while_open(lane, open_.seq, news, asyncio.ensure_future(making))
                if answer is not None:
                    on_proposal(answer)
                    lane.offer(answer)
                    if request is not None:
                        on_view(lane, request, open_.at, answer)
    finally:
        await child.close()


async def while_open(
    lane: Lane[Pool], at_seq: int, news: asyncio.Event, making: asyncio.Task[ProposalReady]
) -> ProposalReady | None:
    """Return the proposal; None once another one is open, or none: nothing waits for it any more.

    Its process is killed then, and the scheduler that replaces a hanging one does not wait for it.
    What ended the wait is left in `news`.
    """
    try:
        while True:
            changed = asyncio.ensure_future(news.wait())
            try:
                await asyncio.wait((making, changed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            if making.done():
                return making.result()
            open_ = lane.state.schedule.open
            if open_ is None or open_.seq != at_seq:
                return None
            news.clear()
    finally:
        making.cancel()
        await asyncio.wait((making,))


def viewed(state: Pool) -> ProposalRequest | None:
    """Return the request of the open proposal; None where its view cannot be made."""
    try:
        return request_of(state)
    except Exception:  # The last proposal stands.
        log.exception("no view can be had for a scheduler")
        return None


async def make_proposal(
    request: ProposalRequest | None, at_seq: int, child: Child, limit_s: float
) -> ProposalReady:
    """Return the proposal of the process, or that there is none."""
    if request is None:
        return ProposalReady(at_seq=at_seq, failed="died")
    try:
        return answer_of(await child.answer(pack_request(request), limit_s))
    except ChildDied as error:
        late = isinstance(error.__cause__, TimeoutError)
        return ProposalReady(at_seq=at_seq, failed="late" if late else "died")
    except Exception:  # Of an answer that is none: the last proposal stands.
        log.exception("no proposal can be had of a scheduler")
        return ProposalReady(at_seq=at_seq, failed="died")
