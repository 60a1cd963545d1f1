"""Elastic jobs: when growing is worth its restart, who shrinks for whom, and that it ends."""

from __future__ import annotations

import pytest

from services.placement.core.resize.elastic import RESIZES_PER_ROUND
from services.placement.core.resize.grow import LEAST_S
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobPreempted, JobRequeued, JobResized
from shared.contracts.base import Event
from shared.contracts.placement import JobHeld, JobPlaced, RoundEnded
from tests.services.placement.core.lane import Lane, job, kinds, lane, only


def elastic(name: str, least: int = 1, most: int = 8, **more: object) -> JobAdmitted:
    given: dict[str, object] = {"workers": least, "checkpoint_interval_s": 10.0, **more}
    return job(name, elastic={"min_workers": least, "max_workers": most}, **given)  # type: ignore[arg-type]


def resized(events: list[Event]) -> list[JobResized]:
    return [event for event in events if isinstance(event, JobResized)]


def pass_time(pool: Lane, seconds: float) -> list[Event]:
    """As the shell does: every due wake is served, and none leads to nothing."""
    end, decided = pool.now + round(seconds * 1000), list[Event]()
    while (due := pool.decider.next_wake(pool.state)) is not None and due <= end:
        now = pool.wake()
        assert now, "a wake without effect would come for ever"
        decided += now
    pool.now = end
    return decided


@pytest.fixture
def squeezed() -> Lane:
    """`e` runs with two workers beside `x`, and could use eight."""
    pool = lane("n1", min_residency_s=60.0)
    pool.run(job("x", 6, preemptible=False))
    pool.run(elastic("e", walltime_s=10_000))
    assert len(pool.job("e").allocations) == 2
    return pool


def test_a_job_grows_into_gpus_that_no_job_waits_for(squeezed: Lane) -> None:
    pool = squeezed
    pass_time(pool, 61)
    (decided,) = resized(pool.exited("x") + pass_time(pool, 1))
    assert (decided.reason, decided.from_workers, decided.to_workers) == ("grow", 2, 8)
    assert decided.lost_work_s == pytest.approx(1.1, abs=0.2)
    events = pool.stopped("e")
    requeued = only(JobRequeued, events)[0]
    assert isinstance(requeued, JobRequeued) and requeued.reason == "resized"
    placed = only(JobPlaced, events)[0]
    assert isinstance(placed, JobPlaced) and placed.allocations == decided.target
    assert pool.job("e").gpus == 8


def test_not_before_its_residency_is_over(squeezed: Lane) -> None:
    pool = squeezed
    assert not resized(pool.exited("x") + pass_time(pool, 58))
    assert resized(pass_time(pool, 3))


def test_at_most_once_per_residency(squeezed: Lane) -> None:
    pool = squeezed
    pass_time(pool, 61)
    pool.submit(job("y", 4))
    pool.exited("x")
    (first,) = resized(pass_time(pool, 2))
    assert first.to_workers == 4
    pool.stopped("e")
    pool.ready("e", "y")
    pool.exited("y")
    assert not resized(pass_time(pool, 59))
    (second,) = resized(pass_time(pool, 2))
    assert second.to_workers == 8


def test_not_while_somebody_waits(squeezed: Lane) -> None:
    pool = squeezed
    pool.submit(job("big", 8, workers=2))
    pool.exited("x")
    assert pool.job("big").phase == "waiting"
    assert not resized(pass_time(pool, 200))


@pytest.mark.parametrize(
    ("spec", "grows"),
    [
        ({"walltime_s": 2 * LEAST_S + 121}, True),
        ({"walltime_s": 2 * LEAST_S + 50}, False),
        ({"walltime_s": 10_000, "checkpoint_interval_s": None}, True),
        ({"walltime_s": 250, "checkpoint_interval_s": None}, False),
        ({"walltime_s": 10_000, "simulated": {"restart_s": 5000}}, False),
        ({}, False),
        ({"walltime_s": 10_000, "preemptible": False}, False),
        ({"walltime_s": 10_000, "guaranteed_s": 1000.0}, False),
    ],
    ids=["long", "short", "long_lossy", "short_lossy", "dear", "unknown", "never", "guaranteed"],
)
def test_only_if_the_restart_is_worth_it(spec: dict[str, object], grows: bool) -> None:
    """From 2 workers to 4 half of what is left is saved; it asked for 2, so walltime is of 2."""
    pool = lane("n1", gpus=4, min_residency_s=60.0)
    pool.run(job("x", 2))
    pool.run(elastic("e", 2, 4, **spec))
    pool.exited("x")
    assert bool(resized(pass_time(pool, 62))) == grows


def test_without_an_estimate_a_job_is_half_done() -> None:
    pool = lane("n1", gpus=4, min_residency_s=60.0)
    pool.run(job("x", 2))
    pool.run(elastic("e", 2, 4))
    pool.exited("x")
    begun = pool.now
    while not resized(pass_time(pool, 1)):
        assert pool.now - begun < 400_000
    assert pool.now - begun >= 2 * LEAST_S * 1000


def test_it_does_not_grow_onto_slower_nodes() -> None:
    pool = lane("n1", "n2", gpus=2, min_residency_s=0.0)
    pool.state.board.suspect("n2", "f", 2.0, None)
    pool.run(job("x", 2, preemptible=False))
    assert pool.nodes_of("x") == ("n1",)
    pool.run(elastic("slow", 2, 4, walltime_s=10_000))
    pool.exited("x")
    assert resized(pass_time(pool, 1)), "onto a faster one it does"
    pool = lane("n1", "n2", gpus=2, min_residency_s=0.0)
    pool.state.board.suspect("n2", "f", 2.0, None)
    pool.run(job("x", 2, node_selector={}, preemptible=False), elastic("y", 2, 2))
    pool.exited("x")
    pool.run(elastic("e", 2, 4, walltime_s=10_000))
    pool.exited("y")
    assert pool.nodes_of("e") == ("n1",)
    assert not resized(pass_time(pool, 600))


