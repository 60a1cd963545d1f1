"""Reports with own work and waiting tell why a job became slow; a repeated one counts once."""

from __future__ import annotations

from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.wait_profiles import WaitProfiles
from shared.contracts.reports import IterationTimes, TelemetryReported
from tests.services.failslow.gangs import gang
from tests.services.failslow.paces import pace_change

CHANGE = pace_change(since_step=8, iterations=8, slowdown=1.4, iteration_s=1.4, confidence=0.9)


def watched(attempt: int = 1) -> dict[str, GangState]:
    workers = {worker.rank: worker for worker in gang().workers}
    return {"j1": GangState("acme", attempt, workers)}


def report(first: int, waited_s: float, **changes: object) -> TelemetryReported:
    times = tuple(
        IterationTimes(
            job_id="j1",
            allocation_id=f"0/9/0/{rank}",
            node_id=f"n{rank}",
            rank=rank,
            iteration_s=(0.8 + waited_s,) * 4,
            own_s=(0.8,) * 4,
            wait_s=(waited_s,) * 4,
            steps=tuple(range(first, first + 4)),
        ).model_copy(update=changes)
        for rank in range(4)
    )
    return TelemetryReported(executor_id="e", at=first, times=times)


def profiles(**changes: object) -> WaitProfiles:
    own = WaitProfiles()
    for first in (0, 4, 8, 12, 12):
        own.add(report(first, 0.2 if first < 8 else 0.6, **changes), watched())
    return own


def test_a_job_that_waits_longer_communicates_more_slowly() -> None:
    change = profiles().diagnosed(CHANGE)
    assert change.cause == "communication"
    assert change.cause_confidence > 0.9
    assert change.cause_evidence


def test_reports_of_unknown_workers_and_without_steps_show_nothing() -> None:
    for changes in ({"allocation_id": "0/1/0/0"}, {"steps": ()}, {"wait_s": ()}):
        assert profiles(**changes).diagnosed(CHANGE).cause == "unknown"


def test_jobs_that_ended_are_forgotten() -> None:
    own = profiles()
    own.forget_ended(FailSlowState(0))
    assert own.diagnosed(CHANGE).cause == "unknown"


def test_iterations_that_a_new_attempt_repeats_count() -> None:
    """Those of the attempt before ran elsewhere, and further than its checkpoint."""
    own = profiles()
    for first in (0, 4, 8, 12):
        own.add(report(first, 0.2), watched(attempt=2))
    again = CHANGE.model_copy(update={"attempt": 2})
    assert own.diagnosed(again).cause == "unknown"
    assert own.diagnosed(CHANGE).cause == "unknown"
    for first in (16, 20):
        own.add(report(first, 0.6), watched(attempt=2))
    later = again.model_copy(update={"since_step": 16})
    assert own.diagnosed(later).cause == "communication"
