"""A load generator: submits jobs and follows them in the ledger of placement."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer

from benchmarks.parts.stack import LANE, TENANT, Bench, as_record, pool_of
from shared.bus.logs.tail import LedgerTail
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.telemetry.trace_ids import new_traceparent

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")


@dataclass(slots=True)
class JobLoad:
    """Jobs of one pool; times are `time.perf_counter()` of this process."""

    bench: Bench
    mean_s: float
    seed: int = 1
    lane: int = LANE
    pool: str = ""
    """Pool of the jobs; empty: the one of the lane."""
    command: tuple[str, ...] = ()
    """Command of the jobs, for nodes that run it; empty: they are simulated."""
    gpu_types: tuple[str, ...] = ()
    sent: dict[str, float] = field(default_factory=dict)
    placed_s: list[tuple[float, float]] = field(default_factory=list)
    """Time at which each JobPlaced was read, and seconds since its submit."""
    ended: int = 0
    number: int = 0
    has_room: asyncio.Event = field(default_factory=asyncio.Event)
    _producer: AIOKafkaProducer | None = None
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    @property
    def outstanding(self) -> int:
        return self.number - self.ended

    async def start(self) -> None:
        self._producer = AIOKafkaProducer(
            **self.bench.stack.connection("operator").producing(), linger_ms=2
        )
        await self._producer.start()

    async def stop(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def submit(self) -> None:
        """Send one SubmitJob in one record, without waiting for the acknowledgement."""
        assert self._producer is not None
        self.number += 1
        job_id = f"bench-{self.lane}-{self.seed}-{self.number}"
        pool = self.pool or pool_of(self.lane)
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=pool, idempotency_key=job_id, spec=self._spec()
        )
        self.sent[job_id] = time.perf_counter()
        value = as_record(command, traceparent=new_traceparent())
        await self._producer.send("commands", value, partition=self.lane)

    def _spec(self) -> JobSpec:
        if self.command:
            return JobSpec(
                name="bench", gang=Gang(workers=1), command=self.command, gpu_types=self.gpu_types
            )
        simulated = Simulated(duration_s=self._random.expovariate(1 / self.mean_s))
        return JobSpec(name="bench", gang=Gang(workers=1), simulated=simulated)

    async def keep_outstanding(self, jobs: int) -> None:
        """Run a closed loop until cancelled: a job that ends is replaced at once."""
        while True:
            while self.outstanding < jobs:
                await self.submit()
            self.has_room.clear()
            await self.has_room.wait()

    async def at_rate(self, per_s: float, seconds: float) -> None:
        """Run an open loop: each job is submitted when it is due."""
        begin = time.perf_counter()
        for number in range(int(per_s * seconds)):
            due = begin + number / per_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.submit()

    async def watch(self, tail: LedgerTail) -> None:
        """Count placements and ends in accepted records until cancelled."""
        while True:
            for accepted in await tail.poll(0.2):
                now = time.perf_counter()
                for raw in accepted.raw():
                    if raw.type == "job.placed.v1" and raw.subject in self.sent:
                        self.placed_s.append((now, now - self.sent[raw.subject]))
                    elif raw.type in ENDS:
                        self.ended += 1
            self.has_room.set()
