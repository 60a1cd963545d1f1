"""Order of the jobs under the base policies, and how often a pool is ranked."""

from __future__ import annotations

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from services.priority.core.decide import HEAD_MS, REFRESH_MS
from shared.contracts.access import TenantRegistered
from shared.contracts.attempts import JobAttemptFailed, JobRequeued, JobSucceeded
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import RANKED_MOST, QueueChanged, QueueRanked
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, fold, given, run, wake
from tests.harness.hash_seeds import printed_under_two_hash_seeds
from tests.services.priority.core.lane import (
    PRIORITY,
    admitted,
    from_placement,
    order,
    placed,
    pool,
    started,
)


def test_first_come_goes_first() -> None:
    state = given(PRIORITY, pool())
    assert order(state, [admitted("b", at=AT + 5), admitted("a", at=AT + 9)]) == ["b", "a"]


def test_a_higher_class_goes_first_under_priority_class() -> None:
    state = given(PRIORITY, pool("priority_class"))
    jobs = [admitted("a"), admitted("b", at=AT + 1, cls="high"), admitted("c", cls="low")]
    assert order(state, jobs, AT + 1) == ["b", "a", "c"]


def test_tenants_alternate_under_fair_share() -> None:
    state = given(PRIORITY, pool("fair_share"))
    jobs = [admitted(f"r{n}", at=AT + n) for n in range(3)]
    jobs += [admitted(f"b{n}", tenant="blue", at=AT + 10 + n) for n in range(3)]
    assert order(state, jobs, AT + 20) == ["r0", "b0", "r1", "b1", "r2", "b2"]


def test_a_tenant_of_twice_the_weight_goes_twice_as_often() -> None:
    state = given(PRIORITY, pool("fair_share"))
    heavy = TenantRegistered(tenant="blue", default_pool="p", weight=2)
    jobs = [an_input(heavy, "access")]
    jobs += [admitted(f"r{n}", at=AT + n) for n in range(4)]
    jobs += [admitted(f"b{n}", tenant="blue", at=AT + 10 + n) for n in range(4)]
    first = order(state, jobs, AT + 20)[:6]
    assert sum(name.startswith("b") for name in first) == 4


def test_use_counts_half_after_one_half_life() -> None:
    state = given(PRIORITY, pool("fair_share", half_life_s=100, time_scale=10))
    run(PRIORITY, state, [admitted("r"), placed("r", gpus=4, at=AT)])
    end = JobSucceeded(job_id="r", tenant="red", attempt=1)
    run(PRIORITY, state, [from_placement(end, AT + 10_000)], AT + 10_000)
    assert state.usage["red"].decayed(AT + 10_000, state.half_life_wall_s) == 40
    assert state.usage["red"].decayed(AT + 20_000, state.half_life_wall_s) == 20


def test_a_tenant_that_used_more_waits_longer() -> None:
    state = given(PRIORITY, pool("fair_share"))
    run(PRIORITY, state, [admitted("r"), placed("r", gpus=8)])
    jobs = [admitted("r2", at=AT), admitted("b", tenant="blue", at=AT + 9)]
    assert order(state, jobs, AT + 60_000) == ["b", "r2"]


def test_a_batch_gives_one_change_and_a_rank_at_most_once_a_second() -> None:
    state = given(PRIORITY, pool())
    events = run(PRIORITY, state, [admitted("a"), admitted("b")])
    assert [type(e) for e in events] == [QueueChanged, QueueRanked]
    assert [type(e) for e in run(PRIORITY, state, [admitted("c")], AT + 10)] == [QueueChanged]
    assert PRIORITY.next_wake(state) == AT + 1000
    assert wake(PRIORITY, state, AT + 999) == []
    assert [type(e) for e in wake(PRIORITY, state, AT + 1000)] == [QueueRanked]


def test_a_pool_sets_how_often_it_is_ranked() -> None:
    state = given(PRIORITY, pool(rank_ms=100))
    run(PRIORITY, state, [admitted("a"), admitted("b", at=AT + 1)])
    run(PRIORITY, state, [admitted("c")], AT + 10)
    assert PRIORITY.next_wake(state) == AT + 100
    run(PRIORITY, state, [placed("a")], AT + 20)
    assert PRIORITY.next_wake(state) == AT + 100, "its pace is never slower without a head"


def test_without_a_pause_every_change_is_ranked_at_once() -> None:
    state = given(PRIORITY, pool(rank_ms=0))
    for now, job in ((AT, "a"), (AT, "b"), (AT + 1, "c")):
        events = run(PRIORITY, state, [admitted(job)], now)
        assert [type(e) for e in events] == [QueueChanged, QueueRanked]
    assert PRIORITY.next_wake(state) is None


def test_a_start_changes_no_order_so_nothing_is_ranked() -> None:
    state = given(PRIORITY, pool(rank_ms=0))
    run(PRIORITY, state, [admitted("a"), admitted("b"), placed("a")])
    events = run(PRIORITY, state, [started("a", AT + 5)], AT + 5)
    assert [type(e) for e in events] == [QueueChanged]


def test_a_job_that_leaves_changes_no_order_so_nothing_is_ranked() -> None:
    state = given(PRIORITY, pool("sjf", rank_ms=0))
    run(PRIORITY, state, [admitted(name) for name in "abc"])
    end = JobSucceeded(job_id="a", tenant="red", attempt=1)
    for now, gone in ((AT + 1, placed("a")), (AT + 2, from_placement(end)), (AT + 9, placed("b"))):
        assert [type(e) for e in run(PRIORITY, state, [gone], now)] == [QueueChanged]
        assert PRIORITY.next_wake(state) is None


