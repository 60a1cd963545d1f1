"""Clients of a real broker, as patient as the tests are: a busy machine is no unknown outcome."""

from __future__ import annotations

import asyncio

from shared.bus.kafka import KafkaLog
from shared.bus.log import Headers
from shared.bus.producer import TopicProducer
from shared.connection import Connection
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
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


def log_of(connection: Connection) -> PatientLog:
    return PatientLog(connection, client="test", append_ms=PATIENCE_MS)


def producer_of(connection: Connection) -> TopicProducer:
    return TopicProducer(connection, client="test", timeout_ms=PATIENCE_MS)
