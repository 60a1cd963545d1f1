"""A body is collected within its bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from shared.http import bodies
from shared.http.bodies import BodyTooLarge, BodyTooSlow, collect_body


async def chunks(*parts: bytes, wait_s: float = 0.0) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(wait_s)


async def test_a_body_of_exactly_the_bound_is_whole_and_one_byte_more_is_too_large() -> None:
    assert await collect_body(chunks(b"ab", b"c"), 3) == b"abc"
    with pytest.raises(BodyTooLarge):
        await collect_body(chunks(b"ab", b"cd"), 3)


async def test_a_body_that_does_not_end_in_time_is_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.05)
    with pytest.raises(BodyTooSlow, match="not here after 0.05 s"):
        await collect_body(chunks(b"a", b"b", wait_s=60), 3)
