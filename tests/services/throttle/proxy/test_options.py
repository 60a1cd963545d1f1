"""The headers `x-berth-*` of a request have bounds, and each is optional."""

from __future__ import annotations

import pytest

from services.throttle.proxy.options import RequestOptions, read_options
from services.throttle.relay.errors import ErrorAnswer


def test_without_headers_a_request_has_the_defaults() -> None:
    assert read_options({}) == RequestOptions("default", "", 0, None)


def test_every_header_is_read() -> None:
    headers = {
        "x-berth-application": "chat.v2",
        "x-berth-interaction": "Run:17",
        "x-berth-priority": "3",
        "x-berth-first-token-ms": "250",
    }
    assert read_options(headers) == RequestOptions("chat.v2", "Run:17", 3, 250)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("application", ""),
        ("application", "Chat"),
        ("application", "a" * 64),
        ("interaction", "a b"),
        ("interaction", "a" * 65),
        ("priority", "16"),
        ("priority", "-1"),
        ("priority", "\N{SUPERSCRIPT TWO}"),
        ("first-token-ms", "0"),
        ("first-token-ms", "0" * 11),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_the_name_of_its_header(name: str, value: str) -> None:
    with pytest.raises(ErrorAnswer) as refused:
        read_options({f"x-berth-{name}": value})
    assert f"x-berth-{name}: invalid" in refused.value.message
