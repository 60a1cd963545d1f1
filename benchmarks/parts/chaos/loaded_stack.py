"""A stack under load for a chaos run: submits jobs, records acknowledgements, follows ledgers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from benchmarks.parts.chaos.faults import wait_until
from benchmarks.parts.load import ENDS
from benchmarks.parts.stack import TENANT, Bench, as_record, pool_of
from infra.machine.process import is_open
from shared.bus.logs.tail import LedgerTail
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.topics import LEDGERS
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.process.progress import ReportLine

RETRY_S = 0.5
TICK_S = 0.05
EXECUTOR_EVENTS = ("allocation.released.v1", "workers.ready.v1")
"""Events of placement that follow a message of an executor."""


@dataclass(slots=True)
class LoadedStack:
    """A running stack, its load, and the state of each job; times are those of `time.time()`."""

    bench: Bench
    per_s: float
    report_line: ReportLine
    pools: int = 1
    """The load submits to the pools in turn; pool n is lane n."""
    most_open: int = 2000
    """The load pauses while so many jobs have not ended."""
    acked: dict[str, float] = field(default_factory=dict)
    """Time of acknowledgement by id of the command, which is that of its job."""
    placed: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    last_record_at: dict[str, float] = field(default_factory=dict)
    """Time of the last record by ledger, as recorded in it."""
    executor_event_at: float = 0.0
    """Time of placement's last event that follows a message of an executor."""
    prefix: str = "chaos"
    """Begins the ids of the jobs, which no earlier load of the installation may have used."""
    number: int = 0
    """Jobs submitted by the load so far."""
    going: set[str] = field(default_factory=set)
    """Jobs submitted and not ended."""
    progress: Callable[[], str] = str
    """Progress of the current part, appended to the progress line."""
    ends_load: asyncio.Event = field(default_factory=asyncio.Event)
    _producer: AIOKafkaProducer | None = None
    _sending: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def outstanding(self) -> int:
        return len(self.going)

    def submit(self, name: str = "") -> str:
        """Start to deliver a job and return its id; the same command is retried until acked."""
        self.number += 1
        job_id = name or f"{self.prefix}-{self.number}"
        lane, pool = self.target()
        command = SubmitJob(
            job_id=job_id, tenant=TENANT, pool=pool, idempotency_key=job_id, spec=self.next_spec()
        )
        self.going.add(job_id)
        task = asyncio.ensure_future(self._deliver(job_id, lane, as_record(command, job_id)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return job_id

    def target(self) -> tuple[int, str]:
        """Return lane and pool of the present job."""
        lane = self.number % self.pools
        return lane, pool_of(lane)

    def next_spec(self) -> JobSpec:
        """Return what the present job is: a simulated one."""
        return JobSpec(
            name="chaos",
            gang=Gang(workers=2 if self.number % 5 == 0 else 1),
            simulated=Simulated(duration_s=0.1 + self.number % 10 * 0.1),
        )

    def expect(self, job_id: str) -> None:
        """Wait at the end for a job that was not submitted by the load as well."""
        if job_id not in self.ended:
            self.going.add(job_id)

    async def append(self, tp: TP, value: bytes) -> int:
        """Append a record; return its offset once the broker has acknowledged it."""
        assert self._producer is not None
        meta = await self._producer.send_and_wait(tp.topic, value, partition=tp.partition)
        return int(meta.offset)

    async def _deliver(self, job_id: str, lane: int, value: bytes) -> None:
        while True:
            try:
                await self.append(TP("commands", lane), value)
            except KafkaError:
                await asyncio.sleep(RETRY_S)
            else:
                self.acked[job_id] = time.time()
                return

    async def run_load(self) -> None:
        """Submit in an open loop at `per_s`, bounded by `most_open`, until `ends_load` is set."""
        due = 0.0
        while not self.ends_load.is_set():
            due = min(due + self.per_s * TICK_S, float(self.most_open - self.outstanding))
            while due >= 1.0:
                self.submit()
                due -= 1.0
            await asyncio.sleep(TICK_S)

    async def follow(self, tail: LedgerTail) -> None:
        """Observe the accepted records of the ledgers until cancelled."""
        while True:
            for accepted in await tail.poll(0.1):
                self.note(accepted)

    def note(self, accepted: Accepted) -> None:
        """Take an accepted record of a ledger."""
        at = accepted.record.at / 1000
        previous = self.last_record_at.get(accepted.ledger, 0.0)
        self.last_record_at[accepted.ledger] = max(previous, at)
        if accepted.ledger == "placement":
            for raw in accepted.raw():
                self.observe(raw.type, raw.subject, at)

    def observe(self, type_: str, subject: str, at: float) -> None:
        """Update the state of a job by an event of placement."""
        if type_ == "job.placed.v1":
            self.placed.setdefault(subject, at)
        elif type_ in ENDS:
            self.ended.add(subject)
            self.going.discard(subject)
        elif type_ in EXECUTOR_EVENTS:
            self.executor_event_at = max(self.executor_event_at, at)

    async def wait_for_decision(
        self, ledger: str, since_s: float, within_s: float = 120.0
    ) -> float:
        """Return the seconds from `since_s` to the next record of that ledger."""
        await wait_until(lambda: self.last_record_at.get(ledger, 0.0) > since_s + 0.05, within_s)
        return max(time.time() - since_s, 0.0)

    def broker_is_open(self) -> bool:
        return is_open(int(self.bench.stack.kafka.rpartition(":")[2]))

    async def all_ended(self, within_s: float) -> bool:
        return await wait_until(lambda: not self.outstanding, within_s) is not None


@asynccontextmanager
async def loaded_stack(
    bench: Bench, per_s: float, report_line: ReportLine, pools: int = 1
) -> AsyncIterator[LoadedStack]:
    """Submit simulated jobs to the first lanes and follow those until the block ends."""
    loaded = LoadedStack(bench, per_s, report_line, pools)
    async with running_load(loaded, range(pools)):
        yield loaded


@asynccontextmanager
async def running_load(loaded: LoadedStack, lanes: Iterable[int]) -> AsyncIterator[None]:
    """Run the load and follow the ledgers of these lanes until the block ends."""
    bench = loaded.bench
    connection = bench.stack.connection("operator")
    loaded._producer = AIOKafkaProducer(
        **connection.producing(), linger_ms=2, request_timeout_ms=5_000
    )
    await loaded._producer.start()
    ledgers = {name: [0] if name == "access" else list(lanes) for name in LEDGERS}
    tail = LedgerTail(bench.log("chaos"), ledgers)
    await tail.start()
    tasks = [asyncio.ensure_future(loaded.follow(tail)), asyncio.ensure_future(loaded.run_load())]
    try:
        yield
    finally:
        for task in (*tasks, *loaded._sending):
            task.cancel()
        await asyncio.wait(tasks)
        await tail.stop()
        await loaded._producer.stop()
