"""A load generator: submits jobs and reads from the ledger of placement what became of them."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer

from benchmarks.parts.stack import LANE, TENANT, Bench, as_record, pool_of
from shared.bus.tail import LedgerTail
from shared.contracts.jobs import Gang, JobSpec, Simulated, SubmitJob
from shared.telemetry.trace_ids import new_traceparent

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")


@dataclass(slots=True)
class Load:
    """One pool's jobs; times are `time.perf_counter()` of this process."""

    bench: Bench
    mean_s: float
    seed: int = 1
    lane: int = LANE
    sent: dict[str, float] = field(default_factory=dict)
    placed_s: list[tuple[float, float]] = field(default_factory=list)
    """When each JobPlaced was read, and how long after its submit."""
    ended: int = 0
    number: int = 0
    room: asyncio.Event = field(default_factory=asyncio.Event)
    _producer: AIOKafkaProducer | None = None
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    @property
    def outstanding(self) -> int:
        return self.number - self.ended

    async def start(self) -> None:
        self._producer = AIOKafkaProducer(
            **self.bench.stack.connection("operator").aiokafka(),
            acks="all",
            linger_ms=2,
            enable_idempotence=self.bench.stack.durable,
        )
        await self._producer.start()

    async def stop(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def submit(self) -> None:
        """One SubmitJob in one record; returns once it is on its way, not when it is acked."""
        assert self._producer is not None
        self.number += 1
        job_id = f"bench-{self.lane}-{self.seed}-{self.number}"
        duration_s = self._random.expovariate(1 / self.mean_s)
        spec = JobSpec(
            name="bench", gang=Gang(workers=1), simulated=Simulated(duration_s=duration_s)
        )
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=pool_of(self.lane), idempotency_key=job_id, spec=spec
        )
        self.sent[job_id] = time.perf_counter()
        value = as_record(command, traceparent=new_traceparent())
        await self._producer.send("commands", value, partition=self.lane)

    async def keep_outstanding(self, jobs: int) -> None:
        """Closed loop, for ever: a job that ends is replaced at once."""
        while True:
            while self.outstanding < jobs:
                await self.submit()
            self.room.clear()
            await self.room.wait()

    async def at_rate(self, per_s: float, seconds: float) -> None:
        """Open loop: the next job comes when it is due, whatever became of the last."""
        begin = time.perf_counter()
        for number in range(int(per_s * seconds)):
            due = begin + number / per_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.submit()

    async def watch(self, tail: LedgerTail) -> None:
        """Reads accepted records for ever; nothing else is believed."""
        while True:
            for accepted in await tail.poll(0.2):
                now = time.perf_counter()
                for raw in accepted.raw():
                    if raw.type == "job.placed.v1" and raw.subject in self.sent:
                        self.placed_s.append((now, now - self.sent[raw.subject]))
                    elif raw.type in ENDS:
                        self.ended += 1
            self.room.set()


def percentile(values: list[float], share: float) -> float:
    """Nearest rank; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
