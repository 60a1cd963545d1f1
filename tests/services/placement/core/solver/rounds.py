"""Contended pools, and the parts of their instances."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.placement.core.pool.trial import Trial
from services.placement.core.round.greedy import plan as greedy_plan
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import view_of
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance
from services.placement.core.solver.window import Window
from tests.services.placement.core.lane import Lane, job, lane


def contended(*nodes: str) -> Lane:
    pool = lane(*nodes, solver="cpsat")
    pool.submit(job("a", 6), job("b", 4), job("c", 4))
    return pool


def preempting(*nodes: str) -> Lane:
    """A pool full of low jobs `low0`, `low1`, ..., one per node, that the job `high` may stop."""
    pool = lane(*nodes, solver="cpsat")
    pool.run(*(job(f"low{n}", 8, priority_class="low") for n in range(len(nodes))))
    pool.submit(job("high", 8, priority_class="high"))
    return pool


def exported(pool: Lane) -> Instance:
    return instance_of(view_of(pool.state, pool.now))


@contextmanager
def window_of(pool: Lane) -> Iterator[tuple[Window, Plan]]:
    """Give the window of the pool's next round and greedy's plan of it."""
    view = view_of(pool.state, pool.now)
    with Trial(view.board) as trial:
        greedy = greedy_plan(view)
        placed = {assignment.job.job_id: assignment for assignment in greedy.assignments}
        window = Window(view, trial, placed)
        window.look()
        yield window, greedy
