"""Improves orders by a walk: each step moves one operation of the critical path.

The critical path consists of blocks, runs of operations of one stage without idle time between.
Only a move to the front or the end of its block can shorten the whole, as in job shops (Nowicki and
Smutnicki). A step takes the best neighbour that was not visited, even if it is longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from shared.pipeline.model import Operation, Orders, Pipeline
from shared.pipeline.timeline import Timeline, replay, source_of

LONGEST_MOVE = 4


def improve(pipeline: Pipeline, orders: Orders, floor: float, most_replays: int) -> Orders:
    """Return orders that are at least as short, after about so many replays or at the floor."""
    at = best = (replay(pipeline, orders), orders)
    visited = {orders}
    replays = 0
    while best[0].makespan > floor and replays < most_replays:
        near = list(_neighbours(pipeline, at, visited))
        if not near:
            break
        at = min(near, key=lambda other: other[0].makespan)
        visited.add(at[1])
        replays += len(near)
        if at[0].makespan < best[0].makespan:
            best = at
    return best[1]


def _neighbours(
    pipeline: Pipeline, at: tuple[Timeline, Orders], visited: set[Orders]
) -> Iterator[tuple[Timeline, Orders]]:
    timeline, orders = at
    for stage, first, last in _blocks(pipeline, timeline):
        for order in dict.fromkeys(_moves(orders[stage], first, last)):
            moved = (*orders[:stage], order, *orders[stage + 1 :])
            if moved in visited or not is_allowed(order, pipeline.bound(stage)):
                continue
            try:
                yield replay(pipeline, moved), moved
            except ValueError:
                continue


def _moves(order: tuple[Operation, ...], first: int, last: int) -> Iterator[tuple[Operation, ...]]:
    """Yield the order with an operation of the block moved to its front or its end."""
    for index in range(first + 1, min(first + LONGEST_MOVE, last) + 1):
        yield (*order[:first], order[index], *order[first:index], *order[index + 1 :])
    for index in range(max(last - LONGEST_MOVE, first), last):
        yield (*order[:index], *order[index + 1 : last + 1], order[index], *order[last + 1 :])


def is_allowed(order: tuple[Operation, ...], bound: int) -> bool:
    """Return whether kinds keep the order of micro-batches, inputs come first, and activations
    fit.
    """
    done = {"F": 0, "B": 0, "W": 0}
    for kind, microbatch in order:
        if microbatch != done[kind]:
            return False
        done[kind] += 1
        if not done["W"] <= done["B"] <= done["F"] <= done["B"] + bound:
            return False
    return True


def _blocks(pipeline: Pipeline, timeline: Timeline) -> Iterator[tuple[int, int, int]]:
    """Yield stage, first and last index of each block of two and more operations."""
    path = _critical_path(pipeline, timeline)
    for stage, group in groupby(path, key=lambda place: place[0]):
        indices = [index for _, index in group]
        if len(indices) > 1:
            yield stage, indices[-1], indices[0]


def _critical_path(pipeline: Pipeline, timeline: Timeline) -> list[tuple[int, int]]:
    """Return stage and index of the operations that determine the makespan, latest first."""
    places = {
        (stage, span.operation): index
        for stage, spans in enumerate(timeline.spans)
        for index, span in enumerate(spans)
    }
    stage = max(range(pipeline.stages), key=lambda at: timeline.spans[at][-1].end)
    index = len(timeline.spans[stage]) - 1
    path = []
    while True:
        path.append((stage, index))
        span = timeline.spans[stage][index]
        if index and timeline.spans[stage][index - 1].end == span.start:
            index -= 1
            continue
        source = source_of(pipeline, stage, span.operation)
        if source is None or span.start == 0:
            return path
        stage, operation = source[0], source[1]
        index = places[stage, operation]
