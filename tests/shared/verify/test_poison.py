"""Each undecodable record is rejected once, with its bytes in the topic `dead`."""

from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.contracts.rejected import (
    InputQuarantined,
    InputRejected,
    InputRetryRequested,
    InputSkipped,
)
from shared.verify.poison import DeadLetterRule, QuarantineRule, RecordPosition, UndecodableRecord
from shared.verify.rules import Bounds
from tests.shared.ledger_events import ledger_event

POSITION = ("commands", 0, 3)
RECORD = UndecodableRecord(*POSITION, "ab", consumed=True)
IN_TRANSIT = UndecodableRecord(*POSITION, "ab", consumed=False)
REJECTED = InputRejected(topic="commands", partition=0, offset=3, reason="no JSON", sha256="ab")


def violations(
    record: UndecodableRecord | None,
    *rejections: InputRejected,
    dead: dict[RecordPosition, str] | None = None,
    last_seq: int = 100,
) -> list[tuple[str, str]]:
    undecodable = {record.position: record} if record else {}
    dead = {POSITION: "ab"} if dead is None else dead
    rule = DeadLetterRule(undecodable, dead, Bounds({("admission", 0): last_seq}))
    for seq, message in enumerate(rejections, 1):
        rule.observe(ledger_event("admission", message, seq=seq))
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_a_rejected_record_is_in_the_topic_dead() -> None:
    assert violations(RECORD, REJECTED) == []


def test_a_consumed_record_without_rejection_is_reported() -> None:
    assert violations(RECORD, dead={}) == [("commands/0/3", "was consumed and not rejected")]
    assert violations(IN_TRANSIT, dead={}) == []


def test_two_rejections_are_reported() -> None:
    assert violations(RECORD, REJECTED, REJECTED) == [("commands/0/3", "was rejected 2 times")]


def test_a_rejected_valid_record_is_reported() -> None:
    assert violations(None, REJECTED) == [("admission/0/1/0", "commands/0/3 is a valid record")]


def test_a_rejection_with_another_hash_is_reported() -> None:
    other = REJECTED.model_copy(update={"sha256": "cd"})
    assert violations(RECORD, other, dead={POSITION: "cd"}) == [
        ("admission/0/1/0", "commands/0/3 has another sha256")
    ]


def test_a_missing_or_different_dead_letter_is_reported() -> None:
    detail = "is not in the topic dead, or with other bytes"
    assert violations(RECORD, REJECTED, dead={}) == [("commands/0/3", detail)]
    assert violations(RECORD, REJECTED, dead={POSITION: "cd"}) == [("commands/0/3", detail)]


def test_a_later_rejection_may_not_be_in_dead_yet() -> None:
    assert violations(RECORD, REJECTED, dead={}, last_seq=0) == []


def test_a_dead_letter_without_rejection_is_reported() -> None:
    dead = {POSITION: "ab", ("reports", 1, 9): "ef"}
    assert violations(RECORD, REJECTED, dead=dead) == [
        ("reports/1/9", "is in the topic dead but was not rejected")
    ]


QUARANTINED = InputQuarantined(
    topic="reports", partition=0, offset=7, reason="KeyError: 'x'", sha256="ab"
)
INPUT_ID = "placement/0/4/0"


@pytest.mark.parametrize(
    ("settled", "is_open"),
    [
        ([], True),
        ([InputRetryRequested(input_id=INPUT_ID)], False),
        ([InputSkipped(input_id=INPUT_ID, reason="late")], False),
        ([InputSkipped(input_id="placement/0/5/0", reason="another")], True),
    ],
)
def test_a_quarantined_input_is_open_until_it_is_settled(
    settled: list[Event], is_open: bool
) -> None:
    """The ledgers are read in any order: access may come first."""
    rule = QuarantineRule()
    for event in settled:
        rule.observe(ledger_event("access", event))
    rule.observe(ledger_event("placement", QUARANTINED, seq=4))
    lines = [(finding.position, finding.detail) for finding in rule.open()]
    assert lines == ([(INPUT_ID, "reports/0/7 is open: KeyError: 'x'")] if is_open else [])
