from __future__ import annotations

from services.admission.core.evolve_pool import NODE_SETTLE_MS
from services.admission.core.state import JobIds
from services.admission.core.waiting import add_to, remove_from, waiting_tenants, wake_dependents
from tests.harness.decider import given
from tests.services.admission.core.cases import (
    ACME,
    ADMISSION,
    NOW,
    POOL,
    drain,
    joined,
    lost,
    pool,
    quota,
    set_quota,
    submit,
    summarize,
    summarize_jobs,
    when,
)


def test_a_job_waits_while_no_node_is_known() -> None:
    state = given(ADMISSION, POOL, ACME)
    assert summarize_jobs(when(state, submit("j1"))) == ["job.deferred j1 no_nodes"]
    assert summarize(when(state, joined("n1"))) == ["capacity.noted main", "job.admitted j1"]


def test_a_job_that_does_not_fit_is_deferred_while_nodes_still_join() -> None:
    state = given(ADMISSION, POOL, ACME)
    events = when(state, submit("j1", gpus=8, workers=2), joined("n1"))
    assert summarize_jobs(events) == ["job.deferred j1 no_nodes"]
    assert ADMISSION.next_wake(state) == NOW + NODE_SETTLE_MS
    assert drain(state, NOW + NODE_SETTLE_MS - 1) == []
    assert summarize_jobs(when(state, joined("n2"), now=NOW + 1)) == ["job.admitted j1"]


def test_a_job_that_does_not_fit_once_nodes_have_settled_is_rejected() -> None:
    state = given(ADMISSION, POOL, ACME)
    when(state, submit("j1", gpus=8, workers=2), joined("n1"))
    assert summarize_jobs(drain(state, NOW + NODE_SETTLE_MS)) == ["job.rejected j1 infeasible"]


def test_a_silent_node_still_counts_and_one_that_left_does_not() -> None:
    state = pool()
    assert when(state, lost("n1", "silent")) == []
    assert summarize(when(state, lost("n1"), lost("n2"))) == ["capacity.noted main"]
    assert summarize_jobs(when(state, submit("j1"))) == ["job.deferred j1 no_nodes"]


def test_a_node_that_comes_back_unchanged_is_not_noted() -> None:
    assert when(pool(), joined("n1"), lost("n2"), joined("n2")) == []


def test_a_deferral_is_repeated_only_with_another_reason() -> None:
    state = given(ADMISSION, POOL, ACME, quota(0))
    when(state, submit("j1", gpus=8, workers=2))
    assert summarize_jobs(when(state, joined("n1"))) == []
    assert summarize_jobs(when(state, joined("n2"))) == ["job.deferred j1 quota"]
    assert summarize_jobs(when(state, set_quota(16))) == ["job.admitted j1"]


def test_an_empty_queue_is_removed() -> None:
    queues: dict[str, JobIds] = {}
    add_to(queues, "acme", "j1")
    add_to(queues, "acme", "j2")
    remove_from(queues, "acme", "j1")
    assert list(queues["acme"]) == ["j2"]
    remove_from(queues, "acme", "j2")
    remove_from(queues, "beta", "j3")
    assert queues == {}


def test_a_dependent_is_ready_after_one_failure_or_all_successes() -> None:
    state = pool()
    when(state, submit("a"), submit("b"))
    when(state, submit("c", depends_on=("a", "b")))
    wake_dependents(state, "a", succeeded=True)
    assert list(state.waiting.ready) == []
    wake_dependents(state, "b", succeeded=False)
    assert list(state.waiting.ready) == ["c"]


def test_tenants_that_wait_for_quota_are_listed_once() -> None:
    state = pool(quota(1))
    when(state, submit("j1"), submit("j2"), submit("j3", gpus=4))
    assert waiting_tenants(state) == ["acme"]
