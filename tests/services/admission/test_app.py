"""Access and admission as processes on the embedded broker: a tenant, a pool, a job, a kill."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.machine.process import Running, spawn
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import RegisterTenant
from shared.contracts.admission import JobDeferred
from shared.contracts.base import Command, Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.codec import encode
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import ConfigurePool
from shared.ledger import cloudevents
from shared.process.connection import Connection
from tests.broker_clients import PatientLog, log_of, producer_of
from tests.embedded_broker import embedded_broker
from tests.patience import PATIENCE_S
from tests.services.admission.core.cases import summarize

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
LANES, LANE = 4, 0
NOW = 1_700_000_000_000


class Stage:
    """A broker with the topics of an installation, and services on it."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.folder = folder
        self.running: list[Running] = []

    def start(self, name: str, lanes: str) -> Running:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "BERTH_KAFKA": self.address,
            "BERTH_PARTITIONS": str(LANES),
            "BERTH_DATA": str(self.folder / name),
            "BERTH_IDEMPOTENT": "0",
            "BERTH_LANES": lanes,
        }
        program = [sys.executable, "-m", f"services.{name}"]
        running = spawn(name, program, self.folder / f"{name}.log", environment)
        self.running.append(running)
        return running

    def log(self) -> PatientLog:
        return log_of(Connection(self.address, idempotent=False))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with embedded_broker(tmp_path / "broker", LANES) as address:
        services = Stage(address, tmp_path)
        try:
            yield services
        finally:
            for running in services.running:
                running.stop(grace_s=2)


def wire(submission: Command, id_: str) -> bytes:
    return cloudevents.encode(
        id=id_,
        source="/test",
        type=submission.TYPE,
        data=encode(submission),
        at_ms=NOW,
        tenant="acme",
    )


async def until(tail: LedgerTail, kind: type[Event]) -> list[Event]:
    """Return the events of the ledgers up to the first of that kind."""
    events: list[Event] = []
    async with asyncio.timeout(PATIENCE_S):
        while not any(isinstance(event, kind) for event in events):
            for accepted in await tail.poll(0.2):
                events += [fact.event for fact in accepted.facts()]
    return events


def submit(job_id: str) -> bytes:
    submission = SubmitJob(
        job_id=job_id, tenant="acme", pool="main", idempotency_key=job_id, spec=JobSpec(name="x")
    )
    return wire(submission, f"c-{job_id}")


async def test_a_job_goes_through_access_and_admission_and_a_kill(stage: Stage) -> None:
    stage.start("access", "0")
    admission = stage.start("admission", "0,1,2,3")
    async with producer_of(Connection(stage.address, idempotent=False)) as producer:
        tail = LedgerTail(stage.log(), {"admission": [LANE]})
        await tail.start()
        await producer.send("access.commands", 0, wire(ConfigurePool(pool="main"), "c1"))
        tenant = RegisterTenant(tenant="acme", default_pool="main")
        await producer.send("access.commands", 0, wire(tenant, "c2"))
        await until(tail, TenantNoted)
        await producer.send("commands", LANE, submit("j1"))
        summaries = summarize(await until(tail, JobDeferred))
        assert summaries[-2:] == ["command.accepted c-j1", "job.deferred j1 no_nodes"]
        admission.process.kill()
        admission.process.wait(PATIENCE_S)
        await producer.send("commands", LANE, submit("j1"))
        await producer.send("commands", LANE, submit("j2"))
        stage.start("admission", "0,1,2,3")
        summaries = summarize(await until(tail, JobDeferred))
        assert summaries == ["command.accepted c-j2", "job.deferred j2 no_nodes"]
        await tail.stop()
