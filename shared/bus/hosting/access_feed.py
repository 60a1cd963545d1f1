"""One reader of `access` for all lanes of a process; each lane gets every record once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.held_lane import HeldLane
from shared.bus.logs.log import Feed, Log

POLL_S = 0.5


class AccessFeed:
    """Delivers `access` to the held lanes, from the lane that has read least of it.

    A lane is primed once it has read as far as the ledger went when the feed began; until then it
    takes no other input.
    """

    def __init__(
        self, client: Log, held: Mapping[int, HeldLane[Any]], on_primed: Callable[[], None]
    ) -> None:
        self._client = client
        self._held = held
        self._on_primed = on_primed
        self._assigned = asyncio.Event()

    def note_assigned(self) -> None:
        """Note that the set of held lanes has changed."""
        self._assigned.set()

    async def run(self) -> None:
        end = await self._client.end(ACCESS)
        position = await self._next()
        feed = await self._client.feed({ACCESS: position})
        try:
            await self._deliver(feed, position, end)
        finally:
            await feed.close()

    async def _deliver(self, feed: Feed, position: int, end: int) -> None:
        while True:
            position = await self._seek(feed, position)
            entries = (await feed.poll(POLL_S)).get(ACCESS, [])
            for entry in entries:
                for held in list(self._held.values()):
                    await held.lane.deliver(ACCESS, entry.offset, entry.value)
                position = entry.offset + 1
            self._prime(end)
            if not entries:
                await self._release_held(position)

    async def _next(self) -> int:
        """Wait for a lane; return the first offset that any of them lacks."""
        while not self._held:
            self._assigned.clear()
            await self._assigned.wait()
        return min(held.lane.next_offsets()[ACCESS] for held in self._held.values())

    async def _seek(self, feed: Feed, position: int) -> int:
        """Have the feed continue at the first offset that any lane lacks; return it."""
        offset = await self._next()
        if offset != position:
            await feed.seek(ACCESS, offset)
        return offset

    def _prime(self, end: int) -> None:
        for held in self._held.values():
            if held.lane.next_offsets()[ACCESS] >= end:
                held.primed.set()
        self._on_primed()

    async def _release_held(self, position: int) -> None:
        """Release inputs that wait for a record which `access` does not hold."""
        holding = [held.lane for held in self._held.values() if held.lane.inbox.is_holding]
        if holding and await self._client.end(ACCESS) <= position:
            for lane in holding:
                lane.release_held()
