"""Floods: what one tenant opens is bounded, and a request that is not sent ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.patience import until
from tests.services.throttle.proxy.test_serve import LONG, SLOW, engine, post
from tests.services.throttle.shell import ThrottleStack, chat


async def test_no_more_requests_are_open_than_the_setting_of_handlers(tmp_path: Path) -> None:
    async with engine(speed=SLOW) as (_, url):
        stack = ThrottleStack(tmp_path, url, service={"handlers": 1})
        async with stack.running() as client:
            first = asyncio.create_task(post(client, chat(max_tokens=LONG)))
            await until(lambda: len(stack.lane.state.running) == 1)
            try:
                async with asyncio.timeout(2):
                    status, _, _ = await post(client, chat(max_tokens=LONG))
            except TimeoutError:
                status = 0
            first.cancel()
    assert status == 503
