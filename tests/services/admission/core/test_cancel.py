from __future__ import annotations

import pytest

from shared.contracts.admission import CancelRequested
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandRefused
from tests.services.admission.core.cases import (
    cancel,
    cancelled,
    failed,
    placed,
    pool,
    quota,
    set_quota,
    submit,
    succeeded,
    summarize,
    summarize_jobs,
    when,
)


def test_a_deferred_job_is_cancelled_at_once() -> None:
    state = pool(quota(0))
    when(state, submit("j1"))
    assert summarize(when(state, cancel("j1", id_="c9"))) == [
        "command.accepted c9",
        "job.cancelled j1",
    ]
    assert state.deferred == {}
    assert summarize_jobs(when(state, set_quota(8))) == []


def test_a_cancel_of_an_admitted_job_is_answered_when_its_end_is_known() -> None:
    state = pool()
    when(state, submit("j1"))
    item = cancel("j1", id_="c9")
    (request,) = when(state, item)
    assert request == CancelRequested(job_id="j1", tenant="acme", command_id="c9")
    assert when(state, item) == []
    end = placed(cancelled("j1"))
    assert summarize(when(state, end)) == ["jobs.released main", "command.accepted c9"]
    assert when(state, item) == []


@pytest.mark.parametrize("end", [succeeded("j1"), failed("j1")])
def test_a_job_that_finishes_first_makes_its_cancels_refused(end: Event) -> None:
    state = pool()
    when(state, submit("j1"))
    when(state, cancel("j1", id_="c8"), cancel("j1", None, id_="c9"))
    _, *answers = when(state, placed(end))
    assert summarize(answers) == [
        "command.refused c8 already_finished",
        "command.refused c9 already_finished",
    ]


def test_a_finish_and_a_cancel_in_one_batch_end_the_job_once() -> None:
    state = pool()
    when(state, submit("j1"))
    summaries = summarize(when(state, cancel("j1", id_="c9"), placed(succeeded("j1"))))
    assert summaries == ["jobs.released main", "command.refused c9 already_finished"]


@pytest.mark.parametrize(
    ("job_id", "tenant", "reason"),
    [
        ("done", "acme", "already_finished"),
        ("done", None, "already_finished"),
        ("done", "beta", "unknown_job"),
        ("runs", "beta", "unknown_job"),
        ("ghost", "acme", "unknown_job"),
    ],
)
def test_a_cancel_of_a_job_that_cannot_be_stopped_is_refused(
    job_id: str, tenant: str | None, reason: str
) -> None:
    state = pool()
    when(state, submit("done"), submit("runs"))
    when(state, placed(succeeded("done")))
    (answer,) = when(state, cancel(job_id, tenant))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == reason


def test_ends_of_jobs_that_are_not_admitted_are_ignored() -> None:
    state = pool()
    when(state, submit("j1"))
    assert len(when(state, placed(succeeded("j1")), placed(failed("j1")))) == 1
    assert when(state, placed(succeeded("j1")), placed(succeeded("ghost"))) == []
