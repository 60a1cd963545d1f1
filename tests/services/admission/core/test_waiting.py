from __future__ import annotations

import pytest

from services.admission.core.evolve_pool import NODE_SETTLE_MS
from services.admission.core.state import AdmissionState
from shared.contracts.access import PoolConfigured, TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.jobs import (
    CancelRequested,
    CommandAccepted,
    CommandRefused,
    JobAdmitted,
    JobReadmitted,
)
from shared.contracts.placement import JobAttemptFailed, JobCancelled, JobFailed, JobSucceeded
from shared.testing.decider import an_input, given, run_facts, wake
from tests.services.admission.core.cases import (
    ACME,
    ADMISSION,
    NOW,
    POOL,
    cancel,
    joined,
    lost,
    placed,
    pool,
    quota,
    set_quota,
    submit,
    summarize,
    summarize_jobs,
    when,
)


def succeeded(job_id: str) -> JobSucceeded:
    return JobSucceeded(job_id=job_id, tenant="acme", attempt=1)


def failed(job_id: str) -> JobFailed:
    return JobFailed(job_id=job_id, tenant="acme", attempt=1, reason="exit_code")


def cancelled(job_id: str) -> JobCancelled:
    return JobCancelled(job_id=job_id, tenant="acme")


def drain(state: AdmissionState, now: int = NOW) -> list[Event]:
    """All wakes that are due, as the shell would do them one after another."""
    found: list[Event] = []
    while events := wake(ADMISSION, state, now):
        found += events
    due = ADMISSION.next_wake(state)
    assert due is None or due > now
    return found


# ---- quota ---------------------------------------------------------------------------------


def test_a_deferred_job_is_admitted_once_its_quota_is_free() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3"))
    assert summarize(when(state, placed(succeeded("j1")))) == [
        "jobs.released main",
        "job.admitted j2",
    ]


def test_it_keeps_the_trace_and_the_time_of_its_submission() -> None:
    state = pool(quota(1))
    item = submit("j2")
    when(state, submit("j1"), item)
    *_, fact = run_facts(ADMISSION, state, [placed(succeeded("j1"))], NOW + 500)
    assert isinstance(fact.event, JobAdmitted)
    assert fact.event.submitted_at == NOW
    assert (fact.cause, fact.traceparent) == (item.id, item.traceparent)


def test_nobody_overtakes_the_first_in_its_tenants_line() -> None:
    state = pool(quota(4))
    when(state, submit("j1", gpus=3), submit("j2", gpus=2))
    assert summarize_jobs(when(state, submit("j3", gpus=1))) == ["job.deferred j3 quota"]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == [
        "job.admitted j2",
        "job.admitted j3",
    ]


def test_a_job_larger_than_the_whole_bound_stands_in_nobodys_way() -> None:
    state = pool(quota(4))
    found = when(state, submit("j1", gpus=5), submit("j2", gpus=4))
    assert summarize_jobs(found) == ["job.deferred j1 quota", "job.admitted j2"]


def test_a_larger_quota_lets_those_in_that_wait() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3", gpus=4))
    assert summarize(when(state, set_quota(6)))[1:] == [
        "quota.changed acme",
        "job.admitted j2",
        "job.admitted j3",
    ]


def test_a_smaller_quota_takes_nothing_back() -> None:
    state = pool(quota(2))
    when(state, submit("j1"), submit("j2"))
    assert len(when(state, set_quota(1))) == 2
    assert summarize_jobs(when(state, submit("j3"))) == ["job.deferred j3 quota"]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == []
    assert summarize_jobs(when(state, placed(succeeded("j2")))) == ["job.admitted j3"]


def test_one_that_a_smaller_quota_can_never_take_no_longer_blocks_the_line() -> None:
    state = pool(quota(4))
    when(state, submit("j1", gpus=4), submit("j2", gpus=4), submit("j3", gpus=1))
    when(state, set_quota(2))
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == ["job.admitted j3"]


