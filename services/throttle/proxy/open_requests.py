"""Bounds on what is open at once, of the process and of each tenant: requests and their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from services.throttle.relay.errors import ErrorAnswer, refuse

RETRY_S = 1.0
MIB = 2**20


@dataclass(frozen=True, slots=True)
class OpenRequestLimits:
    """The most that may be open; the bytes are those of bodies, from their arrival to the end, and
    of whole answers, until the client has them."""

    requests: int
    tenant_requests: int
    body_bytes: int
    tenant_body_bytes: int


@dataclass(slots=True)
class OpenTotal:
    """Open requests of a tenant, or of all tenants together."""

    requests: int = 0
    body_bytes: int = 0


class OpenRequests:
    """Counts open requests: `with open_requests.enter()` counts one while its block runs."""

    def __init__(self, limits: OpenRequestLimits) -> None:
        self.limits = limits
        self.all = OpenTotal()
        self.by_tenant: dict[str, OpenTotal] = {}

    def enter(self) -> OpenEntry:
        """Return an entry that counts until its block is left. Raises ErrorAnswer."""
        if self.all.requests >= self.limits.requests:
            raise _busy("process_busy", f"{self.limits.requests} requests are open; retry later")
        return OpenEntry(self)


class OpenEntry:
    """One open request: of the process first, of its tenant once that is known."""

    __slots__ = ("_open_requests", "_body_bytes", "_tenant")

    def __init__(self, open_requests: OpenRequests) -> None:
        self._open_requests = open_requests
        self._body_bytes = 0
        self._tenant = ""

    def __enter__(self) -> OpenEntry:
        self._open_requests.all.requests += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        open_requests, tenant = self._open_requests, self._tenant
        open_requests.all.requests -= 1
        open_requests.all.body_bytes -= self._body_bytes
        if not tenant:
            return
        own = open_requests.by_tenant[tenant]
        own.requests -= 1
        own.body_bytes -= self._body_bytes
        if not own.requests:
            del open_requests.by_tenant[tenant]

    def assign_to(self, tenant: str) -> None:
        """Count the request as one of the tenant. Raises ErrorAnswer."""
        own = self._open_requests.by_tenant.get(tenant)
        most = self._open_requests.limits.tenant_requests
        if own is not None and own.requests >= most:
            raise _busy("tenant_busy", f"{most} requests of the tenant are open; retry later")
        if own is None:
            own = self._open_requests.by_tenant[tenant] = OpenTotal()
        self._tenant = tenant
        own.requests += 1

    def add_bytes(self, size: int) -> None:
        """Count bytes of the body that have arrived. Raises ErrorAnswer."""
        limits, total = self._open_requests.limits, self._open_requests.all
        own = self._open_requests.by_tenant[self._tenant]
        if own.body_bytes + size > limits.tenant_body_bytes:
            text = f"bodies of the tenant's open requests are {limits.tenant_body_bytes} bytes"
            raise _busy("tenant_busy", f"{text}; retry later")
        if total.body_bytes + size > limits.body_bytes:
            text = f"bodies of open requests are {limits.body_bytes} bytes"
            raise _busy("process_busy", f"{text}; retry later")
        self._count(size)

    def hold_answer(self, size: int) -> None:
        """Count bytes of a whole answer until the client has taken them, which is never refused:
        bodies that arrive meanwhile are."""
        self._count(size)

    def _count(self, size: int) -> None:
        self._body_bytes += size
        self._open_requests.by_tenant[self._tenant].body_bytes += size
        self._open_requests.all.body_bytes += size


def _busy(reason: str, text: str) -> ErrorAnswer:
    return refuse(reason, text, retry_after_s=RETRY_S)
