"""Dispatched orders are complete, and hold exactly as many activations as they warm up with."""

from __future__ import annotations

from collections import Counter

import pytest

from shared.pipeline.dispatch import Preferences, dispatch
from shared.pipeline.model import Kind
from shared.pipeline.schedules import warmup_counts
from shared.pipeline.timeline import replay
from simulator.pipeline.cases import random_pipeline
from tests.shared.pipeline.pipelines import balanced


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("first", ["B", "F"])
def test_each_operation_runs_once_within_the_warm_up_counts(seed: int, first: Kind) -> None:
    pipeline = random_pipeline(seed)
    counts = warmup_counts(pipeline, 2)
    orders = dispatch(pipeline, counts, Preferences(first, 0.5))
    for order in orders:
        assert Counter(kind for kind, _ in order) == dict.fromkeys("FBW", pipeline.microbatches)
        assert len(set(order)) == len(order)
    peaks = replay(pipeline, orders).peak_activations()
    assert peaks == tuple(min(count, pipeline.microbatches) for count in counts)


def test_weights_fill_what_would_be_idle() -> None:
    pipeline = balanced(4, 16, [0, 0, 0])
    timeline = replay(pipeline, dispatch(pipeline, (7, 5, 3, 1)))
    assert timeline.makespan == 16 * 30 + 3 * 10


def test_patience_leaves_a_stage_idle_for_a_better_operation() -> None:
    pipeline = balanced(2, 4, [12])
    eager, patient = (
        replay(pipeline, dispatch(pipeline, (3, 1), Preferences("B", patience)))
        for patience in (0.0, 1.0)
    )
    assert eager.spans != patient.spans
