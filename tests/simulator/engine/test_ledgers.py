"""Simulated facts as records that every reader accepts."""

from __future__ import annotations

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.access import TenantRegistered
from shared.contracts.attempts import JobStarted
from shared.contracts.job_commands import CancelJob
from shared.ledger import cloudevents
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from simulator.engine.ledgers import Ledgers, position, record_id
from tests.harness.decider import AT, an_input
from tests.harness.ledger import accepted


def started(job: str, seq: int, index: int = 0) -> Fact:
    event = JobStarted(job_id=job, tenant="ada", attempt=1)
    return Fact(event, "placement", 0, seq, index, AT, "cause", "trace")


def test_records_are_chained_and_hold_their_facts() -> None:
    broker = MemoryBroker()
    ledgers = Ledgers(broker)
    ledgers.record("placement", [started("a", 1), started("b", 1, 1)], {})
    ledgers.record("placement", [started("c", 2)], {"admission/0": position("admission", 4)})
    tp = TP("placement", 0)
    first, second = accepted(tp, broker.entries(tp))
    assert [event.subject for event in first.raw()] == ["a", "b"]
    assert [event.subject for event in second.raw()] == ["c"]
    (event,) = second.raw()
    assert (event.type, event.cause, event.traceparent) == ("job.started.v1", "cause", "trace")


def test_the_position_before_the_first_record_names_none() -> None:
    assert position("placement", 0) == (0, 0, "")
    assert position("placement", 3) == (3, 3, record_id("placement", 3))


def test_access_events_are_the_first_record_of_its_ledger() -> None:
    broker = MemoryBroker()
    events = [TenantRegistered(tenant=name, default_pool="p") for name in ("ada", "bob")]
    Ledgers(broker).access(events, AT)
    (batch,) = accepted(TP("access", 0), broker.entries(TP("access", 0)))
    assert [event.subject for event in batch.raw()] == ["ada", "bob"]


def test_a_message_keeps_its_id_and_trace() -> None:
    broker = MemoryBroker()
    command = CancelJob(job_id="j", tenant="ada")
    item = an_input(command, id="c1", at=AT, tenant="ada", traceparent="trace")
    Ledgers(broker).message("commands", item)
    (entry,) = broker.entries(TP("commands", 0))
    message = cloudevents.decode(entry.value)
    assert (message.id, message.type, message.tenant) == ("c1", "job.cancel.v1", "ada")
    assert message.traceparent == "trace"
