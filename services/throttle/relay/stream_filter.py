"""Passes on a stream byte for byte, without the usage that the client did not request."""

from __future__ import annotations

from collections.abc import Iterable

from services.throttle.relay.sse import SseEvent, SseParser
from services.throttle.relay.usage import TokenCount


class StreamFilter:
    """Counts what arrives, and returns the bytes of an event once it is complete."""

    def __init__(self, count: TokenCount, *, shows_usage: bool) -> None:
        self.count = count
        self._shows_usage = shows_usage
        self._parser = SseParser()

    def feed(self, piece: bytes) -> bytes:
        """Return what the client gets of the events that the piece completes.

        Raises EventTooLarge.
        """
        return self._pass(self._parser.feed(piece))

    def end(self) -> bytes:
        """Return what is left at the end of the stream."""
        return self._pass(self._parser.end())

    def _pass(self, events: Iterable[SseEvent]) -> bytes:
        passed, count = [], self.count
        for event in events:
            chunks = count.chunks
            only_usage = count.add(event)
            if count.chunks > chunks and not event.texts:
                self._parser.runs.learn(event.raw)
            if self._shows_usage or not only_usage:
                passed.append(event.raw)
        return passed[0] if len(passed) == 1 else b"".join(passed)
