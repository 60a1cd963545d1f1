"""Rounds are run at their time, and say of jobs that stay in the queue what is new."""

from __future__ import annotations

from shared.contracts.placement import JobHeld, RoundEnded
from tests.services.placement.core.lane import job, kinds, lane, only, refused


def test_an_idle_pool_wants_no_wake() -> None:
    pool = lane("n1")
    assert pool.decider.next_wake(pool.state) is None
    pool.run(job("a"))
    assert pool.decider.next_wake(pool.state) is None


def test_a_job_does_not_wait_where_none_was_passed_over() -> None:
    pool = lane("n1")
    for name in "abc":
        assert kinds(pool.submit(job(name), after_ms=1)) == ["JobEnqueued", "JobPlaced"]


def test_a_contended_pool_has_one_round_per_round_ms() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"), job("a"))
    ended = pool.now
    assert kinds(pool.submit(job("b"), after_ms=10)) == ["JobEnqueued"]
    assert kinds(pool.exited("x", after_ms=10)) == ["AllocationReleased", "JobSucceeded"]
    assert pool.decider.next_wake(pool.state) == ended + 100
    assert kinds(pool.wake()) == ["JobPlaced", "JobHeld", "RoundEnded"]


def test_a_round_that_changes_nothing_is_not_repeated_until_something_happens() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"), job("a"))
    assert pool.decider.next_wake(pool.state) is None
    assert pool.feed(after_ms=10_000) == []
    assert pool.rank("a") != []
    assert pool.decider.next_wake(pool.state) is None


def test_a_reason_is_published_once_and_again_when_it_changes() -> None:
    pool = lane("n1", gpus=2)
    pool.run(job("x", 2))
    (held,) = only(JobHeld, pool.submit(job("a", 2)))
    assert isinstance(held, JobHeld)
    assert (held.reason, held.short_gpus) == ("no_capacity", 2)
    assert held.detail["free_gpus"] == 0
    assert only(JobHeld, pool.submit(job("b", 4), after_ms=100))[0].reason == "no_node_fits"
    assert only(JobHeld, pool.feed(after_ms=100)) == []
    pool.node("n2", gpus=4)
    assert (pool.job("a").phase, pool.job("b").hold_reason) == ("placed", "no_capacity")


def test_a_gang_is_short_by_the_workers_that_find_no_node() -> None:
    pool = lane("n1", "n2")
    pool.run(job("x", 6))
    (held,) = only(JobHeld, pool.submit(job("a", 4, workers=4)))
    assert isinstance(held, JobHeld)
    assert (held.reason, held.short_gpus) == ("no_capacity", 8)
    assert held.detail["workers_that_fit"] == 2


def test_at_most_512_reasons_are_published_per_round_the_best_ranked_first() -> None:
    pool = lane("n1", gpus=1)
    pool.run(job("x"))
    events = pool.submit(*(job(f"j{n:03}") for n in range(600)))
    held = only(JobHeld, events)
    assert len(held) == 512
    assert held[0].subject == "j000" and held[-1].subject == "j511"
    (ended,) = only(RoundEnded, events)
    assert isinstance(ended, RoundEnded) and ended.unfinished
    assert len(only(JobHeld, pool.wake())) == 88
    assert pool.decider.next_wake(pool.state) is None


def test_behind_the_next_in_the_queue_a_reason_is_published_once_until_nodes_change() -> None:
    """All wait for GPUs; a reservation changes the reason of the next in the queue."""
    pool = lane("n1", gpus=4)
    pool.run(job("x", 2), job("y", 2, preemptible=False))
    pool.submit(*(job(f"j{n:02}", 2) for n in range(20)), after_ms=1000)
    assert {each.hold_reason for each in pool.state.waiting.values()} == {"no_capacity"}
    pool.submit(job("high", 4, priority_class="high"), after_ms=1000)
    pool.exited("y", after_ms=1000)
    assert pool.job("high").hold_reason == "no_capacity"
    held = [pool.job(f"j{n:02}").hold_reason for n in range(20)]
    assert held[:7] == ["behind_reservation"] * 7 and held[7:] == ["no_capacity"] * 13
    pool.node("n2", gpus=1)
    pool.wake()
    assert {pool.job(f"j{n:02}").hold_reason for n in range(20)} == {"behind_reservation"}


def test_the_reason_of_a_job_in_backoff_is_published_once_that_is_over() -> None:
    pool = lane("n1", gpus=1)
    pool.submit(job("a"))
    pool.report(refused(pool.ids_of("a")[0], "a"))
    pool.submit(job("b"), after_ms=100)
    pool.submit(*(job(f"j{n:02}", at=1) for n in range(17)), after_ms=100)
    pool.feed(after_ms=500)
    assert pool.job("a").hold_reason == "no_capacity"


