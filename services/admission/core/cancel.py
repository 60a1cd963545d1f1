"""A cancel: admission ends what it has not let in; the rest placement ends, and is asked to."""

from __future__ import annotations

from collections.abc import Iterator

from services.admission.core.answers import accepted, refused
from services.admission.core.dependencies import standing
from services.admission.core.state import Pool
from shared.bus.decider import Decision, Input
from shared.contracts.jobs import CancelJob, CancelRequested
from shared.contracts.placement import JobCancelled


def cancel(state: Pool, item: Input, wish: CancelJob) -> Iterator[Decision]:
    job_id = wish.job_id
    found = standing(state, job_id)
    if found is None or wish.tenant not in (None, found.tenant):
        yield refused(item, wish, job_id, "unknown_job", f"job_id: {job_id!r}: no such job")
        return
    match found.phase:
        case "deferred":
            yield accepted(item, wish, job_id, found.tenant)
            yield item.leads_to(
                JobCancelled(job_id=job_id, tenant=found.tenant, reason=wish.reason)
            )
        case "admitted":
            yield item.leads_to(
                CancelRequested(
                    job_id=job_id, tenant=found.tenant, command_id=item.id, reason=wish.reason
                )
            )
        case "open":
            detail = f"job_id: {job_id!r}: is an array: cancel its jobs, {job_id}.0 and on"
            yield refused(item, wish, job_id, "is_array", detail, found.tenant)
        case outcome:
            detail = f"job_id: {job_id!r}: has {outcome}"
            yield refused(item, wish, job_id, "already_finished", detail, found.tenant)
