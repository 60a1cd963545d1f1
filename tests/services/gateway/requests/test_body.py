"""A body is a bounded JSON object, as it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import Request

from services.gateway.core.field_errors import NotJson
from services.gateway.requests.body import LIMIT_BYTES, json_body, raw_body
from services.gateway.responses.problem import ApiError
from shared.http import bodies


def request(*chunks: bytes, **headers: str) -> Request:
    """Return a request with these chunks; `content_type` is the header `content-type`."""
    encoded = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    unread = list(chunks)

    async def receive() -> dict[str, Any]:
        chunk = unread.pop(0) if unread else b""
        return {"type": "http.request", "body": chunk, "more_body": bool(unread)}

    return Request({"type": "http", "method": "POST", "headers": encoded}, receive)


async def refusal(refused: Request) -> tuple[int, str]:
    with pytest.raises(ApiError) as error:
        await json_body(refused)
    return error.value.status, error.value.reason


async def test_a_body_may_come_in_chunks_and_may_be_absent() -> None:
    assert await json_body(request(b'{"a"', b": 1}")) == {"a": 1}
    assert await json_body(request()) == {}
    assert await json_body(request(b"{}", content_type="application/json; charset=utf-8")) == {}


async def test_a_body_over_the_limit_is_refused_by_its_header_or_its_bytes() -> None:
    assert await refusal(request(content_length=str(LIMIT_BYTES + 1))) == (413, "too_large")
    half = b" " * (LIMIT_BYTES // 2)
    assert await refusal(request(half, half, b" ")) == (413, "too_large")
    assert await raw_body(request(half, half)) == half + half


async def test_another_media_type_or_encoding_is_refused() -> None:
    assert await refusal(request(content_type="text/plain")) == (415, "unsupported_media_type")
    assert await refusal(request(content_encoding="gzip")) == (415, "unsupported_encoding")
    assert await raw_body(request(b"x", content_encoding="gzip"), encoded=True) == b"x"


async def test_what_is_no_object_is_not_json() -> None:
    with pytest.raises(NotJson):
        await json_body(request(b"[1]"))


async def test_a_body_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    monkeypatch.setattr(bodies, "BODY_TIMEOUT_S", 0.05)
    scope = {"type": "http", "method": "POST", "headers": []}
    assert await refusal(Request(scope, receive)) == (408, "too_slow")
