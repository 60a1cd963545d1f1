"""Output is complete when the job and its workers have ended, or after a silence."""

from __future__ import annotations

import pytest

from services.gateway.streams import completion as completion_module
from services.gateway.streams.completion import Completion
from services.gateway.streams.job_log import ALL, JobLog, JobNow, Selection
from shared.job_logs.chunk import Worker
from tests.patience import PATIENCE_S

RUNS, ENDED = JobNow("running", "", 1, 2), JobNow("succeeded", "", 1, 2)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_module, "POLL_S", 0.0)
    monkeypatch.setattr(completion_module, "SOON_S", 0.0)


async def goes_on() -> JobNow | None:
    return RUNS


def complete(*workers: tuple[int, int], selection: Selection = ALL) -> JobLog:
    """Return the log of a job in which the output of these attempts and ranks is complete."""
    job = JobLog(selection)
    for attempt, rank in workers:
        job.note_end(Worker(attempt, rank))
    return job


@pytest.mark.parametrize(
    ("job", "log", "missing"),
    [
        (ENDED, complete((1, 0)), [1]),
        (ENDED, complete((1, 0), (1, 1)), []),
        (ENDED._replace(attempt=2), complete((1, 0), (1, 1)), [0, 1]),
        (ENDED._replace(started=False), complete(), []),
        (ENDED._replace(prints=False), complete(), []),
        (ENDED._replace(attempt=0), complete(), []),
        (ENDED, complete(selection=Selection(rank=1)), [1]),
    ],
)
async def test_workers_with_output_that_did_not_end_are_named(
    monkeypatch: pytest.MonkeyPatch, job: JobNow, log: JobLog, missing: list[int]
) -> None:
    monkeypatch.setattr(completion_module, "SETTLED_S", 0.0)

    async def ended() -> JobNow:
        return job

    async def end() -> int | None:
        return 5

    completion = Completion(ended, log)
    assert await completion.reached(5, end)
    assert completion.missing_workers() == missing


async def test_output_is_complete_when_all_is_read_that_was_there_after_a_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion_module, "SETTLED_S", 0.0)
    states, ends = [None, RUNS, ENDED], [None, 7, 9]

    async def ended() -> JobNow | None:
        return states.pop(0)

    async def end() -> int | None:
        return ends.pop(0)

    completion = Completion(ended, complete((1, 0)))
    assert not await completion.reached(5, end), "the read model does not answer"
    assert not await completion.reached(5, end), "the job runs"
    assert not await completion.reached(5, end), "the broker does not answer"
    assert not await completion.reached(6, end), "one record is not read"
    completion.note_lines()
    assert not await completion.reached(8, end), "that record had lines"
    assert await completion.reached(9, end)
    assert not states and not ends


async def test_a_line_begins_the_silence_after_the_end_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion_module, "SETTLED_S", 10 * PATIENCE_S)

    async def ended() -> JobNow:
        return ENDED

    async def end() -> int | None:
        raise AssertionError("the silence has just begun")

    completion = Completion(ended, complete((1, 0), (2, 1)))
    assert not await completion.reached(5, end)
    assert not await completion.reached(5, end)


@pytest.mark.parametrize(
    ("job", "log", "is_read"),
    [
        (ENDED, complete((1, 0), (1, 1)), True),
        (JobNow("failed", "", 3, 1), complete((3, 0)), True),
        (JobNow("cancelled", "", 0, 2), complete(), False),
        (JobNow("succeeded", "", 1, 2, prints=False), complete(), False),
    ],
)
async def test_complete_output_and_that_of_a_job_without_any_waits_for_no_silence(
    monkeypatch: pytest.MonkeyPatch, job: JobNow, log: JobLog, is_read: bool
) -> None:
    monkeypatch.setattr(completion_module, "SETTLED_S", 10 * PATIENCE_S)
    asked: list[int] = []

    async def ended() -> JobNow:
        return job

    async def end() -> int | None:
        asked.append(1)
        return 5

    assert await Completion(ended, log).reached(5, end)
    assert bool(asked) is not is_read, "what came before is read where the log ends by itself"


async def test_a_job_is_looked_at_soon_once_the_output_of_a_worker_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion_module, "POLL_S", 10 * PATIENCE_S)
    log = complete()
    completion = Completion(goes_on, log)
    assert completion.pause_s() == completion_module.POLL_S
    log.note_end(Worker(1, 0))
    assert completion.pause_s() == completion_module.SOON_S
