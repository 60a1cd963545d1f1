"""A seeded workload for machines without traces, in the shape of published GPU cluster traces.

What it follows, and where each number comes from:

- Helios: Hu et al., "Characterization and Prediction of Deep Learning Workloads in Large-Scale
  GPU Datacenters", SC '21 (data: CC BY 4.0). Log-normal durations, GPU sizes, hours of the day:
  fitted to 77,574 jobs of the cluster Venus (2020-03-18 to 07-31), whose median is 207 s and
  mean 9,465 s. Outcomes: 1,452 jobs of one virtual cluster, September 2020.
- Philly: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
  Workloads", USENIX ATC '19 (data: CC BY 4.0). That jobs of many GPUs run longer; in Helios they
  do too, by the growth used here.

What it leaves out: sizes that are no power of two (3 % of Helios), weekends, users who resubmit,
GPU types. Arrivals are a Poisson process whose rate follows the hour. The numbers of one seed
stay the same over Python versions as far as `random.Random` keeps its own promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import TypeVar

from simulator.workload.arrivals import START_S, arrivals_s
from simulator.workload.names import DEMO_TENANTS
from simulator.workload.rows import UNKNOWN_CPUS, UNKNOWN_MEM_GIB, WorkloadJob, make_gang

GPU_SHARES = {1: 39667, 2: 3800, 4: 5804, 8: 19724, 16: 3978, 32: 1828, 64: 128, 128: 62}
"""Jobs of Venus by GPUs, powers of two only."""

LOG_MEDIAN_S = 5.2
LOG_MEDIAN_PER_DOUBLING = 0.2
LOG_SIGMA = 3.0
LONGEST_S = 172_800.0
"""ln(duration) is normal with mean 5.2 + 0.2 per doubling of the GPUs. Nothing runs longer than
48 h, as in the slice it was fitted to. Median 233 s (Venus 207 s), mean 6,990 s (9,465 s), upper
quartile 1,770 s (1,823 s): one log-normal per size cannot have Venus's middle and tail at once."""

OUTCOME_SHARES = {True: 702, False: 334, None: 416}
"""Completed, failed, cancelled."""

HOUR_WEIGHTS = (
    *(0.92, 0.58, 0.58, 0.32, 0.26, 0.17, 0.16, 0.18, 0.37, 0.89, 1.46, 1.54),
    *(1.17, 1.34, 1.55, 1.56, 1.70, 1.74, 1.26, 1.28, 1.36, 1.33, 1.15, 1.13),
)
"""Submits of Venus by hour of the day, as multiples of the mean."""

MEAN_GAP_S = 240.0
"""Venus has one job per 151 s for about 1,100 GPUs; this keeps 256 GPUs 70 % busy."""

USERS_PER_TENANT = 12

T = TypeVar("T")


def generate(
    jobs: int, seed: int, tenants: Sequence[str] = DEMO_TENANTS, *, mean_gap_s: float = MEAN_GAP_S
) -> list[WorkloadJob]:
    """`jobs` jobs by time; fewer jobs of the same seed are a prefix of more."""
    if not tenants:
        raise ValueError("a workload needs at least one tenant")
    random = Random(seed)
    arrivals = arrivals_s(lambda: random.expovariate(1.0), HOUR_WEIGHTS, mean_gap_s)
    return [
        _job(random, f"synthetic-{seed}-{n}", next(arrivals) - START_S, tenants)
        for n in range(jobs)
    ]


def _job(random: Random, key: str, submit_s: float, tenants: Sequence[str]) -> WorkloadJob:
    gpus = _pick(random, tuple(GPU_SHARES), tuple(GPU_SHARES.values()))
    tenant = _pick(random, tenants, _zipf(len(tenants)))
    user = _pick(random, range(USERS_PER_TENANT), _zipf(USERS_PER_TENANT))
    shape = make_gang(gpus)
    return WorkloadJob(
        job_key=key,
        tenant=tenant,
        user=f"u{tenants.index(tenant)}-{user}",
        name=f"train-{gpus}gpu",
        submit_s=round(submit_s, 3),
        duration_s=_duration_s(random, gpus),
        workers=shape.workers,
        gpus_per_worker=shape.gpus_per_worker,
        gpu_type=None,
        cpus=UNKNOWN_CPUS,
        mem_gib=UNKNOWN_MEM_GIB,
        succeeded=_pick(random, tuple(OUTCOME_SHARES), tuple(OUTCOME_SHARES.values())),
    )


def _duration_s(random: Random, gpus: int) -> float:
    center = LOG_MEDIAN_S + LOG_MEDIAN_PER_DOUBLING * math.log2(gpus)
    drawn = random.lognormvariate(center, LOG_SIGMA)
    return round(min(max(drawn, 1.0), LONGEST_S), 3)


def _zipf(count: int) -> tuple[float, ...]:
    return tuple(1 / (rank + 1) for rank in range(count))


def _pick(random: Random, choices: Sequence[T], weights: Sequence[float]) -> T:
    return random.choices(choices, cum_weights=tuple(accumulate(weights)))[0]
