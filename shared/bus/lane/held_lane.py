"""A lane with the tasks that live as long as it is held."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from shared.bus.lane.lane import Lane

S = TypeVar("S")

STOP_S = 1.5


class HeldLane(Generic[S]):
    """A running lane; the first of `tasks` is its `run`."""

    def __init__(self, lane: Lane[S], tasks: list[asyncio.Task[None]]) -> None:
        self.lane = lane
        self.primed = asyncio.Event()
        """Set once the lane has read `access` as far as it went at the start of the process."""
        self.behind = asyncio.Event()
        """Set when a topic no longer has the next record of an input."""
        self._run, *self._others = tasks

    def add(self, task: asyncio.Task[None]) -> None:
        """Let another task end with the lane."""
        self._others.append(task)

    async def stop(self) -> None:
        """End the tasks, revoke the lane and stop it; the tasks and an append get `STOP_S` each.

        A task that is cancelled may still offer what the lane has to know.
        """
        for task in self._others:
            task.cancel()
        if self._others:
            await asyncio.wait(self._others, timeout=STOP_S)
        await self.lane.revoke()
        await asyncio.wait([self._run], timeout=STOP_S)
        self._run.cancel()
        await asyncio.wait([self._run, *self._others])
        await self.lane.stop()
