"""A scenario: jobs, nodes, the pool's settings and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec, Simulated
from shared.contracts.pools import PoolConfigured, default_of
from simulator.engine.failures import NodeFailure
from simulator.engine.lane import LANE
from simulator.workload.fixed import draw_fixed
from simulator.workload.rows import WorkloadJob
from simulator.workload.stop_costs import checkpoint_intervals_s, restarts_s

POOL = "simulated"
FIRST_MS = 10_000
"""Time of the first job: after the nodes have joined, so that jobs that never fit are rejected."""
LEASE_S: float = default_of("lease_s")
START_TIMEOUT_S: float = default_of("start_timeout_s")
GRACE_S: float = JobSpec.model_fields["grace_s"].default

Walltime = Literal["none", "trace", "oracle"]


class NodeCordon(NamedTuple):
    """A command of an operator about a node, cluster seconds of the trace's clock."""

    at_s: float
    node_id: str
    change: Literal["cordoned", "draining", "open"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulation. Times are cluster seconds of the trace's own clock.

    `walltime` is the run time that jobs declare: none, that of the trace's users, or the true
    one (an oracle). `checkpoint_s` is between checkpoints, None for none, for jobs of which the
    trace does not say it: with a `checkpoint_spread` it is the median of what they draw.
    `restart_s` is the cost of a start after a stop, which grows with the gang by `restart_growth`
    (`simulator/workload/stop_costs.py`). Where `checkpoint_cost_s` is above 0 a stop writes a
    checkpoint and loses no more than that. `fixed_share` of the jobs may not be preempted. With
    `gpus_only` jobs request neither CPU, memory nor GPU types.
    """

    jobs: Sequence[WorkloadJob]
    """Sorted by (submit, key)."""
    nodes: Mapping[str, InventoryNode]
    pool: PoolConfigured
    window_s: tuple[float, float]
    restart_s: float = 0.0
    restart_growth: float = 0.0
    checkpoint_s: float | None = None
    checkpoint_spread: float = 0.0
    checkpoint_cost_s: float = 0.0
    fixed_share: float = 0.0
    walltime: Walltime = "none"
    gpus_only: bool = True
    failures: Sequence[NodeFailure] = ()
    slow: Mapping[str, float] = field(default_factory=dict)
    """Node to the factor by which its workers are slower."""
    gpu_speeds: Mapping[str, float] = field(default_factory=dict)
    """Speed of every job on a GPU type of a heterogeneous pool; 1 on others."""
    specs: Sequence[JobSpec] = ()
    """Recorded specifications of the jobs, which are submitted as they are; empty: made of them."""
    cordons: Sequence[NodeCordon] = ()
    load_only: frozenset[int] = frozenset()
    """Numbers of jobs that are simulated and counted in no figure."""

    def clock_ms(self, at_s: float) -> int:
        """Return a moment of the trace on the world's clock, counted from its beginning."""
        since_s = at_s - self.jobs[0].submit_s
        return FIRST_MS + round(since_s * 1000 / self.pool.time_scale)

    def cluster_s(self, clock_ms: int | float) -> float:
        """Return a moment of the world's clock in the trace's time."""
        return self.jobs[0].submit_s + (clock_ms - FIRST_MS) * self.pool.time_scale / 1000

    @property
    def capacity_gpus(self) -> float:
        return float(sum(node.gpus for node in self.nodes.values()))


def simulated_pool(*, time_scale: float = 1.0, **settings: object) -> PoolConfigured:
    """Return a pool that starts rounds as soon as changes settle; `settings` are fields of its
    contract.

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
        "publish_predictions": False,
        "rank_changes": True,
        "programs_once": True,
    }
    return PoolConfigured.model_validate(plain | settings)


def job_id(index: int) -> str:
    """Return the id of the job at `index` of the scenario: ids are in the order of the trace."""
    return f"j{index:07d}"


def submission(scenario: Scenario, index: int) -> SubmitJob:
    """Return the job's submit command; its work is a whole number of the clock's ms."""
    job = scenario.jobs[index]
    return SubmitJob(
        job_id=job_id(index),
        tenant=job.tenant,
        pool=scenario.pool.pool,
        idempotency_key=job.job_key,
        spec=scenario.specs[index] if scenario.specs else spec_of(scenario, index),
    )


def spec_of(scenario: Scenario, index: int) -> JobSpec:
    """Return the specification of a job of a trace."""
    job = scenario.jobs[index]
    run_s = duration_s(scenario, job)
    need = (0.0, 0.0) if scenario.gpus_only else (job.cpus, job.mem_gib)
    simulated = Simulated(
        duration_s=run_s,
        exit_code=int(job.succeeded is False),
        restart_s=restart_of(
            job.workers, job.gpus_per_worker, scenario.restart_s, scenario.restart_growth
        ),
    )
    return JobSpec(
        name=job.name or "job",
        user=job.user,
        gang=gang_of(job.workers, job.gpus_per_worker, *need),
        gpu_types=() if scenario.gpus_only else job.gpu_types,
        gpu_speeds=dict(scenario.gpu_speeds) or None,
        walltime_s=walltime_s(scenario, job, run_s),
        preemptible=index not in fixed_jobs(len(scenario.jobs), scenario.fixed_share),
        checkpoint_interval_s=checkpoint_of(scenario, index),
        checkpoint_cost_s=scenario.checkpoint_cost_s,
        grace_s=max(GRACE_S, scenario.checkpoint_cost_s / scenario.pool.time_scale),
        simulated=simulated,
    )


@lru_cache(maxsize=8)
def fixed_jobs(jobs: int, share: float) -> frozenset[int]:
    """Return the numbers of the jobs that may not be preempted."""
    return frozenset(np.flatnonzero(draw_fixed(jobs, share)).tolist())


def checkpoint_of(scenario: Scenario, index: int) -> float | None:
    """Return the seconds of work between the checkpoints of a job; None if it makes none."""
    known_s = scenario.jobs[index].checkpoint_interval_s
    if known_s is None and scenario.checkpoint_s is not None:
        spread = scenario.checkpoint_spread
        known_s = drawn_checkpoints(len(scenario.jobs), scenario.checkpoint_s, spread)[index]
    return known_s or None


@lru_cache(maxsize=8)
def drawn_checkpoints(jobs: int, median_s: float, spread: float) -> tuple[float, ...]:
    """Return the intervals of jobs of which the trace says none."""
    return tuple(checkpoint_intervals_s(np.full(jobs, np.nan), median_s, spread).tolist())


@lru_cache(maxsize=4096)
@lru_cache(maxsize=4096)
def restart_of(workers: int, gpus: float, restart_s: float, growth: float) -> float:
    """Return the seconds of a restart of a gang, by whole GPUs; `gpus` are per worker."""
    return float(restarts_s(np.array([workers * np.ceil(gpus)]), restart_s, growth)[0])


@lru_cache(maxsize=4096)
def gang_of(workers: int, gpus: float, cpus: float, mem_gib: float) -> Gang:
    """Return a gang, cached: most jobs of a trace have few shapes; `gpus` and the rest are per
    worker.
    """
    return Gang(
        workers=workers, gpus_per_worker=gpus, cpus_per_worker=cpus, mem_gib_per_worker=mem_gib
    )


def duration_s(scenario: Scenario, job: WorkloadJob) -> float:
    """Return the job's run time as a whole number of the clock's ms."""
    scale = scenario.pool.time_scale
    return max(1, round(job.duration_s * 1000 / scale)) * scale / 1000


def walltime_s(scenario: Scenario, job: WorkloadJob, run_s: float) -> float | None:
    """Return the run time that the job declares, None for none."""
    match scenario.walltime:
        case "none":
            return None
        case "trace":
            return job.walltime_s
        case "oracle":
            return run_s
