"""Reads `events` once for all clients; each has a bounded queue and may resume where it was."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec
from aiokafka.errors import KafkaError

from services.gateway.core.vector import encode_vector
from shared.bus.log import Entry, Feed, Log
from shared.ledger.errors import BusError
from shared.ledger.partition import TP

TOPIC = "events"
POLL_S = 2.0
RETRY_S = 1.0
ENDED: bytes | None = None
LINE_BREAK = re.compile(rb"[\r\n]")

log = logging.getLogger(__name__)


class EventHeader(msgspec.Struct):
    """What a filter looks at; the rest of the event stays bytes."""

    type: str = ""
    subject: str = ""
    tenant: str = ""


EventFilter = Callable[[EventHeader], bool]
_heads = msgspec.json.Decoder(EventHeader)


class Subscriber:
    """One client: frames wait here until it takes them."""

    def __init__(self, wanted: EventFilter, room: int) -> None:
        self.wanted = wanted
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(room + 1)
        self.room = room
        self.lost = ""

    def put(self, frame: bytes) -> None:
        if self.lost:
            return
        if self.queue.qsize() >= self.room:
            self.end("slow_client")
        else:
            self.queue.put_nowait(frame)

    def end(self, reason: str) -> None:
        """The last thing it hears; one place in the queue is always kept for it."""
        if not self.lost:
            self.lost = reason
            self.queue.put_nowait(ENDED)


class EventHub:
    """`vector` is the next offset of each partition: where a new listener begins."""

    def __init__(self, open_log: Callable[[], Log], partitions: int, room: int) -> None:
        self._open_log = open_log
        self._room = room
        self._listeners: set[Subscriber] = set()
        self.partitions = partitions
        self.vector: list[int] | None = None

    async def run(self) -> None:
        """Follows the topic until it is cancelled; after an error at the place where it was."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, BusError) as error:
                log.warning("events are not read", extra={"reason": type(error).__name__})
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        places = [TP(TOPIC, lane) for lane in range(self.partitions)]
        bus = self._open_log()
        await bus.start()
        try:
            if self.vector is None:
                self.vector = [await bus.end(place) for place in places]
            feed = await bus.feed(dict(zip(places, self.vector, strict=True)), lossy=True)
            await self._listen_to(feed)
        finally:
            await bus.stop()

    async def _listen_to(self, feed: Feed) -> None:
        try:
            while True:
                for place, entries in (await feed.poll(POLL_S)).items():
                    self._spread(place.partition, entries)
        finally:
            await feed.close()

    def _spread(self, lane: int, entries: list[Entry]) -> None:
        assert self.vector is not None
        for entry in entries:
            self.vector[lane] = entry.offset + 1
            if self._listeners:
                self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        assert self.vector is not None
        found = frame_event(entry, self.vector)
        if found is None:
            return
        head, frame = found
        for listener in self._listeners:
            if listener.wanted(head):
                listener.put(frame)

    def listen(self, wanted: EventFilter) -> Subscriber:
        listener = Subscriber(wanted, self._room)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Subscriber) -> None:
        self._listeners.discard(listener)

    def end_all(self, reason: str) -> None:
        for listener in self._listeners:
            listener.end(reason)

    async def missed(self, start: list[int], wanted: EventFilter) -> AsyncIterator[bytes]:
        """Frames from `start` up to where the hub stood when this began; `start` moves along."""
        assert self.vector is not None
        goal = list(self.vector)
        behind = {TP(TOPIC, i): at for i, at in enumerate(start) if at < goal[i]}
        start[:] = [min(at, end) for at, end in zip(start, goal, strict=True)]
        if not behind:
            return
        feed = await self._open_log().feed(behind, lossy=True)
        try:
            async for frame in _until(feed, behind, start, goal, wanted):
                yield frame
        finally:
            await feed.close()


async def _until(
    feed: Feed, behind: Mapping[TP, int], start: list[int], goal: list[int], wanted: EventFilter
) -> AsyncIterator[bytes]:
    while any(start[place.partition] < goal[place.partition] for place in behind):
        found_now = await feed.poll(POLL_S)
        if not found_now:
            # What was due is past its retention: there is nothing before the goal to wait for.
            start[:] = goal
            return
        for place, entries in found_now.items():
            lane = place.partition
            for entry in entries:
                if entry.offset >= goal[lane]:
                    start[lane] = goal[lane]
                    break
                start[lane] = entry.offset + 1
                found = frame_event(entry, start)
                if found is not None and wanted(found[0]):
                    yield found[1]


def frame_event(entry: Entry, vector: list[int]) -> tuple[EventHeader, bytes] | None:
    """The event as the stream says it; None for bytes that are no event, or not on one line."""
    if entry.value is None or LINE_BREAK.search(entry.value):
        return None
    try:
        head = _heads.decode(entry.value)
        entry.value.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not head.type.isprintable():
        return None
    return head, frame(encode_vector(vector), head.type, entry.value)


def frame(id: str, name: str, data: bytes) -> bytes:
    """One server-sent event; none of the three may hold a line break."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), name.encode(), data)
