"""Clients that send nothing, or half of a header, lose their connection; others do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn

from services.gateway.limits import http_protocol
from services.gateway.limits.http_protocol import limited_protocol
from shared.http.capped_connections import ConnectionCap
from tests.patience import PATIENCE_S
from tests.serving import closed

Message = MutableMapping[str, Any]


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[..., Awaitable[None]]
) -> None:
    if scope["type"] == "http":
        await asyncio.sleep(float(scope["path"].removeprefix("/")))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


@asynccontextmanager
async def serving(most: int = 2) -> AsyncIterator[int]:
    protocol = limited_protocol(ConnectionCap(most, counts_loopback=True))
    config = uvicorn.Config(app, port=0, http=protocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
async def test_a_connection_without_a_whole_header_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEADERS_S", 0.1)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()


async def test_a_request_that_takes_longer_than_its_header_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_protocol, "HEADERS_S", 2.0)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET /2.5 HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(PATIENCE_S):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
        writer.close()


async def test_an_address_has_as_many_connections_as_are_allowed() -> None:
    async with serving(most=1) as port, asyncio.timeout(PATIENCE_S):
        _, first = await asyncio.open_connection("127.0.0.1", port)
        refused, second = await asyncio.open_connection("127.0.0.1", port)
        with suppress(OSError):
            assert await refused.read() == b""
        await closed(second)
        await closed(first)
        while not await is_answered(port):
            await asyncio.sleep(0.01)


async def is_answered(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /0 HTTP/1.1\r\nHost: x\r\n\r\n")
        return (await reader.read(12)) == b"HTTP/1.1 204"
    except OSError:
        return False
    finally:
        await closed(writer)
