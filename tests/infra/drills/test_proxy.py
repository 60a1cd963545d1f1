"""The drills' proxy passes bytes on, cuts connections, and leaves them half open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from infra.drills.proxy import Mode, Proxy
from infra.machine.process import free_ports
from tests.patience import until

Client = tuple[Proxy, asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def an_echo(proxied: list[bytes]) -> AsyncIterator[Client]:
    """A connection through a proxy to a server that notes what it reads, and sends it back."""
    behind, before = free_ports(2)
    ended = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(100):
                proxied.append(piece)
                writer.write(piece)
        writer.close()
        ended.set()

    server = await asyncio.start_server(echo, "127.0.0.1", behind)
    proxy = Proxy(behind)
    await proxy.start(before)
    reader, writer = await asyncio.open_connection("127.0.0.1", before)
    try:
        yield proxy, reader, writer
    finally:
        writer.close()
        await proxy.stop()
        await ended.wait()
        server.close()


async def discarded(proxy: Proxy) -> None:
    """Wait until the proxy has discarded what was sent."""
    await until(lambda: bool(proxy._torn))


async def test_the_proxy_passes_cuts_and_swallows() -> None:
    async with an_echo([]) as (proxy, reader, writer):
        writer.write(b"good")
        assert await reader.read(10) == b"good"
        proxy.mode = "half_open"
        writer.write(b"lost")
        await discarded(proxy)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(10), 0.2)
        proxy.mode = "cut"
        assert await reader.read(10) in (b"", None)


async def test_answers_are_lost_and_their_connection_is_closed_afterwards() -> None:
    proxied: list[bytes] = []
    async with an_echo(proxied) as (proxy, reader, writer):
        proxy.mode = "no_answers"
        writer.write(b"lost")
        await discarded(proxy)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(10), 0.2)
        proxy.mode = "good"
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
    assert proxied == [b"lost"]


async def test_requests_are_lost_before_the_server_reads_them() -> None:
    proxied: list[bytes] = []
    async with an_echo(proxied) as (proxy, reader, writer):
        proxy.mode = "no_requests"
        writer.write(b"lost")
        await discarded(proxy)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(10), 0.2)
    assert proxied == []


@pytest.mark.parametrize("mode", ["late_requests", "late_answers"])
async def test_what_is_held_back_arrives_late(mode: Mode) -> None:
    async with an_echo([]) as (proxy, reader, writer):
        proxy.mode = mode
        writer.write(b"late")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(10), 0.2)
        proxy.mode = "good"
        assert await reader.read(10) == b"late"
