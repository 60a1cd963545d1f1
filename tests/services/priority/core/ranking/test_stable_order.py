"""A pool with stable keys is ranked by looking only at the jobs that began or ceased to wait."""

from __future__ import annotations

from random import Random

from services.priority.core.policies.runtimes import RunTimes
from services.priority.core.queue.queue_view import NO_ROWS, QueueView
from services.priority.core.queue.table import RUNNING, WAITING
from services.priority.core.ranking.stable_order import (
    rank_running,
    rank_stable,
    refresh_order,
    runtime_terms,
)
from services.priority.core.state import PriorityState
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import Ranked
from tests.harness.decider import AT
from tests.services.priority.core.queues import change, entry, happen, holding, queue


def settings(state: PriorityState, **more: object) -> PoolConfigured:
    assert state.pool is not None
    return state.pool.model_copy(update=more)


def ids(jobs: tuple[Ranked, ...]) -> list[str]:
    return [job.job_id for job in jobs]


def test_waiting_jobs_are_ranked_by_the_policy_of_the_pool() -> None:
    state = queue(entry("b", at=AT + 5), entry("a", at=AT + 9), base_policy="fcfs")
    result = rank_stable(state, settings(state), AT + 10)
    assert ids(result.ranked) == ["b", "a"]
    assert (result.pool, result.base_policy, result.waiting) == ("p", "fcfs", 2)


def test_a_job_that_enters_or_leaves_changes_the_cached_order() -> None:
    state = queue(entry("b", gpus=2), entry("c", gpus=4), base_policy="smallest_first")
    assert ids(rank_stable(state, settings(state), AT).ranked) == ["b", "c"]
    change(state, entered=(entry("a", gpus=1),), left=("b",))
    assert ids(rank_stable(state, settings(state), AT).ranked) == ["a", "c"]


def test_another_policy_begins_a_new_order() -> None:
    state = queue(entry("old", gpus=4), entry("small", at=AT + 1), base_policy="fcfs")
    assert ids(rank_stable(state, settings(state), AT).ranked) == ["old", "small"]
    changed = settings(state, base_policy="smallest_first")
    assert ids(rank_stable(state, changed, AT).ranked) == ["small", "old"]


def test_an_order_without_changes_is_not_computed_again() -> None:
    state = queue(entry("a"), base_policy="fcfs")
    first = refresh_order(state, settings(state), AT).first()
    assert refresh_order(state, settings(state), AT + 1000).first() is first


def test_a_policy_by_run_times_names_their_source() -> None:
    state = queue(entry("a", walltime_s=60.0), base_policy="sjf", runtime="user")
    assert rank_stable(state, settings(state), AT).runtime == "user"
    fcfs = queue(entry("a"), base_policy="fcfs", runtime="user")
    assert rank_stable(fcfs, settings(fcfs), AT).runtime == "none"


def test_running_jobs_are_listed_lowest_first_where_rank_preempts() -> None:
    state = queue(entry("old"), entry("new", at=AT + 5), base_policy="fcfs", preemption="ranked")
    change(state, running=(holding("old"), holding("new")))
    result = rank_stable(state, settings(state), AT + 10)
    assert ids(result.running) == ["new", "old"]
    assert result.running == rank_running(state, settings(state), AT + 10)
    assert rank_stable(state, settings(state, preemption="none"), AT + 10).running == ()


def test_the_jobs_by_source_are_counted_as_over_all_rows() -> None:
    chance = Random(7)
    names = [f"j{n:02d}" for n in range(20)]
    state = queue(*(entry(name) for name in names), base_policy="srsf", runtime="history")
    now, seen = AT, set[tuple[str, ...]]()
    for _ in range(400):
        happen(chance, state, names, now)
        now += 700
        view = QueueView(
            state.table, state.clock(now), 0.0, state.table.unordered(WAITING, RUNNING), NO_ROWS
        )
        counts = RunTimes(view, "history", used=True).terms()
        assert runtime_terms(state, now, "history") == counts
        seen.add(tuple(counts))
    assert ("runtime.history", "runtime.prior") in seen
