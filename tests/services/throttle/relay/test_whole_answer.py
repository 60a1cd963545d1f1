from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from services.throttle.relay import whole_answer
from services.throttle.relay.assemble import MalformedStream
from services.throttle.relay.client_stream import BrokenStream
from services.throttle.relay.usage import TokenCount
from services.throttle.relay.whole_answer import EngineError, assemble, is_stream, read_whole
from tests.services.throttle.relay.streams import DONE, delta, event, usage

STREAM = b"".join(
    (event(delta(content="a")), event(delta(content="b", reason="stop")), event(usage()), DONE)
)


async def chunks(data: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def test_a_stream_is_assembled_and_reported_as_it_grows() -> None:
    count, seen = TokenCount("chat/completions"), list[int]()
    body = await assemble(
        chunks(STREAM), "chat/completions", count, lambda count: seen.append(count.chunks)
    )
    assert json.loads(body)["choices"][0]["message"]["content"] == "ab"
    assert (seen[0], seen[-1]) == (0, 2)
    assert count.is_complete


async def test_a_stream_that_breaks_off_or_reports_an_error_is_no_answer() -> None:
    count = TokenCount("chat/completions")
    with pytest.raises(BrokenStream):
        half = event(delta(content="a"))
        await assemble(chunks(half), "chat/completions", count, lambda count: None)
    error = event({"error": {"message": "out of memory"}})
    with pytest.raises(EngineError, match="out of memory"):
        await assemble(chunks(error), "chat/completions", count, lambda count: None)


async def test_an_answer_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await read_whole(chunks(b"x" * 100)) == b"x" * 100
    monkeypatch.setattr(whole_answer, "MOST_ANSWER_BYTES", 99)
    with pytest.raises(MalformedStream, match="more than 99 bytes"):
        await read_whole(chunks(b"x" * 100))


def test_a_stream_is_known_by_its_type() -> None:
    assert is_stream({"content-type": "text/event-stream; charset=utf-8"})
    assert is_stream({"content-type": "Text/Event-Stream"})
    assert not is_stream({"content-type": "application/json"})
    assert not is_stream({})
