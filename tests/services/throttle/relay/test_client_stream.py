"""Clients get the engine's bytes, a broken stream never looks whole, and none holds its slot.

A small proxy stands between real clients and the emulated engine. Where a request must not end by
itself the engine is so slow that it would run for hours.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web

from services.throttle.relay.client_stream import BrokenStream, ClientGone, ClientStream, relay
from services.throttle.relay.errors import refuse
from services.throttle.relay.request import RequestBody, Route
from services.throttle.relay.sse import EventTooLarge
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from services.throttle.upstreams.body import ENCODER
from simulator.emulator.faults import FaultRates
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.patience import PATIENCE_S, until
from tests.services.throttle.relay.serving import serving
from tests.services.throttle.relay.streams import DONE, chat_stream, delta, event, usage

MODEL = "org/Model-7B"
FAST, ENDLESS = 10_000.0, 0.3
LONG = {"max_tokens": 5000, "ignore_eos": True}
HELLO: Any = [{"role": "user", "content": "Hello"}]
BROKEN = (BrokenStream, EventTooLarge, aiohttp.ClientError)


class Proxy:
    """Relays what an engine answers, and notes how each request ended."""

    def __init__(self, engine: str, session: aiohttp.ClientSession) -> None:
        self._engine = engine
        self._session = session
        self.ends: list[str] = []
        self.counts: list[TokenCount] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        route: Route = request.path.removeprefix("/v1/")  # type: ignore[assignment]
        body = RequestBody.decode(route, await request.read())
        count = TokenCount(route, answers=body.answers)
        self.counts.append(count)
        headers = {k: v for k, v in request.headers.items() if k.lower() == "x-berth-fault"}
        url = f"{self._engine}/v1/{route}"
        data = ENCODER.encode(body.with_stream())
        async with self._session.post(url, data=data, headers=headers) as answer:
            client = ClientStream(request, {"x-proxy": "yes"})
            pieces = answer.content.iter_any()
            self.ends.append(await ended(client, pieces, count, shows_usage=body.shows_usage))
        return client.response


async def ended(
    client: ClientStream,
    pieces: AsyncIterator[bytes],
    count: TokenCount,
    *,
    shows_usage: bool = False,
) -> str:
    """Relay a stream, and return how it ended."""
    try:
        await relay(pieces, StreamFilter(count, shows_usage=shows_usage), client)
    except ClientGone as gone:
        return gone.reason
    except BROKEN:
        await client.fail(refuse("upstream_failed", "upstream: stream broken").event)
        return "broken"
    return "complete"


@asynccontextmanager
async def proxied(speed: float = FAST) -> AsyncIterator[tuple[Proxy, str, str]]:
    """Yield a proxy, its address and that of its engine."""
    faults = FaultRates({}, by_header=True)
    emulator = EngineEmulator(EmulatorOptions((MODEL,), speed=speed, faults=faults))
    limit = aiohttp.ClientTimeout(PATIENCE_S)
    async with (
        emulator.listening("127.0.0.1", 0) as port,
        aiohttp.ClientSession(timeout=limit) as session,
    ):
        engine = f"http://127.0.0.1:{port}"
        proxy = Proxy(engine, session)
        async with serving(proxy.handle) as url:
            yield proxy, url, engine


def official(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=PATIENCE_S)


@asynccontextmanager
async def sending(pieces: Iterator[bytes], **options: Any) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve these pieces to every request; yields the address and how the requests ended."""
    ends: list[str] = []

    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)

    async def handle(request: web.Request) -> web.StreamResponse:
        client = ClientStream(request, {}, **options)
        ends.append(await ended(client, stream(), TokenCount("chat/completions")))
        return client.response

    async with serving(handle) as url:
        yield url, ends


