"""Transfers to another pool: admission ends a deferred job itself, placement others that wait.

The job is submitted to the other pool behind its end in this one, see decision 0089.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.admission.core.dependencies import find_status
from services.admission.core.state import AdmissionState
from shared.contracts.attempts import JobCancelled
from shared.contracts.transfers import (
    TRANSFERRED,
    TRANSFERS_FROM,
    JobTransferRequested,
    TransferJob,
    TransferTarget,
    transferred_job_id,
)
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

TRANSFERABLE = frozenset({"quota", "spot_quota", "user_gpus", "no_nodes"})
"""Reasons of deferral with which a job may be transferred: it waits for no other job."""


def transfer_job(state: AdmissionState, item: Input, command: TransferJob) -> Iterator[Decision]:
    job_id = command.job_id
    status = find_status(state, job_id)
    if status is None:
        yield refuse_command(item, job_id, "unknown_job", f"job_id: {job_id!r}: no such job")
        return
    if refusal := _refusal(state, command):
        yield refuse_command(item, job_id, *refusal, tenant=status.tenant)
        return
    yield accept_command(item, job_id, tenant=status.tenant)
    if job_id in state.deferred:
        yield item.decision(
            JobCancelled(
                job_id=job_id,
                tenant=status.tenant,
                reason=TRANSFERRED,
                transferred_to=_target(state, command, status.tenant),
            )
        )
    else:
        yield item.decision(
            JobTransferRequested(job_id=job_id, tenant=status.tenant, to_pool=command.pool)
        )


def _refusal(state: AdmissionState, command: TransferJob) -> tuple[str, str] | None:
    """Return reason and detail of the refusal of a transfer; None if the job may be transferred."""
    job_id = command.job_id
    if state.pool is None or state.pool.release < TRANSFERS_FROM:
        return "not_transferable", f"job_id: {job_id!r}: needs `berth upgrade finish`"
    if state.waiting.dependents.get(job_id):
        return "not_transferable", f"job_id: {job_id!r}: other jobs of the pool depend on it"
    if (admitted := state.admitted.get(job_id)) is not None:
        if admitted.cancels or admitted.array_index is not None or job_id in state.backoffs:
            return (
                "not_transferable",
                f"job_id: {job_id!r}: is cancelled, of an array, or backs off",
            )
        return None
    job = state.deferred.get(job_id)
    if job is None:
        return "not_transferable", f"job_id: {job_id!r}: is an array, or has ended"
    if job.reason not in TRANSFERABLE:
        return "not_transferable", f"job_id: {job_id!r}: is deferred for {job.reason}"
    if command.pool not in (job.spec.pools or ()) or command.pool == state.pool_name:
        return "not_transferable", f"pool: {command.pool!r}: is no other pool of the job"
    return None


def _target(state: AdmissionState, command: TransferJob, tenant: str) -> TransferTarget:
    """Return the target of a deferred job, which takes along what it had brought."""
    before = state.deferred[command.job_id].spec.transferred
    return TransferTarget(
        pool=command.pool,
        job_id=transferred_job_id(tenant, command.pool, command.job_id),
        failures=before.failures if before else 0,
        resumes=before is not None and before.resumes,
        done_s=before.done_s if before else 0.0,
    )
