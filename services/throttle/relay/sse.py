"""Server-sent events out of arbitrary pieces of bytes, each event with its exact bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from services.throttle.relay.text_runs import TextRuns

MOST_EVENT_BYTES = 4 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
BLANK_LINE = re.compile(rb"[\r\n](?:(?<=\r)\n)?+(?:\r\n|\n|\r(?!\n))")
"""The end of a line and the blank line behind it, in any mix of the three line ends."""
LINE_END = re.compile(rb"\r\n|\n|\r")


class EventTooLarge(ValueError):
    """An event has more bytes than the parser keeps."""


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One block of a stream up to its blank line, or a run of blocks that differ in their text.

    Comments, empty blocks and runs have no data.
    """

    raw: bytes
    data: bytes | None
    name: bytes = b""
    complete: bool = True
    """Whether its blank line arrived; only the last event of a stream may lack it."""
    texts: tuple[bytes, ...] = ()
    """The texts of a run, as JSON has them: see `TextRuns`."""


class SseParser:
    """Yields the events of one stream; the bytes of all events together are those of the stream.

    A carriage return at the end of what arrived may be half of a line end: it ends its event only
    with the next byte, or with the stream. Runs of events that `runs` knows are one event.
    """

    def __init__(self, most_event_bytes: int = MOST_EVENT_BYTES) -> None:
        self.runs = TextRuns()
        self._most = most_event_bytes
        self._rest = bytearray()
        self._scanned = 0
        self._started = False

    @property
    def held_bytes(self) -> int:
        """Bytes of an event that is not complete yet."""
        return len(self._rest)

    def feed(self, piece: bytes) -> Iterator[SseEvent]:
        """Yield the events that the piece completes; take all. Raises EventTooLarge."""
        if not self._rest:
            yield from self._split(piece)
            return
        # A blank line has at most four bytes: three of them may have been scanned in vain.
        self._scanned = max(0, len(self._rest) - 3)
        self._rest += piece
        if not self._has_end():
            self._check(len(self._rest))
            return
        whole = bytes(self._rest)
        self._rest.clear()
        yield from self._split(whole)

    def end(self) -> list[SseEvent]:
        """Return what is left when the stream ended: nothing, or one event."""
        rest = bytes(self._rest)
        self._rest.clear()
        if not rest:
            return []
        match = BLANK_LINE.search(rest)
        return [self._event(rest, complete=match is not None)]

    def _has_end(self) -> bool:
        match = BLANK_LINE.search(self._rest, self._scanned)
        return match is not None and not self._is_open(match, len(self._rest))

    @staticmethod
    def _is_open(match: re.Match[bytes], size: int) -> bool:
        return match.end() == size and match[0].endswith(b"\r")

    def _split(self, data: bytes) -> Iterator[SseEvent]:
        start, size = 0, len(data)
        has_returns = b"\r" in data
        while start < size:
            begin = start
            start, texts = self.runs.take(data, begin)
            if texts:
                yield SseEvent(data[begin:start], None, texts=tuple(texts))
                continue
            end = self._end_of_event(data, start) if has_returns else data.find(b"\n\n", start) + 2
            if end < 2:
                self._check(size - start)
                self._rest += data[start:]
                break
            self._check(end - start)
            yield self._event(data[start:end])
            start = end

    def _end_of_event(self, data: bytes, start: int) -> int:
        match = BLANK_LINE.search(data, start)
        return -1 if match is None or self._is_open(match, len(data)) else match.end()

    def _check(self, size: int) -> None:
        if size > self._most:
            raise EventTooLarge(
                f"event: {size} bytes without a blank line; at most {self._most} are allowed"
            )

    def _event(self, raw: bytes, *, complete: bool = True) -> SseEvent:
        if raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
            self._started = True
            return SseEvent(raw, raw[6:-2])
        if not self._started:
            self._started = True
            if raw.startswith(BOM):
                return SseEvent(raw, *_fields(raw[len(BOM) :]), complete)
        return SseEvent(raw, *_fields(raw), complete)


def _fields(block: bytes) -> tuple[bytes | None, bytes]:
    """Return the data of a block, its lines joined, and the name of the event."""
    lines: list[bytes] = []
    name = b""
    for line in LINE_END.split(block):
        field, _, value = line.partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return (b"\n".join(lines) if lines else None), name
