"""The seam between the dispatcher of a lane and what serves requests without a client."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from services.throttle.core.state import EndpointState, OpenRequest
from services.throttle.tickets import Ticket
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import RequestEnd
from shared.ledger.decider import Fact

Finish = Callable[[Ticket, RequestEnd], None]


class BodyHandler(Protocol):
    """Serves the requests of a lane with a place in `llm.requests`, and answers each."""

    @property
    def unanswered(self) -> Collection[str]:
        """Ids of the requests that were started and have no answer yet."""
        ...

    def restore(self, state: EndpointState) -> None:
        """Take over the requests that wait since before this process."""
        ...

    def apply(self, facts: Iterable[Fact]) -> None:
        """Note accepted events of the lane."""
        ...

    def start(self, ticket: Ticket, request: OpenRequest, endpoint: EndpointConfigured) -> None:
        """Serve a request whose reservation is in the ledger."""
        ...

    async def run(self, finish: Finish) -> None:
        """Serve until cancelled; `finish` gets the end of each request."""
        ...

    async def answer_lost(self, requests: Sequence[OpenRequest], endpoint: str) -> None:
        """Answer requests that an earlier process left running."""
        ...

    async def answer_stopped(self) -> None:
        """Answer the requests that this process cuts off."""
        ...
