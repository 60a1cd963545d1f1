"""One day of a trace, the pool that it is played on, and the settings of every run of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.parts.policies.costs import StopCosts
from cli.stack.pool_defaults import cluster_pool
from services.priority.core.decide import REFRESH_MS
from shared.contracts.pools import ConfigurePool
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes
from simulator.kernel.run import Rules
from simulator.workload.errors import TraceError
from simulator.workload.rows import NODE_GPUS, WorkloadJob
from simulator.workload.source import load

DAY_S = 86_400.0
RANK_MS = 100
"""Wall ms between rankings of the live queue: the default, a second, is minutes of the sped-up day;
0, as the kernel has it, would rank at every change of the queue."""


@dataclass(frozen=True, slots=True)
class Day:
    """The jobs of a day; those that run longer than allowed are left out and counted."""

    trace: str
    number: int
    jobs: Sequence[WorkloadJob]
    nodes: int
    left_out: int
    time_scale: float
    """Cluster seconds per wall second of the live run."""
    costs: StopCosts

    @property
    def capacity_gpus(self) -> int:
        return self.nodes * NODE_GPUS

    @property
    def load(self) -> float:
        """GPU time of the jobs over that of the pool in a day."""
        return gpu_s(self.jobs) / (self.capacity_gpus * DAY_S)

    @property
    def window_s(self) -> tuple[float, float]:
        first, last = self.jobs[0].submit_s, self.jobs[-1].submit_s
        return first, float(np.nextafter(last, np.inf))


def choose_day(
    trace: str, day: int, longest_s: float, load_share: float, time_scale: float, costs: StopCosts
) -> Day:
    """Return day number `day` of the trace, from 0, on the nodes nearest to the load.

    Raises ValueError for an unreadable trace, and for a day without a job that is short enough.
    """
    try:
        every = load(trace).jobs
    except TraceError as error:
        raise ValueError(f"trace: {error}") from None
    low_s = every[0].submit_s + day * DAY_S
    submitted = [job for job in every if low_s <= job.submit_s < low_s + DAY_S and job.gpus > 0]
    chosen = [as_gpu_job(job) for job in submitted if job.duration_s <= longest_s]
    if not chosen:
        days = int((every[-1].submit_s - every[0].submit_s) / DAY_S)
        raise ValueError(
            f"day: {day}, must be one of 0 to {days} of {trace} with a GPU job of at most"
            f" {longest_s:g} s"
        )
    nodes = max(
        math.ceil(max(job.gpus for job in chosen) / NODE_GPUS),
        round(gpu_s(chosen) / (load_share * DAY_S * NODE_GPUS)),
    )
    return Day(trace, day, chosen, nodes, len(submitted) - len(chosen), time_scale, costs)


def gpu_s(jobs: Sequence[WorkloadJob]) -> float:
    return sum(job.gpus * job.duration_s for job in jobs)


def as_gpu_job(job: WorkloadJob) -> WorkloadJob:
    """Return the job with nothing but GPUs and history, which is what the kernel knows of it."""
    return replace(job, gpu_type=None, cpus=1.0, mem_gib=1.0, walltime_s=None, qos=None)


def pool_of(day: Day, name: str) -> ConfigurePool:
    """Return the pool of the live run: that of `berth up`, with greedy rounds as in the kernel."""
    shipped = cluster_pool(name, day.time_scale)
    return shipped.model_copy(update={"solver": "greedy", "rank_ms": RANK_MS})


def scenario_of(day: Day) -> Scenario:
    """Return the day for the live deciders on a virtual clock, with the live rounds."""
    own = {"pool", "if_version", "lease_s", "start_timeout_s", "publish_predictions"}
    live = pool_of(day, POOL).model_dump(exclude=own)
    return Scenario(
        jobs=day.jobs,
        nodes=equal_nodes(day.nodes, pool=POOL),
        pool=simulated_pool(**live),
        window_s=day.window_s,
        restart_s=day.costs.restart_s,
        checkpoint_s=day.costs.checkpoint_s,
    )


def rules_of(day: Day) -> Rules:
    """Return the kernel's rules with the settings of the live pool."""
    pool = pool_of(day, POOL)
    rules = Rules(
        pool.base_policy,
        preemption=True,
        preempt_margin=pool.preempt_margin,
        min_residency_s=pool.min_residency_s,
        refresh_s=REFRESH_MS / 1000 * day.time_scale,
    )
    return day.costs.applied(rules)
