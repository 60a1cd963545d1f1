"""The walk shortens orders, and keeps them valid."""

from __future__ import annotations

import pytest

from shared.pipeline.dispatch import dispatch
from shared.pipeline.improve import improve, is_allowed
from shared.pipeline.model import Operation
from shared.pipeline.schedules import warmup_counts
from shared.pipeline.timeline import replay
from simulator.pipeline.cases import random_pipeline
from tests.shared.pipeline.pipelines import B, F, W


@pytest.mark.parametrize("seed", range(10))
def test_orders_stay_valid_and_become_no_longer(seed: int) -> None:
    pipeline = random_pipeline(seed)
    before = dispatch(pipeline, warmup_counts(pipeline, 0))
    after = improve(pipeline, before, 0.0, 200)
    assert replay(pipeline, after).makespan <= replay(pipeline, before).makespan
    for stage, order in enumerate(after):
        assert is_allowed(order, pipeline.bound(stage))
        assert sorted(order) == sorted(before[stage])


def test_some_orders_become_shorter() -> None:
    gains = []
    for seed in range(10):
        pipeline = random_pipeline(seed)
        before = dispatch(pipeline, warmup_counts(pipeline, 0))
        after = improve(pipeline, before, 0.0, 200)
        gains.append(replay(pipeline, before).makespan - replay(pipeline, after).makespan)
    assert max(gains) > 0


@pytest.mark.parametrize(
    ("order", "bound", "allowed"),
    [
        ((F(0), F(1), B(0), B(1), W(0), W(1)), 2, True),
        ((F(0), F(1), B(0), B(1), W(0), W(1)), 1, False),
        ((F(1), F(0), B(0), B(1)), 2, False),
        ((F(0), W(0), B(0)), 2, False),
        ((B(0), F(0)), 2, False),
    ],
)
def test_allowed_orders(order: tuple[Operation, ...], bound: int, allowed: bool) -> None:
    assert is_allowed(order, bound) is allowed
