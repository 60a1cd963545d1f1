from __future__ import annotations

import pickle

import pytest

from services.admission.core.reconsider import BUDGET_BYTES
from services.admission.core.state import AdmissionState
from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.contracts.jobs import (
    ArrayCancelRequested,
    CancelRequested,
    CommandAccepted,
    CommandRefused,
)
from shared.contracts.placement import JobCancelled, JobFailed, JobSucceeded
from shared.ledger.decider import Fact
from shared.testing.decider import run_facts, wake
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    cancel,
    placed,
    pool,
    quota,
    set_quota,
    submit,
    summarize,
    summarize_jobs,
    when,
)


def ended(job_id: str, how: str = "cancelled") -> Event:
    if how == "failed":
        return JobFailed(job_id=job_id, tenant="acme", attempt=1, reason="exit_code")
    kind = JobCancelled if how == "cancelled" else JobSucceeded
    return kind(job_id=job_id, tenant="acme", attempt=1)


def awake(state: AdmissionState) -> list[list[Event]]:
    """What is said in each record until nothing is due."""
    records: list[list[Event]] = []
    while (due := ADMISSION.next_wake(state)) is not None and due <= NOW:
        records.append(wake(ADMISSION, state, NOW))
        assert records[-1], "it would spin"
    return records


def answers(events: list[Event]) -> list[Event]:
    return [e for e in events if isinstance(e, (CommandAccepted, CommandRefused))]


def test_one_command_ends_those_that_wait_and_asks_those_that_run() -> None:
    state = pool(quota(2))
    when(state, submit("a", size=4))
    found = when(state, cancel("a", id_="c"))
    assert summarize(found) == [
        "array.cancel-requested a",
        "job.cancel-requested a.0",
        "job.cancel-requested a.1",
        "job.cancelled a.2",
        "job.cancelled a.3",
    ]
    assert ADMISSION.next_wake(state) is None


def test_it_is_answered_once_when_the_last_of_its_jobs_has_ended() -> None:
    state = pool(quota(2))
    when(state, submit("a", size=3))
    when(state, cancel("a", id_="c"))
    assert not answers(when(state, placed(ended("a.0"))))
    (answer,) = answers(when(state, placed(ended("a.1"))))
    assert isinstance(answer, CommandAccepted)
    assert (answer.command_id, answer.of, answer.tenant) == ("c", "a", "acme")
    assert not state.pending_answers