def test_a_queue_longer_than_its_ranking_is_ranked_when_a_job_leaves() -> None:
    state = given(PRIORITY, pool(rank_ms=0))
    jobs = [admitted(f"j{n:04d}", at=AT + n) for n in range(RANKED_MOST + 1)]
    assert len(order(state, jobs)) == RANKED_MOST
    assert order(state, [placed("j0000")], AT + 1)[-1] == f"j{RANKED_MOST:04d}"
    events = run(PRIORITY, state, [placed("j0001")], AT + 2)
    assert [type(e) for e in events] == [QueueChanged], "the last ranking named all the rest"


def test_where_rank_may_stop_jobs_a_start_is_ranked() -> None:
    state = given(PRIORITY, pool("srsf", rank_ms=0, preemption="ranked"))
    run(PRIORITY, state, [admitted("a"), admitted("b")])
    events = run(PRIORITY, state, [placed("a")], AT + 1)
    assert [type(e) for e in events] == [QueueChanged, QueueRanked]
    assert PRIORITY.next_wake(state) == AT + 1 + REFRESH_MS


def test_it_ranks_sooner_when_the_head_is_gone() -> None:
    state = given(PRIORITY, pool("wfp3"))
    run(PRIORITY, state, [admitted("a"), admitted("b", at=AT + 1)])
    run(PRIORITY, state, [placed("a")], AT + 10)
    assert PRIORITY.next_wake(state) == AT + HEAD_MS


def test_an_unchanged_queue_is_ranked_again_before_its_rank_is_stale() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a")])
    assert PRIORITY.next_wake(state) == AT + REFRESH_MS < AT + 10_000


def test_an_empty_queue_sleeps() -> None:
    state = given(PRIORITY, pool())
    assert PRIORITY.next_wake(state) is None
    run(PRIORITY, state, [admitted("a"), placed("a")])
    assert PRIORITY.next_wake(state) is None


def test_events_of_placement_may_come_before_admission() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [placed("a")])
    run(PRIORITY, state, [admitted("a")])
    assert "a" not in state.waiting and state.jobs["a"].phase == "running"
    end = JobSucceeded(job_id="z", tenant="red", attempt=1)
    run(PRIORITY, state, [from_placement(end)])
    run(PRIORITY, state, [admitted("z")])
    assert "z" not in state.waiting and state.gone_early == set()


def test_a_requeued_job_waits_again_and_a_failed_attempt_only_once_it_is_enqueued() -> None:
    state = given(PRIORITY, pool())
    run(PRIORITY, state, [admitted("a"), placed("a")])
    again = JobRequeued(job_id="a", tenant="red", attempt=2, reason="preempted")
    run(PRIORITY, state, [from_placement(again)])
    assert list(state.waiting) == ["a"]
    failed = JobAttemptFailed(job_id="a", tenant="red", attempt=2, reason="exit_code")
    run(PRIORITY, state, [placed("a"), from_placement(failed)])
    assert state.waiting == {}
    spec = JobSpec(name="a")
    back = JobEnqueued(job_id="a", tenant="red", attempt=3, submitted_at=1, spec=spec)
    run(PRIORITY, state, [from_placement(back)])
    assert list(state.waiting) == ["a"]


def test_pool_settings_are_written_once() -> None:
    state = given(PRIORITY)
    config = an_input(pool(), "access")
    assert run(PRIORITY, state, [config]) == [pool()]
    assert run(PRIORITY, state, [config]) == []
    other = PoolConfigured(pool="q", partition=1)
    assert run(PRIORITY, state, [an_input(other, "access")]) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "place", "end", "requeue"]),
        st.integers(0, 6),
        st.sampled_from(["red", "blue", "green"]),
    ),
    max_size=40,
)


def an_input_of(kind: str, number: int, tenant: str) -> Input:
    job = f"{tenant}{number}"
    match kind:
        case "admit":
            return admitted(job, tenant=tenant, at=AT + number)
        case "place":
            return placed(job, tenant=tenant, gpus=number + 1)
        case "requeue":
            return from_placement(
                JobRequeued(job_id=job, tenant=tenant, attempt=2, reason="preempted")
            )
        case _:
            return from_placement(JobSucceeded(job_id=job, tenant=tenant, attempt=1))


@for_all(STEPS)
def test_the_state_is_a_fold_of_the_ledger(steps: list[tuple[str, int, str]]) -> None:
    state, events, now = given(PRIORITY, pool("fair_share")), [], AT
    for step in steps:
        now += 300
        for event in run(PRIORITY, state, [an_input_of(*step)], now):
            events.append((event, now))
    again = given(PRIORITY, pool("fair_share"))
    for event, at in events:
        fold(PRIORITY, again, [event], at=at)
    assert again == state
    assert all(state.jobs[job].phase == "waiting" for job in state.waiting)


SCRIPT = """
from tests.services.priority.core.lane import *
from tests.harness.decider import given, run
state, out = given(PRIORITY, pool("fair_share")), []
for n in range(60):
    tenant = ["red", "blue", "green", "grey"][n % 4]
    out += run(PRIORITY, state, [admitted(f"j{n}", tenant=tenant, at=AT + n % 7)], AT + n * 40)
    if n % 3 == 0:
        out += run(PRIORITY, state, [placed(f"j{n // 2}", tenant=tenant)], AT + n * 40 + 1)
print([e.model_dump_json() for e in out])
"""


@pytest.mark.process
def test_two_hash_seeds_give_the_same_decisions() -> None:
    first, second = printed_under_two_hash_seeds(SCRIPT)
    assert first == second
