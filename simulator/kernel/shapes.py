"""Marks of shapes in a round: jobs that need as much as one that failed are passed over."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import ScanState, ShapeRow, Sim


@compiled
def is_passed_over(shape: ShapeRow) -> bool:
    """Return whether the shape has no room, no victims and no migrations."""
    return shape.no_room and shape.no_victims and shape.no_migrations


@compiled
def mark_no_room(scan: ScanState, shape: ShapeRow) -> None:
    """Mark that the shape has no room."""
    set_marks(scan, shape, True, shape.no_victims, shape.no_migrations)


@compiled
def mark_no_victims(scan: ScanState, shape: ShapeRow) -> None:
    """Mark that the shape has no room and no victims."""
    set_marks(scan, shape, True, True, shape.no_migrations)


@compiled
def mark_no_migrations(scan: ScanState, shape: ShapeRow) -> None:
    """Mark that no migrations make room for the shape."""
    set_marks(scan, shape, shape.no_room, shape.no_victims, True)


@compiled
def set_marks(
    scan: ScanState, shape: ShapeRow, no_room: bool, no_victims: bool, no_migrations: bool
) -> None:
    """Set the shape's marks; one with all of them is no longer open in this round."""
    scan.unmarked = False
    was_over = is_passed_over(shape)
    shape.no_room = no_room
    shape.no_victims = no_victims
    shape.no_migrations = no_migrations
    if shape.waiting and not was_over and is_passed_over(shape):
        scan.open_shapes -= 1


@compiled
def mark_costlier(sim: Sim, s: int) -> None:
    """Mark that shape `s` and all that need as much or more have no victims."""
    for k in range(len(sim.shapes)):
        if sim.costlier[s, k]:
            mark_no_victims(sim.scan, sim.shapes[k])


@compiled
def stop_searching(sim: Sim) -> None:
    """Mark all shapes: behind EASY's head no victims are stopped and no jobs migrate (rule 9)."""
    for k in range(len(sim.shapes)):
        shape = sim.shapes[k]
        set_marks(sim.scan, shape, shape.no_room, True, True)
