from __future__ import annotations

import pytest

from shared.bus.archive.segment import decode_entry, encode_entry, unpack
from shared.ledger.errors import BadArchive
from tests.shared.bus.archive.test_cut import closed


def test_an_object_has_the_records_byte_for_byte() -> None:
    records, entry, body = closed(5)
    assert list(unpack(entry, body)) == records
    assert list(unpack(entry, body, 3)) == records[3:]


def test_a_reader_unpacks_only_the_frames_that_it_needs() -> None:
    records, entry, body = closed(4, value=b"x" * (1 << 20))
    assert [frame.first for frame in entry.frames] == [0, 1, 2, 3]
    assert [record.offset for record in unpack(entry, body, 2)] == [2, 3]


def test_a_flipped_bit_is_noticed() -> None:
    _, entry, body = closed(5)
    for place in (0, len(body) // 2, len(body) - 1):
        flipped = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        with pytest.raises(BadArchive, match="another sha256"):
            list(unpack(entry, flipped))


def test_a_missing_object_is_noticed() -> None:
    _, entry, _ = closed(5)
    with pytest.raises(BadArchive, match="missing"):
        list(unpack(entry, None))


def test_an_entry_of_an_unknown_format_is_refused_with_its_name() -> None:
    _, entry, _ = closed(1)
    body = encode_entry(entry)
    assert decode_entry(body, "chain/0") == entry
    with pytest.raises(BadArchive, match="chain/0: format 2"):
        decode_entry(body.replace(b'"format":1', b'"format":2'), "chain/0")
    with pytest.raises(BadArchive, match="not an entry"):
        decode_entry(b"{}", "chain/0")
