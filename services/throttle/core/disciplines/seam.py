"""The seam of the queueing disciplines: an order of service, and guards at the entrance.

Orders and guards are data that only their own methods change. Each of those methods is called
for one recorded event, so a replay of the events gives the same state; `refusal` and
`next_request` change nothing that decides. Times are wall ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from services.throttle.core.disciplines.competition import (
    Ahead,
    Competition,
    ExpectedLength,
    ahead_in,
)
from services.throttle.core.disciplines.request import ServedRequest

FULL_BATCH = 0.9
"""Part of the batch's tokens beyond which an engine is overloaded (FairServe: KV pressure)."""

MINUTE_MS = 60_000
DAY_MS = 86_400_000
"""The longest `retry_after_ms`."""


class EngineLoad(msgspec.Struct, frozen=True):
    """The load of an engine at an arrival: its batch in tokens, and its queue in requests."""

    held_tokens: int
    batch_tokens: int
    waiting: int

    @property
    def is_overloaded(self) -> bool:
        return self.waiting > 0 or self.held_tokens > FULL_BATCH * self.batch_tokens


@dataclass(frozen=True, slots=True)
class Throttled:
    """A reason not to queue a request, and the ms until a retry may succeed, a day at most."""

    reason: str
    retry_after_ms: int | None
    """None where no retry can succeed."""
    detail: str = field(default="", compare=False)
    """The figures, for the sender."""


class ServingOrder:
    """In which order waiting requests are served; by default it charges nothing."""

    __slots__ = ()

    def enqueue(self, request: ServedRequest) -> None:
        """Let the request wait."""
        raise NotImplementedError

    def withdraw(self, request: ServedRequest) -> None:
        """Remove a waiting request that will not be served."""
        raise NotImplementedError

    def next_request(self) -> ServedRequest | None:
        """Return the request to serve next, which stays in the queue; None if none waits.

        If it does not fit the batch, no other request may pass it: the bounds of the orders on
        the difference of services depend on it.
        """
        raise NotImplementedError

    def start(self, request: ServedRequest) -> None:
        """Move the request from the queue into the batch, and charge its tenant."""
        raise NotImplementedError

    def charge(self, request: ServedRequest) -> None:
        """Charge what was made since the last call; `made_tokens` counts it already."""

    def competition(self, request: ServedRequest) -> Competition:
        """Return what is between a request that would be queued now and its start."""
        raise NotImplementedError

    def ahead(self, request: ServedRequest, length: ExpectedLength) -> Ahead:
        """Return what would be served before a request that would be queued now."""
        return ahead_in(self.competition(request), length)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        """Charge the prompt of a running request as the engine counted it.

        `prompt_tokens` of the request is still the estimate that was charged at its start.
        """

    def finish(self, request: ServedRequest) -> None:
        """Settle the charges of a request whose output is complete, or cut."""

    def set_weight(self, tenant: str, weight: float) -> None:
        """Give a tenant a weight above 0; a tenant that has none given weighs 1."""

    def counter_of(self, tenant: str) -> float:
        """Return the service of a tenant per weight, as it is counted; 0 without counters."""
        return 0.0

    def note_service(self, tenant: str, counted: float) -> None:
        """Count service per weight that a tenant got elsewhere; negative: a refund."""

    @property
    def level(self) -> float:
        """Return the least counter of the active tenants; 0 without counters."""
        return 0.0

    @property
    def spread(self) -> float:
        """Return the distance between the counters of waiting tenants; 0 without counters."""
        return 0.0

    def rebase(self) -> None:
        """Lower all counters by the level, in whole units, which changes no order."""


class Guard:
    """Admits requests to the queue; by default all, and nothing is counted."""

    __slots__ = ()

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        """Return why the request may not be queued now; None if it may."""
        return None

    def note_queued(self, request: ServedRequest) -> None:
        """Count a request that was queued."""

    def note_withdrawn(self, request: ServedRequest) -> None:
        """Count a waiting request that will not be served."""

    def note_started(self, request: ServedRequest, at: int) -> None:
        """Count the prompt of a request that was started."""

    def note_made(self, request: ServedRequest, tokens: int, at: int) -> None:
        """Count output tokens; `made_tokens` does not count them yet."""

    def note_prompt(self, request: ServedRequest, tokens: int, at: int) -> None:
        """Count prompt tokens that the engine counted beyond the estimate; negative: fewer."""

    def note_finished(self, request: ServedRequest) -> None:
        """Count the end of a request that was started."""

    def set_weight(self, tenant: str, weight: float) -> None:
        """Give a tenant a weight above 0; a tenant that has none given weighs 1."""
