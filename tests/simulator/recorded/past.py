"""A made-up ledger of a pool with one kind of job: the whole of one node."""

from __future__ import annotations

import asyncio

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.attempts import AllocationReleased, JobCancelled, JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.nodes import NodeJoined
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from simulator.recorded.pool import RecordedPool
from simulator.recorded.reading import read_pool

ZERO_MS = 1_800_000_000_000
GPUS = 8
POOL = "p"


def at(seconds: float) -> int:
    """Return a moment of the ledger, wall ms."""
    return ZERO_MS + round(seconds * 1000)


def spec(run_s: float, **more: object) -> JobSpec:
    own: dict[str, object] = {
        "name": "job",
        "gang": Gang(workers=1, gpus_per_worker=GPUS),
        "simulated": Simulated(duration_s=run_s),
    }
    return JobSpec.model_validate(own | more)


class PoolLedger:
    """Writes the ledgers of access and placement of one pool in lane 2; times in s."""

    def __init__(self, **settings: object) -> None:
        self.written: list[tuple[float, tuple[Event, ...]]] = []
        plain: dict[str, object] = {"partition": 2, "pool": POOL, "base_policy": "fcfs"}
        self.pool = PoolConfigured.model_validate(plain | settings)
        self.write(0, self.pool)

    def write(self, seconds: float, *events: Event) -> None:
        """Note events of one record; records are written in the order of time."""
        self.written.append((seconds, events))

    def join(self, seconds: float, node_id: str = "n1", gpu_type: str = "a100") -> None:
        node = NodeJoined(
            node_id=node_id,
            incarnation=f"{node_id}-{seconds}",
            executor_id="e",
            backend="virtual",
            gpu_type=gpu_type,
            gpus=GPUS,
            cpus=64,
            mem_gib=512,
        )
        self.write(seconds, node)

    def enqueue(
        self, seconds: float, job_id: str, run_s: float, tenant: str = "t", **more: object
    ) -> None:
        job = JobEnqueued(
            job_id=job_id, tenant=tenant, submitted_at=at(seconds), spec=spec(run_s, **more)
        )
        self.write(seconds, job)

    def start(self, seconds: float, job_id: str, node_id: str = "n1", tenant: str = "t") -> None:
        slot = Allocation(rank=0, node_id=node_id, gpus=tuple(range(GPUS)))
        own = {"job_id": job_id, "tenant": tenant, "attempt": 1}
        placed = JobPlaced(**own, allocations=(slot,), waited_ms=0, policy="fcfs")
        self.write(seconds, placed, JobStarted(**own, gpus=GPUS))

    def release(self, job_id: str, node_id: str, tenant: str = "t") -> AllocationReleased:
        return AllocationReleased(
            job_id=job_id,
            tenant=tenant,
            attempt=1,
            allocation_id=f"2/1/0/{job_id}",
            node_id=node_id,
            reason="exited",
        )

    def end(self, seconds: float, job_id: str, node_id: str = "n1", tenant: str = "t") -> None:
        done = JobSucceeded(job_id=job_id, tenant=tenant, attempt=1)
        self.write(seconds, self.release(job_id, node_id, tenant), done)

    def cancel(self, seconds: float, job_id: str, tenant: str = "t") -> None:
        self.write(seconds, JobCancelled(job_id=job_id, tenant=tenant))

    @property
    def log(self) -> MemoryLog:
        broker = MemoryBroker()
        LedgerWriter(broker, "access").write([self.pool], at=at(0))
        writer = LedgerWriter(broker, "placement", 2)
        for seconds, events in sorted(self.written, key=lambda record: record[0]):
            writer.write(events, at=at(seconds))
        return MemoryLog(broker)

    def read(self, begin_s: float, from_s: float, to_s: float, most: int = 100) -> RecordedPool:
        """Return the past of a time."""
        past = RecordedPool(POOL, at(begin_s), at(from_s), at(to_s), most)
        return asyncio.run(read_pool(self.log, past))


def three_jobs(**settings: object) -> PoolLedger:
    """Return jobs of 1000, 500 and 100 s that came at 0, 100 and 200 s, in this order on a node."""
    ledger = PoolLedger(**settings)
    ledger.join(0)
    for arrived_s, job_id, run_s in ((1, "a", 1000), (100, "b", 500), (200, "c", 100)):
        ledger.enqueue(arrived_s, job_id, run_s, tenant=f"t-{job_id}")
        if job_id == "a":
            ledger.start(1, "a", tenant="t-a")
    ledger.end(1001, "a", tenant="t-a")
    ledger.start(1001, "b", tenant="t-b")
    ledger.end(1501, "b", tenant="t-b")
    ledger.start(1501, "c", tenant="t-c")
    ledger.end(1601, "c", tenant="t-c")
    return ledger
