"""Small jobs move together so that a larger one fits: who, when, where to, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.attempts import JobMigrated
from shared.contracts.base import Event
from shared.contracts.placement import JobPlaced
from shared.contracts.pools import NEVER_S
from tests.services.placement.core.lane import Lane, job, kinds, lane

AFTER_S = 1000.0
AFTER_MS = 1_000_000


def scattered(*nodes: str, **settings: Any) -> Lane:
    """A pool in which the small jobs of a node move once they ran for `AFTER_S`."""
    fields: dict[str, Any] = {
        "preemption": "ranked",
        "rank_ms": 0,
        "settle_ms": 1,
        "min_residency_s": 300.0,
        "defragment_after_s": AFTER_S,
    }
    return lane(*nodes, round_ms=1, **{**fields, **settings})


def begin(pool: Lane, *names_gpus: tuple[str, int], **spec: Any) -> None:
    """Jobs of so many GPUs run, each on the node where best fit puts it."""
    for name, gpus in names_gpus:
        pool.submit(job(name, gpus, **spec))
        pool.wake()
        pool.ready(name)


def migrations(events: list[Event]) -> list[JobMigrated]:
    return [event for event in events if isinstance(event, JobMigrated)]


def candidate(pool: Lane, *jobs: object, after_ms: int = AFTER_MS) -> list[Event]:
    pool.submit(*jobs, after_ms=after_ms)  # type: ignore[arg-type]
    return pool.wake()


def halves() -> Lane:
    """Node a: y with 2 GPUs. Node b: z with 4. Ten GPUs are free, but no eight in one piece."""
    pool = scattered("a", "b")
    begin(pool, ("x", 6), ("y", 2), ("z", 4))
    pool.exited("x")
    assert (pool.nodes_of("y"), pool.nodes_of("z")) == (("a",), ("b",))
    return pool


def test_the_node_with_the_least_in_use_is_emptied_and_the_job_has_it() -> None:
    pool = halves()
    events = candidate(pool, job("large", 8))
    (migration,) = migrations(events)
    assert (migration.job_id, migration.reason, migration.by_job_id) == ("y", "defragment", "large")
    assert (migration.from_nodes, migration.to_nodes) == (("a",), ("b",))
    assert [a.gpus for a in migration.target] == [(4, 5)]
    pool.stopped("y")
    then = pool.wake()
    placed = [(e.job_id, e.policy) for e in then if isinstance(e, JobPlaced)]
    assert placed[0] == ("y", "kept") and placed[1][0] == "large"
    assert (pool.nodes_of("y"), pool.nodes_of("large")) == (("b",), ("a",))
    assert not pool.state.reservations and not pool.state.migrations


def test_what_is_left_is_kept_for_the_job_whoever_comes_meanwhile() -> None:
    pool = halves()
    candidate(pool, job("large", 8))
    pool.submit(job("late", 2))
    pool.score(late=9.0, large=1.0)
    events = pool.wake()
    assert "JobPlaced" not in kinds(events) or pool.nodes_of("late") == ("b",)
    pool.stopped("y")
    pool.wake()
    assert pool.nodes_of("large") == ("a",)


def test_no_job_migrates_before_its_time_nor_without_the_setting() -> None:
    assert not migrations(candidate(halves(), job("large", 8), after_ms=AFTER_MS - 10_000))
    for settings in ({"defragment_after_s": NEVER_S}, {"preemption": "class"}):
        pool = scattered("a", "b", **settings)
        begin(pool, ("x", 6), ("y", 2), ("z", 4))
        pool.exited("x")
        assert not migrations(candidate(pool, job("large", 8)))


@pytest.mark.parametrize("fields", [{"preemptible": False}, {"guaranteed_s": 2000.0}])
def test_a_job_that_may_not_be_stopped_stays(fields: dict[str, object]) -> None:
    pool = scattered("a", "b")
    begin(pool, ("x", 6))
    begin(pool, ("y", 2), **fields)
    begin(pool, ("z", 4))
    pool.exited("x")
    assert [m.job_id for m in migrations(candidate(pool, job("large", 8)))] in ([], ["z"])


def test_no_job_of_a_higher_class_migrates() -> None:
    pool = scattered("a", "b")
    begin(pool, ("x", 6))
    begin(pool, ("y", 2), priority_class="high")
    begin(pool, ("z", 4))
    pool.exited("x")
    assert [m.job_id for m in migrations(candidate(pool, job("large", 8)))] == ["z"]


def test_all_who_move_have_at_most_half_of_the_jobs_gpus() -> None:
    pool = scattered("a", "b", "c")
    begin(pool, ("x", 3), ("y", 5), ("u", 3), ("v", 5))
    begin(pool, ("z", 2), preemptible=False)
    pool.exited("x", "u")
    assert [pool.nodes_of(n) for n in ("y", "v", "z")] == [("a",), ("b",), ("c",)]
    assert not migrations(candidate(pool, job("large", 8)))


def test_a_gang_does_not_move() -> None:
    pool = scattered("a", "b")
    begin(pool, ("x", 6))
    pool.submit(job("gang", 1, workers=2))
    pool.wake()
    pool.ready("gang")
    begin(pool, ("z", 5))
    pool.exited("x")
    assert pool.nodes_of("gang") == ("a",)
    assert [m.job_id for m in migrations(candidate(pool, job("large", 8)))] == []


def test_a_gang_of_two_nodes_has_both_emptied() -> None:
    pool = scattered("a", "b", "c")
    begin(pool, ("x1", 7), ("y1", 1), ("x2", 7), ("y2", 1), ("z", 2))
    pool.exited("x1", "x2")
    assert [pool.nodes_of(n) for n in ("y1", "y2", "z")] == [("a",), ("b",), ("c",)]
    events = candidate(pool, job("large", 8, workers=2))
    assert {(m.job_id, m.to_nodes) for m in migrations(events)} == {("y1", ("c",)), ("y2", ("c",))}
    pool.stopped("y1", "y2")
    pool.wake()
    assert set(pool.nodes_of("large")) == {"a", "b"}


def test_no_job_moves_for_one_that_measures_another_one() -> None:
    pool, made = halves(), job("large", 8)
    spec = made.spec.model_copy(update={"measures": "other"})
    assert migrations(candidate(pool, made.model_copy(update={"spec": spec}))) == []