def test_a_round_is_cut_before_its_record_is_too_large_and_goes_on() -> None:
    pool = lane(*(f"n{n:02}" for n in range(40)), gpus=64)
    pool.submit(*(job(f"j{n}", 1, workers=64) for n in range(40)))
    assert sum(each.phase == "placed" for each in pool.state.jobs.values()) == 23
    pool.wake()
    assert not pool.state.waiting


def test_the_job_that_waited_longest_has_gpus_kept_for_it_after_a_while() -> None:
    pool = lane("n1", gpus=8, time_scale=100.0, reserve_after_s=300.0)
    pool.run(job("x", 4), job("y", 4))
    pool.submit(job("big", 8))
    pool.exited("x", after_ms=1000)
    pool.submit(job("small", 2), after_ms=1000)
    assert pool.job("small").phase == "placed", "big has not waited 300 cluster seconds yet"
    pool.submit(job("late", 2), after_ms=2000)
    assert pool.job("late").hold_reason == "behind_reservation"
    assert pool.job("big").hold_reason == "no_capacity"
    pool.ready("small", "y")
    pool.exited("small", "y", after_ms=100)
    assert pool.job("big").phase == "placed"


def test_a_higher_class_does_not_wait_behind_a_reservation() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0, reserve_after_s=300.0)
    pool.run(job("x", 4), job("big", 8))
    pool.submit(job("high", 2, priority_class="high"), job("same", 2), after_ms=1000)
    assert pool.job("high").phase == "placed"
    assert pool.job("same").hold_reason == "behind_reservation"


def test_nothing_is_kept_for_a_job_that_could_never_fit() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0, reserve_after_s=300.0)
    pool.run(job("x", 4), job("huge", 16))
    pool.submit(job("small", 2), after_ms=1000)
    assert pool.job("huge").hold_reason == "no_node_fits"
    assert pool.job("small").phase == "placed"


def test_without_reserve_after_s_nothing_is_kept_however_long_a_job_waits() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0)
    pool.run(job("x", 4), job("big", 8))
    pool.submit(job("small", 2), after_ms=100_000)
    assert pool.job("small").phase == "placed"


def test_a_round_waits_until_the_news_has_settled() -> None:
    pool = lane("n1", settle_ms=20)
    pool.submit(job("a"), after_ms=1000)
    begun = pool.now
    assert pool.decider.next_wake(pool.state) == begun + 20
    pool.submit(job("b"), after_ms=15)
    assert pool.decider.next_wake(pool.state) == begun + 35
    assert kinds(pool.wake()) == ["JobPlaced", "JobPlaced"]


def test_changes_push_a_round_off_ten_times_settle_ms_at_most() -> None:
    pool = lane("n1", settle_ms=20)
    pool.submit(job("first"), after_ms=1000)
    begun = pool.now
    for n in range(13):
        pool.submit(job(f"j{n}"), after_ms=15)
    assert pool.decider.next_wake(pool.state) == begun + 200
    assert "JobPlaced" in kinds(pool.submit(job("last"), after_ms=10))


def test_changes_while_no_job_waited_hurry_no_round() -> None:
    pool = lane("n1", settle_ms=20)
    pool.submit(job("a"), after_ms=1000)
    pool.wake()
    pool.submit(job("b"), after_ms=5000)
    assert pool.decider.next_wake(pool.state) == pool.now + 20


def test_a_settled_round_of_a_contended_pool_still_keeps_its_pace() -> None:
    pool = lane("n1", gpus=1, settle_ms=20, round_ms=100)
    pool.submit(job("a"), job("b"))
    pool.wake()
    ended = pool.now
    pool.submit(job("c"), after_ms=10)
    assert pool.decider.next_wake(pool.state) == ended + 100
    pool.submit(job("d"), after_ms=85)
    assert pool.decider.next_wake(pool.state) == ended + 115


def test_the_end_of_a_backoff_is_a_change_and_settles_like_one() -> None:
    pool = lane("n1", gpus=1, settle_ms=20)
    pool.submit(job("a"))
    pool.wake()
    pool.report(refused(pool.ids_of("a")[0], "a"))
    failed = pool.now
    pool.wake()
    assert pool.state.again_at == failed + 500
    assert pool.decider.next_wake(pool.state) == failed + 520
    pool.submit(job("b", 2), after_ms=470)
    assert pool.decider.next_wake(pool.state) == failed + 520
    pool.submit(job("c", 2), after_ms=20)
    assert pool.decider.next_wake(pool.state) == failed + 530


def test_the_solver_is_asked_only_where_a_better_plan_may_exist() -> None:
    pool = lane("n1", solver="cpsat", solver_ms=500)
    assert kinds(pool.submit(job("a", gpus=4), job("b", gpus=4), job("c", gpus=4)))[-4:] == [
        "JobPlaced",
        "JobPlaced",
        "JobHeld",
        "RoundEnded",
    ]
    other = lane("n1", solver="cpsat", solver_ms=500)
    assert "RoundOpened" in kinds(other.submit(job("a"), job("b", gpus=4), job("c", gpus=7)))