def test_a_quota_as_it_is_already_is_a_duplicate_wish() -> None:
    (answer,) = when(pool(quota(2)), set_quota(2))
    assert isinstance(answer, CommandAccepted)
    assert answer.duplicate


def test_a_lane_without_a_pool_has_no_quotas() -> None:
    (answer,) = when(given(ADMISSION), set_quota(2))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "unknown_pool"


def test_a_larger_spot_quota_of_the_pool_lets_those_in_that_wait() -> None:
    state = pool(POOL.model_copy(update={"spot_gpus": 0.0}))
    when(state, submit("j1", spot=True))
    more = an_input(POOL.model_copy(update={"spot_gpus": 8.0}), "access")
    assert summarize(when(state, more)) == ["pool.configured main", "job.admitted j1"]


def test_a_freed_spot_gpu_goes_to_whoever_came_first() -> None:
    state = pool(POOL.model_copy(update={"spot_gpus": 1.0}))
    when(state, submit("j1", spot=True))
    when(state, submit("j2", "beta", spot=True), now=NOW + 1)
    when(state, submit("j3", spot=True), now=NOW + 2)
    found = when(state, placed(succeeded("j1")), now=NOW + 3)
    assert summarize_jobs(found) == ["job.admitted j2"]


def test_ten_thousand_that_may_go_at_once_go_in_many_small_records() -> None:
    state = pool(quota(0))
    for start in range(0, 1000, 100):
        when(state, *(submit(f"j{start + n}") for n in range(100)))
    first = summarize_jobs(when(state, set_quota(2000)))
    assert 0 < len(first) < 200
    assert len(first) + len(drain(state)) == 1000


# ---- nodes ---------------------------------------------------------------------------------


def test_a_job_waits_while_no_node_is_known() -> None:
    state = given(ADMISSION, POOL, ACME)
    assert summarize_jobs(when(state, submit("j1"))) == ["job.deferred j1 no_nodes"]
    assert summarize(when(state, joined("n1"))) == ["capacity.noted main", "job.admitted j1"]


def test_never_is_said_only_when_no_node_has_come_for_a_while() -> None:
    state = given(ADMISSION, POOL, ACME)
    found = when(state, submit("j1", gpus=8, workers=2), joined("n1"))
    assert summarize_jobs(found) == ["job.deferred j1 no_nodes"]
    assert ADMISSION.next_wake(state) == NOW + NODE_SETTLE_MS
    assert drain(state, NOW + NODE_SETTLE_MS - 1) == []
    assert summarize_jobs(when(state, joined("n2"), now=NOW + 1)) == ["job.admitted j1"]


def test_what_does_not_fit_once_nodes_have_settled_is_rejected() -> None:
    state = given(ADMISSION, POOL, ACME)
    when(state, submit("j1", gpus=8, workers=2), joined("n1"))
    assert summarize_jobs(drain(state, NOW + NODE_SETTLE_MS)) == ["job.rejected j1 infeasible"]


def test_a_silent_node_still_counts_and_one_that_left_does_not() -> None:
    state = pool()
    assert when(state, lost("n1", "silent")) == []
    assert summarize(when(state, lost("n1"), lost("n2"))) == ["capacity.noted main"]
    assert summarize_jobs(when(state, submit("j1"))) == ["job.deferred j1 no_nodes"]


def test_a_node_that_comes_back_as_it_was_is_no_news() -> None:
    assert when(pool(), joined("n1"), lost("n2"), joined("n2")) == []


def test_a_deferral_is_said_again_only_with_another_reason() -> None:
    state = given(ADMISSION, POOL, ACME, quota(0))
    when(state, submit("j1", gpus=8, workers=2))
    assert summarize_jobs(when(state, joined("n1"))) == []
    assert summarize_jobs(when(state, joined("n2"))) == ["job.deferred j1 quota"]
    assert summarize_jobs(when(state, set_quota(16))) == ["job.admitted j1"]


# ---- dependencies --------------------------------------------------------------------------


