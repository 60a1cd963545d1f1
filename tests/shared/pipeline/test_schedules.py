"""The schedules, by the published figures of a pipeline with one slow link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.pipeline.dispatch import dispatch
from shared.pipeline.model import Pipeline
from shared.pipeline.schedules import (
    NAMES,
    adapted,
    one_forward_one_backward,
    plan,
    shortest_possible,
    warmup_counts,
    zero_bubble,
)
from shared.pipeline.timeline import replay
from simulator.pipeline.cases import random_pipeline
from tests.shared.pipeline.pipelines import balanced


@pytest.mark.parametrize(
    ("stages", "microbatches", "delay", "stale", "own"),
    [
        (4, 16, 0, 510, 510),
        (4, 16, 20, 640, 530),
        (4, 16, 30, 760, 540),
        (4, 16, 60, 1120, 570),
        (8, 32, 60, 2140, 1090),
    ],
)
def test_a_slow_last_link(
    stages: int, microbatches: int, delay: float, stale: float, own: float
) -> None:
    """ADAPTRA's artifact, operations of 10: a stale zero-bubble schedule, and the adapted one."""
    pipeline = balanced(stages, microbatches, [0] * (stages - 2) + [delay])
    assert plan(pipeline, "zb_h2").timeline.makespan == stale
    assert plan(pipeline, "adapted").timeline.makespan == own


@pytest.mark.parametrize(
    ("slack", "delay", "makespan"),
    [
        (2, 10, 760),
        (2, 15, 830),
        (2, 30, 1070),
        (3, 20, 770),
        (3, 25, 820),
        (4, 30, 780),
        (4, 40, 870),
        (5, 40, 790),
        (5, 50, 860),
    ],
)
def test_a_delay_within_the_slack_of_its_hop_is_absorbed(
    slack: int, delay: float, makespan: float
) -> None:
    """With `slack` more warm-up forwards than the next stage, a hop absorbs slack - 1 forwards."""
    planned_for = balanced(4, 24, [0, (slack - 1) * 10, 0])
    orders = dispatch(planned_for, (3 + 2 + slack - 2 + 2, 3 + slack, 3, 1))
    assert replay(balanced(4, 24, [0, delay, 0]), orders).makespan == makespan


def test_zero_bubble_has_the_memory_of_its_name() -> None:
    pipeline = balanced(4, 16, [0, 0, 0])
    assert plan(pipeline, "1f1b").timeline.peak_activations() == (4, 3, 2, 1)
    assert plan(pipeline, "zb_h1").timeline.peak_activations() == (4, 3, 2, 1)
    assert plan(pipeline, "zb_h2").timeline.peak_activations() == (7, 5, 3, 1)
    assert plan(pipeline, "zb_h2").warmup == (7, 5, 3, 1)


def test_one_forward_one_backward_takes_its_textbook_time() -> None:
    pipeline = balanced(4, 16, [0, 0, 0])
    assert plan(pipeline, "1f1b").timeline.makespan == (16 + 4 - 1) * 30


def test_the_warm_up_covers_the_delay_of_each_hop() -> None:
    assert warmup_counts(balanced(4, 32, [0, 25, 0]), 2) == (10, 8, 3, 1)


def test_a_stage_never_waits_for_more_than_the_one_before_sends() -> None:
    pipeline = balanced(3, 8, [0, 0], [2, 8, 8])
    assert warmup_counts(pipeline, 2) == (2, 2, 1)
    assert one_forward_one_backward(pipeline)[0][2].kind == "B"
    for name in NAMES:
        assert max(plan(pipeline, name).timeline.peak_activations()[:1]) <= 2


@pytest.mark.parametrize("seed", range(60, 90))
def test_adapted_is_never_longer_and_fits_in_memory(seed: int) -> None:
    pipeline = random_pipeline(seed)
    own = adapted(pipeline).timeline
    for slack in (1, 2):
        assert own.makespan <= replay(pipeline, zero_bubble(pipeline, slack)).makespan
    assert own.makespan >= shortest_possible(pipeline)
    peaks = own.peak_activations()
    assert all(peak <= pipeline.bound(stage) for stage, peak in enumerate(peaks))


@pytest.mark.parametrize("delay", range(0, 70, 5))
def test_the_rule_adds_one_traversal_of_the_slow_link(delay: float) -> None:
    def makespan(pipeline: Pipeline) -> float:
        return replay(pipeline, dispatch(pipeline, warmup_counts(pipeline, 2))).makespan

    healthy = balanced(6, 24, [0] * 5)
    slow = replace(healthy, link_delay=(0, 0, delay, 0, 0))
    assert makespan(slow) - makespan(healthy) <= delay + 10


def test_a_large_pipeline_gets_the_rule() -> None:
    pipeline = balanced(32, 64, [0] * 30 + [60])
    stale = plan(pipeline, "zb_h2").timeline.makespan
    assert stale / adapted(pipeline).timeline.makespan > 1.9
