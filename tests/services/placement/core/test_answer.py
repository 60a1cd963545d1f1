from __future__ import annotations

import pytest

from services.placement.core.answer import POLICY, apply_answer
from services.placement.core.solver.contended import no_plan, solve_now
from shared.contracts.placement import JobPlaced
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
