"""The `access` ledger folded in memory, for a service that answers HTTP beside its lanes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from aiokafka.errors import KafkaError

from shared.bus.inbox import ACCESS
from shared.bus.log import Log
from shared.bus.tail import LedgerTail
from shared.contracts.registry import AccessView, Bearer
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.reader import Accepted

RETRY_S = 1.0
CATCH_UP_S = 2.0
"""At most so long somebody waits to hear that nobody knows them."""

log = logging.getLogger(__name__)


class AccessFollower:
    """`view` changes only by accepted events, and stays good while the ledger cannot be read; a
    revoked key opens nothing from that moment on."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self.view = AccessView()
        self.next = 0
        """The next offset of the ledger that is not in `view` yet."""
        self.caught_up = asyncio.Event()
        """Set once `view` has what was there at the start."""
        self._open_log = open_log
        self._tail: LedgerTail | None = None
        self._using = asyncio.Lock()
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Follows the ledger until it is cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, OutcomeUnknown) as error:
                log.warning("access is not read", extra={"reason": type(error).__name__})
            await asyncio.sleep(RETRY_S)

    def fold(self, accepted: Accepted) -> None:
        for fact in accepted.facts():
            self.view.apply(fact.event)

    async def authenticate(self, key: str) -> Bearer | None:
        """Return the bearer of a key, be it made a moment ago; None for one that opens nothing."""
        if self.view.is_unknown_key(key):
            await self.catch_up()
        return self.view.authenticate(key)

    async def catch_up(self) -> None:
        """Returns once `view` has all that was there when it was asked, or not in time. To be
        called before somebody is turned away as unknown: each reader hears of them at its own
        pace. The broker is asked by one at a time, however many are strangers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                async with self._using:
                    end = await self._tail.end(*ACCESS) if self._tail is not None else 0
                while self.next < end:
                    self._moved.clear()
                    await self._moved.wait()

    async def _follow(self) -> None:
        """From the beginning each time: it is short, and applying an event again changes nothing
        that its successors do not set right."""
        tail = LedgerTail(self._open_log(), {ACCESS.topic: [ACCESS.partition]})
        try:
            await tail.start()
            self._tail = tail
            while True:
                if tail.caught_up:
                    self.caught_up.set()
                for accepted in await tail.poll():
                    self.fold(accepted)
                self.next = max(self.next, tail.cursor(*ACCESS).next)
                self._moved.set()
        finally:
            async with self._using:
                self._tail = None
                await tail.stop()
