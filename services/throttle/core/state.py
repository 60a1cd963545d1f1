"""The state of one endpoint: waiting and running requests, and what orders and limits them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.fcfs import Fcfs
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad
from services.throttle.core.interactions import Interactions
from services.throttle.core.speed import EngineSpeed
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured
from shared.ledger.answers import AnsweredCommands
from shared.ledger.recent_ids import RecentIds


class OpenRequest(msgspec.Struct, eq=False):
    """A request from its acceptance to its end."""

    served: ServedRequest
    traceparent: str = ""
    place: str = ""
    """`partition/offset` of its record in `llm.requests`; empty if it came by HTTP."""

    @property
    def request_id(self) -> str:
        return self.served.request_id

    @property
    def tenant(self) -> str:
        return self.served.tenant


@dataclass(slots=True)
class EndpointState:
    """The state of one lane, which belongs to one endpoint; only `evolve` changes it."""

    partition: int
    endpoint: EndpointConfigured | None = None
    last_endpoint: EndpointConfigured | None = None
    """The settings by whose prices open requests are settled, also of a deleted endpoint."""
    discipline: Discipline = field(default_factory=lambda: Discipline(Fcfs()))
    tenants: dict[str, TenantNoted] = field(default_factory=dict)
    waiting: dict[str, OpenRequest] = field(default_factory=dict)
    """In the order of arrival."""
    running: dict[str, OpenRequest] = field(default_factory=dict)
    """Those that an engine serves, or may serve: their reservations are open."""
    progress: int = 0
    """Starts, reports and ends of running requests so far."""
    ends: tuple[tuple[int, int], list[float]] | None = field(
        default=None, compare=False, repr=False
    )
    """When places are free, for `progress` and a number of places; only a cache of `estimate`."""
    waiting_of: dict[str, int] = field(default_factory=dict)
    """Waiting requests by tenant; a tenant without any is not in it."""
    capacity: int = 0
    """Requests that the engines take at once; 0 until the shell has seen one."""
    stepped_ms: int = 0
    """By how much the clock stepped in all; times of the state are those of the ledger less it."""
    overloaded: bool = False
    """Whether an engine reports a queue of its own or a full cache."""
    retraining_share: float | None = None
    """Part of the engines' free time that retraining may take; None: the GPUs are not shared."""
    away: str = ""
    """Why no engine can serve; empty if one can, or only pauses."""
    away_since: int = 0
    """When that began, or when the endpoint was configured if that was later."""
    interactions: Interactions = field(default_factory=Interactions)
    speed: EngineSpeed = field(default_factory=EngineSpeed)
    accepted_ids: RecentIds = field(default_factory=RecentIds)
    """Requests that were accepted, also those that have ended."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def endpoint_name(self) -> str:
        return self.endpoint.endpoint if self.endpoint else ""

    @property
    def load(self) -> EngineLoad:
        """Return how full the engines are, in tokens where the endpoint limits them."""
        waiting = len(self.waiting) + (1 if self.overloaded else 0)
        if self.endpoint is not None and self.endpoint.batch_tokens is not None:
            held_tokens = sum(request.served.held_tokens for request in self.running.values())
            return EngineLoad(held_tokens, self.endpoint.batch_tokens, waiting)
        return EngineLoad(len(self.running), self.capacity, waiting)

    def note_of(self, tenant: str) -> TenantNoted | None:
        """Return the tenant as the ledger has it; None if it does not know it."""
        return self.tenants.get(tenant)

    def find_request(self, request_id: str) -> OpenRequest | None:
        return self.waiting.get(request_id) or self.running.get(request_id)

    def open_requests(self) -> Iterator[OpenRequest]:
        """Yield the running requests, in the order of their starts, then those that wait."""
        yield from self.running.values()
        yield from self.waiting.values()
