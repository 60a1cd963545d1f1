"""A record survives its bytes; bytes that are no record are none."""

from __future__ import annotations

import msgspec
import pytest

from shared.ledger.record import Record, StoredEvent, decode, encode, next_of, pack

EVENTS = [
    StoredEvent("a.v1", "j1", msgspec.Raw(b'{"x": 1}'), "cause", "trace"),
    StoredEvent("b.v1", "", msgspec.Raw(b"{}")),
]
RECORD = Record("r2", 2, "r1", "w", 5, {"commands-0": 7, "admission-0": (3, 2, "a2")}, pack(EVENTS))


def test_a_record_survives_its_bytes() -> None:
    decoded = decode(encode(RECORD))
    assert decoded is not None
    assert (decoded.id, decoded.seq, decoded.prev, decoded.w, decoded.at) == ("r2", 2, "r1", "w", 5)
    assert decoded.inputs == {"commands-0": 7, "admission-0": (3, 2, "a2")}
    assert [(e.type, bytes(e.data), e.cause) for e in decoded.events()] == [
        ("a.v1", b'{"x": 1}', "cause"),
        ("b.v1", b"{}", ""),
    ]


def test_the_wire_names_are_short_and_defaults_are_left_out() -> None:
    wire = msgspec.json.decode(encode(RECORD))
    assert set(wire) == {"id", "seq", "prev", "w", "at", "in", "ev"}
    assert wire["ev"][1] == {"type": "b.v1", "subject": "", "data": {}}


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, encode(RECORD).replace(b'"w"', b"5")],
    ids=["empty", "nothing", "cut", "list", "no fields", "no text", "deep", "type"],
)
def test_other_bytes_are_no_record(value: bytes | None) -> None:
    assert decode(value) is None


def test_an_event_that_is_cut_shows_only_when_it_is_read() -> None:
    record = Record("r1", 1, "", "w", 5, {}, msgspec.Raw(b'[{"type": "a.v1"}]'))
    decoded = decode(encode(record))
    assert decoded is not None
    with pytest.raises(msgspec.ValidationError):
        decoded.events()


def test_the_next_offset_of_an_input_stands_alone_or_first() -> None:
    assert (next_of(7), next_of((3, 2, "a2"))) == (7, 3)
