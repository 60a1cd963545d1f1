"""One address takes a bounded number of connections, whatever others have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.http.capped_connections import CappedConnection, ConnectionCap
from tests.patience import PATIENCE_S
from tests.serving import closed


class Transport(asyncio.Transport):
    """A connection of an address, as far as the cap sees it."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1)})


class Echo(asyncio.Protocol):
    """Sends back what it gets, and closes at the end of it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@asynccontextmanager
async def serving(cap: ConnectionCap) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: CappedConnection(cap, Echo), "127.0.0.1", 0)
    async with server, asyncio.timeout(PATIENCE_S):
        yield server.sockets[0].getsockname()[1]


async def echoed(port: int, data: bytes) -> bytes:
    """Return what comes back; nothing where the connection is refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    except OSError:
        return b""
    finally:
        await closed(writer)


def test_each_address_has_its_own_count() -> None:
    cap = ConnectionCap(2)
    first = cap.enter(Transport("192.0.2.1"))
    assert first == cap.enter(Transport("192.0.2.1")) == "192.0.2.1"
    assert cap.enter(Transport("192.0.2.1")) is None
    assert cap.enter(Transport("2001:db8::1")) == "2001:db8::1"
    cap.leave(first)
    assert cap.enter(Transport("192.0.2.1")) == "192.0.2.1"


def test_this_machine_has_no_cap() -> None:
    cap = ConnectionCap(1)
    for _ in range(3):
        assert cap.enter(Transport("127.0.0.1")) == cap.enter(Transport("::1")) == ""


async def test_a_connection_is_passed_on_and_one_too_many_is_closed() -> None:
    data = b"x" * 2**20
    async with serving(ConnectionCap(1, counts_loopback=True)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await echoed(port, b"refused") == b""
        await closed(writer)
        while await echoed(port, data) != data:
            await asyncio.sleep(0.01)
