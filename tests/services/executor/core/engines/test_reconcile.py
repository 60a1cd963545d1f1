"""Each look at the engine leads to what brings it to the ledger, whatever happened before."""

from __future__ import annotations

import pytest

from services.executor.core.engines.contract import (
    EnginePhase,
    Forbid,
    Forget,
    GangProgress,
    Kill,
    RankEnd,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import Identity
from services.executor.core.engines.memory import Memory
from services.executor.core.engines.reconcile import (
    FORGET_AFTER_S,
    KILL_EVERY_S,
    STUCK_AFTER_S,
    Decided,
)
from shared.contracts.attempts import AllocationReleased, JobStopRequested
from shared.contracts.failures import Failure
from shared.contracts.nodes import NodeLost
from shared.contracts.reports import (
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
    WorkerStuck,
)
from tests.services.executor.core.agents.history import UUID
from tests.services.executor.core.engines.looks import (
    IDENTITY,
    decide,
    engine_job,
    engine_node,
    gang_of,
    observed,
    placed_history,
    started_history,
)

STOP = JobStopRequested(job_id="j", tenant="ada", attempt=1, reason="cancelled")
READY = GangProgress(ready="17")
BEGUN = GangProgress(ready="17", is_begun=True)
FORBIDDEN = GangProgress(is_forbidden=True)


def released(rank: int) -> AllocationReleased:
    return AllocationReleased(
        job_id="j", attempt=1, allocation_id=f"1/5/0/{rank}", node_id="n1", reason="exited"
    )


def test_a_gang_that_the_engine_does_not_know_is_submitted_as_a_whole() -> None:
    history = placed_history()
    decided = decide(history, observed())
    assert decided.actions == [Submit(gang_of(history))]
    assert decided.reports == []


def test_a_gang_that_the_look_is_older_than_waits_for_the_next() -> None:
    observation = observed()
    without = type(observation)(observation.nodes, observation.jobs, {})
    assert decide(placed_history(), without).actions == []


def test_a_gang_that_is_acted_on_waits_for_the_next_look() -> None:
    acting = frozenset({IDENTITY})
    assert decide(placed_history(), observed(), acting=acting) == Decided()
    assert decide(placed_history(), observed(engine_job()), acting=acting) == Decided()
    over = started_history(released(0), released(1), released(2))
    assert decide(over, observed(engine_job())).actions == [Kill("17")]
    assert decide(over, observed(engine_job()), acting=acting) == Decided()


def test_workers_are_ready_once_the_allocation_stands_on_all_nodes() -> None:
    history = placed_history()
    assert decide(history, observed(engine_job())).reports == []
    reports = decide(history, observed(engine_job(), progress=READY)).reports
    assert [type(report) for report in reports] == [WorkerReady] * 3
    ports = [report.master_port for report in reports if isinstance(report, WorkerReady)]
    assert ports == [20_017, None, None]


def test_a_started_gang_begins_in_the_job_that_stands_ready_and_once() -> None:
    history = started_history()
    waiting = observed(engine_job(), progress=READY)
    assert decide(history, waiting).actions == [Start(gang_of(history), "17")]
    assert decide(history, observed(engine_job(), progress=BEGUN)).actions == []


def test_a_second_job_of_one_gang_is_killed() -> None:
    jobs = engine_job(), engine_job(ref="18")
    assert decide(started_history(), observed(*jobs, progress=BEGUN)).actions == [Kill("18")]
    ready_later = GangProgress(ready="18")
    actions = decide(placed_history(), observed(*jobs, progress=ready_later)).actions
    assert actions == [Kill("17")]


def test_ends_are_reported_once_the_engine_has_freed_the_gpus_and_the_first_is_blamed() -> None:
    ends = {0: RankEnd(143, 90, 300), 1: RankEnd(3, 80, 200, "", "", ("bad",))}
    progress = GangProgress("17", is_begun=True, ends=ends)
    ending = observed(engine_job(EnginePhase.ENDING), progress=progress)
    assert decide(started_history(), ending).reports == []
    over = observed(engine_job(EnginePhase.ENDED, exit_code=3), progress=progress)
    first, second, third = decide(started_history(), over).reports
    assert isinstance(first, WorkerExited)
    assert (first.allocation_id, first.exit_code, first.ran_ms) == ("1/5/0/1", 3, 80)
    assert (first.reason, first.output) == ("exit_code", ("bad",))
    assert isinstance(second, WorkerExited) and second.reason == "signal"
    assert isinstance(third, WorkerExited) and third.exit_code == 3


def test_a_stop_is_a_signal_then_a_kill_after_the_grace_and_again() -> None:
    history, memory = started_history(STOP), Memory()
    grace_s = gang_of(history).launch.grace_s
    running = observed(engine_job(), progress=BEGUN)
    assert decide(history, running, memory, 0.0).actions == [Signal("17")]
    assert decide(history, running, memory, grace_s - 1).actions == []
    assert decide(history, running, memory, grace_s).actions == [Kill("17", has_program=True)]
    assert decide(history, running, memory, grace_s + 1).actions == []
    assert decide(history, running, memory, grace_s + KILL_EVERY_S).actions == [Kill("17")]
    late = decide(history, running, memory, grace_s + STUCK_AFTER_S)
    assert [type(report) for report in late.reports] == [WorkerStuck] * 3
    over = observed(engine_job(EnginePhase.ENDED, exit_code=137), progress=BEGUN)
    [first, *_] = decide(history, over, memory, 200.0).reports
    assert isinstance(first, WorkerStopped) and first.exit_code == 137


def test_a_stop_before_the_start_is_final_before_it_is_reported() -> None:
    history = placed_history(STOP)
    waiting = observed(engine_job(), progress=READY)
    assert decide(history, waiting).actions == [Forbid(IDENTITY)]
    forbidden = observed(engine_job(), progress=FORBIDDEN)
    assert decide(history, forbidden).actions == [Kill("17")]
    assert decide(history, forbidden).reports == []
    gone = decide(history, observed(progress=FORBIDDEN))
    assert [report.model_dump()["exit_code"] for report in gone.reports] == [None] * 3
    assert decide(history, observed()).actions == [Forbid(IDENTITY)]


@pytest.mark.parametrize(
    ("waited_s", "is_refused", "restarts", "reason"),
    [(19, False, 0, ""), (20, False, 0, "engine_waits"), (0, True, 0, "engine_waits")]
    + [(0, False, 1, "step_lost")],
)
def test_a_job_that_does_not_start_is_withdrawn_with_the_engines_reason(
    waited_s: float, is_refused: bool, restarts: int, reason: str
) -> None:
    history, memory = placed_history(), Memory()
    job = engine_job(
        EnginePhase.PENDING, waits_for="Resources", is_refused=is_refused, restarts=restarts
    )
    memory.waits_since_s["17"] = 0.0
    decided = decide(history, observed(job), memory, waited_s)
    assert decided.actions == ([Forbid(IDENTITY)] if reason else [])
    if reason:
        [report, *_] = decide(history, observed(progress=FORBIDDEN), memory, waited_s).reports
        assert isinstance(report, WorkerRefused) and report.reason == reason
        assert "Slurm job 17 of ada" in report.detail


def test_a_job_that_the_engine_queued_again_by_itself_ends_as_lost_and_not_as_failed() -> None:
    history, memory = started_history(), Memory()
    again = engine_job(EnginePhase.PENDING, restarts=1)
    assert decide(history, observed(again, progress=BEGUN), memory).actions == [Kill("17")]
    over = observed(engine_job(EnginePhase.ENDED), progress=BEGUN)
    [report, *_] = decide(history, over, memory).reports
    assert isinstance(report, WorkerExited) and report.reason == "step_lost"
    assert "queued it again" in report.detail


def test_a_node_that_the_engine_gave_up_keeps_its_gpus_until_it_is_heard_again() -> None:
    """Programs may run on there: what is placed anew would run twice."""
    failure = Failure(reason="step_lost", detail="Slurm gave up a node of it")
    job = engine_job(EnginePhase.ENDED, lost_node=True, failure=failure)
    silent = engine_node("n1", responds=False)
    assert decide(started_history(), observed(job, progress=BEGUN, n1=silent)).reports == []
    reports = decide(started_history(), observed(job, progress=BEGUN)).reports
    assert [report.model_dump()["reason"] for report in reports] == ["step_lost"] * 3


def test_a_begun_job_that_the_engine_has_forgotten_is_lost_and_never_run_again() -> None:
    silent = engine_node("n2", responds=False)
    assert decide(started_history(), observed(progress=BEGUN, n2=silent)).reports == []
    decided = decide(started_history(), observed(progress=BEGUN))
    assert decided.actions == []
    assert [report.model_dump()["reason"] for report in decided.reports] == ["step_lost"] * 3


def test_work_of_a_released_gang_is_ended_and_that_of_others_left_alone() -> None:
    history = started_history(released(0), released(1), released(2))
    other_pool = Identity("here", "cpu", "1/5/0").text
    elsewhere = Identity("there", "gpu", "1/5/0").text
    ahead = Identity("here", "gpu", "1/99/0").text
    foreign = [engine_job(identity=name) for name in ("", "notes", other_pool, elsewhere, ahead)]
    assert decide(history, observed(*foreign)).actions == []
    assert decide(history, observed(engine_job(), *foreign)).actions == [Kill("17")]


def test_a_gang_of_a_lost_node_is_ended() -> None:
    lost = NodeLost(node_id="n1", incarnation=UUID, reason="declared")
    running = observed(engine_job(), progress=BEGUN)
    assert decide(started_history(lost), running).actions == [Signal("17")]


def test_a_job_of_which_a_part_is_missing_is_submitted_again() -> None:
    history = placed_history()
    part = observed(engine_job(EnginePhase.PENDING, is_partial=True))
    assert decide(history, part).actions == [Submit(gang_of(history))]
    history.add(STOP)
    assert decide(history, part).actions == [Forbid(IDENTITY)]


def test_a_start_that_is_not_carried_out_everywhere_is_repeated() -> None:
    history = started_history()
    half = GangProgress("17", is_begun=True, needs_start=True)
    started = decide(history, observed(engine_job(), progress=half))
    assert started.actions == [Start(gang_of(history), "17")]
    assert decide(history, observed(engine_job(), progress=BEGUN)).actions == []


def test_a_gang_with_a_failed_worker_is_ended_where_the_engine_does_not() -> None:
    failed = observed(engine_job(has_failed=True), progress=BEGUN)
    assert decide(started_history(), failed).actions == [Signal("17")]


def test_a_begun_gang_that_the_engine_cannot_start_is_ended_with_its_reason() -> None:
    memory = Memory()
    waiting = engine_job(is_refused=True, waits_for="ImagePullBackOff: no such image")
    assert decide(started_history(), observed(waiting, progress=BEGUN), memory).actions == [
        Signal("17")
    ]
    over = observed(engine_job(EnginePhase.ENDED), progress=BEGUN)
    [report, *_] = decide(started_history(), over, memory).reports
    assert isinstance(report, WorkerExited) and report.reason == "engine_waits"
    assert "no such image" in report.detail


def test_what_an_engine_keeps_is_forgotten_a_while_after_its_release() -> None:
    history, memory = started_history(released(0), released(1), released(2)), Memory()
    kept = observed(engine_job(EnginePhase.ENDED, is_kept=True))
    assert decide(history, kept, memory, 0.0).actions == []
    assert decide(history, kept, memory, FORGET_AFTER_S).actions == [Forget("17")]
    begun = observed(engine_job(EnginePhase.ENDED, is_kept=True), progress=BEGUN)
    assert decide(started_history(), begun, memory, FORGET_AFTER_S).actions == []


def test_what_is_over_is_forgotten() -> None:
    memory = Memory(waits_since_s={"9": 1.0}, refusals={"other": Failure(reason="x")})
    decide(placed_history(), observed(), memory)
    assert memory == Memory()


def test_a_started_gang_without_a_noted_begin_is_killed_after_it_was_forbidden() -> None:
    """Its program may remove the link again and again."""
    history, memory = started_history(STOP), Memory()
    unseen = observed(engine_job(), progress=READY)
    assert decide(history, unseen, memory, 0.0).actions == [Forbid(IDENTITY)]
    assert decide(history, unseen, memory, 1.0).actions == [Forbid(IDENTITY), Kill("17")]
