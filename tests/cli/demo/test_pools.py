"""The demo's cluster is 32 nodes of 8 GPUs, of the types that the workload asks for."""

from __future__ import annotations

import pytest

from cli.demo import pools
from cli.stack.bring_up import VIRTUAL


@pytest.mark.parametrize("types", [(), ("v100",), ("t4", "p100", "v100", "a10")])
def test_there_are_256_gpus_of_at_least_three_types(types: tuple[str, ...]) -> None:
    inventories = pools.inventories(types)
    groups = inventories[VIRTUAL]["nodes"]
    assert isinstance(groups, list)
    named = {str(group["gpu_type"]) for group in groups}
    assert pools.capacity_gpus(inventories) == 256
    assert pools.node_count(inventories) == 32
    assert len(named) >= 3
    assert set(types) <= named
