"""An order of service with the guards in front of it: what one endpoint's queue runs."""

from __future__ import annotations

from dataclasses import dataclass

from services.throttle.core.disciplines.competition import Ahead, ExpectedLength
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad, Guard, ServingOrder, Throttled


@dataclass(slots=True)
class Discipline:
    """Any order with any guards. The guards are checked in turn; the first refusal holds.

    `at` is the recorded time of the event, `now` that of the decision, in wall ms. A request is
    one object from `enqueue` to `finish`; the state is plain data, which can be copied and
    pickled together with the requests that wait and run.
    """

    order: ServingOrder
    guards: tuple[Guard, ...] = ()

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        """Return why the request may not be queued now; None if it may."""
        for guard in self.guards:
            throttled = guard.refusal(request, load, now)
            if throttled is not None:
                return throttled
        return None

    def enqueue(self, request: ServedRequest) -> None:
        """Let the request wait; its `queued_at` is the time of the event."""
        for guard in self.guards:
            guard.note_queued(request)
        self.order.enqueue(request)

    def withdraw(self, request: ServedRequest) -> None:
        """Remove a waiting request that will not be served."""
        for guard in self.guards:
            guard.note_withdrawn(request)
        self.order.withdraw(request)

    def next_request(self) -> ServedRequest | None:
        """Return the request to serve next, which stays in the queue; None if none waits."""
        return self.order.next_request()

    def ahead_of(self, request: ServedRequest, length: ExpectedLength) -> Ahead:
        """Return what would be served before a request that would be queued now."""
        return self.order.ahead(request, length)

    def start(self, request: ServedRequest, at: int) -> None:
        """Move the request into the batch, and charge its prompt."""
        request.started_at = at
        self.order.start(request)
        for guard in self.guards:
            guard.note_started(request, at)

    def charge(self, request: ServedRequest, tokens: int, at: int) -> None:
        """Charge output tokens that were made since the last call."""
        for guard in self.guards:
            guard.note_made(request, tokens, at)
        request.made_tokens += tokens
        self.order.charge(request)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int, at: int) -> None:
        """Charge the prompt of a running request as the engine counted it."""
        if prompt_tokens != request.prompt_tokens:
            for guard in self.guards:
                guard.note_prompt(request, prompt_tokens - request.prompt_tokens, at)
            self.order.settle_prompt(request, prompt_tokens)
            request.prompt_tokens = prompt_tokens

    def finish(self, request: ServedRequest) -> None:
        """Settle a request that was started, whether its output is complete or cut."""
        for guard in self.guards:
            guard.note_finished(request)
        self.order.finish(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        """Give a tenant a weight, also while its requests wait. Raises ValueError if not > 0."""
        if not weight > 0:
            raise ValueError(f"weight: {weight} of {tenant} is not above 0")
        for guard in self.guards:
            guard.set_weight(tenant, weight)
        self.order.set_weight(tenant, weight)

    @property
    def level(self) -> float:
        """Return the least counter of the active tenants, in units of service."""
        return self.order.level

    def rebase(self) -> None:
        """Lower all counters so that they stay exact, for a recorded event: no order changes.

        Floats count whole units exactly up to 2**53; a level of 1e12 is a good time.
        """
        self.order.rebase()
