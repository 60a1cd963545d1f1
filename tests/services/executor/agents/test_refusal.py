"""Refusals name field, value and rule."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.executor.agents.refusal import limited, malformed, unavailable
from shared.contracts.agents import OrdersRequest


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        ('{"session_id": "%s", "after": {"seq": true}}' % ("a" * 32), "after.seq: True; "),
        ('{"session_id": "%s", "after": {}}' % ("A" * 90), f"session_id: '{'A' * 63}...; "),
        ("nonsense", "body: 'nonsense'; Invalid JSON"),
    ],
)
def test_a_malformed_message_names_its_first_fault(raw: str, detail: str) -> None:
    with pytest.raises(ValidationError) as invalid:
        OrdersRequest.model_validate_json(raw, strict=True)
    refused = malformed(invalid.value)
    assert refused.status == 400 and refused.problem.detail.startswith(detail)


def test_a_refusal_says_when_to_come_back() -> None:
    assert unavailable("behind", "x").retry_after_s == 1
    assert limited("requests", "5 a second", 2.6).retry_after_s == 3
    assert limited("requests", "5 a second", 0.1).retry_after_s == 1
