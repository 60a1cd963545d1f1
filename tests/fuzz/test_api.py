"""The API over real sockets: requests of its OpenAPI document, and bytes beyond any document."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from services.gateway.responses.problem import MEDIA_TYPE
from tests.fuzz.api_fuzzer import fuzz
from tests.fuzz.canary import CANARY
from tests.fuzz.corpus import HOSTILE
from tests.fuzz.tally import tally
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import KEYS, Stack
from tests.services.throttle.shell import KEY as LLM_KEY
from tests.services.throttle.shell import ThrottleStack, chat

EXAMPLES = int(os.environ.get("BERTH_FUZZ_EXAMPLES", "4"))
"""Examples per operation and key, besides those that cover each rule of the document once."""
LONG_FORM = "BERTH_FUZZ_EXAMPLES" in os.environ
LEAST = 300
LONG = b"x" * 5000
ODD = (
    b"",
    b" ",
    b"\x80",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"a\tb",
    b"\xc3\xa9",
    b"0.0.0.0",
    b"-1.0.0.0",
    b"9223372036854775808.0.0.0",
    b"1" * 400,
    b"\xd9\xa1.0.0.0",
    b"start",
    LONG,
    b"%00",
    b"%ff",
)
"""Values of headers."""


@pytest.mark.parts
def test_the_api_does_what_its_document_says(rows: Stack) -> None:
    phases = "coverage,fuzzing,stateful" if LONG_FORM else "coverage"
    outcome = fuzz(rows.url, KEYS["root"], EXAMPLES, phases, whole=LONG_FORM)
    tally("requests of an admin", outcome.cases)
    assert outcome.ok, outcome.text
    assert outcome.cases > LEAST


@pytest.mark.parts
def test_no_answer_to_a_tenant_holds_data_of_another(rows: Stack) -> None:
    outcome = fuzz(rows.url, KEYS["ada"], EXAMPLES, "fuzzing,stateful", tenant="ada")
    tally("requests of a tenant", outcome.cases)
    assert outcome.ok, outcome.text
    assert outcome.cases > LEAST // 3


async def test_data_of_a_tenant_are_shown_to_it_and_to_operators(rows: Stack) -> None:
    """Without this, the test before this one could not fail."""
    for caller in ("bob", "root"):
        for path in ("/v1/jobs", "/v1/jobs/bobs", "/v1/dead", "/v1/commands/c-bobs"):
            _, _, first = await send(rows.url, "GET", path, [key(caller)])
            assert CANARY in first, (caller, path)


async def send(
    url: str, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Send exactly these bytes; return status, headers and the first bytes of the body."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    length = [(b"content-length", str(len(body)).encode())] if body else []
    lines = [f"{method} {path} HTTP/1.1".encode(), b"host: x", b"connection: close"]
    lines += [name + b": " + value for name, value in (*headers, *length)]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    try:
        async with asyncio.timeout(PATIENCE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first = await reader.read(65536)
    finally:
        writer.close()
    status, *rest = head.split("\r\n")
    named = dict(line.lower().split(": ", 1) for line in rest if ": " in line)
    return int(status.split()[1]), named, first


def key(name: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {KEYS[name]}".encode()


@pytest.mark.parametrize("value", ODD)
async def test_a_stream_begins_or_is_refused_with_a_problem_at_any_position(
    stack: Stack, value: bytes
) -> None:
    given = [key("ada"), (b"last-event-id", value)]
    status, headers, first = await send(stack.url, "GET", "/v1/events", given)
    assert (status, headers["content-type"].partition(";")[0]) in (
        (200, "text/event-stream"),
        (422, MEDIA_TYPE),
    ), first


@pytest.mark.parametrize("value", ODD)
async def test_odd_headers_never_lead_to_a_server_error(stack: Stack, value: bytes) -> None:
    for name in (
        b"authorization",
        b"idempotency-key",
        b"traceparent",
        b"content-type",
        b"content-encoding",
        b"x-request-id",
        b"accept",
        b"cookie",
    ):
        given = [key("ada")] if name != b"authorization" else []
        prefix = b"Bearer " if name == b"authorization" else b""
        status, headers, first = await send(
            stack.url, "POST", "/v1/jobs", [*given, (name, prefix + value)], b'{"name": "x"}'
        )
        assert status < 500, (name, first)
        if status >= 400 and MEDIA_TYPE in headers.get("content-type", ""):
            json.loads(first)


@pytest.mark.parametrize("case", HOSTILE)
async def test_hostile_bodies_have_a_reason(stack: Stack, case: str) -> None:
    routes = ("/v1/jobs", "/v1/jobs/x/cancel", "/v1/nodes/n/cordon", "/v1/llm/requests", "/v1/keys")
    for path in routes:
        status, headers, first = await send(
            stack.url, "POST", path, [key("root")], HOSTILE[case][:60_000]
        )
        assert 400 <= status < 500 or (case == "empty" and status < 500), (path, first)
        assert headers["content-type"] == MEDIA_TYPE
        assert json.loads(first)["reason"]


@pytest.mark.parametrize("value", ODD)
async def test_odd_headers_of_an_llm_client_never_lead_to_a_server_error(
    tmp_path: Path, value: bytes
) -> None:
    throttle = ThrottleStack(tmp_path)
    body = json.dumps(chat(3)).encode()
    async with throttle.running():
        for name in (b"authorization", b"x-request-id", b"traceparent", b"content-type"):
            given = [(b"authorization", b"Bearer " + LLM_KEY.encode())]
            odd = (name, b"Bearer " + value if name == b"authorization" else value)
            headers = [*(given if name != b"authorization" else []), odd]
            status, _, first = await send(
                throttle.url, "POST", "/v1/chat/completions", headers, body
            )
            # The endpoint has no engine.
            assert status < 500 or b"has no upstream" in first, (name, first)


async def test_a_flood_of_odd_headers_is_refused_and_the_next_request_is_served(
    stack: Stack,
) -> None:
    many = [(b"x-%d" % number, b"y" * 100) for number in range(10_000)]
    # The gateway may close the connection before all is sent.
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        status, _, _ = await send(stack.url, "GET", "/health", many)
        assert status in (200, 400, 431)
    status, _, _ = await send(stack.url, "GET", "/health", [])
    assert status == 200
