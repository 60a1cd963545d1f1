from __future__ import annotations

from services.admission.core.demand import node_kind_of
from services.admission.core.evolve_pool import NODE_SETTLE_MS
from shared.contracts.admission import JobDeferred
from shared.contracts.bookkeeping import CapacityNoted
from shared.contracts.command_answers import CommandRefused
from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import PoolDeleted
from tests.harness.decider import AT, an_input
from tests.services.admission.core.cases import (
    POOL,
    pool,
    quota,
    shape,
    submit,
    summarize_jobs,
    when,
)

SPEC = JobSpec.model_validate({"name": "train", "gang": {"gpus_per_worker": 4}})
DEFERRED = JobDeferred(job_id="j1", tenant="acme", reason="quota", spec=SPEC)


def test_nodes_of_one_class_are_counted_together() -> None:
    assert pool().node_kinds == {node_kind_of(shape("n1")): 2}


def test_a_node_that_left_is_no_longer_counted() -> None:
    state = pool(CapacityNoted(left=("n1", "n2")))
    assert (state.nodes, state.node_kinds) == ({}, {})


def test_a_node_with_another_shape_replaces_itself() -> None:
    state = pool(CapacityNoted(joined=(shape("n1", gpus=4),)))
    assert sorted((node.gpus, count) for node, count in state.node_kinds.items()) == [
        (4, 1),
        (8, 1),
    ]


def test_nodes_settle_some_time_after_the_last_change() -> None:
    assert pool().nodes_settled_at == AT + NODE_SETTLE_MS


def test_a_lowered_bound_skips_a_job_and_a_raised_one_queues_it_again() -> None:
    state = pool(quota(8), DEFERRED, quota(2))
    assert list(state.waiting.oversized["acme"]) == ["j1"]
    state = pool(quota(2), DEFERRED, quota(8))
    assert list(state.waiting.quota_queues["acme"]) == ["j1"]


def test_a_changed_spot_bound_of_the_pool_requeues_spot_jobs() -> None:
    spot = SPEC.model_copy(update={"spot": True})
    deferred = DEFERRED.model_copy(update={"spec": spot, "reason": "spot_quota"})
    state = pool(deferred, POOL.model_copy(update={"spot_gpus": 1.0}))
    assert list(state.waiting.oversized["acme"]) == ["j1"]


def test_a_deleted_pool_takes_no_jobs_until_it_is_configured_again() -> None:
    state = pool()
    when(state, submit("j1"))
    deleted = PoolDeleted(pool="main", partition=0)
    assert when(state, an_input(deleted, "access")) == [deleted]
    assert when(state, an_input(deleted, "access")) == []
    (answer,) = when(state, submit("j2"))
    assert isinstance(answer, CommandRefused)
    assert (answer.reason, answer.detail) == ("unknown_pool", "pool: 'main': was deleted")
    assert "j1" in state.admitted
    when(state, an_input(POOL, "access"))
    assert summarize_jobs(when(state, submit("j2"))) == ["job.admitted j2"]
