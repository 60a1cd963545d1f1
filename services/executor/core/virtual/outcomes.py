"""Applies outcomes of workers to the state, and reports them to placement."""

from __future__ import annotations

from services.executor.core.virtual.effects import (
    Effect,
    Prepared,
    SendReport,
    WorkerEnded,
    WorkerOutcome,
)
from services.executor.core.virtual.membership import register_idle
from services.executor.core.virtual.state import ExecutorState, Worker, WorkerPhase
from shared.contracts.construct import construct
from shared.contracts.reports import WorkerExited, WorkerReady, WorkerStopped


def on_outcome(state: ExecutorState, outcome: WorkerOutcome) -> list[Effect]:
    worker = state.workers.get(outcome.allocation_id)
    if worker is None or not worker.lives:
        return []
    match outcome:
        case Prepared():
            return _on_ready(worker)
        case WorkerEnded():
            return _on_ended(state, worker, outcome)


def _on_ready(worker: Worker) -> list[Effect]:
    if worker.phase is not WorkerPhase.PREPARING:
        return []
    worker.phase = WorkerPhase.READY
    ready = construct(WorkerReady, allocation_id=worker.allocation_id, job_id=worker.job_id)
    return [SendReport(ready)]


def _on_ended(state: ExecutorState, worker: Worker, end: WorkerEnded) -> list[Effect]:
    requested = worker.phase is WorkerPhase.STOPPING
    state.vacate(worker)
    if worker.released:
        state.drop(worker)
        return register_idle(state)
    if worker.node_id in state.rejoining:
        # The registration of the new incarnation ends all of them at once, without blame.
        return register_idle(state)
    worker.last_report = _report(worker, end, requested)
    return [SendReport(worker.last_report)]


def _report(worker: Worker, end: WorkerEnded, requested: bool) -> WorkerExited | WorkerStopped:
    if requested or end.exit_code is None:
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
        reason=end.reason,
        detail=end.detail,
    )
