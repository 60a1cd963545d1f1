"""Streams and answers of engines, written after the public description of the API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from services.throttle.relay.sse import SseEvent, SseParser

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "org/M"}
TEXT_HEAD = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "org/M"}
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 3,
    "total_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 4},
}
DONE = b"data: [DONE]\n\n"


def event(document: Any, name: str = "", *, compact: bool = True) -> bytes:
    separators = (",", ":") if compact else None
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document, separators=separators)}\n\n".encode()


def delta(reason: str | None = None, index: int = 0, **fields: Any) -> Any:
    choice = {"index": index, "delta": fields, "logprobs": None, "finish_reason": reason}
    return {**HEAD, "choices": [choice]}


def text(words: str, reason: str | None = None, index: int = 0) -> Any:
    choice = {"index": index, "text": words, "logprobs": None, "finish_reason": reason}
    return {**TEXT_HEAD, "choices": [choice]}


def usage(**fields: Any) -> Any:
    return {**HEAD, "choices": [], "usage": {**USAGE, **fields}}


def chat_stream(*, with_usage: bool = True, compact: bool = True, name: str = "") -> bytes:
    """Return a stream of three words."""
    chunks = [delta(role="assistant", content="")]
    chunks += [delta(content=word) for word in ("one ", 'two" ', "three")]
    chunks.append(delta("stop"))
    if with_usage:
        chunks.append(usage())
    return b"".join(event(chunk, name, compact=compact) for chunk in chunks) + DONE


def responses_stream(end: str = "completed") -> bytes:
    """Return a stream of three words of `/v1/responses`."""
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    answer: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "in_progress"}
    counts = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    events: list[tuple[str, Any]] = [
        ("response.created", {"response": {**answer, "usage": None}}),
        *(("response.output_text.delta", {**place, "delta": word}) for word in ("a ", "b ", "c")),
        ("response.output_text.done", {**place, "text": "a b c"}),
        (f"response.{end}", {"response": {**answer, "status": end, "usage": counts}}),
    ]
    return b"".join(
        event({"type": name, "sequence_number": number, **fields}, name)
        for number, (name, fields) in enumerate(events)
    )


def parse(*pieces: bytes) -> Iterable[SseEvent]:
    parser = SseParser()
    for piece in pieces:
        yield from parser.feed(piece)
    yield from parser.end()
