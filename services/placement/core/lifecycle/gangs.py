"""The rules of a gang on its GPUs: its start, and the stop of all workers when one fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from services.placement.core.lifecycle import ends
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import (
    AllocationReleased,
    JobPreempted,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    WorkersReady,
)
from shared.contracts.construct import construct
from shared.contracts.failures import Failure
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import Allocation, JobPlaced, SolverStatus
from shared.ledger.decider import Decision

Release = Literal["exited", "stopped", "refused", "lease_over"]
StopReason = Literal["cancelled", "start_failed", "worker_failed"]
Preemption = Literal["higher_class", "spot_reclaimed", "outranked", "node_drained", "node_lost"]


def place_job(
    job: Job,
    allocations: tuple[Allocation, ...],
    now: int,
    *,
    policy: str,
    terms: dict[str, float],
    score: float | None = None,
    model_sha256: str = "",
    solver: SolverStatus = "",
) -> Decision:
    """Return the start of the gang on its allocations, one per worker in rank order.

    `policy` and `terms` say what decided; `score` and `model_sha256` are of its rank.
    """
    event = construct(
        JobPlaced,
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        allocations=allocations,
        waited_ms=max(0, now - job.since),
        policy=policy,
        score=score,
        model_sha256=model_sha256,
        terms=terms,
        solver=solver,
        validates=bool(job.shape.nodes),
        preemptible=yields_to_system(job.spec),
    )
    return ends.job_decision(job, job.cause, event)


def yields_to_system(spec: JobSpec) -> bool:
    """Return whether a job of the highest class may stop it."""
    return spec.spot or (spec.preemptible and spec.priority_class != "system")


def count_ready_workers(
    job: Job, ports: Mapping[int, int | None], cause: str
) -> Iterator[Decision]:
    """Count ready workers of a placed job, by rank with the free port that each reported.

    The job starts at once when these were the last; its workers meet at the port of rank 0.
    """
    new = [rank for rank in ports if rank not in job.ready]
    if job.phase != "placed" or not new:
        return
    if len(job.ready) + len(new) < len(job.allocations):
        yield ends.job_decision(
            job,
            cause,
            construct(
                WorkersReady,
                job_id=job.job_id,
                attempt=job.attempt,
                ranks=tuple(new),
                master_port=ports.get(0),
            ),
        )
        return
    yield ends.job_decision(
        job,
        cause,
        construct(
            JobStarted,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            gpus=job.gpus,
            master_port=ports.get(0, job.master_port),
        ),
    )


def release_worker(
    pool: Pool,
    job: Job,
    allocation_id: str,
    why: Release,
    code: int | None,
    now: int,
    cause: str,
    failure: Failure | None = None,
) -> Iterator[Decision]:
    """Release a worker's GPUs; the rest of its gang cannot go on without it."""
    node_id = job.allocations[allocation_id].slot.node_id
    phase = job.phase
    yield release_allocation(job, allocation_id, why, code, cause, failure)
    if phase == "placed":
        reason = {"refused": "refused", "exited": "exited_before_start"}.get(why, "worker_unknown")
        yield from fail_start(job, (node_id,), reason, cause)
    elif phase == "running" and why != "exited":
        is_fenced = failure is not None and failure.reason == "fenced"
        over = {"lease_over": 1.0} if is_fenced else {}
        yield lose_gang(pool, job, now, cause, {"workers_lost": 1.0, **over})
    elif phase == "running" and code != 0 and job.allocations:
        yield request_stop(job, "worker_failed", cause)
    yield from ends.conclude(pool, job, now, cause)


def release_allocation(
    job: Job,
    allocation_id: str,
    why: Release,
    code: int | None,
    cause: str,
    failure: Failure | None = None,
) -> Decision:
    return ends.job_decision(
        job,
        cause,
        construct(
            AllocationReleased,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            allocation_id=allocation_id,
            node_id=job.allocations[allocation_id].slot.node_id,
            reason=why,
            exit_code=code,
            failure=failure,
        ),
    )


def fail_start(job: Job, nodes: tuple[str, ...], reason: str, cause: str) -> Iterator[Decision]:
    yield ends.job_decision(
        job,
        cause,
        JobStartFailed(
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            node_ids=nodes,
            reason=reason,
            failure=job.failure,
        ),
    )
    if job.allocations:
        yield request_stop(job, "start_failed", cause)


def request_stop(job: Job, reason: StopReason, cause: str, detail: str = "") -> Decision:
    return ends.job_decision(
        job,
        cause,
        JobStopRequested(
            job_id=job.job_id, tenant=job.tenant, attempt=job.attempt, reason=reason, detail=detail
        ),
    )


def lose_gang(pool: Pool, job: Job, now: int, cause: str, terms: Mapping[str, float]) -> Decision:
    """Return the stop of a gang of which a node or a worker was lost, at its cost as of any stop.

    `terms` say what was lost. The job's own attempts are not counted, as after any preemption, and
    the pool's loss budget pays for the stops that rank decides alone.
    """
    costs = restart_terms(job, pool.time_scale)
    lost_s = job.lost_work_s(now, pool.time_scale) if job.started_at else 0.0
    return preempt_job(job, "node_lost", "", lost_s, cause, {**costs, **terms})


def restart_terms(job: Job, time_scale: float) -> dict[str, float]:
    """Return the terms of a stop about the restart after it, cluster s, and the starts so far.

    `restart_measured` is there where an earlier start of the job showed how long it takes.
    """
    terms = {"restart_s": job.restart_s(time_scale), "starts": float(job.starts)}
    return {**terms, "restart_measured": 1.0} if job.has_shown_restart else terms


def preempt_job(
    job: Job,
    reason: Preemption,
    by: str,
    lost_s: float,
    cause: str,
    terms: dict[str, float] | None = None,
) -> Decision:
    return ends.job_decision(
        job,
        cause,
        construct(
            JobPreempted,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            reason=reason,
            by_job_id=by,
            lost_work_s=lost_s,
            terms=terms or {},
        ),
    )
