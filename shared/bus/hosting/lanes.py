"""The lanes of a process: started when assigned, stopped when revoked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Generic, TypeAlias, TypeVar

from shared.bus.archive.tiered_log import TieredLog
from shared.bus.clock import WallClock
from shared.bus.fatal import supervise
from shared.bus.hosting.access_feed import AccessFeed
from shared.bus.hosting.catch_up import CatchUp, Seek
from shared.bus.hosting.watchdog import Watchdog
from shared.bus.inputs.inbox import ACCESS, Delivery
from shared.bus.lane.held_lane import HeldLane
from shared.bus.lane.lane import Lane
from shared.bus.logs.bounds import check_reaches
from shared.bus.logs.log import Log
from shared.contracts.topics import LOSSY_INPUTS
from shared.ledger.errors import LaneHalted, TailLost
from shared.ledger.partition import TP

S = TypeVar("S")

OnLane: TypeAlias = Callable[[Lane[Any]], Coroutine[Any, Any, None]]
"""Work of the shell that runs while a lane is held."""

log = logging.getLogger(__name__)


class Lanes(Generic[S]):
    """Runs a `Lane` per assigned partition and hands each input record to its lane."""

    def __init__(
        self,
        make: Callable[[int], Lane[S]],
        client: Log,
        *,
        on_lane: OnLane | None = None,
        follows_access: bool = True,
        wall: WallClock | None = None,
    ) -> None:
        self.wall = wall or WallClock()
        """The clock of the process, which all of its lanes read."""
        self._make = make
        self._client = client
        self._on_lane = on_lane
        self._held: dict[int, HeldLane[S]] = {}
        self._halted: dict[int, LaneHalted] = {}
        self._topics = client.topics if isinstance(client, TieredLog) else client
        self._catch_up = CatchUp(client) if isinstance(client, TieredLog) else None
        self.seek: Seek = _ignore_seek
        """Set by a host that reads the topics by itself."""
        self._access = AccessFeed(client, self._held, self._note_ready) if follows_access else None
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._stops: list[asyncio.Task[None]] = []
        self._assigned = False
        self.ready = asyncio.Event()
        """Set while every assigned lane is primed, and none is halted; also without lanes."""

    @property
    def held(self) -> dict[int, Lane[S]]:
        """The lanes of this process, by partition."""
        return {partition: held.lane for partition, held in self._held.items()}

    @property
    def halted(self) -> dict[int, LaneHalted]:
        """The lanes of this process that cannot go on, by partition, with the reason."""
        return dict(self._halted)

    async def reach(self) -> None:
        """Return once the broker answers; call it before code that does not wait for it."""
        await self._client.start()
        await self._client.stop()

    async def start(self) -> None:
        await self._client.start()
        watchdog = Watchdog(self._client, lambda: self.held.values())
        self._tasks = [supervise(watchdog.run(), "watchdog")]
        if self._access is not None:
            self._tasks.append(supervise(self._access.run(), "access"))

    async def assign(self, partitions: Collection[int]) -> dict[TP, int]:
        """Hold exactly these lanes from now on; return the next offset of every input."""
        async with self._changing:
            known = self._held.keys() | self._halted.keys()
            lost = [partition for partition in known if partition not in partitions]
            gained = [partition for partition in sorted(partitions) if partition not in known]
            await asyncio.gather(*(self._revoke(partition) for partition in lost))
            await asyncio.gather(*(self._start(partition) for partition in gained))
        self._assigned = True
        if self._access is not None:
            self._access.note_assigned()
        self._note_ready()
        return self.next_offsets()

    def next_offsets(self) -> dict[TP, int]:
        """Return the next offset of each input but `access`, which is read here."""
        return {
            tp: offset
            for lane in self.held.values()
            for tp, offset in lane.next_offsets().items()
            if tp != ACCESS
        }

    async def behind(self) -> dict[TP, int]:
        """Return how many records of each input no lane has read yet, as the broker counts."""
        offsets: dict[TP, int] = {}
        for lane in self.held.values():
            for tp, offset in lane.next_offsets().items():
                offsets[tp] = min(offset, offsets.get(tp, offset))
        return {tp: max(0, await self._client.end(tp) - offset) for tp, offset in offsets.items()}

    def is_open(self, partition: int) -> bool:
        """Return whether `deliver` would not have to wait."""
        held = self._held.get(partition)
        return held is None or (held.primed.is_set() and held.lane.inbox.has_room)

    async def deliver(self, tp: TP, offset: int, value: bytes | None) -> Delivery:
        """Take one record of an input; blocks while the lane is full or not primed."""
        held = self._held.get(tp.partition)
        if held is None:
            return "old"
        await held.primed.wait()
        return await held.lane.deliver(tp, offset, value)

    async def resume_at(self, tp: TP) -> int | None:
        """Return where a host has to continue after a gap; None if the lane reads the archive
        first, and seeks then, or is not held."""
        held = self._held.get(tp.partition)
        if held is None:
            return None
        if self._catch_up is not None and await self._catch_up.is_due(held.lane, tp):
            held.behind.set()
            return None
        return held.lane.next_offsets()[tp]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        async with self._changing:
            await asyncio.gather(*(self._revoke(partition) for partition in list(self._held)))
        await asyncio.gather(*self._tasks, *self._stops, return_exceptions=True)
        await self._client.stop()

    async def _start(self, partition: int) -> None:
        lane = self._make(partition)
        try:
            await lane.start()
        except LaneHalted as error:
            await lane.stop()
            return self._note_halted(partition, error)
        await self._check_inputs(lane)
        tasks = [
            supervise(self._run(lane), f"lane {lane.tp.key}"),
            supervise(lane.keep_marked(), f"marks of {lane.tp.key}"),
        ]
        if self._on_lane is not None:
            tasks.append(supervise(self._on_lane(lane), f"shell of {lane.tp.key}"))
        held = HeldLane(lane, tasks)
        if self._catch_up is not None:
            catching_up = self._catch_up.follow(held, self._seek)
            held.add(supervise(catching_up, f"archive of {lane.tp.key}"))
        if self._access is None:
            held.primed.set()
        self._held[partition] = held
        log.info("lane gained", extra={"lane": lane.tp.key, "seq": lane.cursor.seq})

    async def _run(self, lane: Lane[S]) -> None:
        try:
            await lane.run()
        except LaneHalted as error:
            held = self._held.pop(lane.partition)
            self._note_halted(lane.partition, error)
            self._stops.append(supervise(held.stop(), f"end of {lane.tp.key}"))
            held.primed.set()

    async def _seek(self, tp: TP, offset: int) -> None:
        await self.seek(tp, offset)

    def _note_halted(self, partition: int, error: LaneHalted) -> None:
        """Note and log that the lane is halted; the other lanes go on."""
        self._halted[partition] = error
        self.ready.clear()
        see = f"; see {error.runbook}"
        log.critical("lane halted: %s%s", error, see, exc_info=error.__cause__)

    async def _revoke(self, partition: int) -> None:
        if self._halted.pop(partition, None) is not None:
            return
        held = self._held.pop(partition)
        held.primed.set()
        await held.stop()
        log.info("lane revoked", extra={"lane": held.lane.tp.key})

    async def _check_inputs(self, lane: Lane[S]) -> None:
        """Raise TailLost for an input shorter than its used part, of which all would pass as old,
        and for one that begins behind it: its next record would never come.

        Of a topic with retention the records that are gone are skipped, unread.
        """
        for tp, offset in lane.next_offsets().items():
            if (begin := await self._topics.begin(tp)) > offset:
                # The topics are read first: a start need not depend on the archive.
                begin = await self._client.begin(tp)
            if begin > offset:
                if tp.topic not in LOSSY_INPUTS:
                    raise TailLost(
                        f"{tp.key} begins at {begin}, and {lane.tp.key} has not read {offset} to"
                        f" {begin - 1}: they were removed"
                    )
                lost = {"lane": lane.tp.key, "input": tp.key, "records": begin - offset}
                log.warning("records of an input were removed before they were read", extra=lost)
                lane.skip_to(tp, begin)
                continue
            if await self._client.end(tp) < offset:
                await check_reaches(self._client, tp, offset)

    def _note_ready(self) -> None:
        primed = all(held.primed.is_set() for held in self._held.values())
        if self._assigned and primed and not self._halted:
            self.ready.set()


async def _ignore_seek(tp: TP, offset: int) -> None:
    return None
