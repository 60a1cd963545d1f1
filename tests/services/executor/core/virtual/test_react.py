"""Effects of each fact of the ledger."""

from __future__ import annotations

import pickle

import pytest

from services.executor.core.virtual.effects import (
    Prepared,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerEnded,
)
from services.executor.core.virtual.state import WorkerPhase
from shared.contracts.attempts import (
    JobMigrated,
    JobPreempted,
    JobResized,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.job_spec import Elastic, Gang, Simulated
from shared.contracts.placement import Allocation
from shared.contracts.reports import WorkerExited, WorkerReady, WorkerRefused, WorkerStopped
from tests.services.executor.facts import (
    AT,
    Script,
    a_lane,
    a_node,
    a_spec,
    enqueued,
    placed,
    released,
    sent_reports,
    started,
)


def at_work() -> Script:
    return Script(a_lane(a_node("n1"), a_node("n2"))).at_work()


def preempted(job: str, at_ms: int = AT) -> JobPreempted:
    return JobPreempted(job_id=job, tenant="ada", attempt=1, reason="higher_class")


def test_a_placed_job_is_prepared_on_own_nodes_only() -> None:
    script = at_work()
    script.when(enqueued())
    effects = script.when(placed("j1", ("n1", 0), ("elsewhere", 0), ("n1", 1)))
    specs = [e.spec for e in effects if isinstance(e, PrepareWorker)]
    assert [(o.rank, o.world_size, o.gpus) for o in specs] == [(0, 3, (0,)), (2, 3, (1,))]
    assert specs[0].allocation_id.endswith("/0/0")


def test_job_started_starts_ready_workers_once() -> None:
    script = at_work()
    script.when(enqueued())
    (prepare,) = script.when(placed())
    assert isinstance(prepare, PrepareWorker)
    allocation_id = prepare.spec.allocation_id
    assert sent_reports(script.on_outcome(Prepared(allocation_id))) == [
        WorkerReady(allocation_id=allocation_id, job_id="j1")
    ]
    assert script.on_outcome(Prepared(allocation_id)) == []
    assert script.when(started()) == [StartWorker(allocation_id)]
    assert script.when(started()) == []


def test_a_repeated_placement_is_prepared_once() -> None:
    from services.executor.core.virtual.react import react
    from shared.ledger.decider import Fact

    script = at_work()
    script.when(enqueued())
    fact = Fact(placed(), "placement", 0, 77, 0, AT)
    assert len(react(script.lane, fact)) == 1
    assert react(script.lane, fact) == []


def test_the_start_of_another_attempt_starts_nothing() -> None:
    script = at_work()
    script.when(enqueued())
    script.when(placed("j1", ("n1", 0), attempt=2))
    script.on_outcome(Prepared(script.lane.of_job["j1"][0]))
    assert script.when(started("j1", attempt=1)) == []


def test_a_program_that_ends_is_reported_with_its_code() -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    assert sent_reports(script.on_outcome(WorkerEnded(allocation_id, 3, 1200))) == [
        WorkerExited(allocation_id=allocation_id, job_id="j1", exit_code=3, ran_ms=1200)
    ]
    assert script.on_outcome(WorkerEnded(allocation_id, 3, 1200)) == []


def test_a_worker_on_a_busy_gpu_is_refused() -> None:
    script = at_work()
    script.running("j1", ("n1", 0))
    script.when(enqueued("j2"))
    (report,) = sent_reports(script.when(placed("j2", ("n1", 0))))
    assert isinstance(report, WorkerRefused) and report.reason.startswith("gpu_busy")


def test_fractions_share_a_gpu_until_it_is_full() -> None:
    script = at_work()
    for number in range(2):
        script.when(enqueued(f"j{number}"))
        assert isinstance(script.when(placed(f"j{number}", ("n1", 0), milli=500))[0], PrepareWorker)
    script.when(enqueued("j9"))
    assert isinstance(script.when(placed("j9", ("n1", 0), milli=100))[0], SendReport)


def test_a_gpu_is_free_again_once_its_worker_is_gone() -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    script.on_outcome(WorkerEnded(allocation_id, 0))
    script.when(enqueued("j2"))
    assert isinstance(script.when(placed("j2", ("n1", 0)))[0], PrepareWorker)


def test_a_gpu_that_the_node_has_not_is_refused() -> None:
    script = at_work()
    script.when(enqueued())
    (report,) = sent_reports(script.when(placed("j1", ("n1", 4))))
    assert isinstance(report, WorkerRefused) and report.reason.startswith("no_such_gpu")


def test_a_backend_that_the_pool_does_not_allow_is_refused() -> None:
    script = at_work()
    script.lane.backends = frozenset({"agent"})
    script.when(enqueued())
    (report,) = sent_reports(script.when(placed()))
    assert isinstance(report, WorkerRefused) and report.reason.startswith("backend_not_allowed")


@pytest.mark.parametrize("fact", ["preempted", "stop_requested", "start_failed"])
def test_a_running_worker_is_stopped_for_every_reason_of_a_stop(fact: str) -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    event = {
        "preempted": preempted("j1"),
        "stop_requested": JobStopRequested(
            job_id="j1", tenant="ada", attempt=1, reason="cancelled"
        ),
        "start_failed": JobStartFailed(
            job_id="j1", tenant="ada", attempt=1, node_ids=(), reason="refused"
        ),
    }[fact]
    assert script.when(event) == [StopWorker(allocation_id)]
    assert script.when(event) == []
    assert sent_reports(script.on_outcome(WorkerEnded(allocation_id, 143))) == [
        WorkerStopped(allocation_id=allocation_id, job_id="j1", exit_code=143)
    ]


def test_a_prepared_worker_is_stopped() -> None:
    script = at_work()
    script.when(enqueued())
    script.when(placed())
    allocation_id = script.lane.of_job["j1"][0]
    script.on_outcome(Prepared(allocation_id))
    assert script.when(preempted("j1")) == [StopWorker(allocation_id)]
    assert sent_reports(script.on_outcome(WorkerEnded(allocation_id, None))) == [
        WorkerStopped(allocation_id=allocation_id, job_id="j1")
    ]


def test_a_stop_of_an_ended_worker_repeats_its_last_report() -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    last = sent_reports(script.on_outcome(WorkerEnded(allocation_id, 0, 5)))
    assert sent_reports(script.when(preempted("j1"))) == last


def test_a_release_lets_the_worker_be_forgotten() -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    script.on_outcome(WorkerEnded(allocation_id, 0))
    assert script.when(released("j1", allocation_id)) == []
    assert script.lane.workers == {} and script.lane.of_job == {}


def test_the_release_of_a_running_worker_kills_it_without_a_report() -> None:
    script = at_work()
    (allocation_id,) = script.running("j1", ("n1", 0))
    assert script.when(released("j1", allocation_id)) == [StopWorker(allocation_id)]
    assert script.on_outcome(WorkerEnded(allocation_id, 137)) == []
    assert not any(script.lane.use.values())


@pytest.mark.parametrize(("speeds", "done_s"), [(None, 120.0), ({"a100": 3.0}, 360.0)])
def test_a_preempted_job_goes_on_from_its_last_checkpoint(
    speeds: dict[str, float] | None, done_s: float
) -> None:
    script = at_work()
    script.lane.time_scale = 10.0
    more = {"checkpoint_interval_s": 60.0, "gpu_speeds": speeds}
    spec = a_spec(1000).model_copy(update=more)
    (first,) = script.running("j1", ("n1", 0), spec=spec)
    script.when(preempted("j1"), at=AT + 15_000)
    script.on_outcome(WorkerEnded(first, 143))
    (prepare,) = script.when(placed("j1", ("n1", 0), attempt=2))
    assert isinstance(prepare, PrepareWorker) and prepare.spec.done_s == done_s


@pytest.mark.parametrize("kind", ["migrated", "resized"])
def test_a_job_that_moves_or_changes_size_stops_and_keeps_its_work(kind: str) -> None:
    script = at_work()
    elastic = Elastic(min_workers=1, max_workers=4)
    spec = a_spec(1000).model_copy(
        update={
            "checkpoint_interval_s": 10.0,
            "elastic": elastic,
            "gang": Gang(workers=2, gpus_per_worker=1),
        }
    )
    (first,) = script.running("j1", ("n1", 0), spec=spec)
    target = (Allocation(rank=0, node_id="n1", gpus=(0,)),)
    event = {
        "migrated": JobMigrated(
            job_id="j1",
            tenant="ada",
            attempt=1,
            reason="drain",
            from_nodes=("n1",),
            to_nodes=("n2",),
            target=target,
        ),
        "resized": JobResized(
            job_id="j1",
            tenant="ada",
            attempt=1,
            reason="grow",
            from_workers=1,
            to_workers=2,
            target=target,
        ),
    }[kind]
    assert script.when(event, at=AT + 65_000) == [StopWorker(first)]
    script.on_outcome(WorkerEnded(first, 143))
    (prepare,) = script.when(placed("j1", ("n1", 0), attempt=2))
    assert isinstance(prepare, PrepareWorker)
    assert prepare.spec.done_s == 30.0, "one worker of two did half of what 60 s are worth"


def test_a_job_that_ended_is_forgotten() -> None:
    script = at_work()
    script.when(enqueued())
    script.when(JobSucceeded(job_id="j1", tenant="ada", attempt=1))
    assert script.lane.jobs == {}


def test_the_state_survives_a_snapshot() -> None:
    script = at_work()
    script.running("j1", ("n1", 0))
    again = pickle.loads(pickle.dumps(script.lane))
    assert again == script.lane
    assert [w.phase for w in again.living_workers()] == [WorkerPhase.RUNNING]


def test_a_start_after_a_preemption_pays_the_restart_and_its_work_begins_after_it() -> None:
    script = at_work()
    spec = a_spec(1000).model_copy(
        update={
            "checkpoint_interval_s": 60.0,
            "simulated": Simulated(duration_s=1000, restart_s=45.0),
        }
    )
    (first,) = script.running("j1", ("n1", 0), spec=spec)
    script.when(preempted("j1"), at=AT + 150_000)
    script.on_outcome(WorkerEnded(first, 143))
    (prepare,) = script.when(placed("j1", ("n1", 0), attempt=2))
    assert isinstance(prepare, PrepareWorker)
    assert (prepare.spec.done_s, prepare.spec.restart_s) == (120.0, 45.0)
    allocation_id = prepare.spec.allocation_id
    script.on_outcome(Prepared(allocation_id))
    script.when(started("j1", attempt=2), at=AT + 200_000)
    script.when(
        JobPreempted(job_id="j1", tenant="ada", attempt=2, reason="outranked"),
        at=AT + 200_000 + 45_000 + 179_000,
    )
    script.on_outcome(WorkerEnded(allocation_id, 143))
    (prepare,) = script.when(placed("j1", ("n1", 0), attempt=3))
    assert isinstance(prepare, PrepareWorker) and prepare.spec.done_s == 240.0


def test_a_first_start_and_one_after_a_failed_program_pay_no_restart() -> None:
    script = at_work()
    spec = a_spec(10).model_copy(update={"simulated": Simulated(restart_s=45.0)})
    script.when(enqueued("j1", spec=spec))
    (prepare,) = script.when(placed("j1", ("n1", 0)))
    assert isinstance(prepare, PrepareWorker) and prepare.spec.restart_s == 0.0
