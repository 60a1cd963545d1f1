"""Clients of a real broker, as patient as the tests are: a busy machine is no unknown outcome."""

from __future__ import annotations

import asyncio

from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Entry, Headers, Log, fetch
from shared.bus.logs.producer import TopicProducer
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.patience import PATIENCE_S

PATIENCE_MS = round(1000 * PATIENCE_S)


class PatientLog(KafkaLog):
    """Appends again what is not known to be there: readers ignore a repeated record."""

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    return await super().append(tp, value, key=key, headers=headers)
                except OutcomeUnknown:
                    await asyncio.sleep(0.1)


async def read_to_end(log: Log, tp: TP, offset: int = 0) -> list[Entry]:
    """Return the entries from the offset to the end that the log has now."""
    entries: list[Entry] = []
    end = await log.end(tp)
    while (position := offset + len(entries)) < end:
        entries += await fetch(log, tp, position, 1_000, 1.0)
    return entries


def log_of(connection: Connection) -> PatientLog:
    return PatientLog(connection, client="test", append_ms=PATIENCE_MS)


def producer_of(connection: Connection) -> TopicProducer:
    return TopicProducer(connection, client="test", timeout_ms=PATIENCE_MS)