def test_a_few_grow_per_round_and_the_others_in_the_next() -> None:
    pool = lane(*(f"n{n}" for n in range(6)), gpus=2, min_residency_s=0.0)
    pool.run(*(job(f"x{n}", 1, preemptible=False) for n in range(12)))
    for n in range(6):
        pool.exited(f"x{2 * n}")
        pool.run(elastic(f"e{n}", 1, 2, walltime_s=10_000))
    pool.exited(*(f"x{2 * n + 1}" for n in range(6)))
    decided = pass_time(pool, 1)
    assert len(resized(decided)) == 6
    first = decided[: kinds(decided).index("RoundEnded")]
    assert len(resized(first)) == RESIZES_PER_ROUND


@pytest.fixture
def full() -> Lane:
    """`e` has all eight GPUs and could do with two."""
    pool = lane("n1", min_residency_s=60.0)
    pool.run(elastic("e", 2, 8))
    assert len(pool.job("e").allocations) == 8
    pass_time(pool, 61)
    return pool


def test_a_job_shrinks_as_little_as_lets_the_next_in_line_start(full: Lane) -> None:
    pool = full
    (decided,) = resized(pool.submit(job("a", 3)))
    assert (decided.reason, decided.from_workers, decided.to_workers) == ("shrink", 8, 5)
    assert decided.by_job_id == "a"
    events = pool.stopped("e", after_ms=100)
    assert [e.job_id for e in events if isinstance(e, JobPlaced)] == ["e", "a"]
    assert len(pool.job("e").allocations) == 5
    assert not pool.state.migrations and pool.job("a").phase == "placed"


def test_no_job_is_preempted_where_shrinking_is_enough(full: Lane) -> None:
    decided = full.submit(job("a", 3, priority_class="system"))
    assert resized(decided) and not only(JobPreempted, decided)


def test_one_that_shrinking_does_not_help_preempts_as_ever(full: Lane) -> None:
    decided = full.submit(job("a", 8, priority_class="high"))
    assert not resized(decided) and only(JobPreempted, decided)


def test_one_of_a_lower_class_waits(full: Lane) -> None:
    decided = full.submit(job("a", 3, priority_class="low"))
    assert not resized(decided) and only(JobHeld, decided)


def test_one_on_spot_waits(full: Lane) -> None:
    assert not resized(full.submit(job("a", 3, spot=True)))


def test_what_it_gives_up_is_kept_for_whom_it_shrank(full: Lane) -> None:
    pool = full
    pool.submit(job("a", 3))
    ids = pool.ids_of("e")
    pool.submit(job("b", 1), job("c", 2), after_ms=100)
    assert not resized(pass_time(pool, 10))
    assert pool.ids_of("e") == ids
    pool.stopped("e", after_ms=100)
    assert [pool.job(n).phase for n in "eabc"] == ["placed", "placed", "waiting", "waiting"]


def test_as_few_jobs_as_possible_shrink_the_lowest_class_first() -> None:
    pool = lane("n1", "n2", "n3", gpus=4, min_residency_s=0.0)
    pool.run(elastic("high", 1, 4, priority_class="high"))
    pool.run(elastic("low", 1, 4, priority_class="low"))
    pool.run(elastic("mid", 1, 4))
    pool.feed(after_ms=1000)
    (decided,) = resized(pool.submit(job("a", 2)))
    assert (decided.job_id, decided.to_workers) == ("low", 2)
    pool.stopped("low", after_ms=100)
    pool.ready("low", "a")
    pass_time(pool, 30)
    events_next = resized(pool.submit(job("b", 1, workers=3)) + pass_time(pool, 1))
    assert [(e.job_id, e.to_workers) for e in events_next] == [("mid", 2), ("low", 1)]


def test_a_young_one_does_not_shrink() -> None:
    pool = lane("n1", min_residency_s=60.0)
    pool.run(elastic("e", 2, 8))
    assert not resized(pool.submit(job("a", 3)) + pass_time(pool, 50))


def test_one_that_may_not_be_stopped_does_not_shrink() -> None:
    pool = lane("n1", min_residency_s=0.0)
    pool.run(elastic("e", 2, 8, preemptible=False))
    assert not resized(pool.submit(job("a", 3)) + pass_time(pool, 100))


def test_what_shrank_grows_again_when_the_line_is_empty(full: Lane) -> None:
    """And not for ever: a resize needs its residency, and one that nothing is gained by is none."""
    pool = full
    pool.submit(job("a", 3))
    pool.stopped("e", after_ms=100)
    pool.ready("e", "a")
    pool.exited("a")
    decided = pass_time(pool, 1000)
    assert [e.reason for e in resized(decided)] == ["grow"]
    pool.stopped("e", after_ms=100)
    pool.ready("e")
    assert len(pool.job("e").allocations) == 8
    assert not resized(pass_time(pool, 1000))


def test_a_pool_without_elastic_jobs_has_no_more_rounds_than_before() -> None:
    pool = lane("n1")
    pool.run(job("a", 2))
    pool.exited("a")
    assert not only(RoundEnded, [fact.event for fact in pool.facts])
    assert pool.decider.next_wake(pool.state) is None
