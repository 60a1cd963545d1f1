"""The reason of an end: the wrapper knows best, then the executor, then the engine."""

from __future__ import annotations

from typing import Any

from services.executor.core.engines.contract import EngineJob, EnginePhase, GangProgress, RankEnd
from services.executor.core.engines.ends import ended_reports, stopped_reports
from shared.contracts.failures import Failure
from shared.contracts.reports import WorkerExited, WorkerStopped
from tests.services.executor.core.engines.looks import engine_job, gang_of, started_history

OOM = Failure(reason="out_of_memory", detail="too much")


def first_end(end: RankEnd | None, job: EngineJob | None, refusal: Failure | None) -> WorkerExited:
    ends = {} if end is None else {0: end}
    progress = GangProgress("17", is_begun=True, ends=ends)
    report = ended_reports(gang_of(started_history()), job, progress, refusal)[0]
    assert isinstance(report, WorkerExited)
    return report


def over(**fields: Any) -> EngineJob:
    return engine_job(EnginePhase.ENDED, **fields)


def test_a_program_that_ended_well_has_no_reason_whatever_the_engine_says() -> None:
    end = first_end(RankEnd(0, 10, 5), over(failure=OOM), None)
    assert (end.exit_code, end.ran_ms, end.reason) == (0, 10, "")


def test_the_reason_is_the_wrappers_else_the_executors_else_the_engines() -> None:
    missing = RankEnd(127, 1, 5, "command_missing", "x", ("last",))
    end = first_end(missing, over(failure=OOM), Failure(reason="step_lost"))
    assert (end.reason, end.detail, end.output, end.permanent) == (
        "command_missing",
        "x",
        ("last",),
        True,
    )
    assert first_end(None, over(failure=OOM), Failure(reason="step_lost")).reason == "step_lost"
    assert first_end(None, over(failure=OOM), None).reason == "out_of_memory"
    assert first_end(None, None, None).reason == "step_lost"


def test_an_end_without_a_note_is_a_kill() -> None:
    end = first_end(None, over(), None)
    assert (end.exit_code, end.reason, end.detail) == (137, "signal", "SIGKILL")
    assert first_end(None, over(exit_code=200), None).detail == "signal 72"
    assert first_end(RankEnd(3, 1, 1), over(), None).reason == "exit_code"


def test_a_withdrawn_gang_without_a_reason_is_stopped_and_starts_again() -> None:
    reports = stopped_reports(gang_of(started_history()), None)
    assert [type(report) for report in reports] == [WorkerStopped] * 3
