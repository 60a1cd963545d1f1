"""What is simulated: jobs, nodes, the pool's settings, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from services.executor.core.inventory import Node
from shared.contracts.access import PoolConfigured
from shared.contracts.jobs import Gang, JobSpec, Simulated, SubmitJob
from simulator.engine.failures import Failure
from simulator.engine.lane import LANE
from simulator.workload.rows import WorkloadJob

POOL = "simulated"
FIRST_MS = 10_000
"""The first job comes when the nodes' joining has settled, so that what never fits is told."""
LEASE_S = 30.0
START_TIMEOUT_S = 60.0

Walltime = Literal["none", "trace", "oracle"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulation. Times are cluster seconds of the trace's own clock.

    `walltime` is what jobs say of their run time: nothing, what the trace's users said, or the
    truth (an oracle). `checkpoint_s` is between checkpoints, None for none; `restart_s` is what a
    start after a stop costs. With `gpus_only` jobs ask for neither CPU, memory nor GPU types.
    """

    jobs: Sequence[WorkloadJob]
    """By (submit, key)."""
    nodes: Mapping[str, Node]
    pool: PoolConfigured
    window_s: tuple[float, float]
    restart_s: float = 0.0
    checkpoint_s: float | None = None
    walltime: Walltime = "none"
    gpus_only: bool = True
    failures: Sequence[Failure] = ()
    slow: Mapping[str, float] = field(default_factory=dict)
    """Node to the factor by which its workers take longer."""
    gpu_speeds: Mapping[str, float] = field(default_factory=dict)
    """Of a heterogeneous pool: how fast every job is on a GPU type; on others its speed is 1."""

    def clock_ms(self, at_s: float) -> int:
        """A moment of the trace on the world's clock, counted from its beginning."""
        since_s = at_s - self.jobs[0].submit_s
        return FIRST_MS + round(since_s * 1000 / self.pool.time_scale)

    def cluster_s(self, clock_ms: int | float) -> float:
        """The other way round."""
        return self.jobs[0].submit_s + (clock_ms - FIRST_MS) * self.pool.time_scale / 1000

    @property
    def capacity_gpus(self) -> float:
        return float(sum(node.gpus for node in self.nodes.values()))


def simulated_pool(*, time_scale: float = 1.0, **settings: object) -> PoolConfigured:
    """A pool that waits for nothing but news to settle; `settings` are fields of its contract.

    Leases and time-outs are the live ones in cluster time.
    """
    plain: dict[str, object] = {
        "partition": LANE,
        "pool": POOL,
        "time_scale": time_scale,
        "solver": "greedy",
        "base_policy": "fcfs",
        "rank_ms": 0,
        "settle_ms": 1,
        "round_ms": 1,
        "lease_s": LEASE_S / time_scale,
        "start_timeout_s": START_TIMEOUT_S / time_scale,
    }
    return PoolConfigured.model_validate(plain | settings)


def job_id(index: int) -> str:
    """Of the job at `index` of the scenario: ids are in the order of the trace."""
    return f"j{index:07d}"


def submission(scenario: Scenario, index: int) -> SubmitJob:
    """The job as its tenant would submit it; its work is a whole number of the clock's ms."""
    job = scenario.jobs[index]
    run_s = duration_s(scenario, job)
    need = (0.0, 0.0) if scenario.gpus_only else (job.cpus, job.mem_gib)
    simulated = Simulated(
        duration_s=run_s, exit_code=int(job.succeeded is False), restart_s=scenario.restart_s
    )
    spec = JobSpec(
        name=job.name or "job",
        user=job.user,
        gang=gang_of(job.workers, job.gpus_per_worker, *need),
        gpu_types=() if scenario.gpus_only else job.gpu_types,
        gpu_speeds=dict(scenario.gpu_speeds) or None,
        walltime_s=walltime_s(scenario, job, run_s),
        checkpoint_interval_s=scenario.checkpoint_s,
        simulated=simulated,
    )
    return SubmitJob(
        job_id=job_id(index),
        tenant=job.tenant,
        pool=scenario.pool.pool,
        idempotency_key=job.job_key,
        spec=spec,
    )


@lru_cache(maxsize=4096)
def gang_of(workers: int, gpus: float, cpus: float, mem_gib: float) -> Gang:
    """Most jobs of a trace are of a few shapes; `gpus` and what follows is per worker."""
    return Gang(
        workers=workers, gpus_per_worker=gpus, cpus_per_worker=cpus, mem_gib_per_worker=mem_gib
    )


def duration_s(scenario: Scenario, job: WorkloadJob) -> float:
    scale = scenario.pool.time_scale
    return max(1, round(job.duration_s * 1000 / scale)) * scale / 1000


def walltime_s(scenario: Scenario, job: WorkloadJob, run_s: float) -> float | None:
    match scenario.walltime:
        case "none":
            return None
        case "trace":
            return job.walltime_s
        case "oracle":
            return run_s