@pytest.mark.parametrize("shows_usage", [True, False])
async def test_a_stream_reaches_the_client_byte_for_byte(shows_usage: bool) -> None:
    options = {"include_usage": shows_usage}
    body = {"model": MODEL, "messages": HELLO, "n": 2, "stream": True, "stream_options": options}
    async with proxied() as (proxy, url, engine), aiohttp.ClientSession() as session:
        texts = []
        for address in (url, engine):
            path = f"{address}/v1/chat/completions"
            async with session.post(path, data=json.dumps(body)) as answer:
                texts.append(await answer.read())
                if address == url:
                    assert answer.headers["x-proxy"] == "yes"
                    assert answer.content_type == "text/event-stream"
    proxied_text, direct = ([_nameless(line) for line in text.split(b"\n")] for text in texts)
    assert proxied_text == direct
    assert proxy.ends == ["complete"]
    (count,) = proxy.counts
    assert count.doubt == ""
    assert count.output_tokens == count.chunks


def _nameless(line: bytes) -> Any:
    """Return a line without what differs between two answers: id, time and cached tokens."""
    if not line.startswith(b"data: {"):
        return line
    chunk = json.loads(line[6:])
    chunk.get("usage", {}).pop("prompt_tokens_details", None)
    return {key: value for key, value in chunk.items() if key not in ("id", "created")}


async def test_the_official_client_reads_streams() -> None:
    async with proxied() as (proxy, url, _), official(url) as client:
        stream: Any = await client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, max_tokens=7, extra_body={"ignore_eos": True}
        )
        words = [chunk.choices[0].delta.content async for chunk in stream]
        async with client.responses.stream(model=MODEL, input="hi") as events:
            response: Any = await events.get_final_response()
    assert len(list(filter(None, words))) == 7
    assert response.status == "completed"
    assert [count.output_tokens for count in proxy.counts] == [7, response.usage.output_tokens]


@pytest.mark.parametrize("fault", ["cut", "reset"])
async def test_the_official_client_never_takes_a_broken_stream_for_whole(fault: str) -> None:
    async with proxied() as (proxy, url, _), official(url) as client:
        stream: Any = await client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, extra_headers={"x-berth-fault": fault}
        )
        with pytest.raises(openai.APIError, match="upstream: stream broken"):
            async for _ in stream:
                pass
    assert proxy.ends == ["broken"]


async def test_an_incomplete_answer_ends_without_its_last_chunk() -> None:
    text = b""
    async with (
        sending(iter([event(delta(content="x"))])) as (url, ends),
        aiohttp.ClientSession() as session,
        session.get(url) as answer,
    ):
        with pytest.raises(aiohttp.ClientPayloadError):
            async for piece in answer.content.iter_any():
                text += piece
    assert text.count(b"data: ") == 2
    assert b"upstream: stream broken" in text
    assert ends == ["broken"]


async def test_an_error_can_be_read_behind_half_an_event() -> None:
    pieces = [event(delta(content="x")), event(delta(content="y"))[:30]]
    async with sending(iter(pieces)) as (url, _), official(url) as client:
        stream: Any = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="upstream: stream broken"):
            async for _ in stream:
                pass


async def test_a_client_of_http_1_0_gets_a_reset() -> None:
    async with sending(iter([event(delta(content="x"))])) as (url, _):
        reader, writer = await connect(url, version="1.0")
        with pytest.raises(ConnectionResetError):
            while await reader.read(1000):
                pass
        writer.close()


async def test_a_client_that_leaves_a_silent_engine_frees_its_slot() -> None:
    body = {"model": MODEL, "messages": HELLO, "stream": True, **LONG}
    async with proxied(ENDLESS) as (proxy, url, engine), aiohttp.ClientSession() as session:
        answer = await session.post(f"{url}/v1/chat/completions", data=json.dumps(body))
        await answer.content.readany()
        assert await running(session, engine) == 1
        answer.close()
        async with asyncio.timeout(PATIENCE_S):
            while await running(session, engine):
                await asyncio.sleep(0.01)
    assert proxy.ends in ([], ["disconnected"])


