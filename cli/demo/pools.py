"""The two pools of the demo: a simulated cluster with scaled time, and this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from cli.demo.options import DEMO_POOL, LOCAL_POOL
from cli.stack.bring_up import VIRTUAL, Inventories
from cli.stack.pool_defaults import cluster_pool
from infra.supervisor.stack import NODES
from shared.contracts.pools import ConfigurePool

SHAPES = NODES / "virtual.json"

Group = dict[str, object]


def inventories(types: Sequence[str]) -> Inventories:
    """Return the inventory: 32 nodes of 8 GPUs, of the GPU types that the workload names."""
    return {VIRTUAL: cluster(types)}


def cluster(types: Sequence[str]) -> Mapping[str, object]:
    shape = cast("dict[str, object]", json.loads(SHAPES.read_text()))
    groups = cast("list[Group]", shape["nodes"])
    named = groups if not types else _named(groups, sorted(set(types)))
    return {**shape, "pool": DEMO_POOL, "nodes": named}


def pools(time_scale: float) -> list[ConfigurePool]:
    return [
        cluster_pool(DEMO_POOL, time_scale),
        ConfigurePool(pool=LOCAL_POOL, backends=("agent",)),
    ]


def node_count(inventories: Inventories) -> int:
    """Return the number of nodes in the inventories."""
    groups = (
        group for pool in inventories.values() for group in cast("list[Group]", pool["nodes"])
    )
    return sum(int(str(group.get("count", 1))) for group in groups)


def capacity_gpus(inventories: Inventories) -> float:
    groups = cast("list[Group]", inventories[VIRTUAL]["nodes"])
    return sum(int(str(group["count"])) * int(str(group["gpus"])) for group in groups)


def _named(groups: Sequence[Group], types: Sequence[str]) -> list[Group]:
    """Spread the nodes over the GPU types of the workload, at most three types."""
    spare = [name for name in (str(group["gpu_type"]) for group in groups) if name not in types]
    gpu_types = [*types, *spare][: max(len(groups), len(types))]
    total = sum(int(str(group["count"])) for group in groups)
    share, rest = divmod(total, len(gpu_types))
    return [_group(groups[0], name, share + (index < rest)) for index, name in enumerate(gpu_types)]


def _group(shape: Group, gpu_type: str, count: int) -> Group:
    return {
        **shape,
        "id": f"{gpu_type}-{{00..{count - 1:02d}}}",
        "count": count,
        "gpu_type": gpu_type,
    }
