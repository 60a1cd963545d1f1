from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.core.interaction_ids import VALID_MS, is_issued, issue_id, parse_key
from services.throttle.proxy.options import ID

KEY = b"k" * 32
ISSUED = issue_id(KEY, "acme", "org/Chat-7B", 1_700_000_000_000, "0123456789abcdef")


def accepted(interaction: str = ISSUED, **changed: object) -> bool:
    fields = {"key": KEY, "tenant": "acme", "endpoint": "org/Chat-7B", "now": 1_700_000_000_000}
    return is_issued(**{**fields, "interaction": interaction, **changed})  # type: ignore[arg-type]


def test_an_issued_id_is_accepted_by_its_tenant_at_its_endpoint_for_an_hour() -> None:
    assert ID.fullmatch(ISSUED)
    assert accepted()
    assert accepted(now=1_700_000_000_000 + VALID_MS)
    assert not accepted(now=1_700_000_000_000 + VALID_MS + 1)
    assert not accepted(now=1_700_000_000_000 - VALID_MS - 1)
    assert not accepted(tenant="other")
    assert not accepted(endpoint="org/Chat-70B")
    assert not accepted(key=b"another key of the service")


@given(st.text(max_size=64) | st.text("i.0123456789abcdef-_", max_size=64))
def test_an_id_that_was_not_issued_is_not_accepted(interaction: str) -> None:
    assert not accepted(interaction)


@given(st.integers(0, len(ISSUED) - 1), st.sampled_from("ai0._-:Z"))
def test_no_character_of_an_id_may_change(at: int, character: str) -> None:
    forged = ISSUED[:at] + character + ISSUED[at + 1 :]
    assert accepted(forged) == (forged == ISSUED)


def test_a_short_key_is_an_error() -> None:
    assert parse_key("  " + "x" * 16 + "\n") == b"x" * 16
    with pytest.raises(ValueError, match="interaction_key: 3 bytes; at least 16 are required"):
        parse_key("abc\n")
