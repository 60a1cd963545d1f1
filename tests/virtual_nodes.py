"""Virtual nodes of an inventory."""

from __future__ import annotations

from services.executor.core.virtual.inventory import InventoryNode


def virtual_node(name: str, gpu_type: str, gpus: int) -> InventoryNode:
    """Return a node of the pool `virtual` with room for any job of its GPUs."""
    return InventoryNode(
        node_id=name,
        pool="virtual",
        backend="virtual",
        gpu_type=gpu_type,
        gpus=gpus,
        cpus=64,
        mem_gib=512,
        rack="r1",
        labels=(),
    )
