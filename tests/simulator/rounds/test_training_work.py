from __future__ import annotations

import pytest

from simulator.rounds.training_work import split


@pytest.mark.parametrize(
    ("batch", "gpus", "most", "expected"),
    [(256, 4, 64, (64, 0)), (256, 2, 64, (64, 1)), (100, 3, 64, (34, 0)), (128, 1, 256, (64, 1))],
)
def test_a_batch_is_split_over_gpus_and_steps(
    batch: int, gpus: int, most: int, expected: tuple[int, int]
) -> None:
    assert split(batch, gpus, most, 64) == expected


def test_one_gpu_takes_the_initial_batch_at_once() -> None:
    assert split(64, 1, 256, 64) == (64, 0)
