"""The lanes that this process holds now: opened when gained, given up when lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Generic, TypeAlias, TypeVar

from shared.bus.domain import Domain
from shared.bus.fatal import supervise
from shared.bus.inbox import ACCESS, Fed
from shared.bus.log import Feed, Log
from shared.ledger.errors import Stalled, TailLost
from shared.ledger.partition import TP

S = TypeVar("S")

CLOSE_S = 1.5
LOOK_EVERY_S = 5.0
STALLED_S = 30.0
FOLLOW_WAIT_S = 0.5

OnLane: TypeAlias = Callable[[Domain[Any]], Coroutine[Any, Any, None]]

log = logging.getLogger(__name__)


class Held(Generic[S]):
    """A lane with the tasks that live as long as it is held."""

    def __init__(self, domain: Domain[S], tasks: list[asyncio.Task[None]]) -> None:
        self.domain = domain
        self.run, *self.others = tasks
        self.primed = asyncio.Event()

    async def close(self) -> None:
        for task in self.others:
            task.cancel()
        await self.domain.close()
        await asyncio.wait([self.run], timeout=CLOSE_S)
        self.run.cancel()
        await asyncio.wait([self.run, *self.others])
        await self.domain.finish()


class Lanes(Generic[S]):
    """Opens a `Domain` per lane and hands each input record to its lane."""

    def __init__(
        self,
        make: Callable[[int], Domain[S]],
        client: Log,
        *,
        on_lane: OnLane | None = None,
        follows_access: bool = True,
    ) -> None:
        self._make = make
        self._client = client
        self._on_lane = on_lane
        self._follows_access = follows_access
        self._held: dict[int, Held[S]] = {}
        self._changed = asyncio.Event()
        self._changing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._assigned = False
        self.ready = asyncio.Event()
        """Set once it leads what it was given; who was given nothing stands by, and is ready."""

    @property
    def domains(self) -> dict[int, Domain[S]]:
        return {lane: held.domain for lane, held in self._held.items()}

    async def reach(self) -> None:
        """Returns once the broker answers; to be called before anything that will not wait."""
        await self._client.start()
        await self._client.stop()

    async def start(self) -> None:
        await self._client.start()
        self._tasks = [supervise(self._watch(), "watchdog")]
        if self._follows_access:
            self._tasks.append(supervise(self._follow_access(), "access"))

    async def own(self, lanes: Collection[int]) -> dict[TP, int]:
        """From now on exactly these; says where every input has to be read from."""
        async with self._changing:
            lost = [lane for lane in self._held if lane not in lanes]
            gained = [lane for lane in sorted(lanes) if lane not in self._held]
            await asyncio.gather(*(self._lose(lane) for lane in lost))
            await asyncio.gather(*(self._gain(lane) for lane in gained))
        self._assigned = True
        self._changed.set()
        self._note_ready()
        return self.wants()

    def wants(self) -> dict[TP, int]:
        return {
            tp: offset
            for held in self._held.values()
            for tp, offset in held.domain.wants().items()
            if tp != ACCESS
        }

    async def behind(self) -> dict[TP, int]:
        """Records of each input that no lane has read yet; it asks the broker for each."""
        wants: dict[TP, int] = {}
        for held in list(self._held.values()):
            for tp, want in held.domain.wants().items():
                wants[tp] = min(want, wants.get(tp, want))
        return {tp: max(0, await self._client.end(tp) - want) for tp, want in wants.items()}

    def is_open(self, lane: int) -> bool:
        """True when `feed` would not have to wait."""
        held = self._held.get(lane)
        return held is None or (held.primed.is_set() and held.domain.inbox.has_room)

    async def feed(self, tp: TP, offset: int, value: bytes | None) -> Fed:
        """Blocks while the lane has enough to do, or has not yet heard who may do what."""
        held = self._held.get(tp.partition)
        if held is None:
            return "old"
        await held.primed.wait()
        return await held.domain.feed(tp, offset, value)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        async with self._changing:
            await asyncio.gather(*(self._lose(lane) for lane in list(self._held)))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.stop()

    async def _gain(self, lane: int) -> None:
        domain = self._make(lane)
        await domain.open()
        await self._check_inputs(domain)
        tasks = [supervise(domain.run(), f"lane {domain.tp.key}")]
        if self._on_lane is not None:
            tasks.append(supervise(self._on_lane(domain), f"shell of {domain.tp.key}"))
        held = Held(domain, tasks)
        if not self._follows_access:
            held.primed.set()
        self._held[lane] = held
        log.info("lane gained", extra={"lane": domain.tp.key, "seq": domain.cursor.seq})

    async def _lose(self, lane: int) -> None:
        held = self._held.pop(lane)
        held.primed.set()
        await held.close()
        log.info("lane given up", extra={"lane": held.domain.tp.key})

    async def _check_inputs(self, domain: Domain[S]) -> None:
        """An input shorter than what was used of it would be dropped as old, in silence."""
        for tp, want in domain.wants().items():
            if await self._client.end(tp) < want:
                await self._check_reaches(tp, want)

    async def _check_reaches(self, tp: TP, want: int) -> None:
        """The embedded broker may say less than there is; only a read can tell."""
        feed = await self._client.feed({tp: want})
        try:
            await feed.poll(FOLLOW_WAIT_S)
        except TailLost as error:
            raise TailLost(f"{tp.key} is shorter than the {want} used of it: tail lost") from error
        finally:
            await feed.close()

    # ---- access ----------------------------------------------------------------------------

    async def _follow_access(self) -> None:
        """Every lane hears every fact of `access`, once and in order; first of all inputs."""
        feed = await self._client.feed({ACCESS: 0})
        try:
            await self._hand_on(feed, await self._client.end(ACCESS))
        finally:
            await feed.close()

    async def _hand_on(self, feed: Feed, end: int) -> None:
        position = 0
        while True:
            position = await self._move(feed, position)
            entries = (await feed.poll(FOLLOW_WAIT_S)).get(ACCESS, [])
            for entry in entries:
                for held in list(self._held.values()):
                    await held.domain.feed(ACCESS, entry.offset, entry.value)
                position = entry.offset + 1
            self._prime(end)
            if not entries:
                await self._let_go(position)

    async def _let_go(self, position: int) -> None:
        """Of what waits for something that `access` does not hold."""
        holding = [held.domain for held in self._held.values() if held.domain.inbox.holds]
        if holding and await self._client.end(ACCESS) <= position:
            for domain in holding:
                domain.let_go()

    async def _move(self, feed: Feed, position: int) -> int:
        while not self._held:
            self._changed.clear()
            await self._changed.wait()
        want = min(held.domain.wants()[ACCESS] for held in self._held.values())
        if want != position:
            await feed.seek(ACCESS, want)
        return want

    def _prime(self, end: int) -> None:
        for held in self._held.values():
            if held.domain.wants()[ACCESS] >= end:
                held.primed.set()
        self._note_ready()

    def _note_ready(self) -> None:
        if self._assigned and all(held.primed.is_set() for held in self._held.values()):
            self.ready.set()

    # ---- liveness --------------------------------------------------------------------------

    async def _watch(self) -> None:
        """An input that moves while we do not follow it: a dead consumer looks alive. And a log
        that became shorter: who is idle would not notice it before its next append."""
        since: dict[TP, tuple[int, float]] = {}
        reaches: dict[TP, int] = {}
        looked = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            if now - looked > 2 * LOOK_EVERY_S:
                since.clear()  # the broker was away, or this process slept
            looked = now
            for domain in [held.domain for held in self._held.values()]:
                for tp, want in domain.knows().items():
                    end = await self._client.end(tp)
                    if end < want and reaches.get(tp) != want:
                        await self._check_reaches(tp, want)
                        reaches[tp] = want
                    if end <= want or tp == domain.tp or since.get(tp, (-1, 0.0))[0] != want:
                        since[tp] = (want, now)
                    elif now - since[tp][1] > STALLED_S:
                        raise Stalled(f"{tp.key} goes on, and we stand at {want}")
