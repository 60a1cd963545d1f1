from __future__ import annotations

import msgspec
import pytest

from shared.bus.archive.chain import Chain, check_numbers
from shared.bus.archive.cut import Cut
from shared.bus.archive.segment import encode_entry
from shared.bus.archive.walk import Walk
from shared.bus.logs.log import Entry
from shared.ledger.errors import BadArchive
from tests.shared.bus.archive.archives import INPUT


def extended(chain: Chain) -> bytes:
    """Return an entry of one record that follows the chain."""
    cut = Cut(Walk(INPUT, chain.cursor))
    cut.add(Entry(chain.next, None, b"record %d" % chain.next))
    return encode_entry(cut.close(chain.end, "w", 5)[0])


def chain_of_three() -> Chain:
    chain = Chain(INPUT)
    for _ in range(3):
        chain.add(extended(chain))
    return chain


def test_an_empty_chain_begins_at_0() -> None:
    chain = Chain(INPUT)
    assert (len(chain), chain.next, chain.end.n, chain.cursor.offset) == (0, 0, -1, -1)


def test_a_chain_ends_where_its_last_entry_does() -> None:
    chain = chain_of_three()
    assert (len(chain), chain.next, chain.end.n, chain.end.made_ms) == (3, 3, 2, 5)
    assert [entry.n for entry in chain.since(1)] == [1, 2]
    assert not list(chain.since(3))


@pytest.mark.parametrize("change", [{"n": 7}, {"previous": "x"}, {"first": 9}, {"partition": 1}])
def test_an_entry_that_does_not_follow_is_refused(change: dict[str, object]) -> None:
    chain = chain_of_three()
    entry = msgspec.json.decode(extended(chain)) | change
    with pytest.raises(BadArchive, match="does not follow entry 2"):
        chain.add(msgspec.json.encode(entry))


def test_an_entry_of_another_history_is_refused() -> None:
    ours, other = chain_of_three(), Chain(INPUT)
    cut = Cut(Walk(INPUT))
    for offset in range(3):
        cut.add(Entry(offset, None, b"another"))
    other.add(encode_entry(cut.close(other.end, "w", 5)[0]))
    with pytest.raises(BadArchive, match="does not follow"):
        ours.add(extended(other))


def test_a_hole_in_the_numbers_is_a_missing_entry() -> None:
    check_numbers(INPUT, ["000000000", "000000001"])
    with pytest.raises(BadArchive, match="chain/000000001: missing"):
        check_numbers(INPUT, ["000000000", "000000002"])
