"""The choice of GPUs: best fit, gangs, shares, types, labels, and what a plan leaves behind."""

from __future__ import annotations

import copy

import pytest

from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.view import view_of
from shared.contracts.placement import JobHeld, JobPlaced
from tests.services.placement.core.lane import Lane, job, lane, registered


def slots(pool: Lane, job_id: str) -> list[tuple[str, tuple[int, ...], int]]:
    allocations = pool.job(job_id).allocations.values()
    return [
        (allocation.slot.node_id, allocation.slot.gpus, allocation.slot.milli)
        for allocation in allocations
    ]


def test_a_job_goes_where_fewest_gpus_are_left_ties_by_name() -> None:
    pool = lane("n2", "n1", "n3")
    pool.submit(job("a", 5))
    pool.submit(job("b", 3))
    pool.submit(job("c", 8))
    assert [pool.nodes_of(name) for name in "abc"] == [("n1",), ("n1",), ("n2",)]


def test_the_gpus_of_a_worker_are_on_one_node() -> None:
    pool = lane("n1", "n2", gpus=4)
    pool.submit(job("a", 3), job("b", 3), job("c", 2))
    assert pool.job("c").phase == "waiting"


def test_a_gang_stays_on_one_node_if_one_can_hold_it() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("x", 2), job("a", 2, workers=4), job("b", 2, workers=3))
    assert [pool.nodes_of(name) for name in "xab"] == [("n1",), ("n2",), ("n1",)]


def test_a_gang_over_several_nodes_takes_the_roomiest_and_its_rest_fits_best() -> None:
    pool = lane("n1", "n2", "n3")
    pool.submit(job("x", 6), job("a", 2, workers=5))
    assert slots(pool, "a")[3:] == [("n2", (6, 7), 1000), ("n1", (6, 7), 1000)]
    pool.submit(job("b", 1, workers=8), job("c", 3, workers=1))
    assert pool.nodes_of("b") == ("n3",) and pool.job("c").phase == "waiting"


def test_a_gang_starts_whole_or_not_at_all() -> None:
    pool = lane("n1", "n2")
    (_, held, _) = pool.submit(job("a", 8, workers=3))
    assert isinstance(held, JobHeld) and held.reason == "no_node_fits"
    assert held.short_gpus == 8
    assert pool.free("n1") == [1000] * 8


def test_shares_are_packed_on_gpus_in_use_the_fullest_first() -> None:
    pool = lane("n1", "n2", gpus=2)
    pool.submit(job("a", 0.3), job("b", 0.8), job("c", 0.2), job("d", 0.5), job("e", 0.5))
    assert slots(pool, "a") == [("n1", (0,), 300)]
    assert slots(pool, "b") == [("n1", (1,), 800)]
    assert slots(pool, "c") == [("n1", (1,), 200)]
    assert slots(pool, "d") == [("n1", (0,), 500)]
    assert slots(pool, "e") == [("n2", (0,), 500)]


def test_a_gang_of_shares_is_all_or_nothing_too() -> None:
    pool = lane("n1", gpus=1)
    pool.submit(job("a", 0.4, workers=3))
    assert pool.job("a").phase == "waiting" and pool.free("n1") == [1000]
    pool.submit(job("b", 0.5, workers=2), after_ms=100)
    assert slots(pool, "b") == [("n1", (0,), 500), ("n1", (0,), 500)]


def test_a_share_never_takes_a_gpu_that_a_whole_job_holds() -> None:
    pool = lane("n1", gpus=1)
    pool.submit(job("a"), job("b", 0.1))
    assert pool.job("b").phase == "waiting"


def test_only_nodes_of_an_allowed_type_with_the_wanted_labels_are_taken() -> None:
    pool = lane("n1")
    pool.node("n2", gpu_type="h100")
    pool.node("n3", gpu_type="h100", labels={"net": "ib"})
    pool.submit(
        job("a", gpu_types=["h100"]),
        job("b", node_selector={"net": "ib"}),
        job("c", gpu_types=["h100", "a100"], node_selector={"net": "roce"}),
        job("d", 0.5, gpu_types=["h100"], node_selector={"net": "ib"}),
    )
    assert pool.nodes_of("a") == ("n2",)
    assert pool.nodes_of("b") == ("n3",)
    assert pool.job("c").hold_reason == "no_node_fits"
    assert pool.nodes_of("d") == ("n3",)


