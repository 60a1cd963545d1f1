"""Greedy's plan in the numbers of the instance: a plan that the solver has to improve on."""

from __future__ import annotations

from services.placement.core.solver.greedy_plan import plan_of_window
from services.placement.core.solver.offered_victims import offer_victims
from tests.services.placement.core.lane import job, lane
from tests.services.placement.core.solver.rounds import contended, exported, preempting, window_of


def test_greedys_starts_are_those_of_the_same_view() -> None:
    (start,) = exported(contended("x")).greedy.starts
    assert start.request == 0 and [slot.gpus for slot in start.slots] == [(0, 1, 2, 3, 4, 5)]


def test_a_job_that_stops_another_reserves_what_is_freed() -> None:
    with window_of(preempting("x")) as (window, greedy):
        board = window.view.board
        before = list(board.nodes["x"].free)
        numbers = offer_victims(window, greedy).numbers()
        plan = plan_of_window(window.trial, window, greedy, numbers)
        assert [(kept.request, kept.workers) for kept in plan.reservations] == [(0, (("x", 1),))]
        assert plan.stops == (0,) and not plan.starts
        assert board.nodes["x"].free == before, "the trial is as it was"


def test_a_victim_that_is_not_offered_frees_nothing_for_a_reservation() -> None:
    with window_of(preempting("x")) as (window, greedy):
        plan = plan_of_window(window.trial, window, greedy, {})
        assert not plan.reservations and not plan.stops


def test_a_start_on_gpus_that_the_window_has_reserved_is_not_part_of_the_plan() -> None:
    pool = lane("x")
    pool.run(job("fixed", 3, preemptible=False))
    pool.run(job("low1", priority_class="low"), job("low3", 3, priority_class="low"))
    pool.submit(job("high", 4, priority_class="high"))
    pool.submit(job("system", priority_class="system"), after_ms=1000)
    assert sorted(pool.state.reservations) == ["high", "system"]
    with window_of(pool) as (window, greedy):
        assert [assignment.job.job_id for assignment in greedy.assignments] == ["system"]
        assert not plan_of_window(window.trial, window, greedy, {}).starts
    assert exported(pool).requests[0].job_id == "system"
