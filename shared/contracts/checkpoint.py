"""The work that an attempt keeps in its checkpoint when it is preempted.

Placement prices a preemption with it and the virtual backend applies it. All times are whole wall
milliseconds of the pool's clock, so that every engine counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from shared.contracts.jobs import JobSpec


class CheckpointPolicy(Protocol):
    """How a job saves its work: its specification, or priority's copy of these fields."""

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


def kept_ms(spec: CheckpointPolicy, worked_ms: int, time_scale: float) -> int:
    """Return how much of `worked_ms` (without restarts) is in a checkpoint after a preemption.

    That is the work up to the last whole `checkpoint_interval_s`, or nothing without an interval.
    A job whose `grace_s` of wall time covers its `checkpoint_cost_s` makes one more checkpoint at
    the stop, and loses no more than that cost.
    """
    if spec.checkpoint_interval_s is None:
        return 0
    interval_ms = max(1, wall_ms(spec.checkpoint_interval_s, time_scale))
    at_interval_ms = worked_ms // interval_ms * interval_ms
    cost_ms = wall_ms(spec.checkpoint_cost_s, time_scale)
    saves_at_stop = 0 < cost_ms <= spec.grace_s * 1000
    return max(at_interval_ms, worked_ms - cost_ms) if saves_at_stop else at_interval_ms


def speed(spec: JobSpec, workers: int, gpu_types: Iterable[str] = ()) -> float:
    """Return the work per second of a gang relative to the one that was requested.

    An elastic gang works in proportion to its workers; every gang is as fast as the slowest of its
    GPU types by `gpu_speeds`.
    """
    speeds = spec.gpu_speeds or {}
    slowest = min((speeds.get(name, 1.0) for name in gpu_types), default=1.0)
    return slowest * (workers / spec.gang.workers if spec.elastic else 1.0)
