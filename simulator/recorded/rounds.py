"""The recorded jobs in the world of rounds, under a scheduler."""

from __future__ import annotations

import numpy as np

from shared.contracts.checkpoint import type_speed
from shared.performance.rates import RateTable
from shared.performance.restarts import RestartCosts
from shared.schedulers.registry import scheduler_of
from shared.schedulers.view import TypedNode
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.recorded.slice import RecordedSlice
from simulator.rounds.job import RoundsJob
from simulator.rounds.outcome import RoundsOutcome
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions, RoundsWorld

ROUND_S = 360.0
"""Time between two decisions, as Gavel and Hadar have it."""


def play_in_rounds(
    part: RecordedSlice, scheduler: str, round_s: float = ROUND_S
) -> ScheduleOutcome:
    """Return the outcome of all jobs; the use of each hour is not known.

    Every start takes the time of a restart, the first of a job too.
    """
    costs = RestartCosts(part.scenario.restart_s)
    options = RoundsOptions(round_s=round_s, restarts=costs)
    world = RoundsWorld(rounds_jobs(part), typed_nodes(part), scheduler_of(scheduler), options)
    return schedule_outcome(part, world.run())


def typed_nodes(part: RecordedSlice) -> list[TypedNode]:
    """Return the pool's nodes with GPUs, at the pool's price."""
    price = part.scenario.pool.gpu_hour_price
    return [
        TypedNode(node.node_id, node.gpu_type, node.gpus, node.rack, price)
        for node in part.scenario.nodes.values()
        if node.gpus
    ]


def rounds_jobs(part: RecordedSlice) -> list[RoundsJob]:
    """Return the jobs with a second of work for each second that they ran at speed 1."""
    types = {node.gpu_type for node in part.scenario.nodes.values() if node.gpus}
    first_s = part.scenario.jobs[0].submit_s
    jobs = []
    for recorded, row in zip(part.jobs, part.scenario.jobs, strict=True):
        gpus = int(row.gpus)
        rates = {(name, gpus): type_speed(recorded.spec, name) for name in sorted(types)}
        jobs.append(
            RoundsJob(
                row.job_key,
                row.submit_s - first_s,
                gpus,
                StepWork(row.duration_s, RateTable(rates, rates)),
                tenant=row.tenant,
                gpu_types=recorded.spec.gpu_types,
                preemptible=recorded.spec.preemptible,
            )
        )
    return jobs


def schedule_outcome(part: RecordedSlice, done: RoundsOutcome) -> ScheduleOutcome:
    """Return the outcome of rounds in the order of the scenario's jobs, on its clock."""
    by_id = {job.job_id: job for job in done.jobs}
    rows = [by_id[job.job_key] for job in part.scenario.jobs]
    first_s = part.scenario.jobs[0].submit_s
    work_s = np.array([job.duration_s for job in part.scenario.jobs], np.float64)
    gpus = np.array([job.gpus for job in part.scenario.jobs], np.float64)
    held_s = np.array([row.held_gpu_s for row in rows], np.float64) / gpus
    codes = {name: n for n, name in enumerate(sorted({job.tenant for job in part.jobs}))}
    return ScheduleOutcome(
        submit_s=np.array([job.submit_s for job in part.scenario.jobs], np.float64),
        start_s=_times([row.first_start_s for row in rows], first_s),
        end_s=_times([row.end_s for row in rows], first_s),
        duration_s=work_s,
        gpus=gpus,
        tenant=np.array([codes[job.tenant] for job in part.jobs], np.int64),
        starts=np.array([row.restarts + (row.first_start_s is not None) for row in rows], np.int64),
        held_s=held_s,
        lost_s=np.maximum(held_s - work_s, 0.0),
        fits=np.ones(len(rows), np.bool_),
        capacity_gpus=part.mean_gpus,
        window_s=part.scenario.window_s,
        held_by_hour=np.zeros(0),
        horizon_s=done.end_s + first_s,
    )


def _times(moments: list[float | None], first_s: float) -> Floats:
    return np.array([np.nan if at is None else at + first_s for at in moments], np.float64)
