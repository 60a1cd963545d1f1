"""A schedule is advised where it absorbs a delay of links, within memory, and gains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.failslow.core.mitigation.adaptation import adapted_schedule
from shared.contracts.parallelism import PipelineProfile


def profile(delay_s: float, weight_s: float = 0.01, memory: int | None = None) -> PipelineProfile:
    """Eight stages of 10 ms per operation, the last hop slow."""
    return PipelineProfile(
        microbatches=32,
        forward_s=(0.01,) * 8,
        backward_s=(0.01,) * 8,
        weight_s=(weight_s,) * 8,
        link_delay_s=(*(0.0,) * 6, delay_s),
        memory=(memory,) * 8 if memory else (),
    )


def test_a_delay_of_six_forwards_is_absorbed_by_more_warm_up() -> None:
    schedule = adapted_schedule(profile(0.06))
    assert schedule is not None
    assert schedule.unadapted_s / schedule.iteration_s > 1.9
    assert schedule.warmup[-2:] == (9, 1)
    assert schedule.activations == schedule.warmup


def test_memory_bounds_the_warm_up() -> None:
    schedule = adapted_schedule(profile(0.06, memory=18))
    assert schedule is None or max(schedule.activations) <= 18


def test_a_schedule_without_gain_is_no_advice() -> None:
    assert adapted_schedule(profile(0.0)) is None
    assert adapted_schedule(profile(0.005)) is None


def test_a_plain_backward_pass_is_compared_with_1f1b() -> None:
    schedule = adapted_schedule(profile(0.06, weight_s=0.0))
    assert schedule is not None
    assert schedule.unadapted_s > schedule.iteration_s


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 5), st.integers(1, 24))
def test_whatever_a_job_reports_leads_to_advice_within_memory_or_to_none(
    data: Any, stages: int, microbatches: int
) -> None:
    """A fold that raises would hold up its lane."""
    times = st.one_of(st.floats(0, 1e9), st.sampled_from([0.0, 5e-324, 1e-6, 0.01, 1e9]))
    column = st.tuples(*[times] * stages)
    held = data.draw(st.lists(st.integers(1, 16_384), min_size=stages, max_size=stages))
    schedule = adapted_schedule(
        PipelineProfile(
            microbatches=microbatches,
            forward_s=data.draw(column),
            backward_s=data.draw(column),
            weight_s=data.draw(column),
            link_delay_s=data.draw(column)[1:],
            memory=tuple(held),
        )
    )
    if schedule is not None:
        assert schedule.iteration_s < schedule.unadapted_s
        assert all(own <= most for own, most in zip(schedule.activations, held, strict=True))


@pytest.mark.parametrize(
    "change",
    [{"forward_s": (0.0,) * 8}, {"backward_s": (0.01,) * 7}, {"microbatches": 16_384}],
    ids=["no time", "a stage is missing", "too large"],
)
def test_numbers_that_make_no_pipeline_are_no_advice(change: dict[str, object]) -> None:
    assert adapted_schedule(profile(0.06).model_copy(update=change)) is None
