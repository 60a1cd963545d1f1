"""The public events of a record, and the position that a restart goes on from."""

from __future__ import annotations

import json

from services.publisher.core.lane import Published, PublisherLane
from services.publisher.core.position import decode
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event
from shared.contracts.bookkeeping import JobsReleased
from shared.contracts.rejected import InputRejected
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from tests.harness.ledger import accepted
from tests.services.publisher.ledgers import admitted, pool, succeeded

REJECTED = InputRejected(topic="commands", partition=0, offset=4, reason="cut", sha256="f" * 64)


def records(ledger: str, *batches: list[Event]) -> list[Accepted]:
    broker = MemoryBroker()
    writer = LedgerWriter(broker, ledger)
    for events in batches:
        writer.write(events)
    return accepted(TP(ledger, 0), broker.entries(TP(ledger, 0)))


def published(lane: PublisherLane, ledger: str, *batches: list[Event]) -> list[Published]:
    return [event for record in records(ledger, *batches) for event in lane.publish(record)]


def test_an_event_goes_out_under_its_place_without_private_fields() -> None:
    (event,) = published(PublisherLane({}), "placement", [admitted("j1")])
    assert (event.id, event.key, event.tenant) == ("placement/0/1/0", b"j1", "ada")
    content = json.loads(event.value)
    assert (content["type"], content["source"]) == ("job.admitted.v1", "/berth/placement")
    assert "canary" not in event.value.decode()


def test_the_source_names_the_pool_that_the_ledger_named_last() -> None:
    lane = PublisherLane({})
    events = published(lane, "placement", [succeeded("j1")], [pool("blue")], [succeeded("j2")])
    sources = [json.loads(event.value)["source"] for event in events]
    assert (sources[0], sources[-1]) == ("/berth/placement", "/berth/placement/blue")


def test_bookkeeping_is_not_published_but_moves_the_position() -> None:
    lane = PublisherLane({})
    assert published(lane, "admission", [JobsReleased(ends=())]) == []
    assert lane.positions["admission"].cursor.next == 1


def test_only_the_last_event_of_a_record_has_a_position() -> None:
    lane = PublisherLane({})
    first, second, third = published(
        lane, "placement", [succeeded("j1")], [succeeded("j2"), succeeded("j3")]
    )
    assert decode(first.cursor)["placement"].cursor.next == 1
    assert second.cursor == b""
    assert decode(third.cursor)["placement"].cursor.next == 2


def test_a_restart_from_a_position_publishes_the_same_bytes() -> None:
    batches: list[list[Event]] = [[pool("blue")], [succeeded("j1")], [succeeded("j2")]]
    _, first, *rest = published(PublisherLane({}), "placement", *batches)
    restarted = PublisherLane(decode(first.cursor))
    again = [
        event
        for record in records("placement", *batches)[2:]
        for event in restarted.publish(record)
    ]
    assert again == rest


def test_a_rejected_input_carries_its_own_data() -> None:
    (event,) = published(PublisherLane({}), "admission", [REJECTED])
    assert event.rejected is not None
    assert json.loads(event.rejected)["offset"] == 4
    (other,) = published(PublisherLane({}), "placement", [succeeded("j1")])
    assert other.rejected is None
