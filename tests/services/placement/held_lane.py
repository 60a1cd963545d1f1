"""A lane over the pool of a test, for the tasks of lanes."""

from __future__ import annotations

import asyncio

from services.placement.core.pool.state import Pool
from shared.contracts.base import Local
from tests.services.placement.core.lane import Lane


class HeldLane:
    """Its time is that of the pool; what is offered to it is kept."""

    def __init__(self, pool: Lane) -> None:
        self.pool, self.partition = pool, 0
        self.offered: asyncio.Queue[Local] = asyncio.Queue()

    @property
    def state(self) -> Pool:
        return self.pool.state

    def now_ms(self) -> int:
        return self.pool.now

    def offer(self, answer: Local) -> None:
        self.offered.put_nowait(answer)
