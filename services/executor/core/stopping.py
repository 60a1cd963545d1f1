"""Stops of workers."""

from __future__ import annotations

from collections.abc import Iterable

from services.executor.core.effects import Effect, SendReport, StopWorker
from services.executor.core.state import Worker, WorkerPhase


def stop(workers: Iterable[Worker], at_most_s: float = float("inf")) -> list[Effect]:
    """Stop workers: only running ones get their grace; reports of ended ones are repeated."""
    effects: list[Effect] = []
    for worker in workers:
        if worker.phase is WorkerPhase.GONE:
            effects.extend([SendReport(worker.last_report)] if worker.last_report else [])
        elif worker.phase is not WorkerPhase.STOPPING:
            grace_s = worker.grace_s if worker.phase is WorkerPhase.RUNNING else 0.0
            worker.phase = WorkerPhase.STOPPING
            effects.append(StopWorker(worker.allocation_id, min(grace_s, at_most_s)))
    return effects
