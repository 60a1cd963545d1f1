"""The drills' proxy passes bytes on, cuts connections, and leaves them half open."""

from __future__ import annotations

import asyncio

import pytest

from infra.drills.proxy import Proxy
from infra.machine.process import free_ports


async def test_the_proxy_passes_cuts_and_swallows() -> None:
    behind, before = free_ports(2)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(100):
            writer.write(piece)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", behind)
    proxy = Proxy(behind)
    await proxy.start(before)
    reader, writer = await asyncio.open_connection("127.0.0.1", before)
    writer.write(b"good")
    assert await reader.read(10) == b"good"
    proxy.mode = "half_open"
    writer.write(b"lost")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(10), 0.2)
    proxy.mode = "cut"
    assert await reader.read(10) in (b"", None)
    writer.close()
    await proxy.stop()
    server.close()
