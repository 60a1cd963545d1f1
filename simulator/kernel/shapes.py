"""Shapes that found no room in a round: whoever needs as much or more need not be asked."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Shape, Sim, Walk


@compiled
def passed_over(shape: Shape) -> bool:
    """Has it no room, may it look for no victims, and do no others move for it?"""
    return shape.failed and shape.hopeless and shape.scattered


@compiled
def fail(walk: Walk, shape: Shape) -> None:
    """It has no room."""
    shut(walk, shape, True, shape.hopeless, shape.scattered)


@compiled
def close(walk: Walk, shape: Shape) -> None:
    """It has no room and finds no victims."""
    shut(walk, shape, True, True, shape.scattered)


@compiled
def scatter(walk: Walk, shape: Shape) -> None:
    """No moves make room for it."""
    shut(walk, shape, shape.failed, shape.hopeless, True)


@compiled
def shut(walk: Walk, shape: Shape, failed: bool, hopeless: bool, scattered: bool) -> None:
    """What is known of a shape in this round; nobody asks again for one of which all is."""
    was_over = passed_over(shape)
    shape.failed = failed
    shape.hopeless = hopeless
    shape.scattered = scattered
    if shape.waiting and not was_over and passed_over(shape):
        walk.open_shapes -= 1


@compiled
def give_up(sim: Sim, s: int) -> None:
    """Shape `s` found no victims either; nor will those that need as much or more."""
    for k in range(len(sim.shapes)):
        if sim.dearer[s, k]:
            close(sim.walk, sim.shapes[k])


@compiled
def stop_searching(sim: Sim) -> None:
    """Behind EASY's head nobody looks for victims, nor for others to move (rule 9)."""
    for k in range(len(sim.shapes)):
        shape = sim.shapes[k]
        shut(sim.walk, shape, shape.failed, True, True)
