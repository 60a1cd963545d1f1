"""Reports to placement: batched, and sent one record at a time until acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque

from services.executor.envelope import wrap_message
from shared.bus.failpoints import FAILPOINTS
from shared.bus.logs.log import Log
from shared.contracts.reports import ExecutorReported, Report
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

MAX_REPORTS = 500
"""Reports per record, which must stay below the broker's limit."""
RETRY_S = (0.1, 0.5, 1.0, 2.0)


class Reporter:
    """Sends reports at least once, in order; a record sent again has the same id."""

    def __init__(self, log: Log, tp: TP, executor_id: str, pool: str, window_s: float) -> None:
        self._log = log
        self._tp = tp
        self._executor_id = executor_id
        self._pool = pool
        self._window_s = window_s
        self._waiting: deque[Report] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, report: Report) -> None:
        self._waiting.append(report)
        self._idle.clear()
        self._wake.set()

    @property
    def idle(self) -> bool:
        return self._idle.is_set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._window_s)
            self._wake.clear()
            while self._waiting:
                await self._send(self._record())
            self._idle.set()

    async def drained(self) -> None:
        """Wait until all reports so far are acknowledged."""
        await self._idle.wait()

    def _record(self) -> bytes:
        count = min(len(self._waiting), MAX_REPORTS)
        reports = tuple(self._waiting.popleft() for _ in range(count))
        message = ExecutorReported(executor_id=self._executor_id, reports=reports)
        return wrap_message(self._executor_id, message, pool=self._pool)

    async def _send(self, record: bytes) -> None:
        failures = 0
        FAILPOINTS.hit("before_report")
        while True:
            try:
                await self._log.append(self._tp, record)
                FAILPOINTS.hit("after_report")
                return
            except OutcomeUnknown:
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                failures += 1
