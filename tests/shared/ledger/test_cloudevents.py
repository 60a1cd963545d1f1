"""Bytes that are a CloudEvent, and bytes that are none."""

from __future__ import annotations

import json

import pytest

from shared.ledger import cloudevents

GOOD = {"specversion": "1.0", "id": "1", "source": "/me", "type": "t.v1"}


def test_what_is_written_can_be_read() -> None:
    value = cloudevents.encode(
        id="1",
        source="/berth/gateway",
        type="job.submit.v1",
        data=b'{"a": 1}',
        at_ms=1_700_000_000_123,
        subject="job-1",
        traceparent="00-t",
        tenant="red",
        pool="main",
    )
    event = cloudevents.decode(value)
    assert (event.id, event.tenant, event.pool, event.subject) == ("1", "red", "main", "job-1")
    assert json.loads(event.body) == {"a": 1}
    assert event.at == 1_700_000_000_123
    assert json.loads(value)["time"] == "2023-11-14T22:13:20.123Z"


def test_unknown_attributes_are_ignored() -> None:
    assert cloudevents.decode(json.dumps({**GOOD, "shoesize": 9}).encode()).type == "t.v1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "object"),
        (b'"text"', "object"),
        (b"null", "object"),
        (json.dumps({**GOOD, "specversion": "0.3"}).encode(), "specversion"),
        (json.dumps({**GOOD, "id": ""}).encode(), "id is empty"),
        (json.dumps({**GOOD, "id": 7}).encode(), "str"),
        (json.dumps({**GOOD, "time": "yesterday"}).encode(), "RFC 3339"),
        (json.dumps({**GOOD, "time": "2026-01-01T00:00:00"}).encode(), "zone"),
        (json.dumps({**GOOD, "id": "a\x00b"}).encode(), "id: may not hold a NUL"),
        (json.dumps({**GOOD, "tenant": "x" * 2000}).encode(), "tenant: 2000 characters"),
        (b"[" * 100_000, "object"),
        (json.dumps({**GOOD, "data": "x" * (1 << 20)}).encode(), "bytes"),
        *((json.dumps({k: v for k, v in GOOD.items() if k != n}).encode(), n) for n in GOOD),
    ],
    ids=lambda value: None if isinstance(value, str) else "value",
)
def test_anything_else_is_malformed_with_a_reason(value: bytes | None, reason: str) -> None:
    with pytest.raises(cloudevents.Malformed, match=reason):
        cloudevents.decode(value)


@pytest.mark.parametrize("data", ["a\x00b", {"a": [{"b": "\x00"}]}, {"\x00": 1}])
def test_an_input_may_not_hold_what_no_read_model_can_keep(data: object) -> None:
    value = json.dumps({**GOOD, "data": data}).encode()
    assert cloudevents.decode(value).id == "1"
    with pytest.raises(cloudevents.Malformed, match="^data.*may not hold a NUL"):
        cloudevents.decode_input(value)


def test_a_backslash_before_four_zeros_is_no_nul() -> None:
    value = json.dumps({**GOOD, "data": {"argv": r"\u0000"}}).encode()
    assert json.loads(cloudevents.decode_input(value).body) == {"argv": r"\u0000"}


def test_the_reason_never_quotes_the_body() -> None:
    secret = json.dumps({**GOOD, "source": ["hunter2"]}).encode()
    with pytest.raises(cloudevents.Malformed) as error:
        cloudevents.decode(secret)
    assert "hunter2" not in str(error.value)
