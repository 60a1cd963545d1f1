"""Summary of a workload before its replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from simulator.workload.rows import WorkloadJob
from simulator.workload.scale import ReplayPlan, plan_replay


@dataclass(frozen=True, slots=True)
class Summary:
    """Times in cluster seconds, GPUs in devices; `plan` is the expected replay."""

    jobs: int
    never_started: int
    left_out: dict[str, int]
    tenants: dict[str, int]
    users: int
    span_s: float
    median_duration_s: float
    mean_duration_s: float
    longest_duration_s: float
    gpu_hours: float
    cpu_only_jobs: int
    fractional_jobs: int
    gang_jobs: int
    largest_gpus: float
    jobs_by_gpus: dict[float, int]
    failed_jobs: int
    plan: ReplayPlan


def summarize(
    jobs: Sequence[WorkloadJob],
    capacity_gpus: float,
    target_wall_s: float,
    never_started: int = 0,
    left_out: Mapping[str, int] | None = None,
) -> Summary:
    """Return the summary of at least one job, ordered by time."""
    durations_s = [job.duration_s for job in jobs]
    return Summary(
        jobs=len(jobs),
        never_started=never_started,
        left_out=dict(left_out or {}),
        tenants=dict(Counter(job.tenant for job in jobs).most_common()),
        users=len({(job.tenant, job.user) for job in jobs}),
        span_s=jobs[-1].submit_s - jobs[0].submit_s,
        median_duration_s=median(durations_s),
        mean_duration_s=fmean(durations_s),
        longest_duration_s=max(durations_s),
        gpu_hours=sum(job.gpus * job.duration_s for job in jobs) / 3600,
        cpu_only_jobs=sum(job.gpus == 0 for job in jobs),
        fractional_jobs=sum(0 < job.gpus_per_worker < 1 for job in jobs),
        gang_jobs=sum(job.workers > 1 for job in jobs),
        largest_gpus=max(job.gpus for job in jobs),
        jobs_by_gpus=dict(Counter(job.gpus for job in jobs).most_common()),
        failed_jobs=sum(job.succeeded is False for job in jobs),
        plan=plan_replay(jobs, capacity_gpus, target_wall_s),
    )
