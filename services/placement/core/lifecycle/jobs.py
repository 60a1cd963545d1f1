"""Inputs from admission: jobs admitted, admitted again, and to be cancelled."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import ends, gangs
from services.placement.core.pool.state import Pool
from shared.contracts.admission import CancelRequested, JobAdmitted, JobReadmitted
from shared.contracts.construct import construct
from shared.contracts.placement import JobEnqueued
from shared.ledger.decider import Decision, Input


def enqueue(pool: Pool, message: JobAdmitted, item: Input) -> Iterator[Decision]:
    """Enqueue a job that is not known yet."""
    if message.job_id in pool.jobs:
        return
    yield item.decision(
        construct(
            JobEnqueued,
            job_id=message.job_id,
            tenant=message.tenant,
            submitted_at=message.submitted_at,
            array_index=message.array_index,
            spec=message.spec,
        )
    )


def enqueue_again(pool: Pool, message: JobReadmitted, item: Input) -> Iterator[Decision]:
    """Enqueue a parked job again; one that ended meanwhile is ignored."""
    job = pool.jobs.get(message.job_id)
    if job is None or job.phase != "parked":
        return
    yield ends.job_decision(
        job,
        item.id,
        construct(
            JobEnqueued,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=max(message.attempt, job.attempt + 1),
            submitted_at=job.submitted_at,
            array_index=job.array_index,
            spec=job.spec,
            avoid_nodes=message.avoid_nodes,
        ),
    )


def cancel(pool: Pool, message: CancelRequested, item: Input, now: int) -> Iterator[Decision]:
    """Cancel the job at once while no worker runs, else once its workers are reported gone.

    A job that is not known has ended: that fact came first, and admission reads it.
    """
    job = pool.jobs.get(message.job_id)
    if job is None or job.stop == "cancelled":
        return
    if job.allocations:
        yield gangs.request_stop(job, "cancelled", item.id, message.reason)
    else:
        yield ends.cancel_job(job, message.reason, now, item.id)
