from __future__ import annotations

from services.admission.core.demand import demand_of, gang_milli_of, node_kind_of
from shared.contracts.job_spec import JobSpec
from tests.services.admission.core.cases import shape

SPEC = JobSpec.model_validate(
    {
        "name": "train",
        "gang": {
            "workers": 4,
            "gpus_per_worker": 0.3,
            "cpus_per_worker": 1.5,
            "mem_gib_per_worker": 0.5,
        },
        "gpu_types": ["a100"],
        "node_selector": {"rack": "r1"},
        "elastic": {"min_workers": 2, "max_workers": 8},
    }
)


def test_a_demand_is_in_whole_thousandths_and_mib() -> None:
    needs = demand_of(SPEC).shape
    assert (needs.worker_milli, needs.cpu_milli, needs.mem_mib) == (300, 1500, 512)
    assert (needs.types, dict(needs.selector)) == (("a100",), {"rack": "r1"})


def test_an_elastic_gang_starts_with_its_fewest_workers_and_is_charged_for_all() -> None:
    demand = demand_of(SPEC)
    assert demand.shape.min_workers == 2
    assert demand.gang_milli == gang_milli_of(SPEC) == 1200


def test_nodes_with_equal_labels_in_any_order_are_of_one_kind() -> None:
    first = shape("n1", labels={"rack": "r1", "zone": "a"})
    second = shape("n2", labels={"zone": "a", "rack": "r1"})
    assert node_kind_of(first) == node_kind_of(second)
    assert node_kind_of(first) != node_kind_of(shape("n3"))
