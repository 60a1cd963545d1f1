"""Run times go along with the ranks of waiting jobs where placement decides by them."""

from __future__ import annotations

from typing import Any

import pytest

from services.priority.core.ranking.rank_pool import rank
from services.priority.core.state import PriorityState
from shared.contracts.ranking import Finished, NodeGpus, QueueRanked
from tests.harness.decider import AT
from tests.services.priority.core.queues import change, entry, queue

BACKFILLS: dict[str, Any] = {"queue_mode": "easy", "easy_runtime": "history"}


def ranked(state: PriorityState) -> dict[str, float | None]:
    (decision,) = rank(state, {}, AT)
    event = decision.event
    assert isinstance(event, QueueRanked)
    return {job.job_id: job.run_s for job in event.ranked}


@pytest.mark.parametrize("policy", ["fcfs", "fair_share", "wfp3"])
def test_each_waiting_job_has_the_mean_of_its_distribution(policy: str) -> None:
    state = queue(entry("a"), entry("b", gpus=8), base_policy=policy, **BACKFILLS)
    means = {name: state.table.get(state.jobs[name].row, "mean_s") for name in ("a", "b")}
    assert ranked(state) == means


@pytest.mark.parametrize(
    "settings", [{}, {"queue_mode": "skip"}, {"queue_mode": "easy", "easy_runtime": "user"}]
)
def test_no_run_times_go_along_where_nothing_backfills_by_them(settings: dict[str, Any]) -> None:
    assert ranked(queue(entry("a"), **settings)) == {"a": None}


def test_a_pool_that_begins_to_backfill_ranks_anew() -> None:
    state = change(queue(entry("a")), nodes=(NodeGpus(node_id="n", gpus=8),))
    assert ranked(state)["a"] is None
    assert state.pool is not None
    state.pool = state.pool.model_copy(update=BACKFILLS)
    assert ranked(state)["a"] == state.table.get(state.jobs["a"].row, "mean_s")


def taught(policy: str, **settings: Any) -> PriorityState:
    """One job of the tenant has ended; one that waits declares a walltime, one does not."""
    state = queue(entry("old"), base_policy=policy, **settings)
    change(state, finished=(Finished(job_id="old", ran_s=600.0),), left=("old",))
    return change(state, entered=(entry("a"), entry("b", walltime_s=50.0)))


@pytest.mark.parametrize("policy", ["fcfs", "fair_share", "wfp3"])
@pytest.mark.parametrize("settings", [{"solver": "cpsat"}, {"scheduler": "afs"}])
def test_a_job_that_declares_no_walltime_has_that_of_history(
    policy: str, settings: dict[str, Any]
) -> None:
    state = taught(policy, queue_mode="skip", **settings)
    assert ranked(state) == {"a": state.table.get(state.jobs["a"].row, "mean_s"), "b": None}


@pytest.mark.parametrize("policy", ["fcfs", "fair_share"])
def test_without_history_a_run_time_is_not_known(policy: str) -> None:
    state = queue(entry("a"), solver="cpsat", queue_mode="skip", base_policy=policy)
    assert ranked(state) == {"a": None}


def test_under_easy_by_declared_times_none_goes_along() -> None:
    state = taught("fcfs", queue_mode="easy", easy_runtime="user", solver="cpsat")
    assert ranked(state) == {"a": None, "b": None}
