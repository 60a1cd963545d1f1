"""What `access` says of the pools of this executor: their lanes, time scale, allowed backends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shared.bus.tail import LedgerTail
from shared.contracts.access import PoolConfigured
from shared.ledger.decider import Fact
from shared.ledger.partition import TP


class PoolWatch:
    """Folds the pools out of the `access` ledger, for as long as `run` runs."""

    def __init__(self, tail: LedgerTail) -> None:
        self._tail = tail
        self._pools: dict[str, PoolConfigured] = {}
        self._changed = asyncio.Condition()
        self._listeners: dict[str, Callable[[PoolConfigured], None]] = {}

    async def known(self, pool: str) -> PoolConfigured:
        """Waits until there is such a pool."""
        async with self._changed:
            await self._changed.wait_for(lambda: pool in self._pools)
        return self._pools[pool]

    def listen(self, pool: str, changed: Callable[[PoolConfigured], None]) -> None:
        """From now on, at each change; at once with what is known already."""
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
                        await self._note(accepted.facts())
                        break

    async def _note(self, facts: list[Fact]) -> None:
        for fact in facts:
            if isinstance(fact.event, PoolConfigured):
                self._pools[fact.event.pool] = fact.event
                if changed := self._listeners.get(fact.event.pool):
                    changed(fact.event)
        async with self._changed:
            self._changed.notify_all()
