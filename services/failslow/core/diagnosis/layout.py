"""The parallel layout of a gang: tensor, data and pipeline groups of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["tp", "dp", "pp"]
AXES: tuple[Axis, ...] = ("tp", "dp", "pp")


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Ranks that communicate with each other, in ring order; `position` is shared by its peers.

    Peers do the same work: tensor groups of one pipeline stage, data-parallel groups of one stage,
    and all pipelines.
    """

    axis: Axis
    position: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks as Megatron numbers them: tensor-parallel ranks are neighbours, stages come last."""

    tp: int
    dp: int
    pp: int

    @property
    def size(self) -> int:
        return self.tp * self.dp * self.pp

    def rank(self, tensor: int, data: int, stage: int) -> int:
        return (stage * self.dp + data) * self.tp + tensor

    def groups(self) -> tuple[Group, ...]:
        """Return all groups of two and more ranks."""
        tensor = (
            Group("tp", stage, tuple(self.rank(t, d, stage) for t in range(self.tp)))
            for stage in range(self.pp)
            for d in range(self.dp)
        )
        data = (
            Group("dp", stage, tuple(self.rank(t, d, stage) for d in range(self.dp)))
            for stage in range(self.pp)
            for t in range(self.tp)
        )
        pipeline = (
            Group("pp", 0, tuple(self.rank(t, d, stage) for stage in range(self.pp)))
            for d in range(self.dp)
            for t in range(self.tp)
        )
        groups = (*tensor, *data, *pipeline)
        return tuple(group for group in groups if len(group.ranks) > 1)


def peers(groups: tuple[Group, ...], group: Group) -> tuple[Group, ...]:
    """Return the groups of the same axis and position, itself among them."""
    return tuple(g for g in groups if (g.axis, g.position) == (group.axis, group.position))
