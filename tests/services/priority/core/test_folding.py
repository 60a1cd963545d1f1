"""The effect of `QueueChanged` on the state."""

from __future__ import annotations

from typing import Any

import pytest

from services.priority.core.state import PriorityState
from shared.contracts.ranking import Finished, NodeGpus, QueueRanked, Ranked
from tests.harness.decider import AT, fold
from tests.services.priority.core.lane import PRIORITY
from tests.services.priority.core.queues import change, entry, holding, queue


def ranked_queue(**settings: Any) -> PriorityState:
    ranked = QueueRanked(
        pool="p", base_policy="fcfs", waiting=2, ranked=(Ranked(job_id="a", score=1.0),)
    )
    return fold(PRIORITY, queue(entry("a"), entry("b", at=AT + 1), **settings), [ranked])


def test_a_job_that_ended_before_its_admission_was_read_never_enters() -> None:
    state = change(queue(), left=("a",))
    assert state.gone_early == {"a"}
    change(state, entered=(entry("a"),))
    assert (state.jobs, state.waiting, state.gone_early) == ({}, {}, set())


def test_a_running_job_is_seen_by_policies_once_its_entry_is_known() -> None:
    state = change(queue(), running=(holding("a", gpus=2),))
    assert len(state.view(AT).rows) == 0
    change(state, entered=(entry("a"),))
    view = state.view(AT)
    assert (view.job_ids.tolist(), view.waiting, view.used_gpus) == (["a"], 0, 2.0)


@pytest.mark.parametrize(
    ("fields", "dirty"),
    [
        ({"entered": (entry("c"),)}, True),
        ({"requeued": ("b",)}, True),
        ({"nodes": (NodeGpus(node_id="n", gpus=8),)}, True),
        ({"left": ("b",)}, False),
        ({"finished": (Finished(job_id="x", ran_s=5.0),)}, False),
    ],
)
def test_a_queue_that_only_shrinks_keeps_its_ranking(fields: dict[str, Any], dirty: bool) -> None:
    assert change(ranked_queue(), **fields).dirty is dirty


def test_a_departure_matters_where_scores_depend_on_other_jobs() -> None:
    assert change(ranked_queue(policy="fair_share"), left=("b",)).dirty


def test_a_node_without_gpus_is_dropped_and_the_context_is_stale() -> None:
    state = change(queue(), nodes=(NodeGpus(node_id="n", gpus=8),))
    assert state.capacity_gpus == 8.0
    state.context = (1.0,)
    change(state, nodes=(NodeGpus(node_id="n", gpus=0),))
    assert state.nodes == {}
    assert not state.context


def test_the_run_time_of_a_job_that_enters_and_ends_in_one_batch_is_learnt() -> None:
    state = change(
        queue(),
        entered=(entry("a", user="u", name="n"),),
        finished=(Finished(job_id="a", ran_s=64.0),),
        left=("a",),
    )
    assert state.history.estimate("red", "u", "n", 1).samples > 0
    assert state.jobs == {}
