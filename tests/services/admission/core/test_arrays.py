from __future__ import annotations

import pickle

import pytest

from services.admission.core.reconsider import BUDGET_BYTES
from services.admission.core.state import AdmissionState
from shared.contracts.admission import ArrayCancelRequested, CancelRequested
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.ledger.decider import Fact
from tests.harness.decider import run_facts, wake
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    cancel,
    drain,
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


def ended(job_id: str, how: str = "cancelled") -> Event:
    if how == "failed":
        return JobFailed(job_id=job_id, tenant="acme", attempt=1, reason="exit_code")
    kind = JobCancelled if how == "cancelled" else JobSucceeded
    return kind(job_id=job_id, tenant="acme", attempt=1)


def drain_records(state: AdmissionState) -> list[list[Event]]:
    """Return the events of each record until nothing is due."""
    records: list[list[Event]] = []
    while (due := ADMISSION.next_wake(state)) is not None and due <= NOW:
        records.append(wake(ADMISSION, state, NOW))
        assert records[-1], "it would spin"
    return records


def answers(events: list[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, (CommandAccepted, CommandRefused))]


def test_an_array_creates_as_many_jobs() -> None:
    summaries = summarize(when(pool(), submit("a", size=3)))
    assert summaries[1:] == ["array.accepted a", *(f"job.admitted a.{n}" for n in range(3))]


def test_a_large_array_fills_many_records_and_loses_no_job() -> None:
    state = pool(quota(100))
    when(state, submit("a", size=1000))
    drain(state)
    assert (len(state.admitted), len(state.deferred)) == (100, 900)


def test_an_array_can_be_depended_on_as_a_whole() -> None:
    state = pool()
    when(state, submit("a", size=2))
    assert summarize_jobs(when(state, submit("b", depends_on=("a",)))) == [
        "job.deferred b dependency"
    ]
    when(state, placed(succeeded("a.0")))
    assert summarize_jobs(when(state, placed(succeeded("a.1")))) == ["job.admitted b"]


def test_an_array_with_one_failure_has_failed() -> None:
    state = pool()
    when(state, submit("a", size=2), submit("b", depends_on=("a",)))
    summaries = summarize_jobs(when(state, placed(failed("a.0")), placed(succeeded("a.1"))))
    assert summaries == ["job.rejected b dependency_failed"]


def test_an_array_submitted_again_is_a_duplicate_while_it_runs_and_after() -> None:
    state = pool()
    when(state, submit("a", size=2))
    for end in (None, succeeded("a.0"), succeeded("a.1")):
        if end:
            when(state, placed(end))
        (answer,) = when(state, submit("a", size=2))
        assert isinstance(answer, CommandAccepted)
        assert answer.duplicate


def test_a_cancel_ends_deferred_jobs_and_requests_the_end_of_admitted_ones() -> None:
    state = pool(quota(2))
    when(state, submit("a", size=4))
    events = when(state, cancel("a", id_="c"))
    assert summarize(events) == [
        "array.cancel-requested a",
        "job.cancel-requested a.0",
        "job.cancel-requested a.1",
        "job.cancelled a.2",
        "job.cancelled a.3",
    ]
    assert ADMISSION.next_wake(state) is None


def test_a_cancel_is_answered_once_when_the_last_job_has_ended() -> None:
    state = pool(quota(2))
    when(state, submit("a", size=3))
    when(state, cancel("a", id_="c"))
    assert not answers(when(state, placed(ended("a.0"))))
    (answer,) = answers(when(state, placed(ended("a.1"))))
    assert isinstance(answer, CommandAccepted)
    assert (answer.command_id, answer.of, answer.tenant) == ("c", "a", "acme")
    assert not state.pending_answers


