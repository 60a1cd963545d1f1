"""Outcomes of backends, and the reports that follow from them."""

from __future__ import annotations

import pytest

from services.executor.core.virtual.effects import Prepared, SendReport, WorkerEnded
from services.executor.core.virtual.outcomes import on_outcome
from services.executor.core.virtual.state import ExecutorState, Worker, WorkerPhase
from shared.contracts.reports import WorkerExited, WorkerReady, WorkerStopped
from tests.services.executor.facts import a_lane

ID = "0/1/0/0"


def lane_with(phase: WorkerPhase) -> tuple[ExecutorState, Worker]:
    lane = a_lane()
    worker = Worker(ID, "j1", 1, "n1", (0,), 1000, phase=phase)
    lane.add(worker)
    lane.occupy(worker)
    return lane, worker


@pytest.mark.parametrize("phase", WorkerPhase)
def test_only_a_worker_in_preparation_becomes_ready(phase: WorkerPhase) -> None:
    lane, worker = lane_with(phase)
    effects = on_outcome(lane, Prepared(ID))
    if phase is WorkerPhase.PREPARING:
        assert effects == [SendReport(WorkerReady(allocation_id=ID, job_id="j1"))]
        assert worker.phase is WorkerPhase.READY
    else:
        assert effects == [] and worker.phase is phase


@pytest.mark.parametrize(
    ("phase", "exit_code", "report"),
    [
        (
            WorkerPhase.RUNNING,
            3,
            WorkerExited(allocation_id=ID, job_id="j1", exit_code=3, ran_ms=9),
        ),
        (WorkerPhase.STOPPING, 143, WorkerStopped(allocation_id=ID, job_id="j1", exit_code=143)),
        (WorkerPhase.RUNNING, None, WorkerStopped(allocation_id=ID, job_id="j1")),
    ],
)
def test_an_end_is_an_exit_unless_a_stop_was_requested_or_the_code_is_unknown(
    phase: WorkerPhase, exit_code: int | None, report: WorkerExited | WorkerStopped
) -> None:
    lane, worker = lane_with(phase)
    assert on_outcome(lane, WorkerEnded(ID, exit_code, 9)) == [SendReport(report)]
    assert worker.last_report == report and not worker.lives
    assert lane.use["n1", 0] == {}, "the GPU is free"


@pytest.mark.parametrize(("released", "rejoining"), [(True, set()), (False, {"n1"})])
def test_an_end_that_the_ledger_has_settled_is_not_reported(
    released: bool, rejoining: set[str]
) -> None:
    lane, worker = lane_with(WorkerPhase.STOPPING)
    lane.add(Worker("0/2/0/0", "j2", 1, "n1", (1,), 1000))
    worker.released = released
    lane.rejoining = rejoining
    assert on_outcome(lane, WorkerEnded(ID, 143)) == []
    assert (ID in lane.workers) is not released


def test_the_outcome_of_an_unknown_or_ended_worker_has_no_effect() -> None:
    lane, _ = lane_with(WorkerPhase.GONE)
    assert on_outcome(lane, WorkerEnded(ID, 0)) == []
    assert on_outcome(lane, Prepared("0/9/0/0")) == []


def test_an_end_by_a_limit_names_it() -> None:
    lane, _ = lane_with(WorkerPhase.RUNNING)
    [effect] = on_outcome(lane, WorkerEnded(ID, 143, 9, "walltime", "the walltime of 9 s is over"))
    assert isinstance(effect, SendReport) and isinstance(effect.report, WorkerExited)
    assert (effect.report.reason, effect.report.exit_code) == ("walltime", 143)
    assert effect.report.detail == "the walltime of 9 s is over"
