"""A plan becomes decisions in one order, each with the figures that explain it."""

from __future__ import annotations

from services.placement.core.carry_out import carry_out
from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.round.plan import Assignment, Eviction, Hold, Plan
from services.placement.core.round.view import View, view_of
from shared.contracts.attempts import JobPreempted
from shared.contracts.placement import JobHeld, JobPlaced, RoundEnded
from tests.services.placement.core.lane import Lane, job, lane


def contended() -> Lane:
    """`run` holds half of the node; `a`, `b` and `c` wait."""
    pool = lane("n1", gpus=8)
    pool.run(job("run", 4))
    pool.submit(job("a", 8), job("b", 8), job("c", 8))
    return pool


def view(pool: Lane) -> View:
    return view_of(pool.state, pool.now)


def assignment(pool: Lane, name: str) -> Assignment:
    return Assignment(pool.job(name), [Slot("n1", (4, 5), GPU, 2000, 1024)], 0, 2)


def test_stops_come_before_starts_and_holds_before_the_end_of_the_round() -> None:
    pool = contended()
    plan = Plan(
        assignments=[assignment(pool, "a")],
        evictions=[Eviction(pool.job("run"), pool.job("b"), 1.5)],
        holds=[Hold(pool.job("c"), "no_capacity", 4.0, {"position": 2.0})],
        unfinished=True,
        again_at=pool.now + 5,
    )
    decisions = list(carry_out(pool.state, view(pool), plan, "late"))
    preempted, placed, held, ended = [decision.event for decision in decisions]
    assert isinstance(preempted, JobPreempted) and preempted.job_id == "run"
    assert isinstance(placed, JobPlaced) and (placed.job_id, placed.solver) == ("a", "late")
    assert isinstance(held, JobHeld) and (held.job_id, held.short_gpus) == ("c", 4.0)
    assert isinstance(ended, RoundEnded)
    assert (ended.waiting, ended.unfinished, ended.again_at) == (3, True, pool.now + 5)
    assert {decision.traceparent for decision in decisions[:3]} == {pool.job("a").trace}


def test_a_round_of_an_idle_pool_needs_no_end() -> None:
    pool = lane("n1")
    assert list(carry_out(pool.state, view(pool), Plan(), "")) == []
