"""The end of an attempt, once no worker is left: its job has ended, or waits again."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.board import could_hold
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobRequeued,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.construct import construct
from shared.contracts.failures import MISSING_ON_NODE
from shared.ledger.decider import Decision

START_FAILURES_MOST = 8
"""Failed starts in a row after which the job fails."""
MISSING_NODES_MOST = 3
"""As many nodes in a row lacked what the job needs, or fewer where no others could hold it."""


def job_decision(job: Job, cause: str, event: Event) -> Decision:
    """Return a decision about a job: it carries the job's trace, whichever report led to it."""
    return Decision(event, cause, job.trace)


def conclude(pool: Pool, job: Job, now: int, cause: str) -> Iterator[Decision]:
    """Decide what becomes of the job once no worker of its gang is left on any node."""
    if job.allocations or job.phase in ("waiting", "parked"):
        return
    match job.stop:
        case "cancelled":
            yield cancel_job(job, job.stop_reason, now, cause)
        case "start_failed" if is_final(pool, job):
            yield fail_job(job, "start_failed", now, cause)
        case "start_failed":
            yield requeue_job(job, "start_failed", now, cause)
        case "preempted" if not (job.clean and job.started_at):
            yield requeue_job(job, job.stop_reason, now, cause)
        case "worker_failed":
            yield fail_attempt(job, now, cause)
        case _:
            yield fail_attempt(job, now, cause) if job.exit_code else complete_job(job, now, cause)


def is_final(pool: Pool, job: Job) -> bool:
    """Return whether no further start is tried: it would fail again, or has failed too often."""
    if job.failure is not None and job.failure.reason in MISSING_ON_NODE:
        others = could_hold(pool.board, job.shape, job.avoid)
        return others < job.shape.min_workers or job.start_failures >= MISSING_NODES_MOST
    return job.has_permanent_failure or job.start_failures >= START_FAILURES_MOST


def cancel_job(job: Job, reason: str, now: int, cause: str) -> Decision:
    return job_decision(
        job,
        cause,
        JobCancelled(
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            reason=reason,
            ran_ms=job.ran_ms(now),
            gpu_s=job.gpu_s(now),
        ),
    )


def requeue_job(job: Job, reason: str, now: int, cause: str) -> Decision:
    return job_decision(
        job,
        cause,
        construct(
            JobRequeued,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt + 1,
            reason=reason,
            avoid_nodes=job.avoid,
            gpu_s=job.gpu_s(now),
        ),
    )


def fail_attempt(job: Job, now: int, cause: str) -> Decision:
    """Let the job start again, unless it would fail again for the same reason, or may not."""
    if job.has_permanent_failure or job.failures + 1 >= job.spec.retry.max_attempts:
        return fail_job(job, "worker_failed", now, cause)
    return job_decision(
        job,
        cause,
        JobAttemptFailed(
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            exit_code=job.exit_code,
            node_ids=(job.failed_node,) if job.failed_node else (),
            reason="worker_failed",
            gpu_s=job.gpu_s(now),
            failure=job.failure,
        ),
    )


def fail_job(job: Job, reason: str, now: int, cause: str) -> Decision:
    return job_decision(
        job,
        cause,
        construct(
            JobFailed,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            exit_code=job.exit_code,
            reason=reason,
            ran_ms=job.ran_ms(now),
            gpu_s=job.gpu_s(now),
            failure=job.failure,
        ),
    )


def complete_job(job: Job, now: int, cause: str) -> Decision:
    return job_decision(
        job,
        cause,
        construct(
            JobSucceeded,
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            ran_ms=job.ran_ms(now),
            gpu_s=job.gpu_s(now),
        ),
    )
