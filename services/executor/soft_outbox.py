"""Iteration times and log lines: sent if the broker takes them, else dropped."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from services.executor.envelope import wrap_message
from shared.bus.logs.log import Log
from shared.contracts.reports import LogLines, TelemetryReported
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

WAITING = 500
"""Limit of waiting records; the oldest of the tenant with most of them are dropped first."""
TOPIC_OF: dict[type[LogLines | TelemetryReported], str] = {
    TelemetryReported: "telemetry",
    LogLines: "logs",
}


class SoftOutbox:
    """Sends soft records: nothing depends on them, so nothing waits for them.

    Tenants take turns: output of one neither delays nor displaces that of others.
    """

    def __init__(self, log: Log, executor_id: str, metrics: Metrics) -> None:
        self._log = log
        self._executor_id = executor_id
        self._waiting: OrderedDict[str, deque[tuple[TP, bytes]]] = OrderedDict()
        """Records by tenant, that of the next turn first."""
        self._count = 0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._dropped_records = metrics.dropped_records

    def post(self, partition: int, message: LogLines | TelemetryReported, tenant: str = "") -> None:
        record = wrap_message(self._executor_id, message, tenant=tenant)
        if self._count == WAITING:
            most = max(self._waiting, key=lambda name: len(self._waiting[name]))
            self._note_dropped(self._take(most)[0])
        self._waiting.setdefault(tenant, deque()).append(
            (TP(TOPIC_OF[type(message)], partition), record)
        )
        self._count += 1
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
                tp, record = self._take(next(iter(self._waiting)))
                try:
                    await self._log.append(tp, record)
                except OutcomeUnknown:
                    self._note_dropped(tp)
            self._idle.set()

    def _take(self, tenant: str) -> tuple[TP, bytes]:
        """Remove the oldest record of a tenant, for which it is the last one's turn."""
        records = self._waiting[tenant]
        taken = records.popleft()
        self._count -= 1
        if records:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        return taken

    def _note_dropped(self, tp: TP) -> None:
        self._dropped_records.labels(tp.topic).inc()
