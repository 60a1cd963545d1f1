"""What every part of a chaos run needs: a stack, a load that keeps what was acknowledged, eyes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from benchmarks.parts.faults import until
from benchmarks.parts.stack import TENANT, Bench, as_record, pool_of
from infra.machine.process import is_open
from shared.bus.tail import LedgerTail
from shared.contracts.jobs import Gang, JobSpec, Simulated, SubmitJob
from shared.contracts.topics import LEDGERS
from shared.ledger.partition import TP

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")
RETRY_S = 0.5
TICK_S = 0.05


@dataclass(slots=True)
class Scene:
    """`acked` are ids of commands (and of their jobs) that the broker has acknowledged."""

    bench: Bench
    per_s: float
    say: Callable[[str], None]
    pools: int = 1
    """Pool n is lane n; the jobs take turns."""
    most_open: int = 2000
    """The load pauses while so many jobs have not ended."""
    acked: dict[str, float] = field(default_factory=dict)
    """When, by `time.time()`."""
    placed: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    said: dict[str, float] = field(default_factory=dict)
    """When each ledger last said something, by its own time."""
    heard_executor: float = 0.0
    number: int = 0
    """Jobs submitted so far."""
    going: set[str] = field(default_factory=set)
    """Submitted and not ended."""
    progress: Callable[[], str] = str
    """What the part that runs has to say of itself."""
    ends_load: asyncio.Event = field(default_factory=asyncio.Event)
    _producer: AIOKafkaProducer | None = None
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def outstanding(self) -> int:
        return len(self.going)

    def submit(self, name: str = "") -> str:
        """On its way until it is acknowledged, whatever the broker does; the id stays the same."""
        self.number += 1
        lane = self.number % self.pools
        job_id = name or f"chaos-{self.number}"
        duration_s = 0.1 + self.number % 10 * 0.1
        spec = JobSpec(
            name="chaos",
            gang=Gang(workers=2 if self.number % 5 == 0 else 1),
            simulated=Simulated(duration_s=duration_s),
        )
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=pool_of(lane), idempotency_key=job_id, spec=spec
        )
        self.going.add(job_id)
        task = asyncio.ensure_future(self._deliver(job_id, lane, as_record(command, job_id)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return job_id

    def asked(self, job_id: str) -> None:
        """A job that somebody else has submitted: its end is waited for as well."""
        if job_id not in self.ended:
            self.going.add(job_id)

    async def put(self, tp: TP, value: bytes) -> int:
        assert self._producer is not None
        meta = await self._producer.send_and_wait(tp.topic, value, partition=tp.partition)
        return int(meta.offset)

    async def _deliver(self, job_id: str, lane: int, value: bytes) -> None:
        while True:
            try:
                await self.put(TP("commands", lane), value)
            except KafkaError:
                await asyncio.sleep(RETRY_S)
            else:
                self.acked[job_id] = time.time()
                return

    async def run_load(self) -> None:
        """Open loop at `per_s`, but for `most_open`, until `ends_load` is set."""
        due = 0.0
        while not self.ends_load.is_set():
            due = min(due + self.per_s * TICK_S, float(self.most_open - self.outstanding))
            while due >= 1.0:
                self.submit()
                due -= 1.0
            await asyncio.sleep(TICK_S)

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
            self.going.discard(subject)
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
    bench: Bench, per_s: float, say: Callable[[str], None], pools: int = 1
) -> AsyncIterator[Scene]:
    """The load runs, and the ledgers are followed, while the block lasts."""
    made = Scene(bench, per_s, say, pools)
    connection = bench.stack.connection("operator")
    made._producer = AIOKafkaProducer(
        **connection.aiokafka(),
        acks="all",
        linger_ms=2,
        enable_idempotence=connection.idempotent,
        request_timeout_ms=5_000,
    )
    await made._producer.start()
    ledgers = {name: [0] if name == "access" else list(range(pools)) for name in LEDGERS}
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
