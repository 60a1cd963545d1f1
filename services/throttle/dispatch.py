"""The open requests of one lane, between its ledger and its engines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress

from services.throttle.capacity import CapacityReports
from services.throttle.core.state import EndpointState
from services.throttle.handlers import BodyHandler
from services.throttle.reports import LaneReports, in_batches
from services.throttle.retraining import RetrainingShare
from services.throttle.tickets import STOPPED, LaneLost, Ticket, Tickets
from services.throttle.upstreams.pool import UpstreamPool
from shared.bus.lane.lane import Lane
from shared.contracts.clocks import ClockStepObserved
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    CapacityObserved,
    LlmRequestQueued,
    LlmRequestStarted,
    RequestEnd,
    RequestsEnded,
    RequestsLeft,
    ServeLlmRequest,
)
from shared.ledger.decider import Fact, Input

HAND_OVER_S = 1.3
"""Limit of the hand-over; a lane is revoked after 1.5 s (`HeldLane`)."""
REPORT_S = 0.5
"""Of that the time that the last report has, however long the answers take."""

log = logging.getLogger(__name__)


class Dispatcher:
    """Offers requests to the lane, and reports to it what became of them.

    A request has a ticket from its offer to its end, which is reported whatever happens; once the
    ticket is decided, its reservation is in the ledger. What an earlier process left open is
    settled when the lane is taken.
    """

    def __init__(
        self, lane: Lane[EndpointState], upstreams: UpstreamPool, topic: BodyHandler
    ) -> None:
        self.lane = lane
        self.upstreams = upstreams
        self.retraining = RetrainingShare(
            lambda: lane.state.endpoint, lambda: lane.state.retraining_share, upstreams
        )
        self._capacity = CapacityReports(
            lambda: lane.state, upstreams, lambda: self.retraining.value
        )
        self._topic = topic
        self._former: set[str] = set()
        self._tickets = Tickets()
        self._reports = LaneReports(lane, self._tickets)
        self._stops = False
        self.ready = False
        """Whether what an earlier process left open is settled: it takes requests from then on."""

    @property
    def state(self) -> EndpointState:
        return self.lane.state

    async def run(self) -> None:
        """Report until cancelled; what is open then is settled by what was counted."""
        self.lane.report_steps(lambda by_ms: ClockStepObserved(by_ms=by_ms))
        try:
            await self._settle_former()
            self.ready = True
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.upstreams.run())
                tasks.create_task(self.retraining.run())
                tasks.create_task(self._capacity.run(self._reports.offer))
                tasks.create_task(self._reports.run())
                tasks.create_task(self._topic.run(self.finish))
        except* LaneLost:
            log.info(
                "lane lost; its next owner settles what is open", extra={"lane": self.lane.tp.key}
            )
        finally:
            self.ready, self._stops = False, True
            await self._hand_over()
            self._tickets.lose()

    def apply(self, facts: Sequence[Fact]) -> None:
        """Take over accepted events of the lane."""
        for fact in facts:
            if isinstance(fact.event, EndpointConfigured):
                self.upstreams.configure(fact.event)
        self._topic.apply(facts)
        for started in self._tickets.apply(facts):
            self._start(started)
        if self.state.waiting:
            # Of the requests that were queued now, one may wait for a place that is free already.
            self._reports.hurry()

    def ticket(self, command: ServeLlmRequest, item: Input) -> AbstractAsyncContextManager[Ticket]:
        """Queue a request; the block has its ticket, and leaving it ends the request.

        Entering it raises Busy, LaneRevoked or Quarantined where the lane takes no requests.
        """
        return _QueuedRequest(self, command.request_id, item)

    async def queue(self, ticket: Ticket, item: Input) -> None:
        """Offer a request to the lane, and return once it is queued or decided; use `ticket`."""
        if self._stops:
            raise LaneLost
        if len(self.state.running) >= self.state.capacity:
            self._reports.hurry()
        ticket.ahead = _ahead(await self.lane.offer(item))

    def add_ticket(self, request_id: str) -> Ticket:
        return self._tickets.add(request_id)

    def leave(self, ticket: Ticket) -> None:
        """End a request whose handler ends; use `ticket`."""
        self._tickets.remove(ticket)
        if ticket.started and not ticket.is_settled:
            self._reports.end(_not_sent(ticket.request_id))
        elif not ticket.decided.done() or ticket.decided.cancelled():
            self._reports.leave(ticket.request_id)

    def finish(self, ticket: Ticket, end: RequestEnd) -> None:
        """Report the end of a request that was started.

        One that fails while the process stops was cut off by that.
        """
        self._tickets.remove(ticket)
        if self._stops and end.outcome == "failed" and ticket.cut_end is not None:
            end = ticket.cut_end()
        if not ticket.is_settled:
            ticket.is_settled = True
            self._reports.end(end)

    def _start(self, started: LlmRequestStarted) -> None:
        """Serve a request that has no handler here, if its body is in the topic."""
        request = self.state.running.get(started.request_id)
        endpoint = self.state.endpoint
        if started.request_id in self._former:
            return
        if request is None or not request.place or endpoint is None:
            self._reports.end(_not_sent(started.request_id))
            return
        ticket = self._tickets.add(started.request_id)
        ticket.decided.set_result(started)
        self._topic.start(ticket, request, endpoint)

    async def _settle_former(self) -> None:
        """Settle what an earlier process left open: its connections ended with it.

        A request of the topic that waits has no connection, and waits on.
        """
        running, waiting = [*self.state.running.values()], [*self.state.waiting.values()]
        self._topic.restore(self.state)
        running = [request for request in running if request.request_id not in self._tickets]
        self._former = {request.request_id for request in running}
        by_topic = [request for request in running if request.place]
        await self._topic.answer_lost(by_topic, self.state.endpoint_name)
        # What waited leaves first: it would be started as places become free.
        for ids in in_batches(request.request_id for request in waiting if not request.place):
            await self._reports.offer(RequestsLeft(request_ids=ids, reason="lost"))
        for ids in in_batches(request.request_id for request in running):
            ends = (RequestEnd(request_id=id_, outcome="lost", output_tokens=0) for id_ in ids)
            await self._reports.offer(RequestsEnded(ends=tuple(ends)))

    async def _hand_over(self) -> None:
        """Settle what this process has started, and leave what waits to the next owner.

        No step is skipped where an earlier one takes too long.
        """
        end_at = asyncio.get_running_loop().time() + HAND_OVER_S
        await _try_until(end_at - REPORT_S, self._stop_starts)
        await _try_until(end_at - REPORT_S, self.upstreams.close)
        await _try_until(end_at - REPORT_S, self._topic.answer_stopped)
        self._cut()
        await _try_until(end_at, lambda: self._reports.report_all(with_progress=False))

    async def _stop_starts(self) -> None:
        """Let the lane start nothing more: the ends that are reported next free places.

        Requests by event wait on, those of clients end here.
        """
        state = self.state
        if state.capacity or self.upstreams.states():
            await self._reports.offer(
                CapacityObserved(
                    requests=0,
                    overloaded=state.overloaded,
                    away=state.away,
                    retraining_share=state.retraining_share,
                )
            )
        waiting = (item.request_id for item in [*state.waiting.values()] if not item.place)
        for ids in in_batches(waiting):
            await self._reports.offer(RequestsLeft(request_ids=ids, reason=STOPPED))

    def _cut(self) -> None:
        """Settle the requests that run by what was counted: their connections are closed.

        One that is due an answer and has none is left to the next owner, which answers it as lost.
        """
        for ticket in self._tickets.started():
            if not ticket.is_settled and ticket.request_id not in self._topic.unanswered:
                ticket.is_settled = True
                cut = ticket.cut_end
                self._reports.end(cut() if cut is not None else _not_sent(ticket.request_id))


class _QueuedRequest(AbstractAsyncContextManager[Ticket]):
    """A request from its offer on; a class, as a generator would cost more per request."""

    __slots__ = ("_dispatcher", "_item", "_request_id", "_ticket")

    def __init__(self, dispatcher: Dispatcher, request_id: str, item: Input) -> None:
        self._dispatcher = dispatcher
        self._request_id = request_id
        self._item = item

    async def __aenter__(self) -> Ticket:
        self._ticket = self._dispatcher.add_ticket(self._request_id)
        try:
            await self._dispatcher.queue(self._ticket, self._item)
        except BaseException:
            self._dispatcher.leave(self._ticket)
            raise
        return self._ticket

    async def __aexit__(self, *error: object) -> None:
        self._dispatcher.leave(self._ticket)


async def _try_until(deadline_s: float, step: Callable[[], Awaitable[None]]) -> None:
    """Run a step of the hand-over until a time of the event loop at most."""
    with suppress(TimeoutError, LaneLost):
        async with asyncio.timeout_at(deadline_s):
            await step()


def _not_sent(request_id: str) -> RequestEnd:
    """Return the end of a request that no engine was sent."""
    return RequestEnd(request_id=request_id, outcome="cancelled", output_tokens=0, prompt_tokens=0)


def _ahead(facts: Iterable[Fact]) -> int:
    return next((f.event.ahead for f in facts if isinstance(f.event, LlmRequestQueued)), 0)
