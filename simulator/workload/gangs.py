"""The gang rule of `rows.make_gang` for a whole column of jobs at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.workload.rows import NODE_GPUS, WORKER_SIZES

Floats = NDArray[np.float64]

SHARE_DIGITS = 6
"""Digits of a worker's GPUs where a total is divided by a number of workers: 0.3 / 3 is 0.1."""


class Gangs(NamedTuple):
    """Workers per job (whole, at least 1) and the GPUs of each."""

    workers: Floats
    gpus_per_worker: Floats


def make_gangs(gpus: Floats) -> Gangs:
    """Return `rows.make_gang` of each of `gpus` (devices of the whole job, not negative)."""
    whole = gpus == np.floor(gpus)
    size = np.select([gpus % size == 0 for size in WORKER_SIZES], WORKER_SIZES, 1.0)
    size = np.where(gpus <= NODE_GPUS, gpus, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        workers = np.where(whole, np.where(size > 0, gpus / size, 1.0), np.ceil(gpus))
    return Gangs(workers, np.where(whole, size, gpus / np.maximum(workers, 1.0)))


def shape_gangs(gpus: Floats, declared: Floats) -> Gangs:
    """Return gangs as `make_gangs`, but with the `declared` workers where they are not NaN.

    A declared worker that Berth has not (1.5 GPUs, or more than a node has) is itself split by
    the rule, so that the job has a multiple of its declared workers.
    """
    known = ~np.isnan(declared)
    count = np.where(known, declared, 1.0)
    share = np.where(known, np.round(gpus / count, SHARE_DIGITS), gpus)
    gangs = make_gangs(share)
    return Gangs(gangs.workers * count, gangs.gpus_per_worker)