@pytest.mark.parametrize("finish", ["succeeded", "failed"])
def test_jobs_that_had_finished_do_not_refuse_the_cancel(finish: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0", finish)))
    assert summarize_jobs(when(state, cancel("a")))[-1:] == ["job.cancel-requested a.1"]
    (answer,) = answers(when(state, placed(ended("a.1"))))
    assert isinstance(answer, CommandAccepted)


def test_a_cancel_is_refused_if_all_remaining_jobs_finish_by_themselves() -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0")), cancel("a"))
    (answer,) = answers(when(state, placed(ended("a.1", "succeeded"))))
    assert isinstance(answer, CommandRefused)
    assert (answer.reason, answer.detail) == ("already_finished", "job_id: 'a': already failed")


@pytest.mark.parametrize("how", ["succeeded", "failed", "cancelled"])
def test_a_cancel_of_an_array_that_has_ended_is_refused(how: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0", how)), placed(ended("a.1", how)))
    (answer,) = when(state, cancel("a"))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "already_finished"


def test_jobs_that_are_not_created_yet_are_never_created() -> None:
    """An array cancelled in the batch that submits it creates no job."""
    state = pool()
    summaries = summarize(when(state, submit("a", size=500), cancel("a", id_="c")))
    assert summaries[1:3] == ["array.accepted a", "array.cancel-requested a"]
    assert summaries[3].startswith("command.accepted")
    assert len(summaries) == 4
    assert ADMISSION.next_wake(state) is None
    assert state.ended.get("a") is not None


def test_a_cancel_stops_the_creation_of_further_jobs() -> None:
    state = pool()
    run_facts(ADMISSION, state, [submit("a", size=1000)], NOW)
    events = when(state, cancel("a"))
    made = state.arrays["a"].next_index
    assert 0 < made < 1000
    events += [event for record in drain_records(state) for event in record]
    requests = [e for e in events if isinstance(e, CancelRequested)]
    assert [e.job_id for e in requests] == [f"a.{n}" for n in range(made)]
    assert len(state.admitted) == made


def test_the_cancel_of_a_large_array_fills_records_within_bounds() -> None:
    state = pool(quota(100))
    when(state, submit("a", size=3000))
    drain_records(state)
    records = [when(state, cancel("a", id_="c")), *drain_records(state)]
    assert len(records) > 3000 * 512 // BUDGET_BYTES
    assert all(sum(len(encode_event(e)) for e in r) < 4 * BUDGET_BYTES for r in records)
    events = [event for record in records for event in record]
    assert [e for e in events if isinstance(e, CancelRequested)] == events[1:101]
    assert sum(isinstance(e, JobCancelled) for e in events) == 2900
    assert not answers(events)
    (answer,) = answers(when(state, *(placed(ended(f"a.{n}")) for n in range(100))))
    assert isinstance(answer, CommandAccepted)


def test_other_jobs_are_admitted_while_an_array_is_being_cancelled() -> None:
    state = pool(quota(1000))
    when(state, submit("a", size=500))
    drain_records(state)
    when(state, cancel("a"))
    assert state.cancelling
    assert "job.admitted b" in summarize(when(state, submit("b")))


def test_quota_freed_by_a_cancelled_array_goes_to_other_jobs() -> None:
    state = pool(quota(1))
    when(state, submit("a", size=3))
    when(state, submit("b"))
    when(state, cancel("a"))
    assert summarize_jobs(when(state, placed(ended("a.0")))) == ["job.admitted b"]


def test_each_of_several_cancels_has_its_own_answer() -> None:
    state = pool()
    when(state, submit("a", size=2))
    first, second = cancel("a", id_="c1"), cancel("a", id_="c2")
    assert len(when(state, first)) == 3
    assert summarize(when(state, second)) == ["array.cancel-requested a"]
    assert when(state, first, second) == []
    events = answers(when(state, placed(ended("a.0")), placed(ended("a.1"))))
    assert [a.command_id for a in events if isinstance(a, CommandAccepted)] == ["c1", "c2"]
    assert when(state, first) == []


def test_a_single_job_of_a_cancelled_array_may_be_cancelled_too() -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, cancel("a.1", id_="one"), cancel("a", id_="all"))
    events = answers(when(state, placed(ended("a.0")), placed(ended("a.1"))))
    assert sorted(a.command_id for a in events if isinstance(a, CommandAccepted)) == ["all", "one"]


def test_a_finish_in_the_same_batch_as_the_cancel_is_folded_first() -> None:
    state = pool()
    when(state, submit("a", size=2))
    summaries = summarize(when(state, cancel("a"), placed(ended("a.0", "succeeded"))))
    assert summaries == [
        "jobs.released main",
        "array.cancel-requested a",
        "job.cancel-requested a.1",
    ]


@pytest.mark.parametrize("tenant", ["beta", "ghost"])
def test_another_tenants_array_is_unknown(tenant: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    (answer,) = when(state, cancel("a", tenant))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "unknown_job"


def test_dependents_of_a_cancelled_array_are_rejected() -> None:
    state = pool()
    when(state, submit("a", size=2), submit("b", depends_on=("a",)))
    when(state, cancel("a"))
    events = when(state, placed(ended("a.0")), placed(ended("a.1", "succeeded")))
    assert "job.rejected b dependency_failed" in summarize(events)


def test_the_cause_of_each_cancel_is_the_command() -> None:
    state = pool()
    when(state, submit("a", size=2))
    facts = run_facts(ADMISSION, state, [cancel("a", id_="c")], NOW)
    assert {fact.cause for fact in facts} == {"c"}
    requests = [f.event for f in facts if isinstance(f.event, CancelRequested)]
    assert all(event.of_array and event.command_id == "c" for event in requests)


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_restart_during_a_cancel_goes_on_where_it_stopped(records: int) -> None:
    """The state is folded again, or read from a snapshot, after some records of the cancel."""
    facts: list[Fact] = []
    state = pool(quota(50))
    before = pickle.dumps(state)
    facts += run_facts(ADMISSION, state, [submit("a", size=600)], NOW)
    while ADMISSION.next_wake(state) == 0:
        facts += run_facts(ADMISSION, state, [], NOW)
    facts += run_facts(ADMISSION, state, [cancel("a")], NOW)
    for _ in range(records - 1):
        facts += run_facts(ADMISSION, state, [], NOW)
    assert state.cancelling
    again: AdmissionState = pickle.loads(before)
    for fact in facts:
        ADMISSION.evolve(again, fact)
    assert again == pickle.loads(pickle.dumps(state))
    assert drain_records(again) == drain_records(state)
    assert len(again.admitted) == 50
    assert not again.deferred


def test_a_larger_quota_admits_no_job_of_a_cancelled_array() -> None:
    state = pool(quota(1))
    when(state, submit("a", size=3))
    summaries = summarize(when(state, cancel("a"), set_quota(8)))
    assert not any(summary.startswith("job.admitted") for summary in summaries)


def test_the_cancel_request_names_tenant_and_command() -> None:
    state = pool()
    when(state, submit("a", size=2))
    request = when(state, cancel("a", None, "c"))[0]
    assert request == ArrayCancelRequested(job_id="a", tenant="acme", command_id="c")
