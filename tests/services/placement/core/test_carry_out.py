"""A plan becomes decisions in one order, each with the figures that explain it."""

from __future__ import annotations

import pytest

from services.placement.core.carry_out import carry_out, placement_terms, preempt_victim, rank_terms
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


@pytest.mark.parametrize(
    ("tier", "spot", "reason"),
    [(0, False, "outranked"), (1, False, "higher_class"), (1, True, "spot_reclaimed")],
)
def test_a_preemption_says_by_what_right(tier: int, spot: bool, reason: str) -> None:
    pool = contended()
    victim, by = pool.job("run"), pool.job("a")
    victim.tier = by.tier + tier
    victim.spec = victim.spec.model_copy(update={"spot": spot})
    event = preempt_victim(Eviction(victim, by, 1.5, 2.0, 3.0), pool.now + 7).event
    assert isinstance(event, JobPreempted)
    assert (event.reason, event.by_job_id, event.lost_work_s) == (reason, "a", 1.5)
    assert (event.terms["score"], event.terms["by_score"]) == (2.0, 3.0)
    assert event.terms["ran_ms"] == victim.ran_ms(pool.now + 7)


def test_the_terms_of_a_start_name_the_share_of_a_gpu_and_a_slow_node() -> None:
    pool = contended()
    whole = placement_terms(view(pool), Plan(waiting=3), assignment(pool, "a"))
    assert whole == {"position": 0.0, "waiting": 3.0, "nodes": 1.0, "node_gpus_left": 2.0}
    pool.state.board.suspect("n1", "f1", 2.0, None)
    share = assignment(pool, "a")._replace(slots=[Slot("n1", (4,), 250, 1000, 1024)])
    terms = placement_terms(view(pool), Plan(), share)
    assert (terms["share_milli"], terms["health"]) == (250.0, 0.5)


def test_the_age_of_the_ranks_is_given_once_there_are_some() -> None:
    pool = contended()
    assert rank_terms(view(pool)) == {}
    pool.rank("a", "b", "c")
    aged = view_of(pool.state, pool.now + 2500)
    assert rank_terms(aged) == {"rank_age_s": 2.5, "rank_stale": 0.0}
