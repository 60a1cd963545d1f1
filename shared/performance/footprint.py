"""The shape of an allocation, which decides how fast a job is on it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.performance.links import LinkTier


@dataclass(frozen=True, slots=True)
class Footprint:
    """GPUs of one type, by node: (4, 4) is two nodes with four GPUs each.

    `node_gpus` is how many GPUs a whole node of the type has, `racks` in how many racks the nodes
    are; both are 0 where that is unknown. `other_types` are those beside `gpu_type` of a gang that
    has GPUs of several types, and `node_types` then the type of each node.
    """

    gpu_type: str
    per_node: tuple[int, ...]
    node_gpus: int = 0
    racks: int = 0
    other_types: tuple[str, ...] = ()
    node_types: tuple[str, ...] = ()

    @property
    def type_of_nodes(self) -> tuple[str, ...]:
        """Return the type of each node, in the order of `per_node`."""
        return self.node_types or (self.gpu_type,) * self.nodes

    @property
    def gpus(self) -> int:
        return sum(self.per_node)

    @property
    def nodes(self) -> int:
        return len(self.per_node)

    @property
    def is_consolidated(self) -> bool:
        """Return whether no fewer nodes could hold as many GPUs."""
        if self.nodes <= 1:
            return True
        return self.node_gpus > 0 and self.nodes == -(-self.gpus // self.node_gpus)

    @property
    def tier(self) -> LinkTier | None:
        """The tier of the links between the GPUs; None over several nodes of unknown racks."""
        if self.nodes <= 1:
            return LinkTier.NODE
        if not self.racks:
            return None
        return LinkTier.RACK if self.racks == 1 else LinkTier.SPINE
