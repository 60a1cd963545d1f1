"""Stops of workers by their phase."""

from __future__ import annotations

import pytest

from services.executor.core.virtual.effects import SendReport, StopWorker
from services.executor.core.virtual.state import Worker, WorkerPhase
from services.executor.core.virtual.stopping import stop
from shared.contracts.reports import WorkerStopped


def a_worker(phase: WorkerPhase) -> Worker:
    return Worker("0/1/0/0", "j1", 1, "n1", (0,), 1000, phase=phase)


@pytest.mark.parametrize("phase", [WorkerPhase.PREPARING, WorkerPhase.READY, WorkerPhase.RUNNING])
def test_a_living_worker_is_stopped_once(phase: WorkerPhase) -> None:
    worker = a_worker(phase)
    assert stop([worker]) == [StopWorker("0/1/0/0")]
    assert worker.phase is WorkerPhase.STOPPING
    assert stop([worker]) == [], "a second request changes nothing"


def test_the_report_of_an_ended_worker_is_repeated() -> None:
    worker = a_worker(WorkerPhase.GONE)
    assert stop([worker]) == []
    worker.last_report = WorkerStopped(allocation_id="0/1/0/0", job_id="j1")
    assert stop([worker]) == [SendReport(worker.last_report)]
