"""Transfers of waiting jobs to another pool, which submits them behind their end in this one."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import ends
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import JobCancelled
from shared.contracts.transfers import (
    TRANSFERRED,
    JobTransferRequested,
    TransferTarget,
    transferred_job_id,
)
from shared.ledger.decider import Decision, Input


def transfer(pool: Pool, message: JobTransferRequested, item: Input) -> Iterator[Decision]:
    """End a waiting job in this pool; one that has ended, has GPUs or a reserved target stays.

    It has no allocation then, so that the other pool alone can start it from here on.
    """
    job = pool.jobs.get(message.job_id)
    if job is None or job.phase != "waiting" or job.allocations:
        return
    if job.job_id in pool.migrations or message.to_pool not in (job.spec.pools or ()):
        return
    yield ends.job_decision(
        job,
        item.id,
        JobCancelled(
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            reason=TRANSFERRED,
            transferred_to=target_of(job, message.to_pool),
        ),
    )


def target_of(job: Job, to_pool: str) -> TransferTarget:
    """Return where the job goes, with its failed attempts and what its checkpoint has."""
    return TransferTarget(
        pool=to_pool,
        job_id=transferred_job_id(job.tenant, to_pool, job.job_id),
        failures=job.failures,
        resumes=job.resumes,
        done_s=round(job.done_s, 3),
    )
