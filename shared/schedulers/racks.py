"""Nodes of one GPU type by rack, and the closest free GPUs for a gang."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.performance.links import LinkTier
from shared.schedulers.placing import FreeGpus, fullest_node, roomiest_nodes
from shared.schedulers.view import Placement, TypedNode


@dataclass(frozen=True, slots=True)
class Racks:
    """GPUs by node, by rack. Nodes that name no rack count as one."""

    gpus: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, nodes: Iterable[TypedNode], gpu_type: str) -> Racks:
        by_rack: dict[str, dict[str, int]] = {}
        for node in nodes:
            if node.gpu_type == gpu_type:
                by_rack.setdefault(node.rack, {})[node.node_id] = node.gpus
        return cls(by_rack)

    def free(self) -> FreeGpus:
        """Return the free GPUs of an empty cluster."""
        return {node: count for rack in self.gpus.values() for node, count in rack.items()}

    def domains(self, tier: LinkTier) -> Sequence[Sequence[str]]:
        """Return the groups of nodes of which one has to hold a gang of the tier."""
        if tier is LinkTier.NODE:
            return [[node] for rack in self.gpus.values() for node in rack]
        if tier is LinkTier.RACK:
            return [list(rack) for rack in self.gpus.values()]
        return [[node for rack in self.gpus.values() for node in rack]]

    def best_tier(self, gpus: int) -> LinkTier:
        """Return the closest tier that holds so many GPUs when nothing else runs."""
        total = self.free()
        for tier in (LinkTier.NODE, LinkTier.RACK):
            if any(sum(total[node] for node in own) >= gpus for own in self.domains(tier)):
                return tier
        return LinkTier.SPINE

    def closest(self, free: FreeGpus, gpus: int) -> tuple[LinkTier, Placement] | None:
        """Return free GPUs on the closest tier that has as many, and the tier; None if none has.

        The fullest node, else the fullest rack that has them, else racks from the roomiest on.
        """
        if any(count >= gpus for count in free.values()):
            return LinkTier.NODE, fullest_node(free, gpus)
        by_rack = [{node: free[node] for node in rack} for rack in self.gpus.values()]
        fitting = [rack for rack in by_rack if sum(rack.values()) >= gpus]
        if fitting:
            fullest = min(fitting, key=lambda rack: sum(rack.values()))
            return LinkTier.RACK, roomiest_nodes(fullest, gpus)
        if sum(free.values()) < gpus:
            return None
        return LinkTier.SPINE, _over_racks(by_rack, gpus)


def _over_racks(by_rack: Iterable[FreeGpus], gpus: int) -> Placement:
    placement: Placement = ()
    for rack in sorted(by_rack, key=lambda rack: -sum(rack.values())):
        count = min(gpus, sum(rack.values()))
        if count:
            placement += roomiest_nodes(rack, count)
            gpus -= count
    return placement
