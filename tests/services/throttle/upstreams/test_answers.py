"""The end of an answer that is gathered is noticed at once, and its parts are not."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import aiohttp
import pytest

from services.throttle.upstreams import answers
from services.throttle.upstreams.answers import AnswerChunks, read_available, until_gathered
from services.throttle.upstreams.connections import BUFFER_BYTES
from tests.patience import PATIENCE_S


def a_body() -> aiohttp.StreamReader:
    protocol = Mock(_reading_paused=False)
    return aiohttp.StreamReader(protocol, 2**16, loop=asyncio.get_running_loop())


async def read_gathered(body: aiohttp.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        await until_gathered(body)
        return await read_available(body)


async def test_parts_wait_for_the_end_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "GATHER_S", 10 * PATIENCE_S)
    body = a_body()
    reading = asyncio.create_task(read_gathered(body))
    for part in (b"a", b"b", b"c"):
        body.feed_data(part)
        await asyncio.sleep(0)
    assert not reading.done()
    body.feed_eof()
    assert await reading == b"abc"
    assert await read_gathered(body) == b""


async def test_what_has_arrived_is_read_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "GATHER_S", 0.001)
    body = a_body()
    reading = asyncio.create_task(read_gathered(body))
    await asyncio.sleep(0.02)
    assert not reading.done(), "nothing has arrived"
    body.feed_data(b"a")
    assert await reading == b"a"


async def test_what_arrived_before_a_body_broke_off_is_read() -> None:
    body = a_body()
    body.feed_data(b"a")
    body.set_exception(aiohttp.ClientPayloadError("broken"))
    assert await read_gathered(body) == b"a"
    with pytest.raises(aiohttp.ClientPayloadError):
        await read_gathered(body)


async def test_an_engine_that_fills_the_buffer_is_read_at_its_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "GATHER_S", 0.001)
    body = a_body()
    chunks = AnswerChunks("u", Mock(content=body), 10 * PATIENCE_S)
    chunks.gather()
    body.feed_data(b"a" * BUFFER_BYTES)
    async with asyncio.timeout(PATIENCE_S):
        assert len(await anext(chunks)) == BUFFER_BYTES
    monkeypatch.setattr(answers, "GATHER_S", 10 * PATIENCE_S)
    body.feed_data(b"b")
    async with asyncio.timeout(PATIENCE_S):
        assert await anext(chunks) == b"b"


async def test_a_body_that_breaks_off_ends_the_wait() -> None:
    body = a_body()
    reading = asyncio.create_task(read_gathered(body))
    await asyncio.sleep(0)
    body.set_exception(aiohttp.ClientPayloadError("broken"))
    with pytest.raises(aiohttp.ClientPayloadError):
        await reading
    with pytest.raises(aiohttp.ClientPayloadError):
        await read_gathered(body)
