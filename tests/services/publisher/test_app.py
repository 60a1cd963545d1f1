"""The publisher over the in-memory twin: what goes out, what stays, what a restart repeats."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.publisher import app
from services.publisher.app import Publisher
from services.publisher.core.position import HEADER, decode
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import Shipment
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.bookkeeping import JobsReleased
from shared.contracts.rejected import InputRejected
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from tests.patience import PATIENCE_S
from tests.services.publisher.ledgers import Ledgers, accepted, admitted, pool, preempted, succeeded
from tests.services.publisher.shipping import LogShipper

LANES = 2
TENANT_TOPIC = {"events.ada": LANES}


class Stack:
    """A broker, ledgers, and as many publishers as a test kills."""

    def __init__(self, tmp_path: Path) -> None:
        self.broker = MemoryBroker()
        self.ledgers = Ledgers(MemoryLog(self.broker))
        self.settings = PublisherSettings(
            kafka="127.0.0.1:1", data=tmp_path, partitions=LANES, window_ms=0, max_records=3
        )

    def publisher(self, shipper: Callable[[], LogShipper] | None = None) -> Publisher:
        return Publisher(
            self.settings,
            lambda: MemoryLog(self.broker),
            shipper or (lambda: LogShipper(MemoryLog(self.broker), TENANT_TOPIC)),
            Metrics("publisher"),
        )

    @asynccontextmanager
    async def running(self, publisher: Publisher | None = None) -> AsyncIterator[Publisher]:
        made = publisher or self.publisher()
        task = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def events(self, topic: str = "events", lane: int = 0) -> list[dict[str, object]]:
        return [json.loads(e.value or b"") for e in self.entries(topic, lane)]

    def entries(self, topic: str = "events", lane: int = 0) -> list[Entry]:
        return self.broker.entries(TP(topic, lane))

    async def wait_for(self, count: int, topic: str = "events", lane: int = 0) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.entries(topic, lane)) < count:
                await asyncio.sleep(0.01)


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


async def test_an_accepted_event_is_published_as_a_cloudevent(stack: Stack) -> None:
    await stack.ledgers.append("admission", 1, pool("blue", 1), admitted("j1"))
    async with stack.running():
        await stack.wait_for(2, lane=1)
    event = stack.events(lane=1)[1]
    assert event["id"] == "admission/1/1/1"
    assert event["source"] == "/berth/admission/blue"
    assert (event["type"], event["subject"]) == ("job.admitted.v1", "j1")
    assert (event["tenant"], event["pool"]) == ("ada", "blue")
    assert event["time"] == "1970-01-01T00:00:01.000Z"
    assert str(event["traceparent"]).startswith("00-0af7651916cd43dd")


async def test_command_and_environment_never_leave_the_ledger(stack: Stack) -> None:
    await stack.ledgers.append("admission", 0, admitted("j1"))
    async with stack.running():
        await stack.wait_for(1)
        await stack.wait_for(1, "events.ada")
    for entry in stack.entries() + stack.entries("events.ada"):
        assert b"canary" not in (entry.value or b"")
        assert b'"name":"train"' in (entry.value or b"")


async def test_a_preempted_event_does_not_name_the_job_of_another_tenant(stack: Stack) -> None:
    await stack.ledgers.append("placement", 0, preempted("j1", by="foreign"))
    async with stack.running():
        await stack.wait_for(1)
    assert b"foreign" not in (stack.entries()[0].value or b"")


async def test_bookkeeping_of_a_service_is_not_published(stack: Stack) -> None:
    await stack.ledgers.append("admission", 0, JobsReleased(ends=()), succeeded("j1"))
    async with stack.running():
        await stack.wait_for(1)
    assert [e["id"] for e in stack.events()] == ["admission/0/1/1"]


async def test_a_tenant_reads_its_own_events_only(stack: Stack) -> None:
    await stack.ledgers.append("admission", 0, accepted("c1"), accepted("c2", tenant="bob"), pool())
    async with stack.running():
        await stack.wait_for(3)
    assert [e["subject"] for e in stack.events("events.ada")] == ["c1"]
    assert all(HEADER not in dict(e.headers) for e in stack.entries("events.ada"))


async def test_a_tenants_topic_that_was_just_made_misses_no_event(stack: Stack) -> None:
    there: dict[str, int] = {}
    stack.settings = stack.settings.model_copy(update={"refresh_s": 3600.0})
    shipper = LogShipper(MemoryLog(stack.broker), there)
    async with stack.running(stack.publisher(lambda: shipper)):
        await stack.ledgers.append("admission", 0, accepted("c1", tenant="bob"))
        await stack.wait_for(1)
        there |= TENANT_TOPIC
        await stack.ledgers.append("admission", 0, accepted("c2"))
        await stack.wait_for(1, "events.ada")
    assert [e["subject"] for e in stack.events("events.ada")] == ["c2"]


async def test_a_record_that_the_reader_rule_ignores_is_not_published(stack: Stack) -> None:
    await stack.ledgers.append("placement", 0, succeeded("j1"))
    rival = Ledgers(stack.ledgers.bus)
    await rival.append("placement", 0, succeeded("rival"))
    await stack.ledgers.append("placement", 0, succeeded("j2"))
    async with stack.running():
        await stack.wait_for(2)
    assert [e["subject"] for e in stack.events()] == ["j1", "j2"]


async def test_a_restart_goes_on_where_the_last_written_event_says(stack: Stack) -> None:
    await stack.ledgers.append("admission", 0, pool("blue"), admitted("j1"))
    await stack.ledgers.append("placement", 0, succeeded("j1"))
    async with stack.running():
        await stack.wait_for(3)
    await stack.ledgers.append("admission", 0, admitted("j2"))
    async with stack.running():
        await stack.wait_for(4)
        await asyncio.sleep(0.1)
    ids = [e["id"] for e in stack.events()]
    assert len(ids) == 4 and ids[3] == "admission/0/2/0"
    assert stack.events()[3]["source"] == "/berth/admission/blue"


async def test_a_quiet_lane_is_not_published_anew_once_its_events_have_left(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.ledgers.append("admission", 0, pool("blue"), admitted("j1"))
    await stack.ledgers.append("placement", 0, succeeded("j1"))
    async with stack.running():
        await stack.wait_for(3)
    await stack.ledgers.append("admission", 0, JobsReleased(ends=()))
    monkeypatch.setattr(app, "LOOK_EVERY_S", 0.0)
    # The last event was written at 0 ms: long ago.
    async with stack.running():
        await stack.wait_for(4)
        await asyncio.sleep(0.1)
    last, again = stack.entries()[2:]
    assert (last.key, last.value) == (again.key, again.value)
    assert decode(dict(again.headers)[HEADER])["admission"].cursor.seq == 2
    assert len(stack.entries("events.ada")) == 2, "tenants get no repeat"
    stack.broker.trim(TP("events", 0), 3)
    await stack.ledgers.append("placement", 0, succeeded("j2"))
    async with stack.running():
        await stack.wait_for(5)
        await asyncio.sleep(0.1)
    assert [event["id"] for event in stack.events()[3:]] == ["placement/0/1/0", "placement/0/2/0"]


class Flaky(LogShipper):
    """Writes part of a shipment, then loses the broker: at every possible place in turn."""

    budget = 0

    async def ship(self, shipment: Shipment) -> None:
        for tp, records in shipment.items():
            for record in records:
                if Flaky.budget == 0:
                    raise OutcomeUnknown("the broker is gone")
                Flaky.budget -= 1
                await super().ship({tp: [record]})


@pytest.mark.parametrize("written", range(1, 14))
async def test_a_crash_anywhere_loses_nothing_and_repeats_only_the_same_bytes(
    stack: Stack, written: int
) -> None:
    for n in range(4):
        await stack.ledgers.append("admission", 0, accepted(f"c{n}"), admitted(f"j{n}"))
        await stack.ledgers.append("placement", 0, succeeded(f"j{n}"))
    Flaky.budget = written
    flaky = stack.publisher(lambda: Flaky(MemoryLog(stack.broker), TENANT_TOPIC))
    with pytest.raises(OutcomeUnknown):
        await flaky.session()
    async with stack.running():
        for topic in ("events", "events.ada"):
            async with asyncio.timeout(PATIENCE_S):
                while len({e["id"] for e in stack.events(topic)}) < 12:
                    await asyncio.sleep(0.01)
    for topic in ("events", "events.ada"):
        by_id: dict[object, set[bytes]] = {}
        for entry in stack.entries(topic):
            value = entry.value or b""
            by_id.setdefault(json.loads(value)["id"], set()).add(value)
        assert len(by_id) == 12
        assert all(len(bytes_) == 1 for bytes_ in by_id.values())


async def test_undecodable_input_becomes_a_dead_letter_with_its_bytes(stack: Stack) -> None:
    raw = b"\xff no message"
    await stack.ledgers.bus.append(TP("commands", 1), raw)
    await stack.ledgers.append("admission", 1, rejected("commands", 1, 0, raw))
    async with stack.running():
        await stack.wait_for(1, lane=1)
    letter = stack.entries("dead", 1)[0]
    headers = {name: value.decode() for name, value in letter.headers}
    assert letter.value == raw
    assert headers["berth-reason"] == "not JSON" and headers["berth-topic"] == "commands"
    assert headers["berth-id"] == "admission/1/1/0" and "berth-missing" not in headers


async def test_bytes_that_are_not_the_rejected_ones_are_not_passed_on(stack: Stack) -> None:
    await stack.ledgers.bus.append(TP("commands", 0), b"something else")
    await stack.ledgers.append("admission", 0, rejected("commands", 0, 0, b"the real ones"))
    async with stack.running():
        await stack.wait_for(1)
    letter = stack.entries("dead")[0]
    assert letter.value == b""
    assert dict(letter.headers)["berth-missing"] == b"other_bytes"


async def test_a_rejection_of_expired_bytes_does_not_stop_publishing(stack: Stack) -> None:
    await stack.ledgers.append("admission", 0, rejected("commands", 0, 7, b"x"), succeeded("j1"))
    async with stack.running():
        await stack.wait_for(2)
    assert dict(stack.entries("dead")[0].headers)["berth-missing"] == b"gone"


def rejected(topic: str, partition: int, offset: int, raw: bytes) -> InputRejected:
    digest = hashlib.sha256(raw).hexdigest()
    return InputRejected(
        topic=topic, partition=partition, offset=offset, reason="not JSON", sha256=digest
    )
