"""An accepted event as the CloudEvent that leaves the installation: without private fields."""

from __future__ import annotations

from shared.contracts.private import PRIVATE, strip
from shared.ledger import cloudevents


def encode_public(
    *,
    id: str,
    ledger: str,
    kind: str,
    data: bytes,
    at_ms: int,
    subject: str,
    traceparent: str,
    tenant: str,
    pool: str,
    link: str = "",
) -> bytes:
    """Return the event as structured JSON; `link` is the address of its job in the REST API."""
    hidden = PRIVATE.get(kind)
    return cloudevents.encode(
        id=id,
        source=f"/berth/{ledger}/{pool}" if pool else f"/berth/{ledger}",
        type=kind,
        data=strip(data, hidden) if hidden else data,
        at_ms=at_ms,
        subject=subject,
        traceparent=traceparent,
        tenant=tenant,
        pool=pool,
        link=link,
    )
