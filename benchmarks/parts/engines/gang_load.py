"""Gangs of one pool: submitted as the gateway does, followed in the ledger and by their output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer

from benchmarks.parts.agents.starts import watched
from benchmarks.parts.engines.runs import PROGRAM, Runs
from benchmarks.parts.load import ENDS
from benchmarks.parts.stack import TENANT, Bench, as_record
from shared.bus.logs.tail import LedgerTail, TopicTail
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.reports import LogLines
from shared.ledger import cloudevents
from shared.ledger.partition import TP

WORKERS = 2
GPUS_PER_WORKER, CPUS_PER_WORKER, MEM_GIB_PER_WORKER = 1.0, 0.25, 0.25
STARTED, SUCCEEDED = "job.started.v1", "job.succeeded.v1"
REQUEUED = "job.requeued.v1"
POLL_S = 0.01


@dataclass(slots=True)
class GangLoad:
    """Times are seconds since the boot of this machine."""

    bench: Bench
    pool: str
    lane: int
    runs_programs: bool
    """Virtual workers run none: they are simulated."""
    producer: AIOKafkaProducer
    sent_s: dict[str, float] = field(default_factory=dict)
    started_s: dict[str, float] = field(default_factory=dict)
    """First JobStarted of each job, by the time of the record."""
    ends: dict[str, str] = field(default_factory=dict)
    """Type of the event that ended each job."""
    ended_s: dict[str, float] = field(default_factory=dict)
    requeued: set[str] = field(default_factory=set)
    runs: Runs = field(default_factory=Runs)

    async def submit(self, name: str, seconds: float) -> str:
        """Submit a gang whose workers take so long; return its id once the broker has it."""
        job_id = f"engines-{name}"
        spec = JobSpec(
            name="engines",
            command=("sh", "-c", PROGRAM, f"{seconds:g}") if self.runs_programs else (),
            gang=Gang(
                workers=WORKERS,
                gpus_per_worker=GPUS_PER_WORKER,
                cpus_per_worker=CPUS_PER_WORKER,
                mem_gib_per_worker=MEM_GIB_PER_WORKER,
            ),
            simulated=None if self.runs_programs else Simulated(duration_s=seconds),
        )
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=self.pool, idempotency_key=job_id, spec=spec
        )
        self.sent_s[job_id] = boot_s()
        await self.producer.send_and_wait("commands", as_record(command), partition=self.lane)
        return job_id

    async def until_ended(self, jobs: Iterable[str], within_s: float) -> bool:
        """Wait until all of these jobs have ended; return whether they have."""
        waiting = set(jobs)
        limit_s = boot_s() + within_s
        while not waiting <= self.ends.keys():
            if boot_s() > limit_s:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def watch_ledger(self, tail: LedgerTail) -> None:
        """Read until cancelled."""
        while True:
            for accepted in await tail.poll(0.2):
                for raw in accepted.raw():
                    if raw.subject in self.sent_s:
                        self._note(raw.type, raw.subject, boot_of(raw.at))

    def _note(self, type_: str, job_id: str, at_s: float) -> None:
        if type_ == STARTED:
            self.started_s.setdefault(job_id, at_s)
        elif type_ == REQUEUED:
            self.requeued.add(job_id)
        elif type_ in ENDS:
            self.ends[job_id] = type_
            self.ended_s[job_id] = at_s

    async def watch_output(self, tail: TopicTail) -> None:
        """Read until cancelled."""
        while True:
            for entries in (await tail.poll(0.2)).values():
                for entry in entries:
                    envelope = cloudevents.decode(entry.value or b"")
                    if envelope.type == LogLines.TYPE:
                        self.runs.note(LogLines.model_validate_json(envelope.body))


@asynccontextmanager
async def gang_load(
    bench: Bench, pool: str, lane: int, *, runs_programs: bool
) -> AsyncIterator[GangLoad]:
    """Follow the ledger of placement and the output of workers until the block ends."""
    producer = AIOKafkaProducer(**bench.stack.connection("operator").producing())
    load = GangLoad(bench, pool, lane, runs_programs, producer)
    ledger = LedgerTail(bench.log("bench-ledger"), {"placement": [lane]})
    output = TopicTail(bench.log("bench-output"), lossy=True)
    await producer.start()
    await ledger.start()
    await output.start_at_begin([TP("logs", lane)])
    try:
        async with watched(load.watch_ledger(ledger)), watched(load.watch_output(output)):
            yield load
    finally:
        await output.stop()
        await ledger.stop()
        await producer.stop()


def boot_s() -> float:
    """Return the seconds since the boot, suspended ones included, as /proc/uptime has them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_of(wall_ms: int) -> float:
    """Return the seconds since the boot at a wall time."""
    return boot_s() - (time.time() - wall_ms / 1000)
