"""A record of placement waits for the record of admission that it was decided on."""

from __future__ import annotations

from services.notifier.core.order import CausalOrder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import Position, Record, pack


def record(ledger: str, seq: int, lane: int = 0, admission: Position = 0) -> Accepted:
    inputs = {f"admission-{lane}": admission} if admission else {}
    whole = Record(f"{ledger}{seq}", seq, "", "", 1, inputs, pack(()))
    return Accepted(ledger, lane, seq, whole)


def test_what_follows_comes_after() -> None:
    order = CausalOrder({})
    start, other = record("placement", 1, admission=(9, 2, "x")), record("placement", 1, lane=1)
    assert order.release([start, other]) == [other]
    first, second = record("admission", 1), record("admission", 2)
    assert order.release([first]) == [first]
    later = record("placement", 2, admission=(9, 2, "x"))
    assert order.release([later, second]) == [second, start, later]


def test_a_resumed_reader_knows_what_it_has_read() -> None:
    start = record("placement", 4, admission=(9, 2, "x"))
    assert CausalOrder({TP("admission", 0): 2}).release([start]) == [start]
    assert CausalOrder({TP("admission", 1): 2}).release([start]) == []
