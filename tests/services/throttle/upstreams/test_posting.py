"""Requests that are one write: what an engine may answer, and what it may not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from services.throttle.upstreams.connections import UpstreamSessions
from services.throttle.upstreams.headers import engine_headers
from services.throttle.upstreams.posting import PostedResponse, PostTarget, post
from tests.patience import until
from tests.services.throttle.upstreams.engines import RawEngine, answer, raw_engine
from tests.services.throttle.upstreams.test_pool_rude_engines import script

OK = answer(b"{}")
OWN = engine_headers("sesame")


@asynccontextmanager
async def sessions() -> AsyncIterator[UpstreamSessions]:
    made = UpstreamSessions(None)
    try:
        yield made
    finally:
        await made.close()


async def posted(
    session: aiohttp.ClientSession, engine: RawEngine, **client: str
) -> PostedResponse:
    headers = {name.replace("_", "-"): value for name, value in client.items()}
    return await post(session, PostTarget(URL(engine.url)), OWN, headers, b"{}")


async def test_informational_answers_before_the_answer_are_skipped() -> None:
    first = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with raw_engine(first + OK) as engine, sessions() as made:
        for _ in range(2):
            response = await posted(made.kept, engine)
            assert (response.status, await response.content.read()) == (200, b"{}")
            assert response.connection is None, "it is free for the next request"
    assert engine.connections == 1


async def test_an_engine_that_closes_before_its_answer_ends_is_an_error_of_the_body() -> None:
    part = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}"
    async with raw_engine(script(part)) as engine, sessions() as made:
        response = await posted(made.kept, engine)
        assert response.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()
        response.close()


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (b"", aiohttp.ServerDisconnectedError),
        (b"HTTP/1.1 200 OK\r\ncontent-le", aiohttp.ServerDisconnectedError),
        (b"no HTTP\r\n\r\n", aiohttp.ClientError),
    ],
)
async def test_an_engine_that_closes_before_its_head_ends_is_an_error(
    written: bytes, error: type[Exception]
) -> None:
    async with raw_engine(script(written)) as engine, sessions() as made:
        with pytest.raises(error):
            await posted(made.kept, engine)


async def test_an_answer_that_is_left_closes_its_connection() -> None:
    part = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}"
    async with raw_engine(script(part, "hang")) as engine, sessions() as made:
        response = await posted(made.kept, engine)
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await response.content.read()
        await until(engine.closed.is_set)


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    async with raw_engine(script("hang")) as engine, sessions() as made:
        task = asyncio.create_task(posted(made.kept, engine))
        await until(lambda: len(engine.bodies) == 1)
        task.cancel()
        await until(engine.closed.is_set)
        assert task.cancelled()


async def test_a_closed_session_sends_nothing() -> None:
    async with raw_engine(OK) as engine:
        async with sessions() as made:
            session = made.kept
        with pytest.raises(aiohttp.ClientConnectionError, match="the session is closed"):
            await posted(session, engine)
        assert engine.connections == 0


async def test_a_client_adds_headers_and_replaces_none_of_the_service() -> None:
    async with raw_engine(OK) as engine, sessions() as made:
        added = {
            "accept": "a/b",
            "x_other": "1",
            "authorization": "Bearer mine",
            "bad": "a\r\nb: c",
        }
        await posted(made.fresh, engine, **added)
        assert engine.header("authorization") == ["Bearer sesame"]
        assert (engine.header("accept"), engine.header("x-other")) == (["a/b"], ["1"])
        assert engine.header("bad") == engine.header("b") == []
        assert engine.header("connection") == ["close"]
