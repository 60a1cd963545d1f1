"""The reader rule, record by record."""

from __future__ import annotations

import msgspec
import pytest

from shared.contracts.base import UnknownType
from shared.ledger.errors import ChainBroken, NotDense, VectorWentBack
from shared.ledger.reader import IGNORED_MOST, Cursor, Reader
from shared.ledger.record import Position, Record, StoredEvent, encode, pack


def record(
    id: str, seq: int, prev: str, inputs: dict[str, Position] | None = None, type: str = "x.v1"
) -> bytes:
    event = StoredEvent(type, "s", msgspec.Raw(b"{}"))
    return encode(Record(id, seq, prev, "w", seq, inputs or {}, pack([event])))


def test_a_record_counts_when_it_names_the_one_before() -> None:
    reader = Reader("admission", 0)
    assert reader.offer(0, record("a", 1, ""))
    assert reader.offer(1, record("b", 2, "a"))
    assert (reader.cursor.seq, reader.cursor.id, reader.cursor.offset) == (2, "b", 1)
    assert reader.position == (2, 2, "b")


@pytest.mark.parametrize(
    "late",
    [record("c", 2, ""), record("c", 3, "a"), record("c", 1, "a"), b"{", b"[]", b"\xff", None],
    ids=["other prev", "seq skipped", "seq behind", "cut", "list", "no text", "empty"],
)
def test_any_other_record_is_ignored_and_the_next_one_still_counts(late: bytes | None) -> None:
    reader = Reader("admission", 0)
    reader.offer(0, record("a", 1, ""))
    assert reader.offer(1, late) is None
    assert reader.ignored == 1
    assert reader.offer(2, record("b", 2, "a"))


def test_a_rivals_record_on_the_same_predecessor_loses_to_the_first() -> None:
    reader = Reader("admission", 0)
    reader.offer(0, record("a", 1, ""))
    assert reader.offer(1, record("mine", 2, "a"))
    assert reader.offer(2, record("theirs", 2, "a")) is None
    assert reader.offer(3, record("on-theirs", 3, "theirs")) is None


@pytest.mark.parametrize("start", [Cursor(), Cursor(11, 4, "d", 7)], ids=["at 0", "behind ignored"])
def test_a_log_of_other_records_stops_the_reader_instead_of_passing_as_empty(start: Cursor) -> None:
    reader = Reader("admission", 0, start)
    last = start.offset + IGNORED_MOST
    for offset in range(start.next, last + 1):
        assert reader.offer(offset, b"-") is None
    with pytest.raises(ChainBroken, match=f"offset {start.offset + 1} to {last + 1} follows"):
        reader.offer(last + 1, b"-")


def test_a_record_that_counts_begins_the_count_of_ignored_ones_anew() -> None:
    reader = Reader("admission", 0)
    for offset in range(IGNORED_MOST):
        reader.offer(offset, b"-")
    assert reader.offer(IGNORED_MOST, record("a", 1, ""))
    for offset in range(IGNORED_MOST + 1, 2 * IGNORED_MOST + 1):
        assert reader.offer(offset, b"-") is None


def test_a_missing_offset_stops_the_reader() -> None:
    reader = Reader("admission", 0)
    reader.offer(0, record("a", 1, ""))
    with pytest.raises(NotDense):
        reader.offer(2, record("b", 2, "a"))


@pytest.mark.parametrize("later", [{"commands-0": 4}, {}, {"commands-0": (4, 1, "q")}])
def test_an_accepted_record_that_unreads_an_input_stops_the_reader(
    later: dict[str, Position],
) -> None:
    reader = Reader("admission", 0)
    reader.offer(0, record("a", 1, "", {"commands-0": 5}))
    with pytest.raises(VectorWentBack):
        reader.offer(1, record("b", 2, "a", later))


def test_unknown_events_of_others_are_counted_and_ones_own_stop_the_process() -> None:
    accepted = Reader("admission", 0).offer(0, record("a", 1, "", type="of.tomorrow.v7"))
    assert accepted
    assert accepted.facts() == []
    assert accepted.unknown == 1
    with pytest.raises(UnknownType):
        accepted.facts(own=True)


def test_acceptance_does_not_look_at_the_events() -> None:
    bad = encode(Record("a", 1, "", "w", 1, {}, msgspec.Raw(b'{"not":"a list"}')))
    accepted = Reader("admission", 0).offer(0, bad)
    assert accepted
    with pytest.raises(msgspec.ValidationError):
        accepted.facts()


def test_a_cursor_survives_its_json() -> None:
    cursor = Cursor(7, 3, "id", 5, 99, {"commands-0": 4, "placement-0": (9, 2, "q")})
    assert Cursor.from_json(cursor.to_json()) == cursor
