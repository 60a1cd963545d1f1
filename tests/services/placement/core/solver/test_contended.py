"""Contended rounds: opened for the solver, answered, or ended without it."""

from __future__ import annotations

import pytest

from services.placement.core.solver.contended import (
    instance_for_round,
    no_plan,
    plan_ready,
    solve_now,
)
from services.placement.core.solver.instance import Instance, RoundPlan
from services.placement.core.solver.solve import solve
from shared.contracts.attempts import JobMigrated, JobPreempted
from shared.contracts.base import Event
from shared.contracts.nodes import CordonNode
from shared.contracts.placement import JobPlaced, RoundEnded, RoundOpened, SolverStatus
from shared.contracts.solver_plan import PlanReady
from tests.services.placement.core.lane import Lane, job, kinds, lane, only

WORK = 2.0


def contended(*nodes: str, gpus: int = 8, **settings: object) -> Lane:
    """A pool that asks its solver."""
    return lane(*nodes, gpus=gpus, solver="cpsat", solver_ms=500, **settings)


def ready(made: Lane) -> PlanReady:
    result = solve_now(made.state, WORK)
    assert result is not None
    return result


def reply(made: Lane, message: PlanReady | None = None) -> list[Event]:
    return list(made.feed(made.an("local", message or ready(made))))


def placed(events: list[Event]) -> dict[str, JobPlaced]:
    return {event.job_id: event for event in events if isinstance(event, JobPlaced)}


def test_where_everybody_fits_greedy_decides() -> None:
    made = contended("n1")
    events = made.submit(job("a"), job("b"))
    assert [event.solver for event in placed(list(events)).values()] == ["", ""]
    assert made.state.open_round is None


def test_where_no_job_fits_no_round_is_opened() -> None:
    made = contended("n1")
    made.run(job("a", gpus=8))
    assert kinds(made.submit(job("b"), job("c")))[-2:] == ["JobHeld", "RoundEnded"]


def test_a_contended_round_waits_for_its_answer_and_starts_nothing() -> None:
    made = contended("n1")
    events = made.submit(job("a", gpus=6), job("b", gpus=4))
    assert kinds(events)[-1] == "RoundOpened"
    assert kinds(made.submit(job("c", gpus=1), after_ms=50)) == ["JobEnqueued"]
    events = reply(made)
    starts = placed(events)
    assert set(starts) == {"a", "c"}
    assert starts["a"].solver == "kept_greedy" and starts["a"].policy.endswith("+cpsat")
    assert only(RoundEnded, made.feed()) == [] and made.state.open_round is None


def test_each_start_carries_the_plan_it_is_part_of() -> None:
    made = contended("n1")
    made.submit(job("a", gpus=6), job("b", gpus=4))
    terms = placed(reply(made))["a"].terms
    assert terms["objective"] >= terms["greedy_objective"] > 0
    assert terms["bound"] >= terms["objective"] and terms["solve_ms"] == 0
    parts = [value for name, value in terms.items() if name.startswith("plan_")]
    assert sum(parts) == terms["objective"]
    assert terms["position"] == 0 and terms["speed"] == 1 and terms["waiting"] == 2


def test_a_late_solver_leaves_the_round_to_greedy() -> None:
    made = contended("n1")
    made.submit(job("a", gpus=6), job("b", gpus=4))
    late = ready(made)
    open_ = made.state.open_round
    assert open_ is not None and made.decider.next_wake(made.state) == open_.until
    starts = placed(list(made.wake()))
    assert made.now == open_.at + 500
    assert starts["a"].solver == "late" and starts["a"].policy.endswith("+best_fit")
    assert reply(made, late) == []


@pytest.mark.parametrize("status", ["died", "refused"])
def test_without_a_plan_greedy_plans_at_once_and_says_why(status: SolverStatus) -> None:
    made = contended("n1")
    made.submit(job("a", gpus=6), job("b", gpus=4))
    open_ = made.state.open_round
    assert open_ is not None
    starts = placed(reply(made, no_plan(open_.seq, status)))
    assert {name: event.solver for name, event in starts.items()} == {"a": status}


