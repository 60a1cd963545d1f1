"""A schedule is advised where it absorbs a delay of links, within memory, and gains."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    "change",
    [{"forward_s": (0.0,) * 8}, {"backward_s": (0.01,) * 7}, {"microbatches": 16_384}],
    ids=["no time", "a stage is missing", "too large"],
)
def test_numbers_that_make_no_pipeline_are_no_advice(change: dict[str, object]) -> None:
    assert adapted_schedule(profile(0.06).model_copy(update=change)) is None
