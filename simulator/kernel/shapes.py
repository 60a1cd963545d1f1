"""Shapes that found no room in a round: whoever needs as much or more need not be asked."""

from __future__ import annotations

from simulator.kernel.codes import EVICTIONS_PER_ROUND, SEARCHES_PER_ROUND
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Shape, Sim, Walk


@compiled
def passed_over(walk: Walk, shape: Shape) -> bool:
    """Has it no room, and may it look for no victims?"""
    if not shape.failed:
        return False
    if shape.hopeless:
        return True
    if walk.evictions == EVICTIONS_PER_ROUND:
        walk.unfinished = True
        return True
    return walk.searches == SEARCHES_PER_ROUND


@compiled
def fail(walk: Walk, shape: Shape) -> None:
    """It has no room."""
    if not shape.failed:
        shape.failed = True
        if shape.hopeless and shape.waiting:
            walk.open_shapes -= 1


@compiled
def give_up(sim: Sim, s: int) -> None:
    """Shape `s` found no victims either; nor will those that need as much or more."""
    for k in range(len(sim.shapes)):
        shape = sim.shapes[k]
        if sim.dearer[s, k] and not (shape.failed and shape.hopeless):
            shape.failed = True
            shape.hopeless = True
            if shape.waiting:
                sim.walk.open_shapes -= 1
