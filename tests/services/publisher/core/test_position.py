"""Positions of a lane survive their encoding; ledgers that were not read are left out."""

from __future__ import annotations

import msgspec
import pytest

from services.publisher.core.position import LedgerPosition, decode, encode
from shared.ledger.reader import Cursor


def test_positions_survive_their_encoding() -> None:
    positions = {"placement": LedgerPosition(Cursor(8, 3, "r3", 7, 1_000), "main")}
    assert decode(encode(positions)) == positions


def test_a_ledger_that_was_not_read_is_left_out() -> None:
    assert decode(encode({"placement": LedgerPosition()})) == {}


@pytest.mark.parametrize("value", [b"", b"[]", b'{"placement": [1, 2]}'])
def test_malformed_bytes_raise(value: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(value)
