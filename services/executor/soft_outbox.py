"""Iteration times and log lines: sent if the broker takes them, else dropped."""

from __future__ import annotations

import asyncio
from collections import deque

from services.executor.envelope import wrap_message
from shared.bus.logs.log import Log
from shared.contracts.reports import LogLines, TelemetryReported
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

WAITING = 500
"""Limit of waiting records; the oldest are dropped first."""
TOPIC_OF: dict[type[LogLines | TelemetryReported], str] = {
    TelemetryReported: "telemetry",
    LogLines: "logs",
}


class SoftOutbox:
    """Sends soft records: nothing depends on them, so nothing waits for them."""

    def __init__(self, log: Log, executor_id: str, metrics: Metrics) -> None:
        self._log = log
        self._executor_id = executor_id
        self._waiting: deque[tuple[TP, bytes]] = deque(maxlen=WAITING)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._dropped_records = metrics.dropped_records

    def post(self, partition: int, message: LogLines | TelemetryReported, tenant: str = "") -> None:
        record = wrap_message(self._executor_id, message, tenant=tenant)
        if len(self._waiting) == WAITING:
            self._note_dropped(self._waiting[0][0])
        self._waiting.append((TP(TOPIC_OF[type(message)], partition), record))
        self._idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Wait until all records so far are sent or dropped."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                tp, record = self._waiting.popleft()
                try:
                    await self._log.append(tp, record)
                except OutcomeUnknown:
                    self._note_dropped(tp)
            self._idle.set()

    def _note_dropped(self, tp: TP) -> None:
        self._dropped_records.labels(tp.topic).inc()
