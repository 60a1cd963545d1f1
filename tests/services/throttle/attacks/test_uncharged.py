"""Prompts and output that no tenant may get uncharged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.services.throttle.proxy.test_serve import CHAT, settled
from tests.services.throttle.shell import ThrottleStack, chat

PROMPT_TOKENS = 50_000
WAITS = web.AppKey("waits", bool)


def chunk(text: str = "", **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": None}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


async def answer(request: web.Request) -> web.StreamResponse:
    """Stream two chunks of many tokens each, as an engine that decodes several at once."""
    await request.read()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(2):
        await response.write(chunk("word " * 500))
    if request.app[WAITS]:
        await asyncio.sleep(5)
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 1000}
    await response.write(
        b'data: {"choices":[],"usage":' + json.dumps(usage).encode() + b"}\n\ndata: [DONE]\n\n"
    )
    return response


@asynccontextmanager
async def stack_before(tmp_path: Path, *flags: str) -> AsyncIterator[Any]:
    app = web.Application()
    app[WAITS] = bool(flags)
    app.router.add_post("/v1/{rest:.*}", answer)

    async def healthy(request: web.Request) -> web.Response:
        return web.Response()

    app.router.add_get("/{rest:.*}", healthy)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stack = ThrottleStack(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with stack.running() as client:
        yield stack, client
    await runner.cleanup()


@pytest.mark.parametrize(
    "fields",
    [
        {"documents": [{"text": "x" * 4 * PROMPT_TOKENS}]},
        {"chat_template_kwargs": {"preface": "x" * 4 * PROMPT_TOKENS}},
    ],
)
async def test_a_prompt_in_any_field_is_charged_as_the_engine_counts_it(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with stack_before(tmp_path) as (stack, client):
        async with client.post(CHAT, json=chat(max_tokens=1000, **fields)) as response:
            await response.read()
        finished = await settled(stack)
    assert finished.prompt_tokens == PROMPT_TOKENS
