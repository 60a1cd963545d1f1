"""Violations and bounds."""

from __future__ import annotations

from shared.contracts.nodes import NodeUncordoned
from shared.verify.rules import Bounds, Violation
from tests.shared.ledger_events import ledger_event


def test_a_violation_is_printed_as_one_line() -> None:
    violation = Violation("no gap", "placement/0/7/0", "seq 8 is missing")
    assert str(violation) == "no gap: placement/0/7/0: seq 8 is missing"


def test_bounds_have_the_events_up_to_their_seq() -> None:
    bounds = Bounds({("placement", 0): 3})
    message = NodeUncordoned(node_id="n1")
    assert bounds.has(ledger_event("placement", message, seq=3))
    assert not bounds.has(ledger_event("placement", message, seq=4))
    assert not bounds.has(ledger_event("placement", message, seq=1, partition=1))
