"""The shell over the in-memory twin: soft records in, faults in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.failslow.app import Follower, Submissions
from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.plans.measuring import VERDICT_S
from services.failslow.core.plans.planning import ledger_ms
from services.failslow.core.state import FailSlowState
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Event
from shared.contracts.codec import encode
from shared.contracts.job_commands import SubmitJob
from shared.contracts.reports import TelemetryReported
from shared.ledger import cloudevents
from shared.ledger.cloudevents import decode
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from tests.harness.ledger import accepted
from tests.patience import until
from tests.services.failslow.core.plans.test_measuring import AUTOMATIC, slow_job, stopped, when_due
from tests.services.failslow.gangs import placed, report

TELEMETRY = TP("telemetry", 0)


class Shell:
    """One lane with its follower, as `run_service` runs it."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.metrics = Metrics("failslow")
        self.lane: Lane[FailSlowState]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.lane = Lane(
            FailSlow(),
            0,
            MemoryLog(self.broker),
            inputs=[TP("placement", 0)],
            settings=LaneSettings(window_ms=1),
        )
        await self.lane.start()
        follower = Follower(lambda: MemoryLog(self.broker), Thresholds(), self.metrics)
        tasks = [
            asyncio.create_task(self.lane.run()),
            asyncio.create_task(follower.follow(self.lane)),
        ]
        await asyncio.sleep(0)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in ended), ended
            await self.lane.stop()

    async def place(self) -> None:
        pen = LedgerWriter(self.broker, "placement")
        message = placed("j1").message
        assert isinstance(message, Event)
        for _ in range(8):
            pen.write([])
        pen.write([message])
        for entry in self.broker.entries(TP("placement", 0)):
            await self.lane.deliver(TP("placement", 0), entry.offset, entry.value)
        await until(lambda: "j1" in self.types_and_subjects())

    def post(self, message: TelemetryReported, id: str) -> None:
        value = cloudevents.encode(
            id=id, source="/test", type=message.TYPE, data=encode(message), at_ms=1
        )
        self.broker.append(TELEMETRY, value)

    def types_and_subjects(self) -> str:
        batches = accepted(TP("failslow", 0), self.broker.entries(TP("failslow", 0)))
        return " ".join(f"{raw.type} {raw.data!r}" for batch in batches for raw in batch.raw())


async def test_soft_reports_lead_to_one_fault_in_the_ledger() -> None:
    shell = Shell()
    async with shell.running():
        await shell.place()
        for at in range(1, 8):
            for _ in range(2):
                shell.post(report(at, 1.0, 1.0, 1.5, 1.0), f"r{at}")
        await until(lambda: "fault.suspected.v1" in shell.types_and_subjects())
        await asyncio.sleep(0.05)
        assert shell.types_and_subjects().count("fault.suspected.v1") == 1
        assert shell.lane.state.gangs["j1"].open == {2: "j1/1/2/1"}


async def test_a_malformed_report_is_counted_and_ignored() -> None:
    shell = Shell()
    async with shell.running():
        await shell.place()
        shell.broker.append(TELEMETRY, b"\xff not a report")
        for at in range(1, 4):
            shell.post(report(at, 1.0, 1.0, 1.5, 1.0), f"r{at}")
        await until(lambda: "fault.suspected.v1" in shell.types_and_subjects())
    ignored = shell.metrics.ignored_records.labels("undecodable")
    assert ignored._value.get() == 1


async def test_a_restart_loses_the_evidence_and_nothing_else() -> None:
    shell = Shell()
    async with shell.running():
        await shell.place()
        for at in range(1, 3):
            shell.post(report(at, 1.0, 1.0, 1.5, 1.0), f"r{at}")
    async with shell.running():
        assert "j1" in shell.lane.state.gangs
        for at in range(3, 5):
            shell.post(report(at, 1.0, 1.0, 1.5, 1.0), f"r{at}")
        await asyncio.sleep(0.1)
        assert "fault.suspected.v1" not in shell.types_and_subjects()
        shell.post(report(5, 1.0, 1.0, 1.5, 1.0), "r5")
        await until(lambda: "fault.suspected.v1" in shell.types_and_subjects())


async def test_a_slow_job_is_one_fault_over_a_restart() -> None:
    shell = Shell()
    seconds = [1.0 + 0.01 * (step % 3) for step in range(60)] + [1.5] * 40 + [1.0] * 30

    def post(first: int, last: int) -> None:
        base = report(first + 1, *[1.0] * 4)
        steps = tuple(range(first, last))
        own = base.times[0].model_copy(
            update={"iteration_s": tuple(seconds[first:last]), "steps": steps}
        )
        shell.post(base.model_copy(update={"times": (own,)}), f"p{first}")

    async with shell.running():
        await shell.place()
        post(0, 80)
        await until(lambda: "fault.suspected.v1" in shell.types_and_subjects())
    async with shell.running():
        post(80, 100)
        await asyncio.sleep(0.05)
        post(100, 130)
        await until(lambda: "fault.cleared.v1" in shell.types_and_subjects())
        assert shell.types_and_subjects().count("fault.suspected.v1") == 1


async def test_a_validation_of_an_open_plan_is_submitted_once_per_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker()
    state = slow_job(AUTOMATIC)
    when_due(state)
    (own,) = state.validations.values()
    clock = {"now_ms": ledger_ms(state, own.applied_s)}
    monkeypatch.setattr("services.failslow.app.now_ms", lambda: clock["now_ms"])
    for _ in range(2):
        submissions = Submissions(MemoryLog(broker), 0)
        await submissions.submit(state)
        await submissions.submit(state)
    records = [decode(entry.value) for entry in broker.entries(TP("commands", 0))]
    assert len(records) == 2 and len({record.id for record in records}) == 1
    command = SubmitJob.model_validate_json(records[0].body)
    assert command.job_id in state.validations
    stopped(state)
    await Submissions(MemoryLog(broker), 0).submit(state)
    assert len(list(broker.entries(TP("commands", 0)))) == 2, "the plan is over"
    clock["now_ms"] += round(VERDICT_S * 1000)
    await Submissions(MemoryLog(broker), 0).submit(state)
    cancel = decode(broker.entries(TP("commands", 0))[-1].value)
    assert (cancel.type, cancel.subject) == ("job.cancel.v1", command.job_id)
