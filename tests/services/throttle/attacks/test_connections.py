"""Connections that send or read little: each is closed or refused, and leaves nothing open."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.throttle.proxy import bodies, connection, whole_response
from services.throttle.relay import client_stream
from shared.contracts.llm import LlmRequestFinished
from simulator.llm.batching import EngineLimits
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import (
    CHAT,
    LONG,
    SLOW,
    engine,
    post,
    serving,
    settled,
    until_idle,
)
from tests.services.throttle.shell import KEY, MODEL, ThrottleStack, chat
from tests.services.throttle.upstreams.engines import answer, raw_engine

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n"
MIB = 2**20
ROOMY = EngineLimits(kv_tokens=100_000_000)
MOST_LAG_S = 0.1
"""CPU of the process between two turns of its loop: a decoder took more than a second."""


@asynccontextmanager
async def raw(
    stack: ThrottleStack,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    connection = socket.create_connection(("127.0.0.1", stack.shell.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
    try:
        yield reader, writer
    finally:
        writer.close()


async def read_all(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.read()


def limited(**limits: int) -> dict[str, Any]:
    return {"service": limits}


async def test_headers_that_are_never_complete_end_their_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEADERS_S", 0.2)
    async with serving(tmp_path) as (stack, _), raw(stack) as (reader, writer):
        writer.write(HEAD.encode())
        assert await read_all(reader) == b""


async def test_a_body_that_is_sent_too_slowly_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies.BodyReader.__init__, "__defaults__", (0.2,))
    async with serving(tmp_path) as (stack, _), raw(stack) as (reader, writer):
        writer.write(f"{HEAD}content-length: 100\r\n\r\n{{".encode())
        async with asyncio.timeout(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readuntil(b"}}")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert json.loads(body)["error"]["code"] == "body_timeout"
        writer.close()
        await until(lambda: not stack.shell.open_requests.all.requests)


async def test_ten_thousand_headers_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, _), raw(stack) as (reader, writer):
        many = "".join(f"x-{number}: 1\r\n" for number in range(10_000))
        writer.write(f"{HEAD}{many}content-length: 2\r\n\r\n{{}}".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.0 400 ")


@pytest.mark.parametrize("names_its_length", [True, False])
async def test_a_body_of_50_mb_is_refused(tmp_path: Path, names_its_length: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 1_000_000

    async with serving(tmp_path) as (stack, client):
        data = io.BytesIO(b"x" * 50_000_000) if names_its_length else pieces()
        try:
            async with client.post(CHAT, data=data) as response:
                assert response.status == 413
                assert (await response.json())["error"]["code"] == "body_too_large"
        except aiohttp.ClientConnectionError:
            # The connection was closed while the client still wrote.
            pass
        assert not stack.shell.open_requests.all.body_bytes
        assert (await post(client, chat()))[0] == 200


async def test_requests_above_the_bound_of_a_tenant_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, SLOW, **limited(tenant_open_requests=2)) as (stack, client):
        holders = [asyncio.create_task(post(client, chat(max_tokens=LONG))) for _ in range(2)]
        await until(lambda: stack.shell.open_requests.all.requests == 2)
        status, body, headers = await post(client, chat())
        assert (status, body["error"]["code"]) == (429, "tenant_busy")
        assert headers["retry-after"] == "1"
        async with stack.client("other-1.sesame") as other:
            waiting = asyncio.create_task(post(other, chat(max_tokens=LONG)))
            await until(lambda: stack.shell.open_requests.all.requests == 3)
        for task in (*holders, waiting):
            task.cancel()
        await until(lambda: not stack.shell.open_requests.all.requests)


async def test_waiting_bodies_above_the_bound_are_refused(tmp_path: Path) -> None:
    text = "x" * (MIB * 3 // 4)
    async with serving(tmp_path, SLOW, **limited(tenant_open_body_mib=1)) as (stack, client):
        holder = asyncio.create_task(post(client, chat(max_tokens=LONG, text=text)))
        await until(lambda: stack.shell.open_requests.all.body_bytes > len(text))
        status, body, _ = await post(client, chat(text=text))
        assert (status, body["error"]["code"]) == (429, "tenant_busy")
        assert "bodies of the tenant's open requests" in body["error"]["message"]
        holder.cancel()
        await until(lambda: not stack.shell.open_requests.all.body_bytes)


async def test_a_client_that_never_reads_frees_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_stream, "WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(client_stream.ClientStream.__init__, "__defaults__", (0.3,))
    async with engine(speed=1000.0, limits=ROOMY) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running(), raw(stack) as (_, writer):
            body = json.dumps(chat(max_tokens=200_000, stream=True)).encode()
            writer.write(f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
            finished: LlmRequestFinished = await settled(stack)
            async with aiohttp.ClientSession() as probe:
                await until_idle(probe, url)
            assert not stack.lane.state.running
    assert finished.outcome == "cancelled"
    assert 1 <= finished.output_tokens < 200_000


async def test_a_client_that_never_reads_a_whole_answer_is_counted_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = whole_response.WholeResponse.__init__.__defaults__ or ()
    monkeypatch.setattr(
        whole_response.WholeResponse.__init__, "__defaults__", (*defaults[:-1], 2.0)
    )
    size = 16 * MIB
    async with raw_engine(answer(b"x" * size)) as engine:
        stack = ThrottleStack(tmp_path, engine.url)
        async with stack.running(), raw(stack) as (reader, writer):
            body = json.dumps(chat()).encode()
            writer.write(f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
            open_requests = stack.shell.open_requests
            await until(lambda: open_requests.all.body_bytes >= size)
            assert open_requests.by_tenant["acme"].body_bytes >= size
            await settled(stack)
            assert open_requests.all.body_bytes >= size, "the engine is free before that"
            await until(lambda: not open_requests.all.requests)
            assert not open_requests.all.body_bytes
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(size)


def worst_bodies() -> dict[str, bytes]:
    size = 16 * MIB - 200
    head = b'{"model":"%b","max_tokens":5,"messages":' % MODEL.encode()
    return {
        "fields": head + b"[1]" + b',"a":1' * (size // 6) + b"}",
        "arrays": head + b"[" + b"[]," * (size // 3) + b"1]}",
        "escapes": head + b'[{"role":"user","content":"' + b'\\"' * (size // 2) + b'"}]}',
        "depth": head + b"[" * size + b"}",
        "text": head + b'[{"role":"user","content":"' + b"a" * size + b'"}]}',
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(worst_bodies()))
async def test_the_loop_goes_on_while_the_worst_bodies_are_read(tmp_path: Path, kind: str) -> None:
    """The CPU that the process used between two turns of the loop: load beside it is no matter."""
    lags: list[float] = []

    async def probe() -> None:
        while True:
            began = time.process_time()
            await asyncio.sleep(0)
            lags.append(time.process_time() - began)

    async with raw_engine(answer(b'{"usage":{"prompt_tokens":9,"completion_tokens":5}}')) as engine:
        stack = ThrottleStack(tmp_path, engine.url)
        async with stack.running() as client:
            data = worst_bodies()[kind]
            probing = asyncio.create_task(probe())
            async with client.post(CHAT, data=io.BytesIO(data)) as response:
                await response.read()
            probing.cancel()
    assert response.status in (200, 400)
    assert max(lags) < MOST_LAG_S
