"""Delivers to a lane those records of its inputs that only the archive has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from shared.bus.archive.tiered_log import TieredLog
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.held_lane import HeldLane
from shared.bus.lane.lane import Lane
from shared.ledger.partition import TP

POLL_S = 0.5

Seek = Callable[[TP, int], Awaitable[None]]
"""Has the host read an input from this offset on."""


class CatchUp:
    """Faust reads topics alone: below a topic's begin it would continue at the begin.

    Lanes with such an input read it here, up to the begin. The lane must have read `access`
    before, as for any input.
    """

    def __init__(self, log: TieredLog) -> None:
        self._log = log

    async def is_due(self, lane: Lane[Any], tp: TP) -> bool:
        """Return whether the topic no longer has the next record of this input."""
        return lane.next_offsets()[tp] < await self._log.topics.begin(tp)

    async def follow(self, held: HeldLane[Any], seek: Seek) -> None:
        """Catch up at the start of a lane and whenever it is behind, until cancelled."""
        await held.primed.wait()
        while True:
            held.behind.clear()
            for tp in held.lane.next_offsets():
                if tp != ACCESS and await self.is_due(held.lane, tp):
                    await self._read(held.lane, tp)
                    await seek(tp, held.lane.next_offsets()[tp])
            await held.behind.wait()

    async def _read(self, lane: Lane[Any], tp: TP) -> None:
        """Read what is due. Raises TailLost if neither archive nor topic has the next record."""
        feed = await self._log.feed({tp: lane.next_offsets()[tp]})
        try:
            while await self.is_due(lane, tp):
                for entry in (await feed.poll(POLL_S)).get(tp, []):
                    if await lane.deliver(tp, entry.offset, entry.value) == "gap":
                        await feed.seek(tp, lane.next_offsets()[tp])
                        break
        finally:
            await feed.close()
