"""Checks the logs of the held lanes for unread inputs and lost tails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from shared.bus.lane.lane import Lane
from shared.bus.logs.bounds import check_reaches
from shared.bus.logs.log import Log
from shared.ledger.errors import Stalled
from shared.ledger.partition import TP

CHECK_EVERY_S = 5.0
STALLED_S = 30.0


class Watchdog:
    """Checks for inputs that grow unread (Stalled) and for logs that became shorter (TailLost).

    A dead consumer looks alive, and an idle lane would not notice a lost tail before its next
    append.
    """

    def __init__(self, client: Log, lanes: Callable[[], Iterable[Lane[Any]]]) -> None:
        self._client = client
        self._lanes = lanes
        self._unmoved: dict[TP, tuple[int, float]] = {}
        """Per input, its next offset and since when that has not moved, s (monotonic)."""
        self._checked: dict[TP, int] = {}
        """Per log, an offset that a read has confirmed although the broker reported a lower end."""

    async def run(self) -> None:
        checked_s = time.monotonic()
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            now_s = time.monotonic()
            if now_s - checked_s > 2 * CHECK_EVERY_S:
                self._unmoved.clear()  # the broker was away, or this process slept
            checked_s = now_s
            for lane in list(self._lanes()):
                for tp, offset in lane.known_offsets().items():
                    await self._check(lane, tp, offset, now_s)
                lane.mark()

    async def _check(self, lane: Lane[Any], tp: TP, offset: int, now_s: float) -> None:
        end = await self._client.end(tp)
        if end < offset and self._checked.get(tp) != offset:
            await check_reaches(self._client, tp, offset)
            self._checked[tp] = offset
        unmoved_offset, since_s = self._unmoved.get(tp, (-1, 0.0))
        if end <= offset or tp == lane.tp or unmoved_offset != offset:
            self._unmoved[tp] = (offset, now_s)
        elif now_s - since_s > STALLED_S:
            raise Stalled(f"{tp.key} grows, and is read only up to {offset}")
