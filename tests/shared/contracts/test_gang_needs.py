from __future__ import annotations

from typing import Any

import pytest

from shared.contracts.gang_needs import Shape, kind_of, limit_workers, matches, shape_of
from shared.contracts.job_spec import JobSpec

LABELS = {"zone": "a", "rack": "r1"}


def needs(**gang: Any) -> Shape:
    return shape_of(JobSpec.model_validate({"name": "train", "gang": gang}))


@pytest.mark.parametrize(
    ("gpus", "per_worker", "workers"), [(2, 0.6, 2), (2, 0.5, 4), (5, 2, 2), (5, 6, 0)]
)
def test_equal_workers_leave_the_rest_of_a_shared_gpu(
    gpus: int, per_worker: float, workers: int
) -> None:
    kind = kind_of("a100", gpus, 1000, 1000, LABELS)
    assert kind.workers(needs(gpus_per_worker=per_worker)) == workers


def test_cores_and_memory_bound_the_workers() -> None:
    shape = needs(gpus_per_worker=0, cpus_per_worker=1.5, mem_gib_per_worker=2)
    assert limit_workers(10, shape, 6000, 100_000) == 4
    assert limit_workers(10, shape, 6000, 4096) == 2
    assert kind_of("", 0, 3, 100, {}).workers(shape) == 2


def test_a_node_has_every_label_of_a_selector() -> None:
    shape = needs(workers=1)._replace(selector=(("rack", "r1"),))
    assert matches(shape, LABELS)
    assert not matches(shape, {"rack": "r2"})
    assert not kind_of("a100", 8, 1000, 1000, {}).workers(shape)


def test_nodes_with_equal_labels_in_any_order_are_of_one_kind() -> None:
    other = dict(reversed(LABELS.items()))
    assert kind_of("a100", 8, 1, 1, LABELS) == kind_of("a100", 8, 1, 1, other)
