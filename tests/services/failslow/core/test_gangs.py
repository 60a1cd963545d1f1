"""Changes of the watched gangs within one batch."""

from __future__ import annotations

from services.failslow.core.gangs import GangChanges, times_of_workers
from services.failslow.core.state import FailSlowState, GangState
from shared.contracts.attempts import JobSucceeded
from shared.contracts.faults import GangWorker
from shared.contracts.reports import IterationTimes, TelemetryReported
from tests.harness.decider import an_input
from tests.services.failslow.gangs import placed

SUCCEEDED = an_input(JobSucceeded(job_id="j1", tenant="acme", attempt=1), "placement")


def test_a_job_of_one_worker_is_watched_as_others_are() -> None:
    changes = GangChanges()
    changes.add(FailSlowState(0), placed("j1", workers=1))
    assert [worker.node_id for worker in changes.started["j1"].workers] == ["n0"]
    assert not changes.started["j1"].validates


def test_the_end_of_an_unwatched_job_is_no_change() -> None:
    changes = GangChanges()
    changes.add(FailSlowState(0), SUCCEEDED)
    assert not changes


def test_a_new_placement_of_a_watched_job_ends_and_starts_its_gang() -> None:
    state, changes = FailSlowState(0, gangs={"j1": GangState("acme", 1, {})}), GangChanges()
    changes.add(state, placed("j1", attempt=2))
    assert list(changes.ended) == ["j1"]
    assert changes.started["j1"].attempt == 2


def test_times_of_another_allocation_rank_or_job_are_of_no_worker() -> None:
    gang = GangState("acme", 1, {0: GangWorker(rank=0, node_id="n0", allocation_id="a0")})
    places = (("j1", 0, "a0"), ("j1", 0, "a9"), ("j1", 1, "a0"), ("j2", 0, "a0"))
    times = [
        IterationTimes(
            job_id=job, rank=rank, allocation_id=allocation, node_id="n0", iteration_s=(1.0,)
        )
        for job, rank, allocation in places
    ]
    report = TelemetryReported(executor_id="e0", at=0, times=tuple(times))
    assert list(times_of_workers(report, {"j1": gang})) == [(gang, times[0])]
