"""A gang of which the engine has lost the start is not submitted again, and holds its GPUs."""

from __future__ import annotations

from dataclasses import replace

from services.executor.core.engines.contract import (
    EngineJob,
    EnginePhase,
    EngineState,
    Forbid,
    GangProgress,
    NoteLost,
    Start,
    Submit,
)
from services.executor.core.engines.memory import Memory
from services.executor.core.engines.reconcile import LOOKS_APART_S, START_LATE_S, STUCK_AFTER_S
from shared.contracts.attempts import JobStopRequested
from shared.contracts.failures import Failure
from shared.contracts.reports import WorkerExited, WorkerStuck
from tests.services.executor.core.engines.looks import (
    decide,
    engine_job,
    engine_node,
    gang_of,
    observed,
    placed_history,
    started_history,
)

STARTED_MS = 1000
LATE_MS = STARTED_MS + round(1000 * START_LATE_S)
READY = GangProgress(ready="17")
SETTLE_S = 60.0
LOST = GangProgress(is_begun=True, settle_s=SETTLE_S)
FORGOTTEN = Failure(reason="step_lost", detail="no memory of the start")


def forgetful(*jobs: EngineJob, progress: GangProgress | None = None) -> EngineState:
    known = observed(*jobs, progress=progress)
    return EngineState(known.nodes, known.jobs, known.progress, forgets_starts=True)


def test_a_gang_that_was_started_long_ago_is_not_begun_again() -> None:
    history = started_history()
    note = [NoteLost(gang_of(history))]
    assert decide(history, forgetful(), ledger_ms=LATE_MS).actions == note
    restored = forgetful(engine_job(nodes=()), progress=READY)
    assert decide(history, restored, ledger_ms=LATE_MS).actions == note
    part = forgetful(engine_job(EnginePhase.PENDING, nodes=(), is_partial=True))
    assert decide(history, part, ledger_ms=LATE_MS).actions == note
    history.add(JobStopRequested(job_id="j", tenant="ada", attempt=1, reason="cancelled"))
    assert decide(history, restored, ledger_ms=LATE_MS).actions == note, "it holds its GPUs too"


def test_a_gang_is_begun_if_its_start_is_new_or_not_decided() -> None:
    history = started_history()
    assert decide(history, forgetful(), ledger_ms=LATE_MS - 1).actions == [Submit(gang_of(history))]
    ready = forgetful(engine_job(nodes=()), progress=READY)
    assert decide(history, ready, ledger_ms=LATE_MS - 1).actions == [Start(gang_of(history), "17")]
    waits = placed_history()
    assert decide(waits, forgetful(), ledger_ms=LATE_MS).actions == [Submit(gang_of(waits))]


def test_what_the_engine_remembers_goes_on() -> None:
    history = started_history()
    begun = forgetful(engine_job(), progress=GangProgress(ready="17", is_begun=True))
    assert decide(history, begun, ledger_ms=LATE_MS).actions == []
    bound = forgetful(engine_job(is_partial=True))
    assert decide(history, bound, ledger_ms=LATE_MS).actions == [Submit(gang_of(history))]
    forbidden = forgetful(progress=GangProgress(is_forbidden=True))
    assert decide(history, forbidden, ledger_ms=LATE_MS).actions == []
    assert decide(history, observed(), ledger_ms=LATE_MS).actions == [Submit(gang_of(history))], (
        "the start of an engine that forgets none is noted elsewhere"
    )


def test_a_lost_gang_ends_once_its_nodes_have_answered_for_long_enough() -> None:
    history, memory = started_history(), Memory()
    settled_s = SETTLE_S + gang_of(history).launch.grace_s
    over = engine_job(EnginePhase.ENDED, lost_node=True, failure=FORGOTTEN)
    look = forgetful(over, progress=LOST)
    looks = int(settled_s // LOOKS_APART_S)
    for number in range(looks + 1):
        now_s = number * LOOKS_APART_S
        held = decide(history, look, memory, now_s).reports
        assert [type(report) for report in held] == [WorkerStuck] * (3 * (now_s >= STUCK_AFTER_S))
    reports = decide(history, look, memory, settled_s).reports
    assert [type(report) for report in reports] == [WorkerExited] * 3
    assert isinstance(reports[0], WorkerExited) and reports[0].detail == FORGOTTEN.detail
    assert not any(isinstance(a, Submit | Forbid) for a in decide(history, look, memory).actions)


def test_a_node_that_was_silent_or_not_looked_at_begins_anew() -> None:
    history = started_history()
    settled_s = SETTLE_S + gang_of(history).launch.grace_s
    over = engine_job(EnginePhase.ENDED, lost_node=True, failure=FORGOTTEN)
    look = forgetful(over, progress=LOST)
    unseen = Memory()
    assert decide(history, look, unseen, 0.0).reports == []
    late = decide(history, look, unseen, settled_s).reports
    assert not any(isinstance(report, WorkerExited) for report in late), "no look lies between"
    silent, memory = observed(over, progress=LOST, n1=engine_node("n1", responds=False)), Memory()
    decide(history, look, memory, 0.0)
    decide(history, silent, memory, 1.0)
    assert memory.answers_s == {}


def test_nodes_that_have_shown_the_end_need_not_answer_and_the_others_for_long_enough() -> None:
    history, memory = started_history(), Memory()
    over = engine_job(EnginePhase.ENDED, lost_node=True, failure=FORGOTTEN)
    silent = engine_node("n1", responds=False)
    half = replace(LOST, cleared=frozenset({"n1"}))
    assert decide(history, observed(over, progress=half, n1=silent), memory).reports == []
    assert memory.answers_s, "n2 answers, and has not shown the end"
    late = decide(history, observed(over, progress=half, n1=silent), memory, 100 + STUCK_AFTER_S)
    [stuck] = late.reports
    assert isinstance(stuck, WorkerStuck) and stuck.allocation_id == "1/5/0/0"
    assert "n2 has not shown" in stuck.detail
    all_ends = replace(LOST, cleared=frozenset({"n1", "n2"}))
    assert len(decide(history, observed(over, progress=all_ends, n1=silent)).reports) == 3
    assert decide(history, observed(over, progress=LOST, n1=silent)).reports == []
