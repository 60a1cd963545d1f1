"""The exact solver proves small cases."""

from __future__ import annotations

from shared.pipeline.improve import is_allowed
from shared.pipeline.schedules import zero_bubble
from shared.pipeline.timeline import replay
from simulator.pipeline.exact import shortest
from tests.shared.pipeline.pipelines import balanced


def test_the_shortest_schedule_is_valid_and_proven() -> None:
    pipeline = balanced(3, 5, [0, 20], [4])
    plan = shortest(pipeline, zero_bubble(pipeline, 2))
    assert plan.makespan == plan.bound
    assert replay(pipeline, plan.orders).makespan == plan.makespan
    assert all(is_allowed(order, pipeline.bound(at)) for at, order in enumerate(plan.orders))
