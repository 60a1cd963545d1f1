"""Accepted records become events with their position in the ledger."""

from __future__ import annotations

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.nodes import NodeCordoned, NodeUncordoned
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader
from shared.projections.ledger_events import decode_events


def accepted_records(broker: MemoryBroker, ledger: str) -> list[Accepted]:
    reader = Reader(ledger, 0)
    entries = broker.entries(TP(ledger, 0))
    offered = [reader.offer(entry.offset, entry.value) for entry in entries]
    return [accepted for accepted in offered if accepted]


def test_events_keep_the_order_of_their_ledger() -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "placement")
    pen.write([NodeCordoned(node_id="n1"), NodeUncordoned(node_id="n1")], trace="00-aa")
    pen.scribble(b"not a record")
    pen.write([NodeCordoned(node_id="n2", reason="hot")])
    events = decode_events(accepted_records(broker, "placement"))
    assert [event.position for event in events] == ["0/1/0", "0/1/1", "0/2/0"]
    assert [event.subject for event in events] == ["n1", "n1", "n2"]
    assert events[0].traceparent == "00-aa"
    assert events[2].data == {
        "node_id": "n2",
        "draining": False,
        "reason": "hot",
        "until_joined": False,
        "fault_ids": [],
    }
    assert events[2].at == pen.at


def test_the_id_of_an_event_names_its_ledger() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "placement").write([NodeUncordoned(node_id="n1")])
    (event,) = decode_events(accepted_records(broker, "placement"))
    assert event.id == "placement/0/1/0"
