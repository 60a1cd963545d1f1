"""Records of lanes that are full: they wait here, and no other lane waits for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

Deliver = Callable[[Any], Awaitable[bool]]
"""Delivers a record once its lane has room; False if a rebalance came first."""


class Backlogs:
    """The fetched records of full lanes, in order; no more are fetched for them meanwhile.

    `pause` and `resume` get the lane. A backlog is as large as what was fetched at once.
    """

    def __init__(
        self, deliver: Deliver, pause: Callable[[int], None], resume: Callable[[int], None]
    ) -> None:
        self._deliver = deliver
        self._pause = pause
        self._resume = resume
        self._waiting: dict[int, deque[Any]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def __contains__(self, lane: int) -> bool:
        return lane in self._waiting

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, lane: int, message: Any) -> None:
        """Keep a record of a lane that is full, or has a backlog."""
        if lane in self._waiting:
            self._waiting[lane].append(message)
            return
        self._waiting[lane] = deque([message])
        self._pause(lane)
        self._tasks[lane] = asyncio.ensure_future(self._drain(lane))

    async def wait_for_one(self) -> None:
        """Return once one of the backlogs is gone."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        """Drop what waits: the log has it."""
        for task in (tasks := list(self._tasks.values())):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task that had not begun leaves its backlog behind.
        for lane in list(self._waiting):
            self._end(lane)

    async def _drain(self, lane: int) -> None:
        """Deliver until none is left. After a rebalance all of them are read again."""
        waiting = self._waiting[lane]
        try:
            while waiting and await self._deliver(waiting[0]):
                waiting.popleft()
        finally:
            self._end(lane)

    def _end(self, lane: int) -> None:
        del self._waiting[lane], self._tasks[lane]
        self._resume(lane)
