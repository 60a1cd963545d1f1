"""Reads the answer of an engine as a whole, as it came or assembled from its stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from services.throttle.relay.assemble import MOST_ANSWER_BYTES, AnswerAssembler, MalformedStream
from services.throttle.relay.client_stream import BrokenStream
from services.throttle.relay.request import Route
from services.throttle.relay.sse import SseEvent, SseParser
from services.throttle.relay.usage import TokenCount

STREAM = "text/event-stream"
Report = Callable[[TokenCount], None]


class EngineError(Exception):
    """The engine reported an error within its stream; the text is its own."""


def is_stream(headers: Mapping[str, str]) -> bool:
    """Return whether the answer with these headers is a stream of events."""
    return headers.get("content-type", "").lower().startswith(STREAM)


async def read_whole(chunks: AsyncIterator[bytes]) -> bytes:
    """Return an answer that is no stream. Raises MalformedStream where it is too large."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MOST_ANSWER_BYTES:
            raise MalformedStream(f"answer: more than {MOST_ANSWER_BYTES} bytes")
    return bytes(body)


async def assemble(
    chunks: AsyncIterator[bytes], route: Route, count: TokenCount, report: Report
) -> bytes:
    """Return the answer that a stream is the parts of; `report` is called as it grows.

    Raises EngineError, BrokenStream, MalformedStream and EventTooLarge.
    """
    assembler, parser = AnswerAssembler(route), SseParser()

    def take(events: Iterable[SseEvent]) -> None:
        for event in events:
            text = assembler.add(event)
            if text is None:
                count.add(event)
            elif text:
                count.add_text(len(text))
                assembler.remember(event, parser.runs)
        report(count)

    async for chunk in chunks:
        take(parser.feed(chunk))
    take(parser.end())
    if assembler.error is not None:
        raise EngineError(str(assembler.error.get("message", "engine: reported an error")))
    if not count.is_complete:
        raise BrokenStream("stream: ended before the answer did")
    return assembler.answer()
