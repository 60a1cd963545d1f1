"""The window of a long line: what is fixed before it, and that the answer names all of it."""

from __future__ import annotations

from services.placement.core.solver.contended import instance_for_round, plan_ready
from services.placement.core.solver.solve import solve
from services.placement.core.solver.window import BEFORE, WINDOW
from shared.contracts.placement import JobPlaced
from tests.services.placement.core.lane import Lane, job, lane

SMALL = 100


def crowd() -> Lane:
    """A hundred small jobs that do not compete, then large ones that do."""
    made = lane(*(f"n{n:02d}" for n in range(20)), solver="cpsat")
    small = [job(f"small{n:03d}") for n in range(SMALL)]
    large = [job(f"large{n}", gpus=7) for n in range(10)]
    made.submit(*small, *large)
    return made


def test_jobs_without_rivals_are_fixed_where_greedy_puts_them() -> None:
    made = crowd()
    instance = instance_for_round(made.state)
    fixed = [each.job_id for each in instance.fixed]
    assert fixed == [f"small{n:03d}" for n in range(SMALL + 7 - BEFORE)]
    assert len(instance.requests) <= BEFORE + WINDOW
    free = sum(cls.whole * len(cls.nodes) for cls in instance.classes)
    assert free == 20 * 8 - len(fixed), "what they take is nobody else's"


def test_the_answer_starts_the_fixed_ones_too() -> None:
    made = crowd()
    instance = instance_for_round(made.state)
    assert made.state.open_round is not None
    message = plan_ready(instance, solve(instance, 2.0), made.state.open_round.seq, 0.0)
    events = made.feed(made.an("local", message))
    placed = [event for event in events if isinstance(event, JobPlaced)]
    small = [event for event in placed if event.job_id.startswith("small")]
    assert len(small) == SMALL and {event.policy for event in small} == {"class_submit+cpsat"}
    assert len(placed) - len(small) == 8, "the last GPU of a large job's node holds a small one"
    assert sum(start.request >= 0 for start in instance.greedy.starts) == BEFORE, (
        "greedy: 7 of them"
    )
