from __future__ import annotations

from shared.contracts.admission import JobReadmitted
from shared.contracts.attempts import JobAttemptFailed
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    POOL,
    cancel,
    cancelled,
    drain,
    placed,
    pool,
    quota,
    submit,
    summarize,
    summarize_jobs,
    when,
)


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


def test_a_job_may_return_to_the_node_that_failed_if_its_spec_allows() -> None:
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
