"""Settings of this executor's pools, read from `access`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shared.bus.hosting.access import AccessFollower
from shared.bus.logs.log import Log
from shared.contracts.pools import PoolConfigured
from shared.ledger.reader import Accepted


class PoolDirectory(AccessFollower):
    """Follows `access`, and calls the listener of a pool at each change of its settings."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        super().__init__(open_log)
        self._folded = asyncio.Event()
        self._listeners: dict[str, Callable[[PoolConfigured], None]] = {}

    async def wait_for(self, pool: str) -> PoolConfigured:
        """Wait until the pool exists, and return its settings."""
        while pool not in self.view.pools:
            self._folded.clear()
            await self._folded.wait()
        return self.view.pools[pool]

    def listen(self, pool: str, changed: Callable[[PoolConfigured], None]) -> None:
        """Call `changed` with the present settings, if any, and at each change."""
        self._listeners[pool] = changed
        if pool in self.view.pools:
            changed(self.view.pools[pool])

    def fold(self, accepted: Accepted) -> None:
        for fact in accepted.facts():
            self.view.apply(fact.event)
            match fact.event:
                case PoolConfigured(pool=pool) if pool in self._listeners:
                    self._listeners[pool](fact.event)
        self._folded.set()
