"""The checkpoints that running jobs report, as far as rank may use them.

A report is the word of a tenant's program, its time that of the node. What is taken from one is
bounded by what the start can have worked, and reports that come too often have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle.restarts import restart_by_checkpoint
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import JobCheckpointed
from shared.contracts.construct import construct
from shared.contracts.reports import WorkerCheckpointed
from shared.ledger.decider import Decision

CHECKPOINT_GAP_MS = 30_000
"""Wall ms of work between two checkpoints of a start that are recorded."""


def note_all(
    pool: Pool, reports: tuple[WorkerCheckpointed, ...], now: int, cause: str
) -> Iterator[Decision]:
    """Record the checkpoints of one message, oldest first."""
    for report in reports:
        yield from note_checkpoint(pool, report, now, cause)


def note_checkpoint(
    pool: Pool, report: WorkerCheckpointed, now: int, cause: str
) -> Iterator[Decision]:
    """Record the checkpoint of a running job, in a pool where it decides when rank stops the job.

    The worker of rank 0 speaks for its gang. An allocation that the job does not hold is of an
    earlier start; a checkpoint that is not later than the recorded one is a repeat.
    """
    if pool.settings is None or pool.settings.preemption_protection != "progress":
        return
    job = pool.jobs.get(report.job_id)
    allocation = job.allocations.get(report.allocation_id) if job else None
    if job is None or allocation is None or allocation.rank != 0 or job.phase != "running":
        return
    ran_ms = min(report.ran_ms, job.ran_ms(now))
    worked_ms = ran_ms - job.paid_ms(pool.time_scale)
    least_ms = job.checkpointed_ms + CHECKPOINT_GAP_MS if job.checkpointed_ms else 1
    if worked_ms < least_ms:
        return
    event = construct(
        JobCheckpointed,
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        worked_ms=worked_ms,
        step=report.step,
        restart_ms=restart_by_checkpoint(job, ran_ms, report.step, pool.time_scale),
    )
    yield Decision(event, cause, job.trace)
