"""The schedules: 1F1B, zero-bubble H1 and H2 as planned for fast links, and the adapted one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from typing import Literal

from shared.pipeline.dispatch import Preferences, dispatch
from shared.pipeline.improve import improve
from shared.pipeline.model import Kind, Operation, Orders, Pipeline
from shared.pipeline.timeline import Timeline, replay

ScheduleName = Literal["1f1b", "zb_h1", "zb_h2", "adapted"]
NAMES: tuple[ScheduleName, ...] = ("1f1b", "zb_h1", "zb_h2", "adapted")
SLACKS = (2, 1, 0, 3)
"""Forwards per hop beyond those that cover its delay; with 2, a healthy pipeline has no bubble."""
PATIENCE = (0.0, 0.25, 0.5, 0.75, 1.0)
SEARCHED_OPERATIONS = 4_000
"""Larger pipelines get the rule's schedule alone, in a time that grows with their size."""
IMPROVED = 2
REPLAYED_OPERATIONS = 300_000
"""Work of the walk from the best schedules, as operations simulated."""


@dataclass(frozen=True, slots=True)
class PlannedSchedule:
    """A schedule and its timeline under the delays of the pipeline."""

    name: ScheduleName
    orders: Orders
    timeline: Timeline

    @property
    def warmup(self) -> tuple[int, ...]:
        """Return how many forwards each stage runs before its first backward operation."""
        return tuple(
            next(index for index, operation in enumerate(order) if operation.kind != "F")
            for order in self.orders
        )


def plan(pipeline: Pipeline, name: ScheduleName) -> PlannedSchedule:
    """Return the schedule of that name and its time on the pipeline."""
    if name == "adapted":
        return adapted(pipeline)
    if name == "1f1b":
        orders = one_forward_one_backward(pipeline)
        return PlannedSchedule(name, orders, replay(pipeline, orders, merged=True))
    orders = zero_bubble(pipeline, 1 if name == "zb_h1" else 2)
    return PlannedSchedule(name, orders, replay(pipeline, orders))


def one_forward_one_backward(pipeline: Pipeline) -> Orders:
    """Return orders in which `B` stands for both gradients."""
    counts = within_memory(pipeline, range(pipeline.stages, 0, -1))
    return tuple(_alternating(pipeline.microbatches, count) for count in counts)


def _alternating(microbatches: int, warmup: int) -> tuple[Operation, ...]:
    order = [Operation("F", index) for index in range(warmup)]
    for index in range(microbatches):
        order.append(Operation("B", index))
        if index + warmup < microbatches:
            order.append(Operation("F", index + warmup))
    return tuple(order)


def zero_bubble(pipeline: Pipeline, slack: int) -> Orders:
    """Return the orders planned for links without delay: H1 with a slack of 1, H2 with 2."""
    healthy = replace(pipeline, link_delay=(0.0,) * (pipeline.stages - 1))
    return dispatch(healthy, warmup_counts(healthy, slack))


def warmup_counts(pipeline: Pipeline, slack: int) -> tuple[int, ...]:
    """Return the warm-up forwards of each stage: enough to cover the delay of each hop, in memory.

    A hop with `n` more forwards before it than after it absorbs a delay of `n - 1` forwards.
    """
    counts = [1]
    for stage in range(pipeline.stages - 2, -1, -1):
        covered = ceil(pipeline.link_delay[stage] / pipeline.forward[stage])
        counts.append(counts[-1] + covered + slack)
    counts.reverse()
    return within_memory(pipeline, counts)


def within_memory(pipeline: Pipeline, counts: Iterable[int]) -> tuple[int, ...]:
    """Return the counts that fit; a stage never waits for more than the one before it sends."""
    fitting = (min(count, pipeline.bound(stage)) for stage, count in enumerate(counts))
    return tuple(accumulate(fitting, min))


def adapted(pipeline: Pipeline) -> PlannedSchedule:
    """Return the shortest schedule that the search meets, of those the one that holds least.

    The zero-bubble schedules are among them, so it is never longer than those.
    """
    kept: dict[Orders, Timeline] = {}
    floor = shortest_possible(pipeline)
    for orders in _candidates(pipeline):
        kept[orders] = replay(pipeline, orders)
        if kept[orders].makespan <= floor:
            break
    best = sorted(kept, key=lambda orders: _cost(kept[orders]))
    if _is_searched(pipeline) and kept[best[0]].makespan > floor:
        operations = 3 * pipeline.stages * pipeline.microbatches
        for orders in best[:IMPROVED]:
            replays = REPLAYED_OPERATIONS // operations // IMPROVED
            better = improve(pipeline, orders, floor, replays)
            kept[better] = replay(pipeline, better)
    orders = min(kept, key=lambda orders: _cost(kept[orders]))
    return PlannedSchedule("adapted", orders, kept[orders])


def adapted_by_rule(pipeline: Pipeline) -> PlannedSchedule:
    """Return the schedule of the warm-up rule, or a zero-bubble one that is no longer; no search.

    Its time grows with the number of operations alone.
    """
    candidates = (
        dispatch(pipeline, warmup_counts(pipeline, SLACKS[0])),
        zero_bubble(pipeline, 2),
        zero_bubble(pipeline, 1),
    )
    kept = {orders: replay(pipeline, orders) for orders in candidates}
    orders = min(kept, key=lambda orders: _cost(kept[orders]))
    return PlannedSchedule("adapted", orders, kept[orders])


def shortest_possible(pipeline: Pipeline) -> float:
    """Return a time that no schedule undercuts: each stage waits for its first input, and works."""
    arrives, longest = 0.0, 0.0
    for stage in range(pipeline.stages):
        work = pipeline.forward[stage] + pipeline.backward[stage] + pipeline.weight[stage]
        longest = max(longest, arrives + pipeline.microbatches * work)
        arrives += pipeline.forward[stage]
        if stage < pipeline.stages - 1:
            arrives += pipeline.link_delay[stage]
    return longest


def _is_searched(pipeline: Pipeline) -> bool:
    return 3 * pipeline.stages * pipeline.microbatches <= SEARCHED_OPERATIONS


def _candidates(pipeline: Pipeline) -> Iterator[Orders]:
    yield dispatch(pipeline, warmup_counts(pipeline, SLACKS[0]))
    yield zero_bubble(pipeline, 2)
    yield zero_bubble(pipeline, 1)
    if not _is_searched(pipeline):
        return
    full = within_memory(pipeline, (pipeline.microbatches,) * pipeline.stages)
    firsts: tuple[Kind, ...] = ("B", "F")
    for counts in (*(warmup_counts(pipeline, slack) for slack in SLACKS), full):
        for first in firsts:
            for patience in PATIENCE:
                yield dispatch(pipeline, counts, Preferences(first, patience))


def _cost(timeline: Timeline) -> tuple[float, int]:
    return timeline.makespan, sum(timeline.peak_activations())