def test_a_job_waits_for_all_that_it_depends_on() -> None:
    state = pool()
    when(state, submit("a"), submit("b"))
    found = when(state, submit("c", depends_on=("a", "b")))
    assert summarize_jobs(found) == ["job.deferred c dependency"]
    assert summarize_jobs(when(state, placed(succeeded("a")))) == []
    assert summarize_jobs(when(state, placed(succeeded("b")))) == ["job.admitted c"]


def test_a_dependency_that_has_succeeded_is_no_wait() -> None:
    state = pool()
    when(state, submit("a"))
    when(state, placed(succeeded("a")))
    assert summarize_jobs(when(state, submit("b", depends_on=("a",)))) == ["job.admitted b"]


@pytest.mark.parametrize("end", [failed("a"), cancelled("a")])
def test_a_dependency_that_fails_takes_those_behind_it_along(end: Event) -> None:
    state = pool()
    when(state, submit("a"))
    when(state, submit("b", depends_on=("a",)), submit("c", depends_on=("b",)))
    assert summarize_jobs(when(state, placed(end))) == [
        "job.rejected b dependency_failed",
        "job.rejected c dependency_failed",
    ]
    assert summarize_jobs(when(state, submit("d", depends_on=("a",)))) == [
        "job.rejected d dependency_failed"
    ]


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [("ghost", "dependency_missing"), ("theirs", "dependency_missing"), ("me", "dependency_cycle")],
)
def test_a_dependency_that_can_never_be_met_is_refused(dependency: str, reason: str) -> None:
    state = pool()
    when(state, submit("theirs", "beta"))
    found = summarize(when(state, submit("me", depends_on=(dependency,))))
    assert found[1] == f"job.rejected me {reason}"


def test_an_array_may_not_wait_for_one_of_its_own_jobs() -> None:
    found = when(pool(), submit("me", size=3, depends_on=("me.0",)))
    assert summarize_jobs(found) == ["job.rejected me dependency_cycle"]


# ---- arrays --------------------------------------------------------------------------------


def test_an_array_is_as_many_jobs() -> None:
    found = summarize(when(pool(), submit("a", size=3)))
    assert found[1:] == ["array.accepted a", *(f"job.admitted a.{n}" for n in range(3))]


def test_a_large_array_comes_in_many_records_and_loses_nobody() -> None:
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
    found = summarize_jobs(when(state, placed(failed("a.0")), placed(succeeded("a.1"))))
    assert found == ["job.rejected b dependency_failed"]


def test_an_array_submitted_again_is_a_duplicate_while_it_runs_and_after() -> None:
    state = pool()
    when(state, submit("a", size=2))
    for end in (None, succeeded("a.0"), succeeded("a.1")):
        if end:
            when(state, placed(end))
        (answer,) = when(state, submit("a", size=2))
        assert isinstance(answer, CommandAccepted)
        assert answer.duplicate


# ---- cancel --------------------------------------------------------------------------------


def test_a_job_that_is_not_in_yet_is_cancelled_at_once() -> None:
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
    (asked,) = when(state, item)
    assert asked == CancelRequested(job_id="j1", tenant="acme", command_id="c9")
    assert when(state, item) == []
    end = placed(cancelled("j1"))
    assert summarize(when(state, end)) == ["jobs.released main", "command.accepted c9"]
    assert when(state, item) == []


@pytest.mark.parametrize("end", [succeeded("j1"), failed("j1")])
def test_a_finish_that_comes_before_the_cancel_wins(end: Event) -> None:
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
    found = summarize(when(state, cancel("j1", id_="c9"), placed(succeeded("j1"))))
    assert found == ["jobs.released main", "command.refused c9 already_finished"]


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
def test_a_cancel_that_finds_nothing_to_stop_is_refused(
    job_id: str, tenant: str | None, reason: str
) -> None:
    state = pool()
    when(state, submit("done"), submit("runs"))
    when(state, placed(succeeded("done")))
    (answer,) = when(state, cancel(job_id, tenant))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == reason


