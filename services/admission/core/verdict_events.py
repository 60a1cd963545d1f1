"""Turns a verdict on a job into an event with the cause and the trace of its submission."""

from __future__ import annotations

from services.admission.core.state import PendingJob
from services.admission.core.verdict import Admit, Defer, Reject, Verdict
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.base import Event
from shared.contracts.construct import construct
from shared.ledger.decider import Decision


def verdict_decision(job: PendingJob, verdict: Verdict) -> Decision:
    return Decision(verdict_event(job, verdict), job.cause, job.traceparent)


def verdict_event(job: PendingJob, verdict: Verdict) -> Event:
    match verdict:
        case Admit(borrowed):
            return admitted_event(job, borrowed)
        case Defer(reason, detail):
            first = job.reason is None
            return JobDeferred(
                job_id=job.job_id,
                tenant=job.tenant,
                reason=reason,
                detail=detail,
                spec=job.spec if first else None,
                array_index=job.array_index,
                digest=job.digest if first else "",
            )
        case Reject(reason, detail):
            return JobRejected(
                job_id=job.job_id,
                tenant=job.tenant,
                name=job.spec.name,
                reason=reason,
                detail=detail,
                array_index=job.array_index,
                digest=job.digest,
            )


def admitted_event(job: PendingJob, borrowed: bool) -> JobAdmitted:
    return construct(
        JobAdmitted,
        job_id=job.job_id,
        tenant=job.tenant,
        submitted_at=job.submitted_at,
        array_index=job.array_index,
        spec=job.spec,
        borrowed=borrowed,
        digest=job.digest,
    )
