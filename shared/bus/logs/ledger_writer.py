"""Writes ledgers into a broker in memory: records with a valid chain, from plain events."""

from __future__ import annotations

from collections.abc import Sequence

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event
from shared.ledger.partition import TP
from shared.ledger.record import Position, Record, encode, pack
from shared.ledger.stored_event import stored_event


class LedgerWriter:
    """Writes one ledger partition; `at` grows by `step_ms` with each record."""

    def __init__(
        self, broker: MemoryBroker, ledger: str, partition: int = 0, *, step_ms: int = 10
    ) -> None:
        self._broker = broker
        self._tp = TP(ledger, partition)
        self._seq = 0
        self._id = ""
        self._step_ms = step_ms
        self.at = 1_700_000_000_000
        self.inputs: dict[str, Position] = {}
        """Input vector of the next records."""

    def write(self, events: Sequence[Event], *, at: int | None = None, trace: str = "") -> str:
        """Append an accepted record; return the position of its first event, `partition/seq/0`."""
        self._seq += 1
        self.at = at if at is not None else self.at + self._step_ms
        previous, self._id = self._id, f"{self._tp.key}-{self._seq}"
        record = Record(
            id=self._id,
            seq=self._seq,
            prev=previous,
            w="pen",
            at=self.at,
            inputs=self.inputs,
            ev=pack([stored_event(event, traceparent=trace) for event in events]),
        )
        self._broker.append(self._tp, encode(record))
        return f"{self._tp.partition}/{self._seq}/0"

    def scribble(self, value: bytes) -> None:
        """Append a record that no reader accepts."""
        self._broker.append(self._tp, value)
