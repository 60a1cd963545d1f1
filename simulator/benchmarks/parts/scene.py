"""What every part of a chaos run needs: a stack, a load that keeps what was acknowledged, eyes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from infra.process import is_open
from shared.bus.log import TP
from shared.bus.tail import LedgerTail
from shared.contracts.jobs import Gang, JobSpec, Simulated, SubmitJob
from shared.contracts.topics import LEDGERS
from simulator.benchmarks.parts.faults import until
from simulator.benchmarks.parts.stack import LANE, POOL, TENANT, Bench, as_record

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")
RETRY_S = 0.5


@dataclass(slots=True)
class Scene:
    """`acked` are ids of commands (and of their jobs) that the broker has acknowledged."""

    bench: Bench
    per_s: float
    say: Callable[[str], None]
    acked: dict[str, float] = field(default_factory=dict)
    """When, by `time.time()`."""
    placed: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    said: dict[str, float] = field(default_factory=dict)
    """When each ledger last said something, by its own time."""
    heard_executor: float = 0.0
    number: int = 0
    jobs: int = 0
    rests: bool = False
    _producer: AIOKafkaProducer | None = None
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def outstanding(self) -> int:
        return len(self.acked.keys() - self.ended)

    def submit(self, name: str = "") -> str:
        """On its way until it is acknowledged, whatever the broker does; the id stays the same."""
        self.number += 1
        job_id = name or f"chaos-{self.number}"
        duration_s = 0.1 + self.number % 10 * 0.1
        spec = JobSpec(
            name="chaos",
            gang=Gang(workers=2 if self.number % 5 == 0 else 1),
            simulated=Simulated(duration_s=duration_s),
        )
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=POOL, idempotency_key=job_id, spec=spec
        )
        task = asyncio.ensure_future(self._deliver(job_id, as_record(command, job_id)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return job_id

    async def put(self, tp: TP, value: bytes) -> int:
        assert self._producer is not None
        meta = await self._producer.send_and_wait(tp.topic, value, partition=tp.partition)
        return int(meta.offset)

    async def _deliver(self, job_id: str, value: bytes) -> None:
        while True:
            try:
                await self.put(TP("commands", LANE), value)
            except KafkaError:
                await asyncio.sleep(RETRY_S)
            else:
                self.acked[job_id] = time.time()
                return

    async def run_load(self) -> None:
        """Open loop, until `jobs` are submitted."""
        while self.number < self.jobs:
            self.submit()
            await asyncio.sleep(1 / self.per_s)

    async def follow(self, tail: LedgerTail) -> None:
        while True:
            for accepted in await tail.poll(0.1):
                at = accepted.record.at / 1000
                self.said[accepted.ledger] = max(self.said.get(accepted.ledger, 0.0), at)
                if accepted.ledger == "placement":
                    for raw in accepted.raw():
                        self._note(raw.type, raw.subject, at)

    def _note(self, type_: str, subject: str, at: float) -> None:
        if type_ == "job.placed.v1":
            self.placed.setdefault(subject, at)
        elif type_ in ENDS:
            self.ended.add(subject)
        elif type_ in ("allocation.released.v1", "workers.ready.v1"):
            self.heard_executor = max(self.heard_executor, at)

    async def decides_after(self, ledger: str, since: float, within_s: float = 120.0) -> float:
        """Seconds from `since` to that ledger's next record."""
        await until(lambda: self.said.get(ledger, 0.0) > since + 0.05, within_s)
        return max(time.time() - since, 0.0)

    def broker_is_open(self) -> bool:
        return is_open(int(self.bench.stack.kafka.rpartition(":")[2]))

    async def all_ended(self, within_s: float) -> bool:
        return await until(lambda: not self.outstanding, within_s) is not None


@asynccontextmanager
async def scene(
    bench: Bench, jobs: int, per_s: float, say: Callable[[str], None]
) -> AsyncIterator[Scene]:
    """The load runs, and the ledgers are followed, while the block lasts."""
    made = Scene(bench, per_s, say, jobs=jobs)
    connection = bench.stack.connection("operator")
    made._producer = AIOKafkaProducer(
        **connection.aiokafka(), acks="all", linger_ms=2,
        enable_idempotence=connection.idempotent, request_timeout_ms=5_000,
    )  # fmt: skip
    await made._producer.start()
    ledgers = {name: [0 if name == "access" else LANE] for name in LEDGERS}
    tail = LedgerTail(bench.log("chaos"), ledgers)
    await tail.start()
    tasks = [asyncio.ensure_future(made.follow(tail)), asyncio.ensure_future(made.run_load())]
    try:
        yield made
    finally:
        for task in (*tasks, *made._sending):
            task.cancel()
        await asyncio.wait(tasks)
        await tail.stop()
        await made._producer.stop()
