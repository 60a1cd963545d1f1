"""The reports of a lane to its decider: output so far, ends, and clients that left."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TypeVar

from services.throttle.core.state import EndpointState
from services.throttle.tickets import LaneLost, Tickets
from shared.bus.lane.lane import Lane
from shared.contracts.base import Local
from shared.contracts.llm import EngineAdvanced, RequestEnd, RequestsEnded, RequestsLeft, TokensMade
from shared.ledger.decider import Fact
from shared.ledger.errors import Busy, LaneRevoked

SETTLE_S = 1.0
"""Ends of requests wait so long for others, unless a request waits for their place."""

BATCH = 500
"""Ends or reports of one input."""

BUSY_S = 0.05

T = TypeVar("T")


class LaneReports:
    """Collects what became of the requests of a lane, and offers it: in one record, if it has room.

    What is taken for a report is kept until the lane has it, also where the report is cancelled.
    """

    def __init__(self, lane: Lane[EndpointState], tickets: Tickets) -> None:
        self._lane = lane
        self._tickets = tickets
        self._ends: list[RequestEnd] = []
        self._left: list[str] = []
        self._due = asyncio.Event()
        self._unposted: deque[Local] = deque()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._due.wait()
            self._due.clear()
            await self.report_all()

    def end(self, end: RequestEnd) -> None:
        """Report the end of a request that was started, soon."""
        self._ends.append(end)
        if self._lane.state.waiting or len(self._ends) >= BATCH:
            self._due.set()

    def leave(self, request_id: str) -> None:
        """Report at once that a request must not be served any more."""
        self._left.append(request_id)
        self._due.set()

    def hurry(self) -> None:
        """Report the ends that wait for others: a request waits for one of their places."""
        if self._ends:
            self._due.set()

    async def report_all(self, *, with_progress: bool = True) -> None:
        """Report all, and return once it is accepted. Raises LaneLost."""
        if with_progress:
            self._unposted += (EngineAdvanced(made=some) for some in in_batches(self._progress()))
        ends, self._ends = self._ends, []
        self._unposted += (RequestsEnded(ends=some) for some in in_batches(ends))
        left, self._left = self._left, []
        self._unposted += (RequestsLeft(request_ids=ids) for ids in in_batches(left))
        accepted = []
        while self._unposted:
            accepted.append(await self._post(self._unposted[0]))
            self._unposted.popleft()
        with _losing_the_lane():
            await asyncio.gather(*accepted)

    async def offer(self, message: Local) -> None:
        """Offer a report, and return once it is accepted. Raises LaneLost: it is for the next
        owner then."""
        with _losing_the_lane():
            await (await self._post(message))

    def _progress(self) -> Iterable[TokensMade]:
        for ticket in self._tickets.started():
            tokens = ticket.made_tokens - ticket.charged_tokens
            if tokens > 0:
                ticket.charged_tokens = ticket.made_tokens
                yield TokensMade(request_id=ticket.request_id, tokens=tokens)

    async def _post(self, message: Local) -> asyncio.Future[list[Fact]]:
        """Offer a report until the lane takes it; the future gets what it caused."""
        while True:
            try:
                with _losing_the_lane():
                    return self._lane.offer(message)
            except Busy:
                await asyncio.sleep(BUSY_S)


@contextmanager
def _losing_the_lane() -> Iterator[None]:
    try:
        yield
    except LaneRevoked:
        raise LaneLost from None


def in_batches(items: Iterable[T], size: int = BATCH) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of at most `size`."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield some
