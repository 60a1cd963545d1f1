"""The open requests of one lane, between its ledger and its engines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from itertools import islice
from typing import TypeVar

from services.throttle.capacity import CapacityReports
from services.throttle.core.state import EndpointState
from services.throttle.handlers import BodyHandler
from services.throttle.retraining import RetrainingShare
from services.throttle.tickets import LaneLost, Ticket, Tickets
from services.throttle.upstreams.pool import UpstreamPool
from shared.bus.lane.lane import Lane
from shared.contracts.base import Local
from shared.contracts.clocks import ClockStepObserved
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    EngineAdvanced,
    LlmRequestQueued,
    LlmRequestStarted,
    RequestEnd,
    RequestsEnded,
    RequestsLeft,
    ServeLlmRequest,
    TokensMade,
)
from shared.ledger.decider import Fact, Input
from shared.ledger.errors import Busy, LaneRevoked

SETTLE_S = 1.0
"""Ends of requests wait so long for others, unless a request waits for their place."""

BATCH = 500
"""Ends or reports of one input."""

BUSY_S = 0.05
HAND_OVER_S = 1.0

T = TypeVar("T")

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
        self._ends: list[RequestEnd] = []
        self._left: list[str] = []
        self._due = asyncio.Event()
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
                tasks.create_task(self._capacity.run(self._offer))
                tasks.create_task(self._report_requests())
                tasks.create_task(self._topic.run(self.finish))
        except* LaneLost:
            log.info(
                "lane lost; its next owner settles what is open", extra={"lane": self.lane.tp.key}
            )
        finally:
            self.ready = False
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
            self._report_at_once()

    def ticket(self, command: ServeLlmRequest, item: Input) -> AbstractAsyncContextManager[Ticket]:
        """Queue a request; the block has its ticket, and leaving it ends the request.

        Entering it raises Busy, LaneRevoked or Quarantined where the lane takes no requests.
        """
        return _QueuedRequest(self, command.request_id, item)

    async def queue(self, ticket: Ticket, item: Input) -> None:
        """Offer a request to the lane, and return once it is queued or decided; use `ticket`."""
        if len(self.state.running) >= self.state.capacity:
            self._report_at_once()
        ticket.ahead = _ahead(await self.lane.offer(item))

    def add_ticket(self, request_id: str) -> Ticket:
        return self._tickets.add(request_id)

    def leave(self, ticket: Ticket) -> None:
        """End a request whose handler ends; use `ticket`."""
        self._tickets.remove(ticket)
        if ticket.started and not ticket.is_settled:
            self._end(_cancelled(ticket.request_id))
        elif not ticket.decided.done() or ticket.decided.cancelled():
            self._leave(ticket.request_id)

    def finish(self, ticket: Ticket, end: RequestEnd) -> None:
        """Report the end of a request that was started."""
        self._tickets.remove(ticket)
        if not ticket.is_settled:
            ticket.is_settled = True
            self._end(end)

    def _start(self, started: LlmRequestStarted) -> None:
        """Serve a request that has no handler here, if its body is in the topic."""
        request = self.state.running.get(started.request_id)
        endpoint = self.state.endpoint
        if started.request_id in self._former:
            return
        if request is None or not request.place or endpoint is None:
            self._end(_cancelled(started.request_id))
            return
        ticket = self._tickets.add(started.request_id)
        ticket.decided.set_result(started)
        self._topic.start(ticket, request, endpoint)

    def _end(self, end: RequestEnd) -> None:
        self._ends.append(end)
        if self.state.waiting or len(self._ends) >= BATCH:
            self._due.set()

    def _report_at_once(self) -> None:
        """Report the ends that wait for others: a request waits for one of their places."""
        if self._ends:
            self._due.set()

    def _leave(self, request_id: str) -> None:
        self._left.append(request_id)
        self._due.set()

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
        for ids in in_batches(request.request_id for request in running):
            ends = (RequestEnd(request_id=id_, outcome="lost", output_tokens=0) for id_ in ids)
            await self._offer(RequestsEnded(ends=tuple(ends)))
        for ids in in_batches(request.request_id for request in waiting if not request.place):
            await self._offer(RequestsLeft(request_ids=ids, reason="lost"))

    async def _hand_over(self) -> None:
        """Report what is not reported yet; requests that run are cut with this process.

        One that is due an answer and has none is left to the next owner, which answers it as lost.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(HAND_OVER_S):
                await self._topic.answer_stopped()
        for ticket in self._tickets.started():
            if ticket.request_id in self._topic.unanswered:
                continue
            ticket.is_settled = True
            self._ends.append(
                RequestEnd(
                    request_id=ticket.request_id,
                    outcome="failed",
                    output_tokens=ticket.made_tokens,
                    reason="process_stopped",
                )
            )
        with suppress(TimeoutError, LaneLost):
            async with asyncio.timeout(HAND_OVER_S):
                await self._report_all(with_progress=False)

    async def _report_requests(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._due.wait()
            self._due.clear()
            await self._report_all()

    async def _report_all(self, *, with_progress: bool = True) -> None:
        """Report what was made, what has ended and what left: in one record, if it has room."""
        progress = in_batches(self._progress()) if with_progress else ()
        reports: list[Local] = [EngineAdvanced(made=some) for some in progress]
        ends, self._ends = self._ends, []
        reports += [RequestsEnded(ends=some) for some in in_batches(ends)]
        left, self._left = self._left, []
        reports += [RequestsLeft(request_ids=ids) for ids in in_batches(left)]
        accepted = [await self._post(report) for report in reports]
        with _losing_the_lane():
            await asyncio.gather(*accepted)

    def _progress(self) -> Iterable[TokensMade]:
        for ticket in self._tickets.started():
            tokens = ticket.made_tokens - ticket.charged_tokens
            if tokens > 0:
                ticket.charged_tokens = ticket.made_tokens
                yield TokensMade(request_id=ticket.request_id, tokens=tokens)

    async def _offer(self, message: Local) -> None:
        """Offer a report, and return once it is accepted. Raises LaneLost: it is for the next
        owner then."""
        with _losing_the_lane():
            await (await self._post(message))

    async def _post(self, message: Local) -> asyncio.Future[list[Fact]]:
        """Offer a report until the lane takes it; the future gets what it caused."""
        while True:
            try:
                with _losing_the_lane():
                    return self.lane.offer(message)
            except Busy:
                await asyncio.sleep(BUSY_S)


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


@contextmanager
def _losing_the_lane() -> Iterator[None]:
    try:
        yield
    except LaneRevoked:
        raise LaneLost from None


def _cancelled(request_id: str) -> RequestEnd:
    """Return the end of a request that no engine was sent."""
    return RequestEnd(request_id=request_id, outcome="cancelled", output_tokens=0, prompt_tokens=0)


def _ahead(facts: Iterable[Fact]) -> int:
    return next((f.event.ahead for f in facts if isinstance(f.event, LlmRequestQueued)), 0)


def in_batches(items: Iterable[T], size: int = BATCH) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of at most `size`."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield some
