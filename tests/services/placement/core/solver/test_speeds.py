"""Speeds of jobs by what they declare, relative to the best that the pool has for them."""

from __future__ import annotations

import pytest

from services.placement.core.pool.shape import GPU, Slot, shape_of
from services.placement.core.solver.speeds import (
    best_speed,
    health_on,
    is_slowed,
    links_of,
    speed_on,
    spread_in,
)
from tests.services.placement.core.lane import Lane, job

SPREAD = {"rack": 0.8, "spine": 0.4}


def typed() -> Lane:
    made = Lane()
    made.pool(round_ms=60_000)
    made.node("a", 4, gpu_type="k80", rack="r1")
    made.node("b", 4, gpu_type="v100", rack="r1")
    made.node("c", 4, gpu_type="v100", rack="r2")
    return made


def slots(*names: str) -> list[Slot]:
    return [Slot(name, (0,), GPU, 0, 0) for name in names]


def test_a_speed_is_relative_to_the_best_type_that_the_job_may_have() -> None:
    made = typed()
    made.submit(
        job("any", gpus=64, gpu_speeds={"v100": 4.0, "h100": 40.0}),
        job("old", gpus=64, gpu_speeds={"v100": 4.0}, gpu_types=("k80",)),
    )
    board = made.state.board
    assert best_speed(board, made.job("any")) == 4.0
    assert speed_on(board, made.job("any"), board.nodes["a"]) == 250
    assert speed_on(board, made.job("old"), board.nodes["a"]) == GPU
    board.slow["a"] = {"f1": 2.0}
    assert speed_on(board, made.job("old"), board.nodes["a"]) == 500


@pytest.mark.parametrize(
    ("gpus", "workers", "health"),
    [(1, 3, 1.0), (1, 4, 0.5), (2, 1, 1.0), (0, 9, 1.0), (0.5, 1, 0.5)],
)
def test_a_slow_gpu_slows_the_jobs_that_would_get_it(
    gpus: float, workers: int, health: float
) -> None:
    board = typed().state.board
    board.suspect("a", "f1", 2.0, None, gpu=0)
    shape = shape_of(job("j", gpus=gpus, workers=workers).spec)
    assert health_on(board, shape, board.nodes["a"]) == health


@pytest.mark.parametrize(
    ("workers", "declared", "expected"),
    [
        (2, SPREAD, (800, 400)),
        (8, SPREAD, (1000, 500)),
        (2, {"spine": 0.4}, (1000, 400)),
        (2, {"rack": 0.5}, (500, 500)),
        (2, None, None),
        (1, SPREAD, None),
    ],
)
def test_links_are_relative_to_the_closest_that_hold_the_gang(
    workers: int, declared: dict[str, float] | None, expected: tuple[int, int] | None
) -> None:
    made = typed()
    made.submit(job("gang", gpus=1, workers=workers, spread_speeds=declared))
    own = made.job("gang")
    assert spread_in(made.state.board, own, own.shape) == expected


@pytest.mark.parametrize(
    ("names", "slowed"), [(("b",), False), (("a",), True), (("b", "b"), False), (("b", "c"), True)]
)
def test_a_job_is_slowed_by_types_and_links_that_it_declares(
    names: tuple[str, ...], slowed: bool
) -> None:
    made = typed()
    made.submit(
        job("own", workers=max(2, len(names)), gpu_speeds={"v100": 4.0}, spread_speeds=SPREAD),
        job("silent", workers=2),
    )
    board = made.state.board
    assert is_slowed(board, made.job("own"), slots(*names)) == slowed
    assert not is_slowed(board, made.job("silent"), slots(*names))


def test_links_are_those_between_racks() -> None:
    board = typed().state.board
    assert links_of(board, slots("a", "a")) is None
    assert links_of(board, slots("a", "b")) == "rack"
    assert links_of(board, slots("a", "b", "c")) == "spine"
