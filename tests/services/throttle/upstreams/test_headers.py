"""Headers of connections and credentials stay where they belong."""

from __future__ import annotations

import pytest

from services.throttle.upstreams.headers import (
    answer_headers,
    engine_headers,
    is_printable,
    request_headers,
)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "x-api-key",
        "API-Key",
        "Cookie",
        "Host",
        "Content-Length",
        "Connection",
        "Transfer-Encoding",
        "Accept-Encoding",
        "content-type",
        "Expect",
        "TE",
    ],
)
def test_a_client_cannot_set_credentials_or_the_connection(name: str) -> None:
    own = engine_headers("key")
    assert request_headers(own, {name: "value"}) == own


def test_other_headers_of_a_client_pass_if_they_are_printable() -> None:
    client = {"x-request-id": "7", "x-a": "b\r\nx-c: d", "x\n": "1", "x-é": "1", "x-b": "\x00"}
    assert request_headers({}, client) == {"x-request-id": "7"}


def test_the_key_of_the_engine_is_a_bearer_token_and_no_key_is_no_header() -> None:
    assert engine_headers("k")["Authorization"] == "Bearer k"
    assert "Authorization" not in engine_headers("")


def test_answers_lose_the_headers_of_their_connection() -> None:
    headers = {
        "Content-Type": "a",
        "Transfer-Encoding": "chunked",
        "Set-Cookie": "a=b",
        "Content-Length": "3",
        "X-Request-Id": "7",
        "Connection": "close",
    }
    assert answer_headers(headers) == {"content-type": "a", "x-request-id": "7"}


def test_a_line_end_is_not_printable() -> None:
    assert is_printable("sk-abc 1")
    assert not any(map(is_printable, ("a\n", "a\r", "\x7f", "é")))
