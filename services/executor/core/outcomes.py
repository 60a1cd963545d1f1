"""What backends tell of their workers, folded, and what placement is to hear of it."""

from __future__ import annotations

from services.executor.core.effects import (
    Effect,
    ForgetWorker,
    Prepared,
    PrepareFailed,
    SendReport,
    WorkerEnded,
    WorkerOutcome,
)
from services.executor.core.membership import register_idle
from services.executor.core.state import ExecutorState, Worker, WorkerPhase
from shared.contracts.construct import construct
from shared.contracts.reports import WorkerExited, WorkerReady, WorkerRefused, WorkerStopped


def on_outcome(lane: ExecutorState, outcome: WorkerOutcome) -> list[Effect]:
    worker = lane.workers.get(outcome.allocation_id)
    if worker is None or not worker.lives:
        return []
    match outcome:
        case Prepared():
            return _on_ready(worker)
        case PrepareFailed(reason=reason):
            return _on_refused(lane, worker, reason)
        case WorkerEnded():
            return _on_ended(lane, worker, outcome)


def _on_ready(worker: Worker) -> list[Effect]:
    if worker.phase is not WorkerPhase.PREPARING:
        return []
    worker.phase = WorkerPhase.READY
    ready = construct(WorkerReady, allocation_id=worker.allocation_id, job_id=worker.job_id)
    return [SendReport(ready)]


def _on_refused(lane: ExecutorState, worker: Worker, reason: str) -> list[Effect]:
    lane.vacate(worker)
    worker.last = WorkerRefused(
        allocation_id=worker.allocation_id, job_id=worker.job_id, reason=reason[:1024]
    )
    return [SendReport(worker.last)]


def _on_ended(lane: ExecutorState, worker: Worker, end: WorkerEnded) -> list[Effect]:
    asked = worker.phase is WorkerPhase.STOPPING
    lane.vacate(worker)
    if worker.released:
        lane.drop(worker)
        return [ForgetWorker(worker.allocation_id), *register_idle(lane)]
    if worker.node_id in lane.rejoining:
        # The new incarnation says it of all of them at once, and as nobody's fault.
        return register_idle(lane)
    worker.last = _report(worker, end, asked)
    return [SendReport(worker.last)]


def _report(worker: Worker, end: WorkerEnded, asked: bool) -> WorkerExited | WorkerStopped:
    if asked or end.exit_code is None:
        return construct(
            WorkerStopped,
            allocation_id=worker.allocation_id,
            job_id=worker.job_id,
            exit_code=end.exit_code,
        )
    return construct(
        WorkerExited,
        allocation_id=worker.allocation_id,
        job_id=worker.job_id,
        exit_code=end.exit_code,
        ran_ms=end.ran_ms,
    )