@pytest.mark.parametrize("finish", ["succeeded", "failed"])
def test_members_that_had_finished_are_fine(finish: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0", finish)))
    assert summarize_jobs(when(state, cancel("a")))[-1:] == ["job.cancel-requested a.1"]
    (answer,) = answers(when(state, placed(ended("a.1"))))
    assert isinstance(answer, CommandAccepted)


def test_if_all_that_were_left_finish_by_themselves_nothing_was_cancelled() -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0")), cancel("a"))
    (answer,) = answers(when(state, placed(ended("a.1", "succeeded"))))
    assert isinstance(answer, CommandRefused)
    assert (answer.reason, answer.detail) == ("already_finished", "job_id: 'a': already failed")


@pytest.mark.parametrize("how", ["succeeded", "failed", "cancelled"])
def test_an_array_with_nothing_left_is_finished_already(how: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, placed(ended("a.0", how)), placed(ended("a.1", how)))
    (answer,) = when(state, cancel("a"))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "already_finished"


def test_jobs_that_are_not_made_yet_are_never_made() -> None:
    """Cancelled in the batch that submits it, none of them is."""
    state = pool()
    found = summarize(when(state, submit("a", size=500), cancel("a", id_="c")))
    assert found[1:3] == ["array.accepted a", "array.cancel-requested a"]
    assert found[3].startswith("command.accepted")
    assert len(found) == 4
    assert ADMISSION.next_wake(state) is None
    assert state.ended.get("a") is not None


def test_a_cancel_in_the_middle_of_the_making_stops_it() -> None:
    state = pool()
    run_facts(ADMISSION, state, [submit("a", size=1000)], NOW)
    found = when(state, cancel("a"))
    made = state.arrays["a"].next_index
    assert 0 < made < 1000
    found += [event for record in awake(state) for event in record]
    asked = [e for e in found if isinstance(e, CancelRequested)]
    assert [e.job_id for e in asked] == [f"a.{n}" for n in range(made)]
    assert len(state.admitted) == made


def test_a_large_one_is_told_in_records_within_bounds() -> None:
    state = pool(quota(100))
    when(state, submit("a", size=3000))
    awake(state)
    records = [when(state, cancel("a", id_="c")), *awake(state)]
    assert len(records) > 3000 * 512 // BUDGET_BYTES
    assert all(sum(len(encode_event(e)) for e in r) < 4 * BUDGET_BYTES for r in records)
    said = [event for record in records for event in record]
    assert [e for e in said if isinstance(e, CancelRequested)] == said[1:101]
    assert sum(isinstance(e, JobCancelled) for e in said) == 2900
    assert not answers(said)
    (answer,) = answers(when(state, *(placed(ended(f"a.{n}")) for n in range(100))))
    assert isinstance(answer, CommandAccepted)


def test_others_are_admitted_while_the_sweep_goes_on() -> None:
    state = pool(quota(1000))
    when(state, submit("a", size=500))
    awake(state)
    when(state, cancel("a"))
    assert state.cancelling
    assert "job.admitted b" in summarize(when(state, submit("b")))


def test_what_is_freed_goes_to_others_and_never_back_to_the_array() -> None:
    state = pool(quota(1))
    when(state, submit("a", size=3))
    when(state, submit("b"))
    when(state, cancel("a"))
    assert summarize_jobs(when(state, placed(ended("a.0")))) == ["job.admitted b"]


def test_each_of_many_cancels_has_its_own_answer() -> None:
    state = pool()
    when(state, submit("a", size=2))
    first, second = cancel("a", id_="c1"), cancel("a", id_="c2")
    assert len(when(state, first)) == 3
    assert summarize(when(state, second)) == ["array.cancel-requested a"]
    assert when(state, first, second) == []
    found = answers(when(state, placed(ended("a.0")), placed(ended("a.1"))))
    assert [a.command_id for a in found if isinstance(a, CommandAccepted)] == ["c1", "c2"]
    assert when(state, first) == []


def test_a_single_job_of_it_may_be_cancelled_as_well() -> None:
    state = pool()
    when(state, submit("a", size=2))
    when(state, cancel("a.1", id_="one"), cancel("a", id_="all"))
    found = answers(when(state, placed(ended("a.0")), placed(ended("a.1"))))
    assert sorted(a.command_id for a in found if isinstance(a, CommandAccepted)) == ["all", "one"]


def test_a_finish_in_the_same_batch_as_the_cancel_is_folded_first() -> None:
    state = pool()
    when(state, submit("a", size=2))
    found = summarize(when(state, cancel("a"), placed(ended("a.0", "succeeded"))))
    assert found == ["jobs.released main", "array.cancel-requested a", "job.cancel-requested a.1"]


@pytest.mark.parametrize("tenant", ["beta", "ghost"])
def test_another_tenants_array_is_unknown(tenant: str) -> None:
    state = pool()
    when(state, submit("a", size=2))
    (answer,) = when(state, cancel("a", tenant))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "unknown_job"


def test_jobs_that_depend_on_it_hear_that_it_was_cancelled() -> None:
    state = pool()
    when(state, submit("a", size=2), submit("b", depends_on=("a",)))
    when(state, cancel("a"))
    found = when(state, placed(ended("a.0")), placed(ended("a.1", "succeeded")))
    assert "job.rejected b dependency_failed" in summarize(found)


def test_its_cause_and_trace_are_those_of_the_command() -> None:
    state = pool()
    when(state, submit("a", size=2))
    facts = run_facts(ADMISSION, state, [cancel("a", id_="c")], NOW)
    assert {fact.cause for fact in facts} == {"c"}
    asked = [f.event for f in facts if isinstance(f.event, CancelRequested)]
    assert all(event.of_array and event.command_id == "c" for event in asked)


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_restart_in_the_middle_goes_on_where_it_stopped(records: int) -> None:
    """Folded anew, or from a snapshot, after some records of the sweep."""
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
    assert awake(again) == awake(state)
    assert len(again.admitted) == 50
    assert not again.deferred


def test_a_bound_that_changes_meanwhile_changes_nothing() -> None:
    state = pool(quota(1))
    when(state, submit("a", size=3))
    found = summarize(when(state, cancel("a"), set_quota(8)))
    assert not any(line.startswith("job.admitted") for line in found)


def test_the_request_says_who_and_why() -> None:
    state = pool()
    when(state, submit("a", size=2))
    request = when(state, cancel("a", None, "c"))[0]
    assert request == ArrayCancelRequested(job_id="a", tenant="acme", command_id="c")
