"""One job of a workload, and the rule that splits GPUs into a gang of workers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

NODE_GPUS = 8
"""GPUs of the largest worker: the nodes of all public traces have at most eight."""

WORKER_SIZES = (8, 4, 2, 1)

UNKNOWN_CPUS = 1.0
UNKNOWN_MEM_GIB = 1.0
"""CPUs and memory per worker where a workload has none: the defaults of a submit."""

EITHER = "|"
"""Separator of the GPU types that a job may have."""


class GangShape(NamedTuple):
    workers: int
    gpus_per_worker: float


@dataclass(frozen=True, slots=True)
class WorkloadJob:
    """One job of a trace. CPUs and memory are those of one worker.

    `submit_s` counts from the trace's own zero. `succeeded` is None if unknown, cancelled or
    still running at the trace's end. `walltime_s` is the run time that the user requested,
    `queue_s` the wait in the real cluster: for calibration, never an input of a policy.
    `checkpoint_interval_s` is the work between checkpoints, 0 for a job that makes none. None: the
    trace has no value.
    """

    job_key: str
    tenant: str
    user: str
    name: str
    submit_s: float
    duration_s: float
    workers: int
    gpus_per_worker: float
    gpu_type: str | None
    cpus: float
    mem_gib: float
    succeeded: bool | None
    walltime_s: float | None = None
    qos: str | None = None
    queue_s: float | None = None
    checkpoint_interval_s: float | None = None

    @property
    def gpus(self) -> float:
        """GPUs of the whole gang, in devices."""
        return self.workers * self.gpus_per_worker

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types that it may run on; none means any."""
        return tuple(self.gpu_type.split(EITHER)) if self.gpu_type else ()


def make_gang(gpus: float) -> GangShape:
    """Return the gang that holds exactly `gpus` devices.

    Whole, up to 8: one worker. Whole, above 8: workers of the largest of 8, 4, 2, 1 that divides
    it, since such workers fill nodes without a rest (16 -> 2x8, 12 -> 3x4, 17 -> 17x1). A
    fraction below 1: one worker. Another fraction: as few equal workers below one GPU as hold
    it, because a worker has whole GPUs or a part of one (1.5 -> 2x0.75).
    """
    if gpus != int(gpus):
        workers = math.ceil(gpus)
        return GangShape(workers, gpus / workers)
    if gpus <= NODE_GPUS:
        return GangShape(1, float(gpus))
    size = next(size for size in WORKER_SIZES if gpus % size == 0)
    return GangShape(int(gpus) // size, float(size))
