"""The `access` ledger folded in memory, for a service that answers HTTP beside its lanes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aiokafka.errors import KafkaError

from shared.bus.inputs.inbox import ACCESS
from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.registry import AccessView, Bearer
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted

RETRY_S = 1.0
CATCH_UP_S = 2.0
"""Longest wait of a request with an unknown key, tenant or pool."""

log = logging.getLogger(__name__)


async def read_access(log: Log) -> AccessView:
    """Return the fold of the `access` ledger as it is now."""
    view = AccessView()
    tail = LedgerTail(log, {ACCESS.topic: [ACCESS.partition]})
    await tail.start()
    try:
        while not tail.caught_up:
            for accepted in await tail.poll():
                for fact in accepted.facts():
                    view.apply(fact.event)
    finally:
        await tail.stop()
    return view


class AccessFollower:
    """Keeps a view of keys, tenants and pools up to date with the `access` ledger.

    `view` changes only by accepted events, and stays valid while the ledger cannot be read.
    """

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self.view = AccessView()
        self.next = 0
        """Next offset of the ledger, the first that is not in `view`."""
        self.caught_up = asyncio.Event()
        """Set once `view` holds the ledger as it was at the start."""
        self._open_log = open_log
        self._tail: LedgerTail | None = None
        self._tail_lock = asyncio.Lock()
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Follow the ledger until cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, OutcomeUnknown) as error:
                log.warning("cannot read access, retrying", extra={"reason": type(error).__name__})
            await asyncio.sleep(RETRY_S)

    def fold(self, accepted: Accepted) -> None:
        for fact in accepted.facts():
            self.view.apply(fact.event)

    async def authenticate(self, key: str) -> Bearer | None:
        """Return the bearer of a key, also of one created a moment ago; None if it is not valid."""
        if self.view.is_unknown_key(key):
            await self.catch_up()
        return self.view.authenticate(key)

    async def catch_up(self) -> bool:
        """Wait until `view` holds the ledger as it is now, for `CATCH_UP_S` at most.

        Return whether it does. Call it before an unknown name is refused: each reader of `access`
        has its own lag. One caller at a time queries the broker, so that many unknown keys cost it
        little.
        """
        try:
            async with asyncio.timeout(CATCH_UP_S):
                async with self._tail_lock:
                    if self._tail is None:
                        return False
                    end = await self._tail.end(*ACCESS)
                while self.next < end:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def behind(self) -> dict[TP, int]:
        """Return how many records were not read yet; empty while there is no connection."""
        async with self._tail_lock:
            return {} if self._tail is None else await self._tail.behind()

    async def _follow(self) -> None:
        """Read the ledger from the beginning each time, as it is short, and fold what is new."""
        tail = LedgerTail(self._open_log(), {ACCESS.topic: [ACCESS.partition]})
        try:
            await tail.start()
            self._tail = tail
            while True:
                if tail.caught_up:
                    self.caught_up.set()
                for accepted in await tail.poll():
                    if accepted.offset >= self.next:
                        self.fold(accepted)
                self.next = max(self.next, tail.cursor(*ACCESS).next)
                self._moved.set()
        finally:
            async with self._tail_lock:
                self._tail = None
                await tail.stop()
