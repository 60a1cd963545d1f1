from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.pool.shape import SPOT_TIER, limit_workers, shape_of, tier_of
from tests.services.placement.core.lane import job


@pytest.mark.parametrize(
    ("gpus", "devices", "milli"), [(4, 4, 1000), (1, 1, 1000), (0.25, 1, 250), (0, 0, 1000)]
)
def test_a_worker_needs_whole_gpus_or_a_share_of_one(gpus: float, devices: int, milli: int) -> None:
    shape = shape_of(job("a", gpus).spec)
    assert (shape.gpus, shape.milli) == (devices, milli)
    assert shape.is_share == (0 < gpus < 1)
    assert shape.worker_milli == round(gpus * 1000)


def test_types_and_labels_are_sorted_so_that_equal_needs_are_equal_shapes() -> None:
    one = job("a", gpu_types=("v100", "a100"), node_selector={"b": "2", "a": "1"})
    other = job("b", gpu_types=("a100", "v100"), node_selector={"a": "1", "b": "2"})
    assert shape_of(one.spec) == shape_of(other.spec)


def test_a_job_with_an_image_needs_the_label_of_nodes_that_run_it() -> None:
    spec = job("a", image="torch:2", node_selector={"rack": "r1"}).spec
    assert shape_of(spec).selector == (("berth.images", "yes"), ("rack", "r1"))


def test_an_elastic_job_has_a_range_of_workers() -> None:
    spec = job("a", workers=2, elastic={"min_workers": 1, "max_workers": 4}).spec
    shape = shape_of(spec)
    assert (shape.min_workers, shape.max_workers) == (1, 4)


def test_spot_jobs_come_after_every_class() -> None:
    spot = tier_of(job("a", spot=True, priority_class="high").spec)
    assert spot >= SPOT_TIER > tier_of(job("b", priority_class="low").spec)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 40), st.integers(0, 40))
def test_workers_are_limited_by_cores_and_memory(
    cpu: int, mem: int, cpu_free: int, mem_free: int
) -> None:
    shape = shape_of(job("a").spec)._replace(cpu_milli=cpu, mem_mib=mem)
    workers = limit_workers(7, shape, cpu_free, mem_free)
    assert 0 <= workers <= 7
    assert workers * cpu <= cpu_free and workers * mem <= mem_free
    one_more = workers + 1
    assert workers == 7 or one_more * cpu > cpu_free or one_more * mem > mem_free
