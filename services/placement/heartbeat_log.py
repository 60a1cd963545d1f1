"""Reads the topic `heartbeats` of one lane, up to markers that it appends itself.

A marker is the only proof of having read everything: a poll is empty also while the broker is away,
and a broker that was deposed answers a request for the end with an old one.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from pydantic import ValidationError

from shared.bus.clock import now_ms
from shared.bus.ids import new_id
from shared.bus.logs.log import Entry, Feed, Log
from shared.contracts.codec import encode
from shared.contracts.reports import Heartbeats, HeartbeatsRead
from shared.contracts.upcast import UpcastError, upcast
from shared.ledger import cloudevents
from shared.ledger.errors import OutcomeUnknown, TailLost
from shared.ledger.partition import TP

RECORDS_PER_POLL = 5_000
POLL_S = 0.5
MARKER_WAIT_S = 10.0
"""A marker that is not read by then is given up; the next one may be."""
SOURCE = "/berth/placement/heartbeats"


class LogBroken(Exception):
    """The topic lost records that were acknowledged, or that were not read yet."""


class NotRead(Exception):
    """The end of the topic was not reached: nothing can be said about silence."""


class HeartbeatLog:
    """One reader of the heartbeats of a lane; `position` is the next offset."""

    def __init__(self, log: Log, lane: int) -> None:
        self._log = log
        self._tp = TP("heartbeats", lane)
        self._writer = new_id()
        self._markers = 0
        self._feed: Feed | None = None
        self.position = 0

    async def start(self, offset: int | None) -> None:
        """Begin at an offset, or at the end, which may be a little before the true one."""
        await self._log.start()
        await self._open(await self._log.end(self._tp) if offset is None else offset)

    async def start_anew(self) -> None:
        """Begin again at the end, after `LogBroken`."""
        await self._close()
        await self._open(await self._log.end(self._tp))

    async def stop(self) -> None:
        await self._close()
        await self._log.stop()

    async def poll(self, wait_s: float = POLL_S) -> list[Entry]:
        """Return the next records; raises LogBroken where the topic does not go on."""
        assert self._feed is not None, "the log of heartbeats is not started"
        try:
            entries = (await self._feed.poll(wait_s, RECORDS_PER_POLL)).get(self._tp, [])
        except TailLost as error:
            raise LogBroken(str(error)) from error
        new = [entry for entry in entries if entry.offset >= self.position]
        for entry in new:
            if entry.offset != self.position:
                raise LogBroken(f"{self._tp.key}: {entry.offset} follows {self.position - 1}")
            self.position += 1
        return new

    async def read_to_end(self) -> AsyncIterator[list[Entry]]:
        """Append a marker and yield what comes before it; raises NotRead if it is not reached."""
        self._markers += 1
        marker = HeartbeatsRead(writer=self._writer, n=self._markers)
        try:
            offset = await self._log.append(self._tp, self._encoded(marker))
        except OutcomeUnknown as error:
            raise NotRead(str(error)) from error
        if offset < self.position:
            raise LogBroken(f"{self._tp.key}: new record at {offset}, {self.position} is next")
        give_up_s = time.monotonic() + MARKER_WAIT_S
        is_read = False
        while not is_read:
            if time.monotonic() > give_up_s:
                raise NotRead(f"{self._tp.key}: marker at {offset} not read in {MARKER_WAIT_S} s")
            entries = await self.poll()
            is_read = any(decoded_marker(entry.value) == marker for entry in entries)
            yield entries

    def _encoded(self, marker: HeartbeatsRead) -> bytes:
        return cloudevents.encode(
            id=f"{marker.writer}-{marker.n}",
            source=SOURCE,
            type=marker.TYPE,
            data=encode(marker),
            at_ms=now_ms(),
        )

    async def _open(self, offset: int) -> None:
        self.position = offset
        self._feed = await self._log.feed({self._tp: offset})

    async def _close(self) -> None:
        if self._feed is not None:
            feed, self._feed = self._feed, None
            await feed.close()


def decoded_heartbeats(value: bytes | None) -> Heartbeats | None:
    """Return the heartbeats; None for any other record, which counts as a lost one."""
    try:
        envelope = cloudevents.decode(value)
        type_, body = upcast(envelope.type, envelope.body)
        return Heartbeats.model_validate_json(body) if type_ == Heartbeats.TYPE else None
    except (cloudevents.Malformed, UpcastError, ValidationError):
        return None


def decoded_marker(value: bytes | None) -> HeartbeatsRead | None:
    """Return the marker; None for any other record."""
    try:
        envelope = cloudevents.decode(value)
        is_marker = envelope.type == HeartbeatsRead.TYPE
        return HeartbeatsRead.model_validate_json(envelope.body) if is_marker else None
    except (cloudevents.Malformed, ValidationError):
        return None
