"""A time scale at which a replay ends within a given wall time; jobs are never cut or dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.workload.makespan import makespan_s
from simulator.workload.rows import WorkloadJob

SUBMITS_PER_S = 100.0
"""Submits per second that a live stack of two cores can follow: it decides 150 to 300 jobs/s.
The submitter stretches what the scale would compress beyond it: see `submit_offsets_s`.
"""

HANDOVER_S = 0.3
"""Wall seconds that a GPU is held beyond the job's own run: prepare, go, report, release."""

MARGIN = 1.2
"""Factor for the GPUs that nodes and gangs leave unused, unlike a mere sum of GPUs."""


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Expected course of a replay; its wall time is an upper estimate.

    `oversized` jobs are submitted like the others: admission rejects them.
    """

    time_scale: float
    cluster_span_s: float
    expected_wall_s: float
    arrival_wall_s: float
    mean_submits_per_s: float
    peak_submits_per_s: int
    oversized: tuple[str, ...]


def auto_scale(jobs: Sequence[WorkloadJob], capacity_gpus: float, target_wall_s: float) -> float:
    """Return cluster seconds per wall second, at least 1, so that the replay ends within the
    target.

    Three things take wall time: the makespan over the scale, pacing (jobs / 100 s at most) and
    handing GPUs over between jobs. The last two do not shrink with the scale: where they exceed
    two thirds of the target, the replay takes half as long again as they do. A longer target
    never gives a larger scale.
    """
    if capacity_gpus <= 0 or target_wall_s <= 0:
        raise ValueError("capacity and target must be above zero")
    fitting = _fitting(jobs, capacity_gpus)
    fixed_s = len(jobs) / SUBMITS_PER_S + _handover_s(fitting, capacity_gpus)
    running_s = max(target_wall_s - fixed_s, fixed_s / 2)
    return max(1.0, MARGIN * makespan_s(fitting, capacity_gpus) / running_s)


def plan_replay(
    jobs: Sequence[WorkloadJob],
    capacity_gpus: float,
    target_wall_s: float,
    time_scale: float | None = None,
) -> ReplayPlan:
    """Return the plan at `time_scale`, or at that of `auto_scale`."""
    if time_scale is None:
        time_scale = auto_scale(jobs, capacity_gpus, target_wall_s)
    fitting = _fitting(jobs, capacity_gpus)
    span_s = makespan_s(fitting, capacity_gpus)
    offsets_s = submit_offsets_s(jobs, time_scale)
    arrival_s = offsets_s[-1] if offsets_s else 0.0
    slower_s = _lateness_s(jobs, offsets_s, time_scale) + _handover_s(fitting, capacity_gpus)
    return ReplayPlan(
        time_scale=time_scale,
        cluster_span_s=span_s,
        expected_wall_s=max(MARGIN * span_s / time_scale + slower_s, arrival_s),
        arrival_wall_s=arrival_s,
        mean_submits_per_s=len(jobs) / max(arrival_s, 1.0),
        peak_submits_per_s=max(Counter(int(at) for at in offsets_s).values(), default=0),
        oversized=oversized(jobs, capacity_gpus),
    )


def submit_offsets_s(jobs: Sequence[WorkloadJob], time_scale: float) -> list[float]:
    """Return the wall second of each submit from the start, at most 100/s, for jobs by time."""
    if time_scale <= 0:
        raise ValueError("a time scale must be above zero")
    offsets_s: list[float] = []
    earliest_s = 0.0
    for job in jobs:
        due_s = (job.submit_s - jobs[0].submit_s) / time_scale
        offsets_s.append(max(due_s, earliest_s))
        earliest_s = offsets_s[-1] + 1 / SUBMITS_PER_S
    return offsets_s


def oversized(jobs: Sequence[WorkloadJob], capacity_gpus: float) -> tuple[str, ...]:
    """Return keys of the jobs that request more GPUs than the whole pool has."""
    return tuple(job.job_key for job in jobs if job.gpus > capacity_gpus)


def _fitting(jobs: Sequence[WorkloadJob], capacity_gpus: float) -> list[WorkloadJob]:
    return [job for job in jobs if job.gpus <= capacity_gpus]


def _handover_s(jobs: Sequence[WorkloadJob], capacity_gpus: float) -> float:
    return HANDOVER_S * sum(job.gpus for job in jobs) / capacity_gpus


def _lateness_s(
    jobs: Sequence[WorkloadJob], offsets_s: Sequence[float], time_scale: float
) -> float:
    """Return the longest delay of a submit by pacing: a bound on its cost to the replay."""
    pairs = zip(jobs, offsets_s, strict=True)
    return max(
        (at - (job.submit_s - jobs[0].submit_s) / time_scale for job, at in pairs), default=0
    )
