"""A suspicion of one GPU counts for those that have this GPU."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from services.placement.core.pool.suspicions import slowest, slowest_by_gpu

SLOWDOWNS = {"of the node": 1.2, "of GPU 3": 2.0, "of GPU 3 too": 1.5, "of GPU 5": 4.0}
GPU_OF = {"of GPU 3": 3, "of GPU 3 too": 3, "of GPU 5": 5}


@pytest.mark.parametrize(
    ("gpus", "worst"), [(None, 4.0), ((), 1.2), ((0, 1), 1.2), ((1, 3), 2.0), ((3, 5), 4.0)]
)
def test_the_worst_suspicion_of_the_node_and_of_the_gpus_counts(
    gpus: Collection[int] | None, worst: float
) -> None:
    assert slowest(SLOWDOWNS, GPU_OF, gpus) == worst


def test_without_a_suspicion_nothing_is_slow() -> None:
    assert slowest({}, GPU_OF, None) == 1.0
    assert slowest({"of GPU 3": 2.0}, GPU_OF, (1,)) == 1.0


def test_of_each_gpu_the_worst_suspicion_counts() -> None:
    assert slowest_by_gpu(SLOWDOWNS, GPU_OF) == {3: 2.0, 5: 4.0}
