"""The fold of priority's own ledger."""

from __future__ import annotations

import pytest

from services.priority.core.decide import Priority
from services.priority.core.evolve import FOLDS
from shared.contracts.attempts import JobSucceeded
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.ranking import (
    IntervalsDrifted,
    IntervalsRecovered,
    JobStartEstimated,
    PolicyDegraded,
    PolicyRestored,
    QueueChanged,
    QueueRanked,
    Ranked,
    ShadowRanked,
)
from shared.contracts.rejected import InputRejected
from shared.contracts.reranking import QueueReranked
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.harness.decider import AT, fold, given
from tests.services.priority.core.lane import pool

PRIORITY = Priority()
FAILED = PolicyDegraded(pool="p", learned="net", shadow=True, reason="unknown", detail="absent")
RANKED = QueueRanked(
    pool="p",
    base_policy="fcfs",
    runtime="none",
    ranked=(Ranked(job_id="a", score=1.0),),
    waiting=1,
    context=(0.5, 1.0, 0.0, 0.0),
)
WRITTEN = (
    pool(),
    TenantNoted(tenant="red", weight=2),
    QueueChanged(pool="p"),
    RANKED,
    ShadowRanked(pool="p", policy="sjf", top=(), agreement=1.0, waiting=0),
    FAILED,
    PolicyRestored(pool="p", learned="net", shadow=True),
    JobStartEstimated(job_id="a", tenant="red", pool="p", p10_at=1, p50_at=2, p90_at=3),
    IntervalsDrifted(pool="p", coverage=0.6, claimed=0.8, samples=900),
    IntervalsRecovered(pool="p", coverage=0.78, claimed=0.8, samples=1900),
    InputRejected(topic="admission", partition=0, offset=1, reason="not JSON", sha256="0" * 64),
)
"""One event of each type in the priority ledger."""


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("priority", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


@pytest.mark.parametrize("event", WRITTEN, ids=lambda event: event.TYPE)
def test_an_event_of_every_type_is_folded(event: Event) -> None:
    fold(PRIORITY, given(PRIORITY), [event])


def test_an_unknown_type_raises() -> None:
    with pytest.raises(TypeError, match=r"unknown type in the priority ledger: job\.succeeded\.v1"):
        fold(PRIORITY, given(PRIORITY), [JobSucceeded(job_id="a", tenant="red", attempt=1)])


def test_a_ranking_sets_the_head_and_the_context() -> None:
    state = given(PRIORITY, pool(), RANKED)
    assert (state.head, state.ranked_at, state.dirty) == ("a", AT, False)
    assert (state.context, state.context_at) == (RANKED.context, AT)
    fold(PRIORITY, state, [RANKED.model_copy(update={"context": ()})], at=AT + 5)
    assert (state.context_at, state.ranked_at) == (AT, AT + 5), (
        "without a context the old one holds"
    )


def test_changes_to_a_ranking_set_the_head_and_the_context() -> None:
    state = given(PRIORITY, pool(), RANKED.model_copy(update={"changes_follow": True}))
    b = Ranked(job_id="b", score=2.0)
    changes = QueueReranked(pool="p", number=1, ranked=(b,), places=(0,), context=(0.75,))
    fold(PRIORITY, state, [changes], at=AT + 5)
    assert (state.head, state.ranked_at, state.dirty) == ("b", AT + 5, False)
    assert (state.context, state.context_at) == ((0.75,), AT + 5)


def test_a_failure_is_kept_until_the_policy_is_restored() -> None:
    state = given(PRIORITY, pool(shadows=("net",)), FAILED)
    assert state.degraded == {"shadow net": "absent"}
    fold(PRIORITY, state, [PolicyRestored(pool="p", learned="net", shadow=True)])
    assert state.degraded == {}
