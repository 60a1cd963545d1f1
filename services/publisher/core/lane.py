"""Turns the accepted records of one lane into public CloudEvents with the position after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from services.publisher.core.position import LanePositions, LedgerPosition, after, encode
from shared.contracts.base import EVENTS
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.pools import PoolConfigured
from shared.contracts.rejected import InputRejected
from shared.contracts.upcast import upcast
from shared.ledger.publication import encode_public
from shared.ledger.reader import Accepted, RawFact


class Peek(msgspec.Struct):
    """The fields that determine the destination of an event."""

    tenant: str | None = None
    pool: str | None = None
    endpoint: str | None = None


class Published(NamedTuple):
    """One public event; `cursor` holds once this event and all before it are written.

    Only the last event of a record of a ledger has one.
    """

    id: str
    key: bytes
    value: bytes
    traceparent: str
    tenant: str
    at: int
    cursor: bytes
    rejected: bytes | None = None


_peek = msgspec.json.Decoder(Peek)
NAMES_LANE = {PoolConfigured.TYPE, EndpointConfigured.TYPE}


class PublisherLane:
    """Publishes one lane; the same records give the same bytes, wherever a restart begins."""

    def __init__(self, positions: LanePositions) -> None:
        self.positions = positions
        self.unknown = 0

    def publish(self, accepted: Accepted) -> list[Published]:
        """Return the events of one record; only the last has a position, which is that after the
        record, so that a restart within the record begins at it again."""
        position = self.positions.setdefault(accepted.ledger, LedgerPosition())
        out = list(self._events(accepted, position))
        position.cursor = after(accepted)
        if out:
            out[-1] = out[-1]._replace(cursor=encode(self.positions))
        return out

    def _events(self, accepted: Accepted, position: LedgerPosition) -> Iterator[Published]:
        for raw in accepted.raw():
            kind, data = upcast(raw.type, raw.data)
            event = EVENTS.get(kind)
            if event is None:
                self.unknown += 1
                continue
            peek = _peek.decode(data)
            if kind in NAMES_LANE and accepted.ledger != "access":
                position.pool = peek.pool or peek.endpoint or ""
            if event.PUBLIC:
                yield _published(accepted, raw, kind, data, peek.tenant or "", position.pool)


def _published(
    accepted: Accepted, raw: RawFact, kind: str, data: bytes, tenant: str, pool: str
) -> Published:
    id = accepted.fact_id(raw.index)
    value = encode_public(
        id=id,
        ledger=accepted.ledger,
        kind=kind,
        data=data,
        at_ms=raw.at,
        subject=raw.subject,
        traceparent=raw.traceparent,
        tenant=tenant,
        pool=pool,
    )
    rejected = data if kind == InputRejected.TYPE else None
    return Published(
        id, raw.subject.encode(), value, raw.traceparent, tenant, raw.at, b"", rejected
    )