def test_ends_of_jobs_that_are_not_in_are_passed_over() -> None:
    state = pool()
    when(state, submit("j1"))
    assert len(when(state, placed(succeeded("j1")), placed(failed("j1")))) == 1
    assert when(state, placed(succeeded("j1")), placed(succeeded("ghost"))) == []


# ---- retries -------------------------------------------------------------------------------


def attempt_failed(attempt: int, node: str) -> JobAttemptFailed:
    return JobAttemptFailed(
        job_id="j1", tenant="acme", attempt=attempt, node_ids=(node,), reason="exit_code"
    )


def test_a_failed_attempt_is_tried_again_after_its_backoff() -> None:
    state = pool(POOL.model_copy(update={"time_scale": 10.0}))
    when(state, submit("j1", retry={"max_attempts": 3, "backoff_s": 20}))
    assert summarize(when(state, placed(attempt_failed(1, "n1")))) == ["attempt.noted j1"]
    assert ADMISSION.next_wake(state) == NOW + 2000
    assert drain(state, NOW + 1999) == []
    (again,) = drain(state, NOW + 2000)
    assert again == JobReadmitted(job_id="j1", tenant="acme", attempt=2, avoid_nodes=("n1",))


def test_all_nodes_of_failed_attempts_are_avoided() -> None:
    state = pool()
    when(state, submit("j1", retry={"max_attempts": 3}))
    when(state, placed(attempt_failed(1, "n1")))
    drain(state, NOW + 1000)
    when(state, placed(attempt_failed(2, "n2"), NOW + 1000), now=NOW + 1000)
    (again,) = drain(state, NOW + 2000)
    assert again == JobReadmitted(job_id="j1", tenant="acme", attempt=3, avoid_nodes=("n1", "n2"))


def test_a_job_may_go_back_to_the_node_that_failed_if_it_wants() -> None:
    state = pool()
    when(state, submit("j1", retry={"max_attempts": 3, "avoid_failed_node": False}))
    when(state, placed(attempt_failed(1, "n1")))
    (again,) = drain(state, NOW + 1000)
    assert isinstance(again, JobReadmitted)
    assert again.avoid_nodes == ()


def test_a_job_that_is_cancelled_while_it_backs_off_is_not_tried_again() -> None:
    state = pool()
    when(state, submit("j1", retry={"max_attempts": 3}))
    when(state, placed(attempt_failed(1, "n1")), cancel("j1"))
    when(state, placed(cancelled("j1")))
    assert ADMISSION.next_wake(state) is None
    assert drain(state, NOW + 10_000) == []


def test_a_job_that_backs_off_keeps_its_quota() -> None:
    state = pool(quota(1))
    when(state, submit("j1", retry={"max_attempts": 3}), submit("j2"))
    assert summarize_jobs(when(state, placed(attempt_failed(1, "n1")))) == []


# ---- what access says ----------------------------------------------------------------------


def test_what_access_says_is_restated_when_it_is_news() -> None:
    state = given(ADMISSION)
    said = [
        an_input(POOL, "access"),
        an_input(PoolConfigured(partition=1, pool="other"), "access"),
        an_input(TenantRegistered(tenant="acme", default_pool="main", weight=2), "access"),
    ]
    assert when(state, *said) == [POOL, TenantNoted(tenant="acme", weight=2)]
    assert when(state, *said) == []


def test_a_retired_tenants_jobs_go_on() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"))
    gone = an_input(TenantRetired(tenant="acme"), "access")
    assert when(state, gone) == [TenantNoted(tenant="acme", active=False)]
    assert summarize_jobs(when(state, placed(succeeded("j1")))) == ["job.admitted j2"]


def test_history_told_again_changes_nothing() -> None:
    state = pool(TenantNoted(tenant="acme", active=False))
    again = [
        an_input(TenantRegistered(tenant="acme", default_pool="main"), "access"),
        an_input(TenantRetired(tenant="acme"), "access"),
    ]
    assert when(state, *again) == []
