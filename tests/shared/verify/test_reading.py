"""Topics are read as their readers read them, to the end."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.contracts.job_commands import CancelJob, RejectSubmission
from shared.contracts.nodes import CordonNode, NodeCordoned
from shared.contracts.reports import ExecutorReported, WorkerReady
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.verify.poison import UndecodableRecord
from shared.verify.reading import (
    Consumption,
    InstallationLog,
    read_dead_letters,
    read_events,
    read_inputs,
    read_ledgers,
    read_topics,
)
from shared.verify.workers import ReadyWorker
from tests.patience import PATIENCE_S


def installation(broker: MemoryBroker) -> InstallationLog:
    return InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=0.0)


def consumption(**offsets: int) -> Consumption:
    """Services that have read `commands` up to these offsets."""
    result = Consumption()
    for service, offset in offsets.items():
        result.set_cursor((service, 0), Cursor(seq=1, inputs={"commands-0": offset}))
    return result


def send(broker: MemoryBroker, id: str, command: Command, topic: str = "commands") -> None:
    data = encode(command)
    broker.append(
        TP(topic, 0), cloudevents.encode(id=id, source="/test", type=command.TYPE, data=data)
    )


async def test_a_command_is_consumed_once_its_owner_has_read_it() -> None:
    broker = MemoryBroker()
    send(broker, "c1", CancelJob(job_id="j"))
    send(broker, "c2", CordonNode(node_id="n1"))
    inputs = await read_inputs(installation(broker), consumption(admission=2, placement=1))
    first, second = inputs.commands["c1"], inputs.commands["c2"]
    assert (first.type, first.of, first.position) == ("job.cancel.v1", "j", "commands/0/0")
    assert (first.consumed, second.consumed) == (True, False)
    assert inputs.records == 2 and not inputs.undecodable


@pytest.mark.parametrize(
    "value", [b"not json", b"", cloudevents.encode(id="c", source="/", type="x.y.v1", data=b"{}")]
)
async def test_a_record_that_is_no_command_is_undecodable(value: bytes) -> None:
    broker = MemoryBroker()
    broker.append(TP("commands", 0), value)
    inputs = await read_inputs(installation(broker), consumption(admission=1))
    sha256 = hashlib.sha256(value).hexdigest()
    record = UndecodableRecord("commands", 0, 0, sha256, consumed=True)
    assert inputs.undecodable == {("commands", 0, 0): record}
    assert not inputs.commands


async def test_a_command_in_the_topic_of_another_owner_is_undecodable() -> None:
    broker = MemoryBroker()
    send(broker, "c1", CancelJob(job_id="j"), "access.commands")
    inputs = await read_inputs(installation(broker), Consumption())
    assert list(inputs.undecodable) == [("access.commands", 0, 0)]


async def test_a_rejected_submission_is_undecodable_in_its_own_topic() -> None:
    broker = MemoryBroker()
    reject = RejectSubmission(
        tenant="red", topic="submissions.red", partition=0, offset=9, reason="no JSON", sha256="ab"
    )
    send(broker, "c1", reject)
    inputs = await read_inputs(installation(broker), consumption(admission=1))
    record = UndecodableRecord("submissions.red", 0, 9, "ab", consumed=True)
    assert inputs.undecodable == {("submissions.red", 0, 9): record}
    assert list(inputs.commands) == ["c1"]


async def test_ready_workers_are_taken_from_the_reports() -> None:
    broker = MemoryBroker()
    ready = WorkerReady(allocation_id="0/1/0/0", job_id="j")
    reported = ExecutorReported(executor_id="e", reports=(ready,))
    broker.append(
        TP("reports", 0),
        cloudevents.encode(id="r", source="/e", type=reported.TYPE, data=encode(reported)),
    )
    inputs = await read_inputs(installation(broker), Consumption())
    assert inputs.ready == [ReadyWorker("0/1/0/0", "j", "reports/0/0")]


async def test_only_accepted_records_of_a_ledger_are_read() -> None:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "placement")
    pen.write([NodeCordoned(node_id="n1")])
    pen.scribble(b"not a record")
    pen.write([NodeCordoned(node_id="n2")])
    batches = [batch async for batch in read_ledgers(installation(broker))]
    assert [accepted.record.seq for batch in batches for accepted in batch] == [1, 2]


async def test_the_last_public_event_of_a_ledger_is_known() -> None:
    broker = MemoryBroker()
    LedgerWriter(broker, "placement").write(
        [NodeCordoned(node_id="n1"), NodeCordoned(node_id="n2")]
    )
    result = Consumption()
    async for batch in read_ledgers(installation(broker)):
        for accepted in batch:
            assert result.add(accepted) == 2
    assert result.last_public == {("placement", 0): "placement/0/1/1"}


def test_the_seq_that_a_service_has_read_of_a_ledger_is_in_its_input_vector() -> None:
    result = Consumption()
    result.set_cursor(("placement", 0), Cursor(seq=9, inputs={"admission-0": (4, 3, "id")}))
    assert result.last_seq_read("placement", "admission", 0) == 3
    assert result.last_seq_read("placement", "failslow", 0) == 0
    assert result.seqs == {("placement", 0): 9}


async def test_two_contents_of_one_event_id_conflict() -> None:
    broker = MemoryBroker()
    for id, data in (("a", b"{}"), ("a", b"{}"), ("b", b"{}"), ("b", b'{"x":1}')):
        value = cloudevents.encode(id=id, source="/", type="node.cordoned.v1", data=data)
        broker.append(TP("events", 0), value)
    published = await read_events(installation(broker))
    assert [published.type_of(id) for id in "abc"] == ["node.cordoned.v1"] * 2 + [None]
    assert published.conflicting == ["b"]


async def test_events_that_are_published_late_are_waited_for() -> None:
    broker = MemoryBroker()
    value = cloudevents.encode(id="a", source="/", type="node.cordoned.v1", data=b"{}")
    broker.append(TP("events", 0), value)
    later = cloudevents.encode(id="b", source="/", type="node.cordoned.v1", data=b"{}")
    log = InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=PATIENCE_S)
    reading = asyncio.ensure_future(read_events(log, ["b"]))
    await asyncio.sleep(0.1)
    assert not reading.done()
    broker.append(TP("events", 0), later)
    assert (await reading).type_of("b") == "node.cordoned.v1"


async def test_a_dead_letter_names_its_record_in_its_headers() -> None:
    broker = MemoryBroker()
    headers = (("berth-topic", b"reports"), ("berth-partition", b"2"), ("berth-offset", b"31"))
    broker.append(TP("dead", 0), b"bytes", headers=headers)
    dead = await read_dead_letters(installation(broker))
    assert dead == {("reports", 2, 31): hashlib.sha256(b"bytes").hexdigest()}


class Emptied(MemoryLog):
    """Retention removes all of a topic, once a reader has read where it begins and ends."""

    begins_read = 0

    async def begin(self, tp: TP) -> int:
        begin = await super().begin(tp)
        self.begins_read += 1
        if self.begins_read == 1:
            self.broker.trim(tp, len(self.broker.entries(tp)))
        return begin


async def test_a_partition_that_is_emptied_while_it_is_read_has_an_end() -> None:
    broker = MemoryBroker()
    for _ in range(3):
        broker.append(TP("events", 0), b"x")
    emptied = InstallationLog(Emptied(broker), 1, quiet_s=0.01, catch_up_s=0.1)
    async with asyncio.timeout(PATIENCE_S):
        assert [tp async for tp, _ in read_topics(emptied, ["events"])] == []
