"""Requests of a hostile tenant: each is refused by its rule, or served and charged in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.throttle.relay.prompt_size import prompt_size
from services.throttle.relay.request import InvalidRequest, RequestBody
from tests.patience import until
from tests.services.throttle.proxy.test_serve import CHAT, post, serving
from tests.services.throttle.shell import MODEL, chat


def image() -> dict[str, Any]:
    return {"type": "image_url"}


@pytest.mark.parametrize(
    "headers",
    [
        {"x-berth-priority": "0000000000" + "99"},
        {"x-berth-priority": "0" * 10 + "9" * 5000},
        {"x-berth-first-token-ms": "0000000001" + "9" * 10},
    ],
)
async def test_a_number_with_leading_zeros_is_refused_by_its_rule(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with (
        serving(tmp_path) as (_, client),
        client.post(CHAT, json=chat(), headers=headers) as response,
    ):
        assert response.status == 400


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (chat(max_tokens=10_000_000, n=2), "max_tokens"),
        (chat(user="a\x00b"), "user"),
        (
            {
                "model": MODEL,
                "max_tokens": 1,
                "messages": [{"role": "user", "content": [image()] * 10_000}],
            },
            "messages",
        ),
    ],
)
async def test_a_body_beyond_what_the_ledger_takes_is_refused_by_its_rule(
    tmp_path: Path, body: Any, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as (_, client), client.post(CHAT, json=body) as response:
        assert response.status == 400, await response.text()
    assert "Traceback" not in caplog.text


async def test_a_body_that_is_not_packed_as_its_header_says_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, client):
        headers = {"content-encoding": "gzip"}
        async with client.post(CHAT, data=b"{}", headers=headers) as response:
            assert response.status == 400


def test_a_body_is_read_in_time_whatever_it_holds() -> None:
    many = b"".join(b',"%x":1' % number for number in range(100_000))
    for fields in (many, b',"stream_options":{"a":1' + many + b"}"):
        with pytest.raises(InvalidRequest):
            RequestBody.decode("chat/completions", b'{"model":"m","messages":[1]%b}' % fields)
    messages = b'["' + b'","data' * 50_000 + b'"]'
    body = RequestBody.decode("chat/completions", b'{"model":"m","messages":%b}' % messages)
    assert prompt_size(body.fields).text_bytes == len(messages)


async def test_a_place_that_is_free_is_given_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        stack.access(
            stack.endpoint.model_copy(
                update={
                    "upstreams": (
                        stack.endpoint.upstreams[0].model_copy(update={"max_requests": 1}),
                    )
                }
            )
        )
        await stack.feed()
        await until(lambda: stack.lane.state.capacity == 1)
        waits = [(await post(client, chat()))[2]["x-berth-queue-ms"] for _ in range(4)]
    assert max(map(int, waits)) < 500
