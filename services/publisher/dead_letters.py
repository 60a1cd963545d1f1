"""Dead letters: the bytes of rejected inputs, fetched from their topics."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec

from services.publisher.core.lane import Published
from shared.bus.logs.log import Feed, Log
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP

MAX_BYTES = 900 * 1024
MAX_FEEDS = 16
WAIT_S = 1.0
TRIES = 5
AHEAD = 200


class Rejection(msgspec.Struct):
    """The fields of `InputRejected` that a dead letter needs."""

    topic: str
    partition: int
    offset: int
    reason: str
    sha256: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetterRecord:
    """Raw bytes with their origin in the headers; `berth-missing` explains absent bytes."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class DeadLetters:
    """Fetches rejected inputs; a few open readers serve bursts of consecutive rejections."""

    def __init__(self, bus: Log) -> None:
        self._bus = bus
        self._feeds: dict[TP, Feed] = {}
        self._ahead: dict[TP, dict[int, bytes]] = {}

    async def letter(self, event: Published) -> DeadLetterRecord:
        """Return the letter of a rejection; raises TimeoutError where the broker is silent."""
        rejection = msgspec.json.decode(event.rejected or b"", type=Rejection)
        value, missing = await self._bytes(rejection)
        headers = {
            "berth-id": event.id,
            "berth-topic": rejection.topic,
            "berth-partition": str(rejection.partition),
            "berth-offset": str(rejection.offset),
            "berth-reason": rejection.reason,
            "berth-sha256": rejection.sha256,
            "berth-tenant": rejection.tenant,
            "berth-missing": missing,
        }
        encoded = tuple((name, text.encode()) for name, text in headers.items() if text)
        return DeadLetterRecord(event.id.encode(), value, encoded)

    async def close(self) -> None:
        for feed in self._feeds.values():
            await feed.close()
        self._feeds.clear()
        self._ahead.clear()

    async def _bytes(self, rejection: Rejection) -> tuple[bytes, str]:
        try:
            value = await self._fetch(TP(rejection.topic, rejection.partition), rejection.offset)
        except TailLost:
            return b"", "gone"
        if value is None:
            return b"", "gone"
        if hashlib.sha256(value).hexdigest() != rejection.sha256:
            return b"", "other_bytes"
        return (value, "") if len(value) <= MAX_BYTES else (b"", "too_large")

    async def _fetch(self, tp: TP, offset: int) -> bytes | None:
        if offset not in self._ahead.get(tp, {}):
            await self._read_ahead(tp, offset)
        return self._ahead.get(tp, {}).get(offset)

    async def _read_ahead(self, tp: TP, offset: int) -> None:
        feed = await self._feed(tp, offset)
        try:
            await feed.seek(tp, offset)
            for _ in range(TRIES):
                if entries := (await feed.poll(WAIT_S, AHEAD)).get(tp):
                    self._ahead[tp] = {e.offset: e.value or b"" for e in entries}
                    return
            await self._check_gone(tp, offset)
        except TailLost:
            await self._close_feed(tp)
            raise

    async def _check_gone(self, tp: TP, offset: int) -> None:
        """Raise TailLost for a record that the topic has not, TimeoutError for one that it has.

        A busy broker may be silent for longer than the tries: its record is not gone.
        """
        if await self._bus.begin(tp) <= offset < await self._bus.end(tp):
            seconds = round(TRIES * WAIT_S)
            raise TimeoutError(f"{tp.key}: the record at {offset} did not come in {seconds} s")
        raise TailLost(f"{tp.key} has no offset {offset}")

    async def _feed(self, tp: TP, offset: int) -> Feed:
        if tp not in self._feeds:
            if len(self._feeds) >= MAX_FEEDS:
                await self._close_feed(next(iter(self._feeds)))
            self._feeds[tp] = await self._bus.feed({tp: offset})
        return self._feeds[tp]

    async def _close_feed(self, tp: TP) -> None:
        self._ahead.pop(tp, None)
        feed = self._feeds.pop(tp, None)
        if feed is not None:
            await feed.close()
