"""The nodes that an executor serves: the inventory file of `BERTH_NODES`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ConfigDict, Field, TypeAdapter, field_validator, model_validator

from shared.contracts.agents import ADDRESS_LABEL
from shared.contracts.base import Model, Name
from shared.contracts.nodes import Backend

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
"""Numbers in the name of a group: `a100-{00..15}` names 16 nodes."""


class NodeGroup(Model):
    """Equal nodes: `id` may hold one range, as in `a100-{00..15}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=80, description="name, or names by a range")
    count: int | None = Field(None, ge=1, le=10000, description="checked against the range")
    gpu_type: Name = Field(description="GPU type of each node")
    gpus: int = Field(ge=0, le=64, description="GPUs of each node, in devices")
    cpus: float = Field(ge=0, le=4096, description="cores of each node")
    mem_gib: float = Field(ge=0, le=65536, description="memory of each node, GiB")
    rack: str = Field("", max_length=64, description="rack of the nodes")
    labels: dict[str, str] = Field(default_factory=dict, description="labels for selectors")
    address: str = Field("127.0.0.1", description="address at which peers reach a worker there")

    @model_validator(mode="after")
    def _range_has_count(self) -> NodeGroup:
        count = len(list(expand_range(self.id)))
        if self.count is not None and self.count != count:
            raise ValueError(f"count: {self.count}; {self.id} names {count} nodes")
        return self


class PoolNodes(Model):
    """The nodes of one pool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: Name = Field(description="pool of the nodes")
    backend: Backend = Field("virtual", description="`virtual`; an agent runs processes")
    nodes: tuple[NodeGroup, ...] = Field(min_length=1, description="groups of equal nodes")

    @field_validator("backend")
    @classmethod
    def _runs_here(cls, backend: Backend) -> Backend:
        if backend != "virtual":
            raise ValueError(f"backend: {backend!r}; 'virtual' is allowed, processes need an agent")
        return backend


@dataclass(frozen=True, slots=True)
class InventoryNode:
    """One node of this executor."""

    node_id: str
    pool: str
    backend: Backend
    gpu_type: str
    gpus: int
    cpus: float
    mem_gib: float
    rack: str
    labels: tuple[tuple[str, str], ...]


_file: TypeAdapter[PoolNodes | list[PoolNodes]] = TypeAdapter(PoolNodes | list[PoolNodes])
_name: TypeAdapter[str] = TypeAdapter(Name)


def parse_inventory(text: str) -> tuple[InventoryNode, ...]:
    """Return all nodes, in the order of the file. Raises ValueError for an invalid inventory."""
    parsed = _file.validate_python(json.loads(text))
    pools = parsed if isinstance(parsed, list) else [parsed]
    nodes = tuple(node for pool in pools for group in pool.nodes for node in _nodes(pool, group))
    seen: set[str] = set()
    for node in nodes:
        if node.node_id in seen:
            raise ValueError(f"duplicate node: {node.node_id}")
        seen.add(node.node_id)
    return nodes


def _nodes(pool: PoolNodes, group: NodeGroup) -> Iterator[InventoryNode]:
    labels = {**group.labels, ADDRESS_LABEL: group.address}
    for name in expand_range(group.id):
        yield InventoryNode(
            _name.validate_python(name),
            pool.pool,
            pool.backend,
            group.gpu_type,
            group.gpus,
            group.cpus,
            group.mem_gib,
            group.rack,
            tuple(sorted(labels.items())),
        )


def expand_range(pattern: str) -> Iterator[str]:
    """Yield the names of a range: n08, n09, n10 for `n{08..10}`, as wide as the first number."""
    match = RANGE.search(pattern)
    if match is None:
        yield pattern
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield RANGE.sub(f"{number:0{len(first)}d}", pattern, count=1)
