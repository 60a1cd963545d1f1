"""The topic `events` equals the public events of the ledgers."""

from __future__ import annotations

from shared.contracts.nodes import NodeCordoned, NodeHealthNoted
from shared.verify.events import PublishedEventRule, PublishedEvents
from shared.verify.rules import Bounds
from tests.shared.ledger_events import ledger_event

CORDONED = ledger_event("placement", NodeCordoned(node_id="n1"))
INTERNAL = ledger_event(
    "placement", NodeHealthNoted(node_id="n1", fault_id="f", slowdown=2, health=0.5), index=1
)
PUBLISHED = {"placement/0/1/0": "node.cordoned.v1"}


def events_of(types: dict[str, str], *bodies: bytes) -> PublishedEvents:
    """Return `events` with these ids, each with all of these contents."""
    published = PublishedEvents()
    for event_id, type_ in types.items():
        for body in bodies or (b"{}",):
            published.add(event_id, type_, body)
    return published


def violations(types: dict[str, str], *bodies: bytes, last_seq: int = 100) -> list[tuple[str, str]]:
    published = events_of(types, *bodies)
    rule = PublishedEventRule(published, Bounds({("placement", 0): last_seq}))
    rule.observe(CORDONED)
    rule.observe(INTERNAL)
    return [(violation.position, violation.detail) for violation in rule.finish()]


def test_every_public_event_is_published_and_no_internal_one() -> None:
    assert violations(PUBLISHED) == []


def test_a_missing_event_is_reported() -> None:
    assert violations({}) == [("placement/0/1/0", "node.cordoned.v1 is not in events")]


def test_a_later_event_may_not_be_published_yet() -> None:
    assert violations({}, last_seq=0) == []


def test_another_type_under_the_same_id_is_reported() -> None:
    other = {"placement/0/1/0": "node.uncordoned.v1"}
    assert violations(other) == [("placement/0/1/0", "node.cordoned.v1 is not in events")]


def test_an_event_of_no_ledger_is_reported() -> None:
    published = PUBLISHED | {"placement/0/1/1": "node.health-noted.v1"}
    assert violations(published) == [("placement/0/1/1", "is in events but in no ledger")]


def test_two_contents_under_one_id_are_reported() -> None:
    assert violations(PUBLISHED, b"{}", b"{}") == []
    assert violations(PUBLISHED, b"{}", b"[]") == [
        ("placement/0/1/0", "is in events with two contents")
    ]
