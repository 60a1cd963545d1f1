from __future__ import annotations

from services.admission.core.restate_placement import restate_placement
from services.admission.core.state import AdmissionState
from shared.contracts.attempts import JobAttemptFailed
from shared.contracts.base import Event
from shared.contracts.bookkeeping import AttemptNoted, CapacityNoted, JobEnd, JobsReleased
from shared.ledger.decider import Input
from tests.services.admission.core.cases import (
    NOW,
    POOL,
    failed,
    joined,
    lost,
    placed,
    pool,
    shape,
    submit,
    succeeded,
    when,
)

ATTEMPT = JobAttemptFailed(
    job_id="j1", tenant="acme", attempt=1, node_ids=("n1",), reason="exit_code"
)


def restate(state: AdmissionState, *inputs: Input) -> list[Event]:
    return [decision.event for decision in restate_placement(state, inputs, NOW)]


def pool_with_jobs(*job_ids: str) -> AdmissionState:
    state = pool(POOL.model_copy(update={"time_scale": 10.0}))
    when(state, *(submit(job_id, retry={"backoff_s": 20}) for job_id in job_ids))
    return state


def test_the_ends_of_one_batch_are_one_event() -> None:
    state = pool_with_jobs("j1", "j2")
    assert restate(state, placed(succeeded("j1")), placed(failed("j2"))) == [
        JobsReleased(
            pool="main",
            ends=(JobEnd(job_id="j1", outcome="succeeded"), JobEnd(job_id="j2", outcome="failed")),
        )
    ]


def test_the_first_end_of_a_job_counts() -> None:
    state = pool_with_jobs("j1")
    (event,) = restate(state, placed(failed("j1")), placed(succeeded("j1")))
    assert isinstance(event, JobsReleased)
    assert [end.outcome for end in event.ends] == ["failed"]


def test_the_backoff_is_in_cluster_seconds_from_the_failure() -> None:
    (event,) = restate(pool_with_jobs("j1"), placed(ATTEMPT, NOW - 500))
    assert event == AttemptNoted(
        job_id="j1", attempt=1, node_ids=("n1",), not_before=NOW - 500 + 2000
    )


def test_a_failure_dated_ahead_of_the_own_clock_backs_off_from_now() -> None:
    (event,) = restate(pool_with_jobs("j1"), placed(ATTEMPT, NOW + 60_000))
    assert isinstance(event, AttemptNoted)
    assert event.not_before == NOW + 2000


def test_an_attempt_and_the_end_behind_it_keep_their_order() -> None:
    events = restate(pool_with_jobs("j1"), placed(ATTEMPT), placed(succeeded("j1")))
    assert [type(event) for event in events] == [AttemptNoted, JobsReleased]


def test_the_node_changes_of_one_batch_are_one_event_with_their_net_effect() -> None:
    inputs = (lost("n1"), joined("n3"), lost("n3"), joined("n4"))
    assert restate(pool(), *inputs) == [
        CapacityNoted(pool="main", joined=(shape("n4"),), left=("n1",))
    ]