def test_cores_and_memory_count() -> None:
    pool = lane()
    pool.node("n1", cpus=8, mem_gib=8)
    pool.submit(job("a", cpus=6), job("b", cpus=3), job("c", cpus=2, mem_gib=7.5), job("d", 0))
    assert [pool.job(name).phase for name in "abcd"] == ["placed", "waiting", "waiting", "placed"]
    assert pool.job("b").hold_reason == "no_capacity"


def test_a_job_without_gpus_leaves_them_alone() -> None:
    pool = lane("n1", gpus=1)
    pool.submit(job("a"), job("b", 0, workers=2))
    assert slots(pool, "b") == [("n1", (), 1000), ("n1", (), 1000)]


def test_nodes_of_failed_attempts_are_avoided_while_others_could_ever_do() -> None:
    pool = lane("n1", "n2")
    pool.run(job("a", retry={"max_attempts": 3}), job("b", 8))
    pool.exited("a", code=1)
    pool.readmit("a", 2, "n1")
    assert pool.job("a").phase == "waiting", "n2 is full, but it could"
    pool.exited("b", after_ms=100)
    assert pool.nodes_of("a") == ("n2",)
    pool.ready("a")
    pool.exited("a", code=1, after_ms=100)
    pool.readmit("a", 3, "n1", "n2")
    assert pool.nodes_of("a") == ("n1",)


def test_an_elastic_job_takes_as_many_workers_as_fit_in_its_range() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("x", 7), job("a", 2, elastic={"min_workers": 2, "max_workers": 16}))
    assert len(pool.ids_of("a")) == 4
    pool.submit(job("b", 2, elastic={"min_workers": 2, "max_workers": 4}))
    assert pool.job("b").phase == "waiting"


@pytest.mark.parametrize("full", [False, True])
def test_a_plan_leaves_the_pool_as_it_was(full: bool) -> None:
    pool = lane("n1", "n2")
    pool.run(job("low", 6, workers=2 if full else 1, priority_class="low"))
    pool.state.settings = None
    pool.submit(job("a", 3), job("b", 0.4), job("c", 4, workers=3), job("d", priority_class="high"))
    pool.pool(round_ms=60_000)
    before = copy.deepcopy(pool.state)
    view = view_of(pool.state, pool.now + 10_000_000)
    assert plan(view, GREEDY) == plan(view, GREEDY)
    assert pool.state == before


def test_a_job_is_placed_although_one_before_it_does_not_fit() -> None:
    pool = lane("n1")
    pool.submit(job("x", 4))
    pool.submit(job("big", 8), job("small", 2))
    assert pool.job("big").hold_reason == "no_capacity"
    assert pool.job("small").phase == "placed"


def test_ranked_jobs_go_first_and_unranked_follow_as_submitted() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("x", 2))
    pool.submit(job("a", at=1), job("b", at=2), job("c", at=3))
    pool.rank("c", "x")
    pool.exited("x", after_ms=100)
    assert [pool.job(name).phase for name in "abc"] == ["placed", "waiting", "placed"]


def test_a_rank_may_come_before_its_job() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"))
    pool.rank("b", "a")
    pool.submit(job("a", at=1), job("b", at=2))
    events = pool.exited("x", after_ms=100)
    placed = next(event for event in events if isinstance(event, JobPlaced))
    assert (placed.job_id, placed.score, placed.policy) == ("b", 0.0, "fair_share+best_fit")
    assert placed.terms["rank_age_s"] == 0.1


def test_a_rank_older_than_ten_seconds_is_ignored_and_the_terms_say_so() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"))
    pool.rank("b", "a")
    pool.submit(job("a", at=1), job("b", at=2))
    events = pool.exited("x", after_ms=10_000)
    placed = next(event for event in events if isinstance(event, JobPlaced))
    assert (placed.job_id, placed.score, placed.policy) == ("a", None, "class_submit+best_fit")
    assert placed.terms["rank_stale"] == 1


def test_a_higher_class_never_waits_behind_a_lower_one_whatever_the_rank() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x", preemptible=False))
    pool.submit(job("a"), job("high", priority_class="high"))
    pool.rank("a", "high")
    pool.exited("x", after_ms=100)
    assert pool.job("high").phase == "placed"


def test_ranks_of_jobs_that_hold_gpus_are_not_noted() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"))
    assert pool.rank("x") == []


def test_a_node_of_a_backend_that_the_pool_does_not_allow_is_left_alone() -> None:
    pool = lane()
    pool.report(registered("n1", backend="process"))
    pool.submit(job("a"))
    assert pool.job("a").hold_reason == "no_node_fits"
    pool.pool(backends=["virtual", "process"])
    pool.feed(after_ms=100)
    assert pool.nodes_of("a") == ("n1",)
