"""Stops of workers."""

from __future__ import annotations

from collections.abc import Iterable

from services.executor.core.virtual.effects import Effect, SendReport, StopWorker
from services.executor.core.virtual.state import Worker, WorkerPhase


def stop(workers: Iterable[Worker]) -> list[Effect]:
    """Stop workers; reports of ended ones are repeated."""
    effects: list[Effect] = []
    for worker in workers:
        if worker.phase is WorkerPhase.GONE:
            effects.extend([SendReport(worker.last_report)] if worker.last_report else [])
        elif worker.phase is not WorkerPhase.STOPPING:
            worker.phase = WorkerPhase.STOPPING
            effects.append(StopWorker(worker.allocation_id))
    return effects
