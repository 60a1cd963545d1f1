from __future__ import annotations

import pytest

from shared.bus.archive.cut import ChainEnd, Cut
from shared.bus.archive.segment import ArchiveEntry
from shared.bus.archive.walk import Walk
from shared.bus.logs.log import Entry
from shared.ledger.errors import NotDense
from shared.ledger.partition import TP

INPUT = TP("commands", 0)


def closed(records: int, value: bytes = b"{}") -> tuple[list[Entry], ArchiveEntry, bytes]:
    """Return records of an input, and their entry and object."""
    entries = [Entry(n, b"key", value, (("name", b"v"),), 100 + n) for n in range(records)]
    cut = Cut(Walk(INPUT))
    for entry in entries:
        cut.add(entry)
    return entries, *cut.close(ChainEnd(), "writer", 7)


def test_an_entry_names_what_its_object_has() -> None:
    _, entry, body = closed(3)
    assert (entry.first, entry.next, entry.n, entry.previous) == (0, 3, 0, "")
    assert (entry.accepted, entry.ignored, entry.last_at, entry.made_ms) == (3, 0, 102, 7)
    assert (entry.bytes, entry.before.next, entry.after.next) == (len(body), 0, 3)
    assert entry.object.startswith("commands/0/data/00000000000000000000-00000000000000000003-")


def test_the_same_records_have_the_same_object() -> None:
    assert closed(3)[1:] == closed(3)[1:]


def test_a_hole_between_records_is_refused() -> None:
    cut = Cut(Walk(INPUT))
    cut.add(Entry(0, None, b"a"))
    with pytest.raises(NotDense, match="offset 2 came where 1 is due"):
        cut.add(Entry(2, None, b"b"))


def test_an_entry_follows_the_end_of_its_chain() -> None:
    cut = Cut(Walk(INPUT))
    assert cut.is_empty
    cut.add(Entry(0, None, b"a"))
    entry, _ = cut.close(ChainEnd(4, "hash"), "writer", 7)
    assert (entry.n, entry.previous) == (5, "hash")
