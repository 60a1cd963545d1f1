"""HTTP requests that wait for their start in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shared.contracts.llm import LlmRequestRejected, LlmRequestStarted, RequestEnd
from shared.ledger.decider import Fact

STOPPED = "process_stopped"
"""Reason of requests that this process ends as it stops, or gives their lane up."""


class LaneLost(Exception):
    """This process holds the lane of the request no more."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One request of this process: the future gets its start or its rejection."""

    request_id: str
    decided: asyncio.Future[LlmRequestStarted | LlmRequestRejected] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    made_tokens: int = 0
    """Output tokens so far, as its handler counts them."""
    charged_tokens: int = 0
    """Of these, the ones that were reported to the decider."""
    first_at: float = 0.0
    """The time of its first token by the event loop, s; 0 before."""
    decided_at: int = 0
    """The time of its start or rejection in the ledger, ms."""
    ahead: int = 0
    """Requests ahead of it when it was queued."""
    is_settled: bool = False
    """Whether its end was reported."""
    cut_end: Callable[[], RequestEnd] | None = None
    """Returns its end if this process cuts it off now; None until it is sent to an engine."""

    @property
    def started(self) -> bool:
        """Return whether an engine may serve it: its reservation is in the ledger."""
        if not self.decided.done() or self.decided.cancelled() or self.decided.exception():
            return False
        return isinstance(self.decided.result(), LlmRequestStarted)


class Tickets:
    """The tickets of one lane by request id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Ticket] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._by_id

    def add(self, request_id: str) -> Ticket:
        ticket = self._by_id[request_id] = Ticket(request_id)
        return ticket

    def remove(self, ticket: Ticket) -> None:
        self._by_id.pop(ticket.request_id, None)

    def started(self) -> list[Ticket]:
        """Return the tickets of requests that run."""
        return [ticket for ticket in self._by_id.values() if ticket.started]

    def apply(self, facts: Iterable[Fact]) -> list[LlmRequestStarted]:
        """Give accepted starts and rejections to their tickets; return starts without one.

        A handler that is cancelled has cancelled its future, and removes its ticket later: a start
        that comes in between is served by none.
        """
        orphans: list[LlmRequestStarted] = []
        for fact in facts:
            event = fact.event
            if isinstance(event, LlmRequestStarted | LlmRequestRejected):
                ticket = self._by_id.get(event.request_id)
                if ticket is not None and not ticket.decided.done():
                    ticket.decided_at = fact.at
                    ticket.decided.set_result(event)
                elif (ticket is None or ticket.decided.cancelled()) and isinstance(
                    event, LlmRequestStarted
                ):
                    orphans.append(event)
        return orphans

    def lose(self) -> None:
        """Fail the tickets that wait: the lane is lost."""
        for ticket in self._by_id.values():
            if not ticket.decided.done():
                ticket.decided.set_exception(LaneLost())
