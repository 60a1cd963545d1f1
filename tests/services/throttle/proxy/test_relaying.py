"""Records of answers that a client leaves behind their last event, or before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.services.throttle.proxy.test_serve import CHAT, settled
from tests.services.throttle.shell import ThrottleStack, chat

DONE = b"data: [DONE]\n\n"


def event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@asynccontextmanager
async def engine_that_stays_open(*events: bytes) -> AsyncIterator[str]:
    """Answer with the events, and keep the stream open behind them; yields the URL."""
    ends = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"".join(events))
        await ends.wait()
        return response

    application = web.Application()
    application.router.add_post(CHAT, answer)
    async with TestServer(application) as server:
        yield f"http://127.0.0.1:{server.port}"
        ends.set()


@pytest.mark.parametrize(
    ("last", "outcome"), [(DONE, "completed"), (event("", "stop"), "cancelled")]
)
async def test_a_client_that_leaves_behind_the_last_event_has_the_answer(
    tmp_path: Path, last: bytes, outcome: str
) -> None:
    async with engine_that_stays_open(event("a"), event("b"), last) as url:
        stack = ThrottleStack(tmp_path, url)
        async with stack.running() as client:
            async with client.post(CHAT, json=chat(max_tokens=9, stream=True)) as response:
                await response.content.readuntil(last)
            finished = await settled(stack)
    assert (finished.outcome, finished.reason, finished.output_tokens) == (outcome, "", 2)
