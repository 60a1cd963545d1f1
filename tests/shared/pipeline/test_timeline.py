"""The timeline of fixed orders: each operation starts when its last condition is met."""

from __future__ import annotations

import pytest

from shared.pipeline.model import Orders
from shared.pipeline.timeline import replay, source_of
from tests.shared.pipeline.pipelines import B, F, W, balanced

TWO: Orders = ((F(0), F(1), B(0), W(0), B(1), W(1)), (F(0), B(0), F(1), B(1), W(0), W(1)))


def test_operations_wait_for_input_link_and_stage() -> None:
    timeline = replay(balanced(2, 2, [5]), TWO)
    starts = [[(*span.operation, span.start) for span in stage] for stage in timeline.spans]
    assert starts[1][:4] == [("F", 0, 15), ("B", 0, 25), ("F", 1, 35), ("B", 1, 45)]
    assert starts[0] == [
        ("F", 0, 0),
        ("F", 1, 10),
        ("B", 0, 40),
        ("W", 0, 50),
        ("B", 1, 60),
        ("W", 1, 70),
    ]
    assert timeline.makespan == 80


def test_activations_are_held_from_forward_to_backward() -> None:
    timeline = replay(balanced(2, 2, [5]), TWO)
    assert timeline.peak_activations() == (2, 1)
    assert timeline.peak_weight_gradients() == (1, 2)
    assert timeline.idle_share() == pytest.approx(1 - 120 / 160)


def test_a_merged_backward_computes_both_gradients() -> None:
    orders: Orders = ((F(0), B(0)), (F(0), B(0)))
    timeline = replay(balanced(2, 1, [0]), orders, merged=True)
    assert timeline.makespan == 10 + 10 + 20 + 20
    assert timeline.peak_weight_gradients() == (0, 0)


def test_orders_that_wait_for_each_other_are_refused() -> None:
    circle: Orders = ((F(0), B(0), F(1), B(1)), (F(0), F(1), B(0), B(1)))
    with pytest.raises(ValueError, match="wait for each other"):
        replay(balanced(2, 2, [0]), circle, merged=True)


def test_the_input_of_each_kind() -> None:
    pipeline = balanced(3, 1, [1, 2])
    assert source_of(pipeline, 0, F(0)) is None
    assert source_of(pipeline, 2, F(0)) == (1, F(0), 2)
    assert source_of(pipeline, 2, B(0)) == (2, F(0), 0)
    assert source_of(pipeline, 0, B(0)) == (1, B(0), 1)
    assert source_of(pipeline, 1, W(0)) == (1, B(0), 0)
