"""Limits of calls per minute: one that always holds, and FairServe's, under overload only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import MINUTE_MS, EngineLoad, Guard, Throttled

LONGEST_INTERACTION = 32
"""Calls of an interaction that are exempt; later ones count as first calls (FairServe)."""


@dataclass(slots=True)
class RecentCalls:
    """The times of the last `limit` calls of each key."""

    limit: int
    times: BoundedTable[str, deque[int]] = field(default_factory=BoundedTable)

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit: {self.limit} calls per minute is below 1")

    def add(self, key: str, at: int) -> None:
        until = at - MINUTE_MS
        times = self.times.touch(
            key, lambda: deque(maxlen=self.limit), lambda old: old[-1] <= until
        )
        times.append(at)

    def retry_after_ms(self, key: str, now: int) -> int | None:
        """Return in how many ms one more call is within the limit; None if it is now."""
        times = self.times.get(key)
        if times is None or len(times) < self.limit or times[0] <= now - MINUTE_MS:
            return None
        return times[0] + MINUTE_MS - now


@dataclass(slots=True)
class RequestRate(Guard):
    """A limit of calls per tenant and minute, also while the engine is idle: the usual RPM.

    Bound: in any minute at most `limit` requests of a tenant are queued.
    """

    limit: int
    calls: RecentCalls = field(init=False)

    def __post_init__(self) -> None:
        self.calls = RecentCalls(self.limit)

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        retry_after_ms = self.calls.retry_after_ms(request.tenant, now)
        return Throttled("request_rate", retry_after_ms) if retry_after_ms is not None else None

    def note_queued(self, request: ServedRequest) -> None:
        self.calls.add(request.tenant, request.queued_at)


@dataclass(slots=True)
class InteractionRate(Guard):
    """FairServe's throttling: under overload only, and only the first call of an interaction.

    It is refused where its tenant, or the tenant's application, has passed the limit of calls per
    minute, in which all stages count. Bound: an engine that is not overloaded refuses nothing, and
    an interaction in progress is not cut within its first `LONGEST_INTERACTION` calls.
    """

    tenant_limit: int
    application_limit: int
    tenants: RecentCalls = field(init=False)
    applications: RecentCalls = field(init=False)

    def __post_init__(self) -> None:
        self.tenants = RecentCalls(self.tenant_limit)
        self.applications = RecentCalls(self.application_limit)

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        if is_in_progress(request) or not load.is_overloaded:
            return None
        by_tenant = self.tenants.retry_after_ms(request.tenant, now)
        if by_tenant is not None:
            return Throttled("tenant_rate", by_tenant)
        by_application = self.applications.retry_after_ms(_application(request), now)
        if by_application is not None:
            return Throttled("application_rate", by_application)
        return None

    def note_queued(self, request: ServedRequest) -> None:
        self.tenants.add(request.tenant, request.queued_at)
        self.applications.add(_application(request), request.queued_at)


def _application(request: ServedRequest) -> str:
    """Return the key of an application, which is that of its tenant: no name has a slash."""
    return f"{request.tenant}/{request.application}"


def is_in_progress(request: ServedRequest) -> bool:
    """Return whether a refusal would cut an interaction that is not suspiciously long."""
    return request.is_in_progress and request.stage < LONGEST_INTERACTION
