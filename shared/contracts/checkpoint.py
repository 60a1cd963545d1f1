"""The work that an attempt keeps in its checkpoint when it is preempted.

Placement prices a preemption with it and the virtual backend applies it. All times are whole wall
milliseconds of the pool's clock, so that every engine counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from shared.contracts.job_spec import JobSpec, Spread

OVERDUE_INTERVALS = 2
"""A job that reported a checkpoint and then none for so many intervals counts as silent: from there
on its checkpoints are taken to be at the intervals again."""
MIN_SPEED = 0.001
"""A job that declares less counts as this fast: times that follow from it stay within bounds."""


class CheckpointPolicy(Protocol):
    """The checkpoints of a job: its specification, or priority's copy of these fields."""

    @property
    def checkpoint_interval_s(self) -> float | None: ...

    @property
    def checkpoint_cost_s(self) -> float: ...

    @property
    def grace_s(self) -> float: ...


def wall_ms(cluster_s: float, time_scale: float) -> int:
    """Convert cluster seconds to whole wall milliseconds."""
    return round(cluster_s * 1000 / time_scale)


def restart_ms(spec: JobSpec, time_scale: float) -> int:
    """Return the wall ms that a start after a preemption takes before its work goes on."""
    return wall_ms(spec.simulated.restart_s, time_scale) if spec.simulated else 0


def kept_ms(spec: CheckpointPolicy, worked_ms: int, time_scale: float, reported_ms: int = 0) -> int:
    """Return how much of `worked_ms` (without restarts) is in a checkpoint after a preemption.

    That is the work up to the last whole `checkpoint_interval_s`, or nothing without an interval.
    A job that reported a checkpoint after `reported_ms` of work keeps that, and intervals count
    from there once two of them have passed without a report.
    A job whose `grace_s` of wall time covers its `checkpoint_cost_s` makes one more checkpoint at
    the stop, and loses no more than that cost.
    """
    reported_ms = min(reported_ms, worked_ms)
    every_ms = interval_ms(spec, time_scale)
    if every_ms is None:
        return reported_ms
    since_ms = worked_ms - reported_ms
    awaited = reported_ms > 0 and since_ms < OVERDUE_INTERVALS * every_ms
    at_interval_ms = reported_ms + (0 if awaited else since_ms // every_ms * every_ms)
    cost_ms = stop_cost_ms(spec, time_scale)
    return max(at_interval_ms, worked_ms - cost_ms) if cost_ms else at_interval_ms


def interval_ms(spec: CheckpointPolicy, time_scale: float) -> int | None:
    """Return the wall ms of work between checkpoints; None for a job that makes none."""
    if spec.checkpoint_interval_s is None:
        return None
    return max(1, wall_ms(spec.checkpoint_interval_s, time_scale))


def stop_cost_ms(spec: CheckpointPolicy, time_scale: float) -> int:
    """Return the wall ms of work that a stop loses which writes a checkpoint; 0: it writes none.

    It writes one if `grace_s` of wall time covers `checkpoint_cost_s`, which has to be known.
    """
    cost_ms = wall_ms(spec.checkpoint_cost_s, time_scale)
    return cost_ms if 0 < cost_ms <= spec.grace_s * 1000 else 0


def speed(
    spec: JobSpec, workers: int, gpu_types: Iterable[str] = (), spread: Spread | None = None
) -> float:
    """Return the work per second of a gang relative to the one that was requested.

    An elastic gang works in proportion to its workers; every gang is as fast as the slowest of its
    GPU types by `gpu_speeds`, and by `spread_speeds` slower on more than one node.
    """
    slowest = min((type_speed(spec, name) for name in gpu_types), default=1.0)
    linked = (spec.spread_speeds or {}).get(spread, 1.0) if spread else 1.0
    own = max(MIN_SPEED, slowest * linked)
    return own * (workers / spec.gang.workers if spec.elastic else 1.0)


def type_speed(spec: JobSpec, gpu_type: str) -> float:
    """Return the speed that the job declares for a GPU type, at least `MIN_SPEED`; else 1."""
    return max(MIN_SPEED, (spec.gpu_speeds or {}).get(gpu_type, 1.0))


def spread_of(nodes: Iterable[str], racks: Mapping[str, str]) -> Spread | None:
    """Return the links between these nodes, by the rack of each; None: there is one node."""
    names = set(nodes)
    if len(names) <= 1:
        return None
    return "rack" if len({racks.get(name, "") for name in names}) == 1 else "spine"
