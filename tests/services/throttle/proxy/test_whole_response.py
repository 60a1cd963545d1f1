"""A whole answer reaches clients of any version, and is dropped for one that never reads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from services.throttle.proxy.whole_response import JSON, PIECE_BYTES, WholeResponse
from tests.patience import PATIENCE_S, until

SMALL = b'{"a":1}'
LARGE = b"x" * (64 * PIECE_BYTES)
FIELDS = {"x-request-id": "r1"}


class Answering:
    """A server of aiohttp that answers each request with a new response."""

    def __init__(self, body: bytes, status: int, content_type: str, timeout_s: float) -> None:
        self._answer = body, FIELDS, status, content_type, timeout_s
        self.errors: list[BaseException] = []
        self.sent = 0
        self.leave = asyncio.Event()
        self.port = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/waits":
            await self.leave.wait()
        response = WholeResponse(*self._answer)
        try:
            await response.prepare(request)
        except BaseException as error:
            self.errors.append(error)
            raise asyncio.CancelledError from None
        self.sent += 1
        return response


@asynccontextmanager
async def answering(
    body: bytes, status: int = 200, content_type: str = JSON, timeout_s: float = PATIENCE_S
) -> AsyncIterator[Answering]:
    answering = Answering(body, status, content_type, timeout_s)
    server = web.Server(answering.handle)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    answering.port = listening.sockets[0].getsockname()[1]
    try:
        yield answering
    finally:
        listening.close()
        await server.shutdown(0)


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    return await asyncio.open_connection(sock=connection, limit=4096)


async def read_answer(reader: asyncio.StreamReader) -> tuple[list[str], bytes]:
    """Return the lines of the head, and a body of the length that it names."""
    async with asyncio.timeout(PATIENCE_S):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        [length] = [int(line[16:]) for line in lines if line.startswith("content-length: ")]
        return lines, await reader.readexactly(length)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
async def test_a_connection_serves_one_answer_after_the_other(body: bytes) -> None:
    async with answering(body) as server:
        reader, writer = await connect(server.port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            lines, read = await read_answer(reader)
            assert lines[:3] == ["HTTP/1.1 200 OK", "x-request-id: r1", f"content-type: {JSON}"]
            assert not any(line.startswith("connection") for line in lines)
            assert read == body
        writer.close()


@pytest.mark.parametrize("kept", [False, True])
async def test_a_client_of_http_1_0_may_keep_its_connection(kept: bool) -> None:
    async with answering(SMALL) as server:
        reader, writer = await connect(server.port)
        writer.write(b"GET / HTTP/1.0\r\n" + b"connection: keep-alive\r\n" * kept + b"\r\n")
        lines, read = await read_answer(reader)
        assert (lines[0], read) == ("HTTP/1.0 200 OK", SMALL)
        assert lines[-1] == f"connection: {'keep-alive' if kept else 'close'}"
        if not kept:
            assert await reader.read() == b"", "the server closes"
        writer.close()


async def test_an_answer_of_an_engine_keeps_its_status_and_content_type() -> None:
    async with answering(SMALL, 404, "text/plain") as server:
        reader, writer = await connect(server.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        lines, _ = await read_answer(reader)
        assert lines[0] == "HTTP/1.1 404 Not Found" and "content-type: text/plain" in lines
        writer.close()


@pytest.mark.parametrize("content_type", ["a\r\nset-cookie: b", "\u00e9"])
def test_a_content_type_that_is_no_text_of_a_header_is_left_out(content_type: str) -> None:
    response = WholeResponse(SMALL, FIELDS, 200, content_type)
    assert response._media_type == JSON


async def test_a_client_that_has_left_gets_nothing() -> None:
    async with answering(SMALL) as server:
        _, writer = await connect(server.port)
        writer.write(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.sleep(0.05)
        server.leave.set()
        await until(lambda: server.errors != [])
        [error] = server.errors
        assert isinstance(error, ConnectionResetError) and not server.sent


async def test_a_client_that_never_reads_loses_its_connection() -> None:
    async with answering(LARGE, timeout_s=0.3) as server:
        reader, writer = await connect(server.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await until(lambda: server.errors != [])
        [error] = server.errors
        assert str(error) == "the client takes nothing"
        with pytest.raises(ConnectionError):
            await reader.read(len(LARGE))
            await reader.readexactly(len(LARGE))
        writer.close()
