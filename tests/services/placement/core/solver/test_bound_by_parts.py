"""The bound by parts: never below the best plan, and tight where bits of GPUs hold no job."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.placement.core.round.view import view_of
from services.placement.core.solver.bound import most_gain, most_value
from services.placement.core.solver.bound_by_parts import most_by_parts
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Instance
from services.placement.core.solver.objective import score
from services.placement.core.solver.solve import solve
from tests.services.placement.core.lane import Lane, job

SIZES = st.sampled_from((0.2, 0.3, 0.5, 0.65, 0.8, 1))


def round_of(running: list[float], waiting: list[float], gpus: int = 2) -> Instance:
    made = Lane()
    made.pool(round_ms=60_000)
    made.node("n", gpus)
    for number, size in enumerate(running):
        made.run(job(f"old{number}", gpus=size))
    made.submit(job("blocker", gpus=64))
    made.submit(*(job(f"new{number}", gpus=size) for number, size in enumerate(waiting)))
    return instance_of(view_of(made.state, made.now))


def test_bits_that_hold_no_waiting_job_are_worth_nothing() -> None:
    """The second 0.8 would fit in 0.3 and what the first leaves only if a GPU could be cut so."""
    instance = round_of([0.7], [0.8, 0.8, 1])
    assert most_gain(instance) <= 0


def test_a_part_beside_another_is_a_gain() -> None:
    instance = round_of([0.3, 0.4, 0.6], [0.3, 0.4])
    assert most_by_parts(instance) is not None
    assert score(instance, solve(instance, 1.0).plan).terms["value"] <= most_value(instance)


def test_whole_gpus_have_no_such_bound() -> None:
    assert most_by_parts(round_of([], [1, 2])) is None


@settings(max_examples=60, deadline=None)
@given(
    running=st.lists(SIZES, max_size=4),
    waiting=st.lists(SIZES, min_size=1, max_size=6),
    gpus=st.integers(1, 3),
)
def test_no_plan_is_worth_more_than_the_bound(
    running: list[float], waiting: list[float], gpus: int
) -> None:
    instance = round_of(running, waiting, gpus)
    bound = most_by_parts(instance)
    assert bound is None or score(instance, solve(instance, 2.0).plan).terms["value"] <= bound
