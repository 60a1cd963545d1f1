"""Synthetic guaranteed and spot jobs by the published statistics of Alibaba's spot trace.

The trace's table of jobs is large and not part of the traces here; its statistics are those of a
public analysis of it (GPU-Cluster-Spot-Resource-Dataset-Analysis, on GitHub): quantiles
of durations, numbers of jobs by GPUs, GPU time by organisation, jobs by hour of the day, and the
hourly GPUs in demand of A100. Parts of GPUs and gangs above 64 GPUs are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY_S = 86_400
GPUS_OF_NODE = 8
ORGANISATION_GPU_TIME = (45.8, 40.9, 14.4, 7.6, 5.9, 3.6, 3.6, 3.4, 1.8, 1.7, 1.6, 1.1)
"""GPU time of the twelve largest of 84 organisations, 10^9 s."""
JOBS_BY_HOUR = (
    *(22_451, 15_929, 14_089, 13_387, 12_921, 14_128, 14_232, 15_038, 15_945, 16_972, 25_057),
    *(25_735, 19_770, 19_276, 25_304, 25_039, 27_015, 25_376, 20_016, 21_189, 21_885, 19_162),
    *(18_813, 18_138),
)
"""Jobs submitted in each hour of the day, over 184 days."""
SIZES = (1, 2, 4, 8, 16, 32, 64)
JOBS_BY_SIZE = (297_596, 24_489, 24_489, 45_752, 12_051, 6_760, 3_262)
"""Jobs by GPUs: the published classes 1, 2 to 4, 5 to 8, ..., 33 to 64, each at its upper bound,
and 2 to 4 in halves."""
SPOT_MEDIAN_S, SPOT_P90_S = 2_095.5, 21_740.0
SPOT_SHARE = 0.124
"""GPU time of the spot jobs of August in that of all 10,412 GPUs: the medium load."""
GUARANTEE_HOURS, GUARANTEE_SHARES = (1, 2, 4), (0.7, 0.2, 0.1)
"""Guaranteed hours of spot jobs; the published evaluation has 1 alone."""
P90 = NormalDist().inv_cdf(0.9)


class SpotTraceJob(NamedTuple):
    """One job; its workers have as many GPUs each."""

    number: int
    organisation: int
    is_spot: bool
    workers: int
    gpus_per_worker: int
    submit_s: float
    duration_s: float
    guarantee_h: int = 0

    @property
    def gpus(self) -> int:
        return self.workers * self.gpus_per_worker


@dataclass(frozen=True, slots=True)
class SpotDemand:
    """Settings of the generator; loads are GPU time in that of the cluster.

    Guaranteed demand has lasting jobs, of days, and daily ones, which are short, larger, and follow
    the hour. Its rate of arrivals wanders by organisation, from one hour to the next.
    """

    gpus: int
    days: int
    """Days from `-HISTORY_DAYS` on are history; jobs are drawn until the end of the last one."""
    seed: int
    guaranteed_load: float = 0.70
    spot_load: float = SPOT_SHARE
    lasting_part: float = 0.5
    """Part of the guaranteed GPU time in jobs of days."""
    lasting_median_s: float = 3.0 * DAY_S
    lasting_spread: float = 1.0
    """Standard deviation of the logarithm of durations."""
    daily_median_s: float = 1_101.0
    daily_spread: float = 1.8
    weekend_part: float = 0.9
    """Daily arrivals of a day of the weekend, in those of a workday."""
    wander: float = 0.3
    """Standard deviation of the logarithm of the hourly rate of arrivals."""
    persistence: float = 0.8
    """Correlation of that logarithm from one hour to the next."""


HISTORY_DAYS = 28
LEAD_DAYS = 28
"""Days before the history whose lasting jobs still run in it; no job lasts longer."""
LEAST_S, MOST_S = 30.0, float(LEAD_DAYS * DAY_S)


def spot_trace(demand: SpotDemand) -> list[SpotTraceJob]:
    """Return all jobs in order of submission; those before second 0 are guaranteed ones."""
    draws = np.random.default_rng(demand.seed)
    rows: list[tuple[float, int, bool, int, float, int]] = []
    for organisation, share in enumerate(organisation_shares()):
        load = demand.guaranteed_load * share
        rows += lasting_jobs(demand, organisation, load * demand.lasting_part, draws)
        rows += daily_jobs(demand, organisation, load * (1.0 - demand.lasting_part), draws)
    rows += spot_jobs(demand, draws)
    rows.sort()
    return [
        SpotTraceJob(number, organisation, is_spot, *gang_of(gpus), submit_s, duration_s, hours)
        for number, (submit_s, organisation, is_spot, gpus, duration_s, hours) in enumerate(rows)
    ]


Row = tuple[float, int, bool, int, float, int]


def lasting_jobs(
    demand: SpotDemand, organisation: int, load: float, draws: np.random.Generator
) -> list[Row]:
    """Draw jobs of days, which arrive at any time and have the published sizes."""
    first_s, last_s = -(HISTORY_DAYS + LEAD_DAYS) * DAY_S, demand.days * DAY_S
    duration_s = log_normal(demand.lasting_median_s, demand.lasting_spread)
    number = draws.poisson(
        load * demand.gpus * (last_s - first_s) / (mean_of(duration_s) * mean_gpus())
    )
    durations_s = drawn_durations(duration_s, number, draws)
    submit_s = draws.uniform(first_s, last_s, number)
    return rows_of(submit_s, organisation, False, drawn_gpus(number, draws), durations_s)


def daily_jobs(
    demand: SpotDemand, organisation: int, load: float, draws: np.random.Generator
) -> list[Row]:
    """Draw short jobs of whole nodes by hour, on workdays more than on weekends."""
    duration_s = log_normal(demand.daily_median_s, demand.daily_spread)
    per_day = load * demand.gpus * DAY_S / (mean_of(duration_s) * mean_gpus(DAILY_SIZES))
    hours = np.arange(-(HISTORY_DAYS + 1) * 24, demand.days * 24)
    rate = np.array(JOBS_BY_HOUR)[hours % 24] / sum(JOBS_BY_HOUR)
    rate = rate * np.where(hours // 24 % 7 < 5, 1.0, demand.weekend_part)
    rate = rate * 7.0 / (5.0 + 2.0 * demand.weekend_part)
    counts = draws.poisson(per_day * rate * wandering(demand, len(hours), draws))
    submit_s = 3600.0 * (np.repeat(hours, counts) + draws.random(int(counts.sum())))
    number = len(submit_s)
    durations_s = drawn_durations(duration_s, number, draws)
    gpus = drawn_gpus(number, draws, DAILY_SIZES)
    return rows_of(submit_s, organisation, False, gpus, durations_s)


def spot_jobs(demand: SpotDemand, draws: np.random.Generator) -> list[Row]:
    """Draw spot jobs from second 0 on, by hour of the day."""
    spread = math.log(SPOT_P90_S / SPOT_MEDIAN_S) / P90
    duration_s = log_normal(SPOT_MEDIAN_S, spread)
    per_day = demand.spot_load * demand.gpus * DAY_S / (mean_of(duration_s) * mean_gpus())
    hours = np.arange(demand.days * 24)
    counts = draws.poisson(per_day * np.array(JOBS_BY_HOUR)[hours % 24] / sum(JOBS_BY_HOUR))
    submit_s = 3600.0 * (np.repeat(hours, counts) + draws.random(int(counts.sum())))
    number = len(submit_s)
    durations_s = drawn_durations(duration_s, number, draws)
    guarantees = draws.choice(GUARANTEE_HOURS, number, p=GUARANTEE_SHARES)
    rows = rows_of(submit_s, -1, True, drawn_gpus(number, draws), durations_s)
    return [(*row[:5], int(hours)) for row, hours in zip(rows, guarantees, strict=True)]


DAILY_SIZES = (0.25, 0.1, 0.1, 0.3, 0.15, 0.07, 0.03)
"""Shares of the sizes of daily jobs: chosen, with the two durations and the wander, so that hourly
demand has the published spread by hour, from its mean and from one hour to the next."""


def organisation_shares() -> list[float]:
    return [own / sum(ORGANISATION_GPU_TIME) for own in ORGANISATION_GPU_TIME]


def size_shares(shares: tuple[float, ...] | tuple[int, ...] = JOBS_BY_SIZE) -> Floats:
    return np.array(shares, np.float64) / sum(shares)


def mean_gpus(shares: tuple[float, ...] | tuple[int, ...] = JOBS_BY_SIZE) -> float:
    return float(size_shares(shares) @ np.array(SIZES))


def drawn_gpus(
    number: int,
    draws: np.random.Generator,
    shares: tuple[float, ...] | tuple[int, ...] = JOBS_BY_SIZE,
) -> list[int]:
    gpus: list[int] = draws.choice(SIZES, number, p=size_shares(shares)).tolist()
    return gpus


def gang_of(gpus: int) -> tuple[int, int]:
    """Return workers and GPUs of each: a job larger than a node has workers of whole nodes."""
    workers = max(1, gpus // GPUS_OF_NODE)
    return workers, gpus // workers


@lru_cache
def log_normal(median_s: float, spread: float) -> Floats:
    """Return 10,000 equally likely durations of at most 28 days, s."""
    normal = np.array([NormalDist().inv_cdf((at + 0.5) / 10_000) for at in range(10_000)])
    return np.clip(median_s * np.exp(spread * normal), LEAST_S, MOST_S)


def mean_of(durations_s: Floats) -> float:
    return float(durations_s.mean())


def drawn_durations(durations_s: Floats, number: int, draws: np.random.Generator) -> Floats:
    return np.asarray(draws.choice(durations_s, number))


def wandering(demand: SpotDemand, hours: int, draws: np.random.Generator) -> Floats:
    """Return factors of mean 1 by hour, an autoregression of their logarithm."""
    steps = draws.normal(0.0, demand.wander * math.sqrt(1.0 - demand.persistence**2), hours)
    level, levels = draws.normal(0.0, demand.wander), []
    for step in steps:
        level = demand.persistence * level + step
        levels.append(level)
    return np.exp(np.array(levels) - demand.wander**2 / 2.0)


def rows_of(
    submit_s: Floats, organisation: int, is_spot: bool, gpus: list[int], durations_s: Floats
) -> list[Row]:
    return [
        (own_s, organisation, is_spot, own_gpus, duration_s, 0)
        for own_s, own_gpus, duration_s in zip(
            submit_s.tolist(), gpus, durations_s.tolist(), strict=True
        )
    ]
