"""Iteration times and log lines: sent if the broker takes them, else dropped."""

from __future__ import annotations

import asyncio
from collections import deque

from services.executor.envelope import wrap_message
from shared.bus.log import Log
from shared.contracts.reports import LogLines, TelemetryReported
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

WAITING = 500
"""Limit of waiting records; the oldest are dropped first."""
TOPIC_OF: dict[type[LogLines | TelemetryReported], str] = {
    TelemetryReported: "telemetry",
    LogLines: "logs",
}


class SoftOutbox:
    """Sends soft records: nothing depends on them, so nothing waits for them."""

    def __init__(self, log: Log, executor_id: str) -> None:
        self._log = log
        self._executor_id = executor_id
        self._waiting: deque[tuple[TP, bytes]] = deque(maxlen=WAITING)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.lost = 0

    def post(self, partition: int, message: LogLines | TelemetryReported, tenant: str = "") -> None:
        record = wrap_message(self._executor_id, message, tenant=tenant)
        self.lost += len(self._waiting) == WAITING
        self._waiting.append((TP(TOPIC_OF[type(message)], partition), record))
        self._idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Wait until all records so far are sent or lost."""
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
                    self.lost += 1
            self._idle.set()
