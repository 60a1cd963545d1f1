from __future__ import annotations

import pytest

from shared.bus.archive.walk import Walk, identity
from shared.bus.logs.log import Entry
from shared.ledger.errors import ChainBroken
from tests.shared.bus.archive.archives import INPUT, LEDGER, Installation


def test_a_ledger_is_followed_by_the_reader_rule(site: Installation) -> None:
    site.write(3)
    walk = Walk(LEDGER)
    for entry in site.broker.entries(LEDGER):
        walk.offer(entry)
    assert (walk.cursor.next, walk.cursor.seq, walk.cursor.offset) == (6, 3, 4)


def test_fillers_are_no_ledger() -> None:
    walk = Walk(LEDGER)
    with pytest.raises(ChainBroken):
        for offset in range(2_000):
            walk.offer(Entry(offset, None, b""))


def test_records_of_an_input_are_identified_by_their_bytes() -> None:
    walk = Walk(INPUT)
    walk.offer(Entry(0, None, b"a"))
    walk.offer(Entry(1, None, None))
    assert (walk.cursor.next, walk.cursor.seq, walk.cursor.offset) == (2, 2, 1)
    assert walk.cursor.id == identity(INPUT, Entry(1, None, b""))
    assert identity(INPUT, Entry(0, None, b"a")) != identity(INPUT, Entry(0, None, b"b"))


def test_bytes_that_are_no_record_have_no_identity_in_a_ledger() -> None:
    assert identity(LEDGER, Entry(0, None, b"no record")) is None
