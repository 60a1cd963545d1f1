"""Jobs with the arrivals, durations and gangs of a trace, each of a model of Gavel's table.

The trace's duration is that on the reference type. Times between arrivals are scaled so that a
cluster which is blind for types has the load: the GPU time that the jobs take on types in
proportion to their GPUs, over the time between the first and the last arrival.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.performance.rates import RateTable
from simulator.rounds.gavel_jobs import GANG_SIZES, REFERENCE, TYPES, ModelAndGang, job_of, models
from simulator.rounds.job import RoundsJob
from simulator.workload.rows import WorkloadJob

LONGEST_S = 48 * 3600.0
SHORTEST_S = 60.0


@dataclass(frozen=True, slots=True)
class MixedTypesOptions:
    """GPUs of each of the three types, the load, and the seed that draws models."""

    gpus: tuple[int, int, int]
    load: float
    seed: int


def mixed_jobs(
    trace: Sequence[WorkloadJob],
    rates: Mapping[ModelAndGang, RateTable],
    options: MixedTypesOptions,
) -> list[RoundsJob]:
    """Return one job per row of the trace, which is ordered by time."""
    rng = random.Random(options.seed)
    choices = models()
    drawn: list[tuple[WorkloadJob, int, float, RateTable]] = []
    work_gpu_s = 0.0
    for row in trace:
        gang = max(size for size in GANG_SIZES if size <= max(row.gpus, 1))
        model = rng.choice([own for own in choices if gang == 1 or own.distributed])
        duration_s = min(max(row.duration_s, SHORTEST_S), LONGEST_S)
        table = rates[model.name, gang]
        drawn.append((row, gang, duration_s, table))
        work_gpu_s += gang * duration_s / blind_speed(table, gang, options.gpus)
    first_s = trace[0].submit_s
    span_s = max(trace[-1].submit_s - first_s, 1.0)
    scale = work_gpu_s / (options.load * sum(options.gpus) * span_s)
    return [
        job_of(f"{number:05d}", (row.submit_s - first_s) * scale, duration_s, gang, table)
        for number, (row, gang, duration_s, table) in enumerate(drawn)
    ]


def blind_speed(table: RateTable, gang: int, gpus: Sequence[int]) -> float:
    """Return the speed relative to the reference, on types in proportion to their GPUs."""
    reference = table.consolidated_rate(REFERENCE, gang)
    assert reference, f"{REFERENCE} runs each model"
    total = sum(
        count * (table.consolidated_rate(name, gang) or 0.0)
        for name, count in zip(TYPES, gpus, strict=True)
    )
    return total / sum(gpus) / reference
