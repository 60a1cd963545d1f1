"""Shapes that found no room in a round: whoever needs as much or more need not be asked."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Shape, Sim, Walk


@compiled
def passed_over(shape: Shape) -> bool:
    """Has it no room, and may it look for no victims?"""
    return shape.failed and shape.hopeless


@compiled
def fail(walk: Walk, shape: Shape) -> None:
    """It has no room."""
    if not shape.failed:
        shape.failed = True
        if shape.hopeless and shape.waiting:
            walk.open_shapes -= 1


@compiled
def close(walk: Walk, shape: Shape) -> None:
    """It has no room and finds no victims."""
    if not (shape.failed and shape.hopeless):
        shape.failed = True
        shape.hopeless = True
        if shape.waiting:
            walk.open_shapes -= 1


@compiled
def give_up(sim: Sim, s: int) -> None:
    """Shape `s` found no victims either; nor will those that need as much or more."""
    for k in range(len(sim.shapes)):
        if sim.dearer[s, k]:
            close(sim.walk, sim.shapes[k])


@compiled
def stop_searching(sim: Sim) -> None:
    """Behind EASY's head nobody looks for victims (rule 9)."""
    for k in range(len(sim.shapes)):
        shape = sim.shapes[k]
        if shape.failed:
            close(sim.walk, shape)
        shape.hopeless = True
