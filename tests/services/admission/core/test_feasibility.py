from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.demand import demand_of, node_kind_of
from services.admission.core.feasibility import count_workers, fits
from shared.contracts.gang_needs import Shape
from shared.contracts.job_spec import JobSpec
from tests.services.admission.core.cases import shape

TWO_NODES = {node_kind_of(shape("n1", labels={"rack": "r1"})): 2}


def needs(workers: int = 1000, **spec: Any) -> Shape:
    resources = ("gpus_per_worker", "cpus_per_worker", "mem_gib_per_worker")
    gang = {name: spec.pop(name) for name in resources if name in spec}
    fields = {"name": "train", "gang": {"workers": workers, **gang}, **spec}
    return demand_of(JobSpec.model_validate(fields)).shape


@pytest.mark.parametrize(
    ("spec", "workers"),
    [
        ({"gpus_per_worker": 3}, 4),
        ({"gpus_per_worker": 0.3}, 48),
        ({"gpus_per_worker": 1, "cpus_per_worker": 32}, 4),
        ({"gpus_per_worker": 1, "mem_gib_per_worker": 200}, 4),
        ({"gpus_per_worker": 16}, 0),
        ({"gpu_types": ("a100",)}, 0),
        ({"node_selector": {"rack": "r1"}}, 16),
        ({"node_selector": {"rack": "r2"}}, 0),
    ],
)
def test_the_scarcest_resource_bounds_the_workers(spec: dict[str, Any], workers: int) -> None:
    assert count_workers(TWO_NODES, needs(**spec)) == workers


def test_a_gang_fits_if_all_its_workers_do() -> None:
    assert fits(TWO_NODES, needs(16))
    assert not fits(TWO_NODES, needs(17))
