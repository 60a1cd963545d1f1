"""Engines that hang, reset, lie or never end, through the whole proxy: no slot or token leaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.throttle.proxy import engine_call, progress
from services.throttle.upstreams import answers
from shared.contracts.llm import LlmRequestFinished
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import CHAT, post, settled
from tests.services.throttle.shell import ThrottleStack, chat
from tests.services.throttle.upstreams.engines import (
    SSE_HEAD,
    RawEngine,
    Serve,
    answer,
    chunked,
    raw_engine,
)
from tests.services.throttle.upstreams.test_pool_rude_engines import script

TEXT = "many words in one chunk of an engine "
DONE = b"data: [DONE]\n\n"
Steps = Callable[[RawEngine], Serve]


@pytest.fixture(autouse=True)
def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CHECK_S", 0.02)


def piece(text: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    data = json.dumps({**chunk, "choices": [choice], **more}, separators=(",", ":"))
    return chunked(f"data: {data}\n\n".encode())


def behind_probes(serve: Steps) -> Steps:
    """Answer probes; what is posted is served as the script says."""

    def make(engine: RawEngine) -> Serve:
        posted = serve(engine)

        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first = await reader.readexactly(5)
            if first != b"POST ":
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer(b"{}", "200 OK", "connection: close"))
                return
            await posted(reader, writer)

        return on_connection

    return make


def endless(line: bytes) -> Steps:
    """Return an engine that repeats a piece until the client leaves."""

    def make(engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await engine.read_request(reader)
            writer.write(SSE_HEAD + piece("a"))
            while not writer.is_closing():
                writer.write(line)
                await writer.drain()
                await asyncio.sleep(0.001)

        return serve

    return make


async def ends(
    tmp_path: Path, engine: Steps, **body: Any
) -> tuple[LlmRequestFinished, int, bytes, bool]:
    """Send a request; returns its settlement, status, answer, and whether it ended cleanly."""
    async with raw_engine(behind_probes(engine)) as raw:
        stack = ThrottleStack(tmp_path, raw.url)
        async with stack.running() as client, asyncio.timeout(PATIENCE_S):
            data, is_clean = b"", True
            async with client.post(CHAT, json=chat(**body)) as response:
                try:
                    async for part in response.content.iter_any():
                        data += part
                except aiohttp.ClientPayloadError:
                    is_clean = False
            finished = await settled(stack)
            await until(lambda: not stack.lane.state.running)
            await until(lambda: not stack.shell.open_requests.all.requests)
            await asyncio.wait_for(raw.closed.wait(), PATIENCE_S)
    return finished, response.status, data, is_clean


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("line", [piece("a"), piece("words " * 9)])
async def test_a_stream_that_never_ends_is_cut_off(
    tmp_path: Path, line: bytes, stream: bool
) -> None:
    finished, status, data, is_clean = await ends(tmp_path, endless(line), stream=stream)
    assert (finished.outcome, finished.output_tokens) == ("failed", 10)
    assert DONE not in data
    assert b"upstream_failed" in data
    assert (status, is_clean) == ((200, False) if stream else (502, True))


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stream_of_anything_but_text_is_cut_off(
    tmp_path: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "BARREN_S", 0.2)
    comments = endless(chunked(b": ping\n\n"))
    finished, _, data, _ = await ends(tmp_path, comments, stream=stream)
    assert (finished.outcome, finished.output_tokens) == ("failed", 1)
    assert b"no text for" in data


@pytest.mark.parametrize(
    ("steps", "made"),
    [
        ((SSE_HEAD + piece("a") + piece("b"), "reset"), 2),
        ((SSE_HEAD + piece("a"), "hang"), 1),
        ((SSE_HEAD + piece("a") + chunked(b"data: {oops\n\n"), "reset"), 1),
        ((SSE_HEAD + piece("a") + b"0\r\n\r\n",), 1),
    ],
)
async def test_a_stream_that_breaks_off_is_charged_what_it_made(
    tmp_path: Path, steps: tuple[bytes | str, ...], made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.throttle.proxy.engine_call.IDLE_S", 0.3)
    finished, _, data, is_clean = await ends(tmp_path, script(*steps), stream=True)
    assert (finished.outcome, finished.output_tokens) == ("failed", made)
    assert DONE not in data
    assert not is_clean


async def test_an_engine_that_never_answers_is_charged_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_call, "FIRST_BYTE_S", 0.3)
    finished, status, data, _ = await ends(tmp_path, script("hang"))
    assert (finished.outcome, finished.prompt_tokens, finished.output_tokens) == ("failed", 0, 0)
    assert (status, json.loads(data)["error"]["code"]) == (504, "upstream_timeout")


@pytest.mark.parametrize(("claimed", "charged"), [(1, 3), (10**6, 3), (5, 5)])
async def test_a_usage_counts_if_it_can_be_true(tmp_path: Path, claimed: int, charged: int) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": claimed, "total_tokens": 9 + claimed}
    end = piece("", usage=usage) + chunked(DONE) + b"0\r\n\r\n"
    steps = (SSE_HEAD + piece("a") * 3 + end,)
    finished, status, _, _ = await ends(tmp_path, script(*steps), stream=True)
    assert (status, finished.outcome, finished.output_tokens) == (200, "completed", charged)


async def test_a_client_that_leaves_pays_the_tokens_of_its_text_not_its_chunks(
    tmp_path: Path,
) -> None:
    packed = SSE_HEAD + piece(TEXT * 10) * 4
    async with raw_engine(behind_probes(script(packed, "hang"))) as raw:
        stack = ThrottleStack(tmp_path, raw.url)
        async with stack.running() as client:
            async with client.post(CHAT, json=chat(max_tokens=1000, stream=True)) as response:
                seen = b""
                while seen.count(b"\n\n") < 4:
                    seen += await response.content.readany()
            finished = await settled(stack)
    assert finished.outcome == "cancelled"
    assert finished.output_tokens == len(TEXT * 40) // 4


async def test_a_client_that_leaves_what_cannot_be_streamed_pays_its_reservation(
    tmp_path: Path,
) -> None:
    async with raw_engine(behind_probes(script("hang"))) as raw:
        stack = ThrottleStack(tmp_path, raw.url)
        async with stack.running() as client:
            asking = asyncio.create_task(post(client, chat(max_tokens=30, use_beam_search=True)))
            await until(lambda: bool(raw.bodies))
            asking.cancel()
            finished = await settled(stack)
    assert (finished.outcome, finished.output_tokens) == ("cancelled", 30)
