"""Keys of the base policies, lower first: scalars only, so that the kernel compiles them.

Times are cluster seconds, `gpus` devices of the whole gang, `run_s` an expected run time whose
source (user, history, oracle) the caller chooses. The formulas are those of RLTune (SoCC '25),
Helios (SC '21), Tiresias (NSDI '19) and Muri (SIGCOMM '22).
"""

from __future__ import annotations

import math

LAS_LIMITS_GPU_S = (3_250.0, 7_200.0, 18_000.0)
"""Attained GPU-seconds at which a job falls into the next queue (Tiresias' simulator)."""
MAX_AGE_S = 43_200.0
"""Wait at which Slurm's age factor is full (RLTune's baseline uses 12 h)."""
WEIGHT_AGE = 1000.0
WEIGHT_SIZE = 1000.0
WEIGHT_SHARE = 1000.0
TILT = 0.01
"""Greatest shift of a score within its band by the base policy, in bands."""

LIFT = 128.0
"""Added to the scores of entitled jobs; two logarithms of a rank differ by less."""


def fcfs(submit_s: float) -> float:
    return submit_s


def smallest_first(gpus: float) -> float:
    return gpus


def sjf(run_s: float) -> float:
    return run_s


def saf(run_s: float, gpus: float) -> float:
    """Smallest area first: expected GPU-seconds. With run times of history it is Helios' QSSF."""
    return run_s * gpus


def f1(run_s: float, gpus: float, submit_s: float) -> float:
    """Carastan-Santos and de Camargo's F1; `submit_s` counts from the first job of the pool."""
    return math.log10(max(run_s, 1.0)) * gpus + 870.0 * math.log10(max(submit_s, 1.0))


def wfp3(wait_s: float, run_s: float, gpus: float) -> float:
    """WFP3, multiplied out: powers are rounded differently from machine to machine."""
    ratio = wait_s / max(run_s, 1.0)
    return -(ratio * ratio * ratio) * gpus


def unicep(wait_s: float, run_s: float, gpus: float) -> float:
    """UNICEP; the small term orders one-GPU jobs by their wait, before all others."""
    return -wait_s / (math.log2(max(gpus, 1.0)) * run_s + 1e-5)


def multifactor(wait_s: float, gpus: float, pool_gpus: float, share: float) -> float:
    """Slurm's priority/multifactor: age, size (small first) and fair share 2^(-usage/shares).

    `share` is the fair-share factor in [0, 1]; 0 for all leaves it out.
    """
    age = min(wait_s / MAX_AGE_S, 1.0)
    size = 1.0 - gpus / pool_gpus
    return -(WEIGHT_AGE * age + WEIGHT_SIZE * size + WEIGHT_SHARE * share)


def las(attained_gpu_s: float) -> float:
    """2D-LAS: the number of the queue; within it running jobs go first, then by submission."""
    queue = 0
    for limit in LAS_LIMITS_GPU_S:
        if attained_gpu_s >= limit:
            queue += 1
    return float(queue)


def srtf(left_s: float) -> float:
    return left_s


def srsf(left_s: float, gpus: float) -> float:
    """Shortest remaining service first, in GPU-seconds."""
    return left_s * gpus


def banded(score: float, base_score: float, band: float) -> float:
    """Return a learned score in steps of `band`; within a step the base policy decides.

    A network predicts a job's rest to a factor at best: jobs that it cannot distinguish go in the
    order of the base. asinh keeps the order of any scores, and is below 30 for all that occur.
    """
    return (math.floor(score / band) + TILT * (0.5 + math.asinh(base_score) / 64.0)) * band
