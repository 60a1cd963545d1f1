"""Requests that aiohttp itself refuses get errors of the OpenAI API; no header is logged."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from tests.services.throttle.attacks.test_connections import HEAD, raw
from tests.services.throttle.proxy.test_serve import CHAT, post, serving
from tests.services.throttle.shell import chat

POST = f"POST {CHAT} HTTP/1.1\r\n".encode()
MALFORMED = {
    "a request line": b"NO SUCH THING\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "a header": POST + b"authorization: Bearer a\x00sesame\r\n\r\n",
    "a length": POST + b"content-length: -1\r\n\r\n",
    "a long header": b"GET /v1/models HTTP/1.1\r\nx: " + b"a" * 9_000 + b"\r\n\r\n",
    "many headers": b"GET /v1/models HTTP/1.1\r\n" + b"x: 1\r\n" * 10_000 + b"\r\n",
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_request_is_an_error_of_the_api(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(tmp_path) as (stack, _), raw(stack) as (reader, writer):
        writer.write(MALFORMED[kind])
        head, body = (await reader.read(65_536)).split(b"\r\n\r\n", 1)
        assert not await reader.read(), "the connection is closed"
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    error = json.loads(body)["error"]
    assert (error["code"], error["type"]) == ("invalid_http", "invalid_request_error")
    assert b"x-should-retry: false" in head.lower()
    assert "sesame" not in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize("pause_s", [0.0, 0.1])
async def test_a_body_of_an_invalid_encoding_is_no_error_of_the_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pause_s: float
) -> None:
    fields = "content-type: application/json\r\ncontent-encoding: deflate\r\ncontent-length: 6"
    async with serving(tmp_path) as (stack, _), raw(stack) as (reader, writer):
        writer.write(f"{HEAD}{fields}\r\n\r\n".encode())
        await asyncio.sleep(pause_s)
        writer.write(b"\x01\x02junk")
        answer = await reader.read(65_536)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    error = json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]
    assert error["code"] in ("invalid_http", "invalid_body")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_an_expectation_that_cannot_be_met_is_an_error_of_the_api(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        status, body, _ = await post(client, chat(), expect="a-miracle")
    assert (status, body["error"]["code"]) == (417, "expectation_failed")


async def test_a_client_may_wait_until_it_should_go_on(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as (_, client),
        client.post(CHAT, json=chat(), expect100=True) as response,
    ):
        assert response.status == 200
