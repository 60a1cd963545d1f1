"""Reports of executors, dispatched in their order to what they concern."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import checkpoints, forecasts, gangs, leases, nodes
from services.placement.core.pool.state import Pool
from shared.contracts.construct import construct
from shared.contracts.failures import LOST_BY_NODE, Failure
from shared.contracts.reports import (
    CheckpointsReported,
    ExecutorReported,
    NodeLeaving,
    NodeRegistered,
    NodeTermsReported,
    ProgressReported,
    Report,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
    WorkerStuck,
)
from shared.ledger.decider import Decision, Input, Undecodable, as_unit


def on_report(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    """Handle reports in their order, except that ready workers of one gang are counted together."""
    match item.message:
        case ExecutorReported(executor_id=executor_id, reports=reports):
            ready: dict[str, dict[int, int | None]] = {}
            for report in reports:
                if isinstance(report, WorkerReady):
                    note_ready(pool, report, ready)
                else:
                    yield from as_unit(on_worker_report(pool, report, executor_id, now, item.id))
            for job_id, ports in ready.items():
                if job_id in pool.jobs:
                    yield from as_unit(gangs.count_ready_workers(pool.jobs[job_id], ports, item.id))
        case CheckpointsReported(checkpoints=reported):
            yield from checkpoints.note_all(pool, reported, now, item.id)
        case ProgressReported(progress=progress):
            yield from forecasts.note_all(pool, progress, now, item.id)
        case Undecodable() as message:
            yield item.decision(message.rejection())


def note_ready(pool: Pool, report: WorkerReady, ready: dict[str, dict[int, int | None]]) -> None:
    """Note the port of a ready worker, by job id and rank."""
    job = pool.jobs.get(report.job_id)
    allocation = job.allocations.get(report.allocation_id) if job else None
    if allocation is not None:
        ready.setdefault(report.job_id, {}).setdefault(allocation.rank, report.master_port)


def on_worker_report(
    pool: Pool, report: Report, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    match report:
        case WorkerExited(exit_code=code):
            lost = report.reason in LOST_BY_NODE
            yield from on_worker_gone(
                pool, report, "stopped" if lost else "exited", code, now, cause
            )
        case WorkerStopped(exit_code=code):
            yield from on_worker_gone(pool, report, "stopped", code, now, cause)
        case WorkerRefused():
            yield from on_worker_gone(pool, report, "refused", None, now, cause)
        case NodeRegistered():
            yield from nodes.register(pool, report, executor_id, now, cause)
        case NodeLeaving(node_id=node_id, incarnation=incarnation):
            yield from nodes.leave(pool, node_id, incarnation, now, cause)
        case NodeTermsReported():
            yield from leases.apply_terms(pool, report, cause)
        case WorkerStuck():
            yield from leases.note_stuck(pool, report, cause)


def on_worker_gone(
    pool: Pool,
    report: WorkerExited | WorkerStopped | WorkerRefused,
    reason: gangs.Release,
    code: int | None,
    now: int,
    cause: str,
) -> Iterator[Decision]:
    """Release a worker that is gone.

    A report of an allocation that the job does not hold is late, a repeat, or of a job long ended.
    No report can be early: allocation ids are made by facts of this ledger, which is folded first.
    """
    job = pool.jobs.get(report.job_id)
    if job is not None and report.allocation_id in job.allocations:
        failure = failure_of(report)
        node_id = job.allocations[report.allocation_id].slot.node_id
        yield from gangs.release_worker(
            pool, job, report.allocation_id, reason, code, now, cause, failure
        )
        if isinstance(report, WorkerRefused) and failure is not None:
            yield from nodes.cordon_refusing(pool, node_id, failure, cause)


def failure_of(report: WorkerExited | WorkerStopped | WorkerRefused) -> Failure | None:
    """Return the failure that a report names; older executors put the detail into the reason."""
    if isinstance(report, WorkerStopped) or not report.reason:
        return None
    reason, _, detail = report.reason.partition(": ")
    return construct(
        Failure,
        reason=reason[:64],
        detail=report.detail or detail,
        output=report.output,
        permanent=report.permanent,
    )
