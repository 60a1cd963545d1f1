"""Stops of workers by their phase."""

from __future__ import annotations

import pytest

from services.executor.core.effects import SendReport, StopWorker
from services.executor.core.state import Worker, WorkerPhase
from services.executor.core.stopping import stop
from shared.contracts.reports import WorkerStopped


def a_worker(phase: WorkerPhase) -> Worker:
    return Worker("0/1/0/0", "j1", 1, "n1", (0,), 1000, grace_s=30.0, phase=phase)


@pytest.mark.parametrize(
    ("phase", "grace_s"),
    [(WorkerPhase.PREPARING, 0.0), (WorkerPhase.READY, 0.0), (WorkerPhase.RUNNING, 30.0)],
)
def test_only_a_running_worker_gets_its_grace(phase: WorkerPhase, grace_s: float) -> None:
    worker = a_worker(phase)
    assert stop([worker]) == [StopWorker("0/1/0/0", grace_s)]
    assert worker.phase is WorkerPhase.STOPPING
    assert stop([worker]) == [], "a second request changes nothing"


def test_the_grace_is_limited_on_request() -> None:
    assert stop([a_worker(WorkerPhase.RUNNING)], at_most_s=2.0) == [StopWorker("0/1/0/0", 2.0)]


def test_the_report_of_an_ended_worker_is_repeated() -> None:
    worker = a_worker(WorkerPhase.GONE)
    assert stop([worker]) == []
    worker.last_report = WorkerStopped(allocation_id="0/1/0/0", job_id="j1")
    assert stop([worker]) == [SendReport(worker.last_report)]
