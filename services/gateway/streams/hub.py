"""Reads `events` once for all clients; each has a bounded queue and may resume at its position."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec
from aiokafka.errors import KafkaError

from services.gateway.core.vector import encode_vector
from shared.bus.logs.log import Entry, Feed, Log
from shared.ledger.errors import BusError
from shared.ledger.partition import TP

TOPIC = "events"
POLL_S = 2.0
RETRY_S = 1.0
ENDED: bytes | None = None
LINE_BREAK = re.compile(rb"[\r\n]")

log = logging.getLogger(__name__)


class EventHeader(msgspec.Struct):
    """The fields of an event that filters use; the rest stays undecoded."""

    type: str = ""
    subject: str = ""
    tenant: str = ""


EventFilter = Callable[[EventHeader], bool]
_headers = msgspec.json.Decoder(EventHeader)


class Subscriber:
    """The bounded queue of frames of one client."""

    def __init__(self, accepts: EventFilter, room: int) -> None:
        self.accepts = accepts
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(room + 1)
        self.room = room
        self.end_reason = ""

    def put(self, frame: bytes) -> None:
        if self.end_reason:
            return
        if self.queue.qsize() >= self.room:
            self.end("slow_client")
        else:
            self.queue.put_nowait(frame)

    def end(self, reason: str) -> None:
        """Queue the end of the stream; one entry of the queue is always reserved for it."""
        if not self.end_reason:
            self.end_reason = reason
            self.queue.put_nowait(ENDED)


class EventHub:
    """Distributes the events of all lanes to subscribers.

    `vector` is the next offset of each partition: where a new subscriber begins.
    """

    def __init__(self, open_log: Callable[[], Log], partitions: int, room: int) -> None:
        self._open_log = open_log
        self._room = room
        self._subscribers: set[Subscriber] = set()
        self.partitions = partitions
        self.vector: list[int] | None = None

    async def run(self) -> None:
        """Follow the topic until cancelled; after an error continue at the same offsets."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, BusError) as error:
                log.warning("reading events failed", extra={"reason": type(error).__name__})
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        partitions = [TP(TOPIC, lane) for lane in range(self.partitions)]
        bus = self._open_log()
        await bus.start()
        try:
            if self.vector is None:
                self.vector = [await bus.end(tp) for tp in partitions]
            feed = await bus.feed(dict(zip(partitions, self.vector, strict=True)), lossy=True)
            await self._distribute(feed)
        finally:
            await bus.stop()

    async def _distribute(self, feed: Feed) -> None:
        try:
            while True:
                for tp, entries in (await feed.poll(POLL_S)).items():
                    self._distribute_lane(tp.partition, entries)
        finally:
            await feed.close()

    def _distribute_lane(self, lane: int, entries: list[Entry]) -> None:
        assert self.vector is not None
        for entry in entries:
            self.vector[lane] = entry.offset + 1
            if self._subscribers:
                self._publish(entry)

    def _publish(self, entry: Entry) -> None:
        assert self.vector is not None
        framed = frame_event(entry, self.vector)
        if framed is None:
            return
        header, frame = framed
        for subscriber in self._subscribers:
            if subscriber.accepts(header):
                subscriber.put(frame)

    def subscribe(self, accepts: EventFilter) -> Subscriber:
        subscriber = Subscriber(accepts, self._room)
        self._subscribers.add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)

    def end_all(self, reason: str) -> None:
        for subscriber in self._subscribers:
            subscriber.end(reason)

    async def replay(self, start: list[int], accepts: EventFilter) -> AsyncIterator[bytes]:
        """Yield the frames from `start` to the present position of the hub; `start` advances."""
        assert self.vector is not None
        goal = list(self.vector)
        behind = {TP(TOPIC, i): at for i, at in enumerate(start) if at < goal[i]}
        start[:] = [min(at, end) for at, end in zip(start, goal, strict=True)]
        if not behind:
            return
        feed = await self._open_log().feed(behind, lossy=True)
        try:
            async for frame in _replay_to(feed, behind, start, goal, accepts):
                yield frame
        finally:
            await feed.close()


async def _replay_to(
    feed: Feed, behind: Mapping[TP, int], start: list[int], goal: list[int], accepts: EventFilter
) -> AsyncIterator[bytes]:
    while any(start[tp.partition] < goal[tp.partition] for tp in behind):
        polled = await feed.poll(POLL_S)
        if not polled:
            # The remaining records are past their retention: nothing is left before the goal.
            start[:] = goal
            return
        for tp, entries in polled.items():
            lane = tp.partition
            for entry in entries:
                if entry.offset >= goal[lane]:
                    start[lane] = goal[lane]
                    break
                start[lane] = entry.offset + 1
                framed = frame_event(entry, start)
                if framed is not None and accepts(framed[0]):
                    yield framed[1]


def frame_event(entry: Entry, vector: list[int]) -> tuple[EventHeader, bytes] | None:
    """Return header and frame of an event; None for bytes that are no event or not on one line."""
    if entry.value is None or LINE_BREAK.search(entry.value):
        return None
    try:
        header = _headers.decode(entry.value)
        entry.value.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not header.type.isprintable():
        return None
    return header, frame(encode_vector(vector), header.type, entry.value)


def frame(id: str, name: str, data: bytes) -> bytes:
    """Return one server-sent event; none of the arguments may contain a line break."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id.encode(), name.encode(), data)
