"""A simulation's facts as the ledgers of an installation, for every reader of those."""

from __future__ import annotations

from collections.abc import Sequence

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event, Model
from shared.contracts.codec import encode as encode_message
from shared.ledger import cloudevents
from shared.ledger.decider import Fact, Input
from shared.ledger.partition import TP
from shared.ledger.record import Position, Record, encode, pack
from shared.ledger.stored_event import stored_event
from simulator.engine.lane import LANE

SOURCE = "/berth/simulator"
WRITER = "simulator"


def record_id(ledger: str, seq: int) -> str:
    """Return the id of a simulated record, "" before the first."""
    return f"{ledger}-{LANE}-{seq}" if seq else ""


def position(ledger: str, seq: int) -> Position:
    """Return the position of a reader after record `seq` of that ledger: every record counts."""
    return (seq, seq, record_id(ledger, seq))


class Ledgers:
    """Writes records and messages into a broker, as the shells would."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker

    def access(self, events: Sequence[Event], at: int) -> None:
        """Write the access service's events about pools and tenants as its first record."""
        facts = [Fact(event, "access", LANE, 1, n, at) for n, event in enumerate(events)]
        self.record("access", facts, {})

    def record(self, ledger: str, facts: Sequence[Fact], vector: dict[str, Position]) -> None:
        """Append one record with these facts."""
        seq = facts[0].seq
        record = Record(
            record_id(ledger, seq),
            seq,
            record_id(ledger, seq - 1),
            WRITER,
            facts[0].at,
            dict(vector),
            pack([stored_event(fact.event, fact.cause, fact.traceparent) for fact in facts]),
        )
        self.broker.append(TP(ledger, LANE), encode(record))

    def message(self, topic: str, item: Input) -> None:
        """Append a command or report, as its producer would."""
        message = item.message
        assert isinstance(message, Model)
        value = cloudevents.encode(
            id=item.id,
            source=SOURCE,
            type=str(getattr(message, "TYPE")),  # noqa: B009
            data=encode_message(message),
            at_ms=item.at,
            subject=item.subject,
            tenant=item.tenant,
            traceparent=item.traceparent,
        )
        self.broker.append(TP(topic, LANE), value)
