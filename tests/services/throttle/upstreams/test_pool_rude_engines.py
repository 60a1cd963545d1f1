"""Engines that reset, hang, flood or lead elsewhere cost one request at most, and no memory."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from infra.security import certificates
from services.throttle.upstreams import answers, connections, exchange
from services.throttle.upstreams.calls import UpstreamBroken, UpstreamsFailed
from tests.patience import PATIENCE_S
from tests.services.throttle.upstreams.engines import (
    EVENT,
    SSE_HEAD,
    RawEngine,
    Serve,
    answer,
    chat,
    chunked,
    emulated,
    pool_of,
    raw_engine,
    read,
    still,
)

OK = answer(b"{}")
MIB = 1024 * 1024
PAUSE_S = 0.1


@pytest.fixture(autouse=True)
def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CHECK_S", 0.02)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of an end."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def script(*steps: bytes | str) -> Callable[[RawEngine], Serve]:
    """Return an engine that reads one request per connection, writes bytes and ends.

    The steps `reset` and `hang` do that; `hang` ends when the client leaves. What was written
    before a fault has to be read before it, as a client drops what it has not read by then.
    """

    def make(engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await engine.read_request(reader)
            for step in steps:
                if step == "hang":
                    await reader.read()
                elif step == "reset":
                    await asyncio.sleep(PAUSE_S)
                    reset(writer)
                elif step == "pause":
                    await asyncio.sleep(PAUSE_S)
                elif isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()

        return serve

    return make


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (("reset",), "connection reset"),
        ((), "connection closed without an answer"),
        ((SSE_HEAD, "reset"), "answer broke off before its first byte"),
        ((SSE_HEAD, "pause", b"zz\r\n", "hang"), "answer is not valid HTTP"),
        ((SSE_HEAD,), "answer broke off before its first byte"),
        ((b"SSH-2.0-OpenSSH\r\n\r\n",), "answer is not valid HTTP"),
        ((b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 10_000 + b"\r\n",), "answer is not valid HTTP"),
        ((b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * MIB + b"\r\n\r\n",), "answer is not valid HTTP"),
        ((answer(b"x" * 10 * MIB, "500 Error"),), "status 500"),
        ((answer(b"", "502 Bad Gateway"),), "status 502"),
        ((answer(b"", "503 Loading"),), "status 503"),
        ((answer(b"", "429 Slow", "retry-after: 7"),), "status 429"),
        ((answer(b"", "407 Proxy"),), "status 407: credentials refused"),
    ],
)
async def test_a_failure_before_the_first_byte_goes_to_another_engine(
    steps: tuple[bytes | str, ...], reason: str
) -> None:
    async with (
        raw_engine(script(*steps)) as rude,
        raw_engine(OK) as good,
        pool_of(rude.url, good.url) as pool,
    ):
        assert await read(pool, chat()) == ("u1", 200, b"{}")
        assert (rude.connections, good.connections) == (1, 1)
        assert [state.in_flight for state in pool.states()] == [0, 0]
    async with raw_engine(script(*steps)) as rude, pool_of(rude.url) as pool:
        with pytest.raises(UpstreamsFailed, match=f"^u0: {reason}$"):
            await read(pool, chat())


async def test_one_that_accepts_and_resets_is_taken_out() -> None:
    async with (
        raw_engine(script("reset")) as rude,
        raw_engine(OK) as good,
        pool_of(rude.url, good.url, clock=still) as pool,
    ):
        for _ in range(12):
            assert (await read(pool, chat()))[0] == "u1"
        assert rude.connections == 3
        assert pool.states()[0].reason == "connection reset"


@pytest.mark.parametrize("steps", [("hang",), (SSE_HEAD, "hang")])
async def test_one_that_sends_nothing_ends_a_request_in_time_and_is_left(
    steps: tuple[bytes | str, ...],
) -> None:
    async with (
        raw_engine(script(*steps)) as rude,
        raw_engine(OK) as good,
        pool_of(rude.url, good.url) as pool,
    ):
        with pytest.raises(UpstreamsFailed, match="^u0: no answer in time$") as failed:
            await read(pool, chat(first_byte_s=0.2))
        assert failed.value.status == 504
        assert good.connections == 0
        await asyncio.wait_for(rude.closed.wait(), PATIENCE_S)


async def test_a_silent_stream_breaks_off_and_is_left() -> None:
    steps = (SSE_HEAD + chunked(EVENT), "hang")
    async with raw_engine(script(*steps)) as rude, pool_of(rude.url) as pool:
        async with pool.send(chat(idle_s=0.2)) as response:
            chunks = aiter(response.chunks)
            assert await anext(chunks) == EVENT
            with pytest.raises(UpstreamBroken, match=r"u0: silent for 0\.2 s"):
                await anext(chunks)
        await asyncio.wait_for(rude.closed.wait(), PATIENCE_S)


async def test_a_slow_reader_is_not_taken_for_a_silent_engine() -> None:
    steps = (SSE_HEAD + chunked(EVENT), "pause", chunked(EVENT) + b"0\r\n\r\n")
    async with (
        raw_engine(script(*steps)) as engine,
        pool_of(engine.url) as pool,
        pool.send(chat(idle_s=0.2)) as response,
    ):
        await engine.closed.wait()
        await asyncio.sleep(0.5)
        assert b"".join([chunk async for chunk in response.chunks]) == EVENT + EVENT


@pytest.mark.parametrize(
    "steps", [("reset",), (), ("pause", b"zz\r\n"), ("pause", b"zz\r\n", "hang")]
)
async def test_a_stream_that_breaks_off_is_an_error_and_never_an_end(
    steps: tuple[bytes | str, ...],
) -> None:
    async with (
        raw_engine(script(SSE_HEAD + chunked(EVENT), *steps)) as rude,
        raw_engine(OK) as good,
        pool_of(rude.url, good.url) as pool,
    ):
        async with pool.send(chat()) as response:
            chunks = aiter(response.chunks)
            assert await anext(chunks) == EVENT
            with pytest.raises(UpstreamBroken):
                await anext(chunks)
        assert (rude.connections, good.connections) == (1, 0)


async def test_engines_that_break_every_stream_are_taken_out() -> None:
    steps = script(SSE_HEAD + chunked(EVENT), "reset")
    async with raw_engine(steps) as rude, pool_of(rude.url, clock=still) as pool:
        for _ in range(3):
            with pytest.raises(UpstreamBroken):
                await read(pool, chat())
        assert not pool.states()[0].available


async def test_a_kept_connection_that_the_engine_closed_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", PATIENCE_S)

    def serve_once(engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await engine.read_request(reader)
            writer.write(OK)
            # The next request on this connection meets a reset, as if both had crossed.
            await engine.read_request(reader)
            reset(writer)

        return serve

    async with raw_engine(serve_once) as engine, pool_of(engine.url) as pool:
        for _ in range(2):
            assert await read(pool, chat()) == ("u0", 200, b"{}")
        assert (engine.connections, len(engine.bodies)) == (2, 3)
        assert engine.bodies[1] == engine.bodies[2]
        assert pool.states()[0].available


async def test_redirects_are_not_followed() -> None:
    async with raw_engine(OK) as other:
        moved = answer(b"", "307 Moved", f"location: {other.url}/v1/chat/completions")
        async with raw_engine(moved) as engine, pool_of(engine.url) as pool:
            with pytest.raises(UpstreamsFailed, match="status 307: redirects are not followed"):
                await read(pool, chat())
        assert other.connections == 0


async def test_cookies_are_neither_kept_nor_passed_on() -> None:
    with_cookie = answer(b"{}", "200 OK", "set-cookie: a=b", "x-request-id: 7")
    async with raw_engine(with_cookie) as engine, pool_of(engine.url) as pool:
        for _ in range(2):
            async with pool.send(chat(headers={"cookie": "c=d"})) as response:
                assert dict(response.headers) == {"x-request-id": "7"}
        assert engine.header("cookie") == []
        assert engine.header("accept-encoding") == ["identity"]


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with raw_engine(OK) as engine, pool_of(engine.url) as pool:
        assert (await read(pool, chat()))[1] == 200


async def test_a_path_of_the_address_is_kept() -> None:
    async with raw_engine(OK) as engine, pool_of(f"{engine.url}/openai/") as pool:
        await read(pool, chat())
        assert engine.heads[0].startswith("POST /openai/v1/chat/completions HTTP/1.1\r\n")


async def test_an_answer_that_is_compressed_all_the_same_is_read() -> None:
    packed = answer(gzip.compress(b'{"a":1}'), "200 OK", "content-encoding: gzip")
    async with (
        raw_engine(packed) as engine,
        pool_of(engine.url) as pool,
        pool.send(chat()) as response,
    ):
        assert b"".join([chunk async for chunk in response.chunks]) == b'{"a":1}'
        assert "content-encoding" not in response.headers


@pytest.mark.parametrize("status", [429, 503])
async def test_busy_engines_rest_and_say_when_to_come_back(status: int) -> None:
    busy = answer(b"", f"{status} Busy", "retry-after: 30")
    busier = answer(b"", f"{status} Busy", "retry-after: 50")
    async with (
        raw_engine(busy) as first,
        raw_engine(busier) as second,
        pool_of(first.url, second.url, clock=still) as pool,
    ):
        for code in ("upstream_busy", "no_upstream"):
            with pytest.raises(UpstreamsFailed) as failed:
                await read(pool, chat())
            assert failed.value.code == code
            assert failed.value.retry_after_s == 30
        assert (first.connections, second.connections, pool.capacity) == (1, 1, 0)


async def test_an_error_of_the_request_is_passed_on_up_to_a_limit() -> None:
    body = b'{"error": {"message": "' + b"x" * 60_000 + b'"}}'
    bad = answer(body, "400 Bad Request", "content-type: application/json")
    async with raw_engine(bad) as engine, pool_of(engine.url) as pool:
        assert await read(pool, chat()) == ("u0", 400, body)
    flood = answer(b"x" * 10 * MIB, "400 Bad Request")
    async with raw_engine(flood) as engine, pool_of(engine.url) as pool:
        with pytest.raises(
            UpstreamsFailed, match="status 400, its text is above 65536 bytes"
        ) as no:
            await read(pool, chat())
        assert no.value.status == 400
        assert pool.states()[0].available


async def test_an_error_that_never_ends_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "ERROR_BODY_S", 0.1)
    endless = b"HTTP/1.1 500 Error\r\ncontent-length: 100\r\n\r\nx"
    async with raw_engine(script(endless, "hang")) as engine, pool_of(engine.url) as pool:
        with pytest.raises(UpstreamsFailed, match="status 500"):
            await read(pool, chat())
        await asyncio.wait_for(engine.closed.wait(), PATIENCE_S)


async def test_a_large_body_arrives_whole_also_at_the_next_engine() -> None:
    text = b'"' + b"x" * 3 * MIB + b'"'
    async with (
        raw_engine(script("reset")) as rude,
        raw_engine(OK) as good,
        pool_of(rude.url, good.url) as pool,
    ):
        await read(pool, chat(user=msgspec.Raw(text)))
        assert rude.bodies == good.bodies
        assert msgspec.json.decode(good.bodies[0])["user"] == "x" * 3 * MIB
        assert "Content-Length: " in good.heads[0]
        assert "Transfer-Encoding" not in good.heads[0]


async def test_a_request_that_the_engine_does_not_take_can_be_left() -> None:
    reading = asyncio.Event()

    def stall(engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            reading.set()
            await asyncio.Event().wait()

        return serve

    async with raw_engine(stall) as engine, pool_of(engine.url) as pool:
        task = asyncio.create_task(
            read(pool, chat(user=msgspec.Raw(b'"' + b"x" * 16 * MIB + b'"')))
        )
        await reading.wait()
        task.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < PATIENCE_S
        assert pool.states()[0].in_flight == 0


async def test_a_name_that_does_not_resolve_is_an_error_of_its_own() -> None:
    async with pool_of("http://engine.invalid:8000") as pool:
        with pytest.raises(UpstreamsFailed, match="name not resolved|connection timed") as failed:
            await read(pool, chat())
        assert (failed.value.status, pool.capacity) == (502, 0)


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999"])
async def test_an_address_that_is_none_is_an_error(url: str) -> None:
    async with pool_of("http://placeholder") as pool:
        upstream = pool._members.all[0]
        upstream.settings = upstream.settings.model_copy(update={"url": url})
        with pytest.raises(UpstreamsFailed, match="u0: address is invalid"):
            await read(pool, chat())


async def test_tls_is_verified(tmp_path: Path) -> None:
    certificates.make(tmp_path)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(tmp_path / "api.crt", tmp_path / "api.key")
    trusted = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    async with raw_engine(OK, ssl=served) as engine:
        async with pool_of(engine.url, tls=trusted) as pool:
            assert (await read(pool, chat()))[1] == 200
        async with pool_of(engine.url) as pool:
            with pytest.raises(UpstreamsFailed, match="u0: TLS failed"):
                await read(pool, chat())
    async with emulated() as plain, pool_of(plain.url.replace("http", "https")) as pool:
        with pytest.raises(UpstreamsFailed, match="u0: TLS failed"):
            await read(pool, chat())
