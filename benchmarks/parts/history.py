"""A long history, written at once: valid ledgers of many short jobs in one pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aiokafka import AIOKafkaProducer

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import AllocationReleased, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.nodes import NodeJoined
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from shared.process.connection import Connection

PER_JOB = 7
"""Events of one simple job: two of admission, five of placement."""
JOBS_PER_RECORD = 25
NODES, GPUS = 32, 8
SPEC = JobSpec(name="past", gang=Gang(workers=1), command=("train",))
POOL = PoolConfigured(pool="virtual", partition=0)
TENANTS = ("vision", "language", "speech", "robotics")


class HistoryWriter:
    """Writers of the ledgers of one lane; jobs come in groups that fit the pool at once."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.access = LedgerWriter(self.broker, "access")
        self.admission = LedgerWriter(self.broker, "admission")
        self.placement = LedgerWriter(self.broker, "placement")
        self.access.write(
            [POOL, *(TenantRegistered(tenant=t, default_pool="virtual") for t in TENANTS)]
        )
        self.placement.write([POOL, *(node(number) for number in range(NODES))])
        self.admission.write([POOL])

    def write_group(self, first: int) -> None:
        """Write all events of the next group of jobs."""
        numbers = range(first, first + JOBS_PER_RECORD)
        self.admission.write([event for n in numbers for event in admitted(n, self.admission.at)])
        self.placement.write([enqueued(n, self.placement.at) for n in numbers])
        placed_at = self.placement.write([placed(n) for n in numbers]).rsplit("/", 1)[0]
        self.placement.write(
            [JobStarted(job_id=name(n), tenant=tenant(n), attempt=1, gpus=1) for n in numbers]
        )
        self.placement.write(
            [event for i, n in enumerate(numbers) for event in finished(n, f"{placed_at}/{i}/0")]
        )


def name(number: int) -> str:
    return f"past-{number}"


def tenant(number: int) -> str:
    return TENANTS[number % len(TENANTS)]


def node(number: int) -> NodeJoined:
    return NodeJoined(
        node_id=f"n{number}",
        incarnation="1",
        executor_id="e",
        backend="virtual",
        gpu_type="a100",
        gpus=GPUS,
        cpus=96,
        mem_gib=768,
    )


def admitted(number: int, at: int) -> Iterator[Event]:
    job = name(number)
    yield CommandAccepted(
        command_id=f"c{number}", command_type="job.submit.v1", of=job, tenant=tenant(number)
    )
    yield JobAdmitted(job_id=job, tenant=tenant(number), submitted_at=at, spec=SPEC)


def enqueued(number: int, at: int) -> JobEnqueued:
    return JobEnqueued(job_id=name(number), tenant=tenant(number), submitted_at=at, spec=SPEC)


def placed(number: int) -> JobPlaced:
    slot = number % (NODES * GPUS)
    allocation = Allocation(
        rank=0, node_id=f"n{slot // GPUS}", gpus=(slot % GPUS,), cpus=1, mem_gib=1
    )
    return JobPlaced(
        job_id=name(number),
        tenant=tenant(number),
        attempt=1,
        allocations=(allocation,),
        waited_ms=1,
        policy="past",
    )


def finished(number: int, allocation_id: str) -> Iterator[Event]:
    job, slot = name(number), number % (NODES * GPUS)
    yield AllocationReleased(
        job_id=job,
        tenant=tenant(number),
        attempt=1,
        allocation_id=allocation_id,
        node_id=f"n{slot // GPUS}",
        reason="exited",
        exit_code=0,
    )
    yield JobSucceeded(job_id=job, tenant=tenant(number), attempt=1, ran_ms=20, gpu_s=0.02)


async def write(connection: Connection, events: int, progress: Callable[[int], None]) -> int:
    """Fill the empty ledgers of lane 0 with about `events` events; return their exact number."""
    producer = AIOKafkaProducer(**connection.aiokafka(), acks="all", linger_ms=5)
    await producer.start()
    history, sent = HistoryWriter(), 0
    try:
        for first in range(0, events // PER_JOB, JOBS_PER_RECORD):
            history.write_group(first)
            sent += JOBS_PER_RECORD * PER_JOB
            if (first // JOBS_PER_RECORD) % 40 == 0:
                await ship(history.broker, producer)
                progress(sent)
        await ship(history.broker, producer)
    finally:
        await producer.stop()
    return sent


async def ship(broker: MemoryBroker, producer: AIOKafkaProducer) -> None:
    """Move the written records to the real broker, in order."""
    deliveries = []
    for ledger in ("access", "admission", "placement"):
        entries = broker.entries(TP(ledger, 0))
        for entry in entries:
            deliveries.append(await producer.send(ledger, entry.value, partition=0))
        broker.forget(TP(ledger, 0))
    for delivery in deliveries:
        await delivery
