"""Durable appends of many requests as one record, as a lane makes them, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from shared.bus.logs.log import Log
from shared.ledger.partition import TP

WINDOW_S = 0.005
"""As in the lanes of the throttle: others may join the first request for so long."""


class GroupAppends:
    """One append is in flight; what comes meanwhile, and within the window, is in the next."""

    def __init__(self, log: Log, tp: TP, window_s: float = WINDOW_S) -> None:
        self._log = log
        self._tp = tp
        self._window_s = window_s
        self._waiting: list[tuple[Mapping[str, object], asyncio.Future[None]]] = []
        self._appending: asyncio.Task[None] | None = None

    async def add(self, row: Mapping[str, object]) -> None:
        """Return once the log has the row. Raises the error of the append."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, done))
        if self._appending is None or self._appending.done():
            self._appending = asyncio.create_task(self._append_all())
        await done

    async def _append_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._window_s)
            group, self._waiting = self._waiting, []
            error: Exception | None = None
            try:
                await self._log.append(self._tp, json.dumps([row for row, _ in group]).encode())
            except Exception as caught:
                error = caught
            for _, done in group:
                if done.done():
                    continue
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)
