"""Settings of this executor's pools, read from `access`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shared.bus.tail import LedgerTail
from shared.contracts.access import PoolConfigured
from shared.ledger.decider import Fact
from shared.ledger.partition import TP


class PoolWatch:
    """Folds the pools of the `access` ledger while `run` runs."""

    def __init__(self, tail: LedgerTail) -> None:
        self._tail = tail
        self._pools: dict[str, PoolConfigured] = {}
        self._changed = asyncio.Condition()
        self._listeners: dict[str, Callable[[PoolConfigured], None]] = {}

    async def wait_for(self, pool: str) -> PoolConfigured:
        """Wait until the pool exists, and return its settings."""
        async with self._changed:
            await self._changed.wait_for(lambda: pool in self._pools)
        return self._pools[pool]

    def listen(self, pool: str, changed: Callable[[PoolConfigured], None]) -> None:
        """Call `changed` with the present settings, if any, and at each change."""
        self._listeners[pool] = changed
        if pool in self._pools:
            changed(self._pools[pool])

    async def start(self) -> None:
        await self._tail.start()

    async def close(self) -> None:
        await self._tail.stop()

    async def behind(self) -> dict[TP, int]:
        return await self._tail.behind()

    async def run(self) -> None:
        async for batch in self._tail:
            for accepted in batch:
                for raw in accepted.raw():
                    if raw.type.startswith("pool.configured."):
                        await self._apply(accepted.facts())
                        break

    async def _apply(self, facts: list[Fact]) -> None:
        for fact in facts:
            if isinstance(fact.event, PoolConfigured):
                self._pools[fact.event.pool] = fact.event
                if changed := self._listeners.get(fact.event.pool):
                    changed(fact.event)
        async with self._changed:
            self._changed.notify_all()
