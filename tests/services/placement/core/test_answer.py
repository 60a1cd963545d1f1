from __future__ import annotations

import pytest

from services.placement.core.answer import POLICY, allowed_start, allowed_stop, apply_answer
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.shape import GPU, MIB, Slot
from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import no_plan, solve_now
from shared.contracts.placement import JobPlaced
from shared.contracts.solver_plan import PlannedStart, PlannedStop
from tests.services.placement.core.lane import Lane, job, kinds, lane

WORK = 1.0


def opened() -> Lane:
    pool = lane("a", solver="cpsat", solver_ms=500)
    events = pool.submit(job("a", 6), job("b", 4), job("c", 4))
    assert "RoundOpened" in kinds(events)
    return pool


def test_an_answer_to_another_round_is_ignored() -> None:
    pool = opened()
    assert pool.state.open_round is not None
    late = no_plan(pool.state.open_round.seq - 1, "late")
    assert list(apply_answer(pool.state, late, pool.now)) == []


def test_planned_starts_carry_the_terms_of_the_plan() -> None:
    pool = opened()
    message = solve_now(pool.state, WORK)
    assert message is not None and message.starts
    events = pool.feed(pool.an("local", message))
    placed = [event for event in events if isinstance(event, JobPlaced)]
    for event in placed:
        assert event.policy.endswith(f"+{POLICY}") and event.solver == message.status
        assert event.terms["objective"] == float(message.objective)
        assert all(type(value) is float for value in event.terms.values())
    assert pool.state.open_round is None


@pytest.mark.parametrize("status", ["died", "refused"])
def test_without_a_plan_greedy_ends_the_round(status: str) -> None:
    pool = opened()
    assert pool.state.open_round is not None
    message = no_plan(pool.state.open_round.seq, status)  # type: ignore[arg-type]
    (placed,) = [e for e in pool.feed(pool.an("local", message)) if isinstance(e, JobPlaced)]
    assert (placed.job_id, placed.solver) == ("a", status)
    assert placed.policy == "class_submit+best_fit"


def start(pool: Lane, *slots: Slot, attempt: int = 1) -> bool:
    planned = PlannedStart(job_id="w", attempt=attempt, allocations=allocations_of(slots))
    return allowed_start(pool.state, view_of(pool.state, pool.now), planned) is not None


def slot(*gpus: int) -> Slot:
    return Slot("a", gpus, GPU, 1000, MIB)


def test_a_start_holds_for_the_attempt_that_waits_and_for_free_slots() -> None:
    pool = lane("a")
    pool.run(job("x", 4))
    pool.submit(job("w", 8))
    assert start(pool, slot(4, 5))
    assert not start(pool, slot(3, 4))
    assert not start(pool, slot(4, 5), attempt=2)


def test_a_stop_holds_only_where_one_job_may_stop_the_other() -> None:
    pool = lane("a")
    pool.run(job("x", 8))
    pool.submit(job("same", 8), job("low", 8, priority_class="low"))
    view = view_of(pool.state, pool.now)
    for by in ("same", "low", "unknown"):
        assert allowed_stop(view, PlannedStop(job_id="x", attempt=1, by_job_id=by)) is None