async def running(session: aiohttp.ClientSession, engine: str) -> int:
    async with session.get(f"{engine}/load") as answer:
        return int((await answer.json())["server_load"])


def endless() -> Iterator[bytes]:
    while True:
        yield event(delta(content="x" * 8000))


async def test_a_client_that_never_reads_is_left_alone() -> None:
    async with sending(endless(), write_timeout_s=0.2) as (url, ends):
        _, writer = await connect(url, receive_bytes=4096)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: bool(ends))
        writer.close()
    assert ends == ["stalled"]


async def test_a_client_that_reads_slowly_gets_everything() -> None:
    chunks = [event(delta(content="x" * 8000))] * 100
    async with sending(iter([*chunks, DONE])) as (url, ends):
        reader, writer = await connect(url, receive_bytes=4096)
        text = b""
        while piece := await reader.read(50_000):
            text += piece
            await asyncio.sleep(0.001)
            if text.endswith(b"0\r\n\r\n"):
                break
        writer.close()
    assert text.count(b"data: ") == 101
    assert ends == ["complete"]


async def test_a_client_that_leaves_while_it_is_written_to_is_noticed() -> None:
    gone: list[bool] = []

    async def stream() -> AsyncIterator[bytes]:
        while True:
            yield event(delta(content="x" * 8000))

    async def handle(request: web.Request) -> web.StreamResponse:
        client = ClientStream(request, {})
        try:
            await relay(
                stream(), StreamFilter(TokenCount("chat/completions"), shows_usage=False), client
            )
        except (ClientGone, asyncio.CancelledError):
            gone.append(client.is_gone)
            raise
        return client.response

    async with serving(handle) as url, aiohttp.ClientSession() as session:
        answer = await session.get(url)
        await answer.content.readany()
        answer.close()
        await until(lambda: bool(gone))
    assert gone == [True]


async def test_an_error_before_the_first_byte_has_its_own_status() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        client = ClientStream(request, {})
        with suppress(BrokenStream):
            await relay(
                silence(), StreamFilter(TokenCount("embeddings"), shows_usage=False), client
            )
        assert not client.is_open
        error = refuse("upstream_failed", "m")
        return web.Response(status=error.status, body=error.body, headers=error.headers)

    async with (
        serving(handle) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as answer,
    ):
        assert answer.status == 502


async def silence() -> AsyncIterator[bytes]:
    return
    yield b""


async def test_progress_is_reported_as_tokens_arrive() -> None:
    seen: list[int] = []

    async def stream() -> AsyncIterator[bytes]:
        yield event(delta(content="a"))
        yield event(delta(content="b")) + event(usage(completion_tokens=2)) + DONE

    async def handle(request: web.Request) -> web.StreamResponse:
        client = ClientStream(request, {})
        events = StreamFilter(TokenCount("chat/completions"), shows_usage=False)
        await relay(stream(), events, client, lambda count: seen.append(count.output_tokens))
        return client.response

    async with (
        serving(handle) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as answer,
    ):
        assert b"usage" not in await answer.read()
    assert seen == [1, 2, 2]


async def test_the_kernel_closes_connections_that_acknowledge_nothing() -> None:
    limits: list[int] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        client = ClientStream(request, {}, write_timeout_s=7)
        await client.write(chat_stream())
        assert request.transport is not None
        connection = request.transport.get_extra_info("socket")
        limits.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        await client.finish()
        return client.response

    async with (
        serving(handle) as url,
        aiohttp.ClientSession() as session,
        session.get(url) as answer,
    ):
        assert await answer.read() == chat_stream()
    assert limits == [7000]


async def connect(
    url: str, *, version: str = "1.1", receive_bytes: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection that has sent its request."""
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.setblocking(False)
    port = int(url.rpartition(":")[2])
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
    writer.write(f"GET / HTTP/{version}\r\nHost: x\r\n\r\n".encode())
    return reader, writer