def test_only_what_no_longer_holds_is_dropped() -> None:
    made = contended("n1", "n2", "n3", gpus=4)
    made.submit(*(job(name, gpus=4) for name in ("a", "b", "c", "d")))
    message = ready(made)
    assert {start.job_id for start in message.starts} == {"a", "b", "c"}
    on = {start.job_id: start.allocations[0].node_id for start in message.starts}
    made.cancel("a")
    made.command(CordonNode(node_id=on["b"]))
    starts = placed(reply(made, message))
    assert starts["c"].solver == message.status
    assert starts["c"].allocations == message.starts[2].allocations
    others = {name: event.solver for name, event in starts.items() if name != "c"}
    assert others == {"b": ""}, "its node is gone: greedy finds the one that the cancel left"


def test_jobs_of_an_open_plan_start_once() -> None:
    made = contended("n1", "n2")
    made.submit(job("a", gpus=6), job("b", gpus=6), job("c", gpus=6))
    message = ready(made)
    made.submit(job("d", gpus=1), after_ms=200)
    events = [*reply(made, message), *reply(made, message)]
    started = [event.job_id for event in events if isinstance(event, JobPlaced)]
    assert sorted(started) == ["a", "b", "d"]


def test_a_strict_queue_and_a_reservation_are_greedys() -> None:
    for settings in ({"queue_mode": "strict"}, {"reserve_after_s": 0.0}):
        made = contended("n1", **settings)
        events = made.submit(job("a", gpus=6), job("b", gpus=4))
        assert only(RoundOpened, events) == [], settings


def test_a_claim_is_served_by_the_victims_that_lose_least() -> None:
    """Two jobs could make room; the one that has just started loses less than the other."""
    made = contended("n1", gpus=4)
    made.run(job("old", gpus=2, priority_class="low"))
    made.run(job("young", gpus=2, priority_class="low"), after_ms=3_600_000)
    assert only(RoundOpened, made.submit(job("boss", gpus=2, priority_class="high"), after_ms=100))
    events = reply(made)
    stops = [event for event in events if isinstance(event, JobPreempted)]
    assert [(stop.job_id, stop.by_job_id) for stop in stops] == [("young", "boss")]
    made.stopped("young")
    assert made.job("boss").phase == "waiting"
    message = solve_now(made.state, WORK)
    if message is None:
        made.wake()
        message = solve_now(made.state, WORK)
    if message is not None:
        reply(made, message)
    assert made.job("boss").phase == "placed"


def test_a_victim_that_fits_elsewhere_moves_there() -> None:
    made = contended("a", gpus=2, min_residency_s=0.0)
    made.run(job("small", gpus=1, priority_class="low"))
    made.node("b", 1)
    made.submit(job("boss", gpus=2, priority_class="high"), after_ms=400_000)
    (moved,) = only(JobMigrated, reply(made))
    assert isinstance(moved, JobMigrated)
    assert (moved.job_id, moved.reason, moved.to_nodes) == ("small", "defragment", ("b",))
    made.stopped("small")
    while made.job("boss").phase == "waiting":
        reply(made) if made.state.open_round else made.wake()
    assert made.nodes_of("small") == ("b",) and made.nodes_of("boss") == ("a",)


def test_an_answer_that_breaks_a_rule_is_refused() -> None:
    made = contended("n1")
    made.submit(job("a", gpus=6), job("b", gpus=4))
    instance = instance_for_round(made.state)
    solved = solve(instance, WORK)
    twice = RoundPlan((*solved.plan.starts, *solved.plan.starts))
    broken = type(solved)(twice, solved.status, solved.objective, 0, 0, solved.terms)
    assert plan_ready(instance, broken, 1, 0.0) == no_plan(1, "refused")
    assert isinstance(instance, Instance)
