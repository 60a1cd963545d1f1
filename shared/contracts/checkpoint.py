"""What a preempted start keeps of its work: placement prices it, the virtual backend obeys it.

All in whole wall milliseconds of the pool's clock, so that every engine counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from shared.contracts.jobs import JobSpec


class Saving(Protocol):
    """What says how a job saves its work: its specification, or priority's note of it."""

    @property
    def checkpoint_interval_s(self) -> float | None: ...

    @property
    def checkpoint_cost_s(self) -> float: ...

    @property
    def grace_s(self) -> float: ...


def wall_ms(cluster_s: float, time_scale: float) -> int:
    return round(cluster_s * 1000 / time_scale)


def restart_ms(spec: JobSpec, time_scale: float) -> int:
    """What a start after a preemption spends before its work goes on."""
    return wall_ms(spec.simulated.restart_s, time_scale) if spec.simulated else 0


def kept_ms(spec: Saving, worked_ms: int, time_scale: float) -> int:
    """Of `worked_ms` of work (a restart is none), what is done for good when a preemption comes.

    Up to the last whole `checkpoint_interval_s`; without one nothing. A job whose `grace_s` of
    wall time is enough for its `checkpoint_cost_s` makes one more at the stop: it loses no more
    than that cost.
    """
    if spec.checkpoint_interval_s is None:
        return 0
    every_ms = max(1, wall_ms(spec.checkpoint_interval_s, time_scale))
    kept = worked_ms // every_ms * every_ms
    cost_ms = wall_ms(spec.checkpoint_cost_s, time_scale)
    saves_at_stop = 0 < cost_ms <= spec.grace_s * 1000
    return max(kept, worked_ms - cost_ms) if saves_at_stop else kept


def speed(spec: JobSpec, workers: int, gpu_types: Iterable[str] = ()) -> float:
    """Work per second of a gang: an elastic one against the size that was asked for, and as fast
    as the slowest of its GPU types by `gpu_speeds`."""
    known = spec.gpu_speeds or {}
    slowest = min((known.get(name, 1.0) for name in gpu_types), default=1.0)
    return slowest * (workers / spec.gang.workers if spec.elastic else 1.0)
