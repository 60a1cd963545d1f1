"""Has the proposals of pools with a scheduler made in another process, one per lane."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

from services.placement.children.process import Child, ChildDied
from services.placement.core.pool.state import Pool
from services.placement.lane_signals import LaneSignals
from shared.bus.lane.lane import Lane
from shared.contracts.proposals import ProposalReady

PROGRAM = (sys.executable, "-m", "services.placement.proposals")

log = logging.getLogger(__name__)

OnProposal = Callable[[ProposalReady], None]


async def make_open_proposals(
    lane: Lane[Pool],
    signals: LaneSignals,
    on_proposal: OnProposal,
    program: Sequence[str] = PROGRAM,
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
                answer = await make_proposal(lane.state, open_.seq, child, rest_ms / 1000)
                on_proposal(answer)
                lane.offer(answer)
    finally:
        await child.close()


async def make_proposal(state: Pool, at_seq: int, child: Child, limit_s: float) -> ProposalReady:
    """Return the proposal, or that there is none."""
    # numpy starts threads, which a fork of the supervisor would lose.
    from services.placement.core.scheduled.request import request_of
    from services.placement.proposals.messages import answer_of, pack_request

    try:
        return answer_of(await child.answer(pack_request(request_of(state)), limit_s))
    except ChildDied as error:
        late = isinstance(error.__cause__, TimeoutError)
        return ProposalReady(at_seq=at_seq, failed="late" if late else "died")
    except (
        Exception
    ):  # Of a view that cannot be made, or an answer that is none: the last one stands.
        log.exception("no proposal can be had of a scheduler")
        return ProposalReady(at_seq=at_seq, failed="died")
