"""Jobs of Gavel's evaluation (OSDI'20): a model and batch size each, at measured rates.

Models, batch sizes and distributions are those of the released simulator, so a seed gives the same
jobs. Rates are read from the trace `gavel_throughputs`; none are part of Berth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow.compute as pc
import pyarrow.parquet as pq

from shared.performance.rates import RateTable
from shared.schedulers.view import TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import StepWork

TRACE = "gavel_throughputs"
TYPES = ("v100", "p100", "k80")
"""In the order in which the released scheduler fills them, the fastest first."""
REFERENCE = "v100"
"""The type on which a job takes its drawn duration."""
USD_PER_GPU_H = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
"""Spot prices of one cloud in 2020, as the released simulator has them."""
DISTRIBUTED = {
    "ResNet-18": (16, 32, 64, 128, 256),
    "ResNet-50": (16, 32, 64, 128),
    "Transformer": (16, 32, 64, 128, 256),
    "LM": (5, 10, 20, 40, 80),
}
RECOMMENDATION = (512, 1024, 2048, 4096, 8192)
GANG_SIZES = (1, 2, 4, 8)

ModelAndGang: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GavelModel:
    """A model at a batch size; one that is not `distributed` runs on one GPU."""

    name: str
    distributed: bool


def models() -> list[GavelModel]:
    """Return the 26 models in the order from which jobs draw."""
    drawn = [
        GavelModel(f"{name} (batch size {size})", True)
        for name, sizes in DISTRIBUTED.items()
        for size in sizes
    ]
    drawn += [GavelModel(f"Recommendation (batch size {size})", False) for size in RECOMMENDATION]
    return [*drawn, GavelModel("A3C", False), GavelModel("CycleGAN", False)]


def read_rates(path: Path) -> dict[ModelAndGang, RateTable]:
    """Return the rates of each model and gang, alone on its GPUs, beside each other and spread."""
    table = pq.read_table(path)
    table = table.filter(pc.is_null(table["coloc_type"]))
    beside: dict[ModelAndGang, dict[tuple[str, int], float]] = {}
    spread: dict[ModelAndGang, dict[tuple[str, int], float]] = {}
    for row in table.to_pylist():
        model, gang = row["job_type"], int(row["scale_factor"])
        gpu_type, _, suffix = row["gpu_type"].partition("_")
        rates = spread if suffix else beside
        rates.setdefault((model, gang), {})[gpu_type, gang] = float(row["tput"])
    return {key: RateTable(own, spread.get(key, {})) for key, own in beside.items()}


@dataclass(frozen=True, slots=True)
class GavelDraws:
    """`mean_gap_s` between arrivals (0: all at once); `gangs`: some jobs have more than one GPU."""

    seed: int
    mean_gap_s: float
    gangs: bool = False


def drawn_jobs(
    draws: GavelDraws, count: int, rates: Mapping[ModelAndGang, RateTable]
) -> Iterator[RoundsJob]:
    """Yield jobs with exponential gaps, durations and models as the released simulator draws."""
    of_jobs = random.Random(draws.seed + 2)
    of_gaps = random.Random(draws.seed + 3)
    choices = models()
    submit_s = 0.0
    for number in range(count):
        gang = draw_gang(of_jobs)
        duration_s = draw_duration_s(of_jobs)
        gang = gang if draws.gangs else 1
        model = of_jobs.choice(choices)
        while gang > 1 and not model.distributed:
            model = of_jobs.choice(choices)
        yield job_of(f"{number:06d}", submit_s, duration_s, gang, rates[model.name, gang])
        if draws.mean_gap_s:
            submit_s += -math.log(1.0 - of_gaps.random()) * draws.mean_gap_s


def job_of(
    job_id: str, submit_s: float, duration_s: float, gang: int, rates: RateTable
) -> RoundsJob:
    """Return a job of which the reference type takes `duration_s`."""
    reference = rates.consolidated_rate(REFERENCE, gang)
    assert reference, f"{REFERENCE} runs each model"
    return RoundsJob(job_id, submit_s, gang, StepWork(duration_s * reference, rates, True))


def draw_gang(rng: random.Random) -> int:
    drawn = rng.uniform(0, 1)
    if drawn >= 0.95:
        return 8
    if drawn >= 0.8:
        return 4
    return 2 if drawn >= 0.7 else 1


def draw_duration_s(rng: random.Random) -> float:
    low, high = (3.0, 4.0) if rng.random() >= 0.8 else (1.5, 3.0)
    return float(60 * 10 ** rng.uniform(low, high))


def gavel_nodes(gpus: Sequence[int], node_gpus: int = 1) -> list[TypedNode]:
    """Return nodes of each of the three types; the released sweeps have one GPU in each."""
    return [
        TypedNode(f"{name}-{number:03d}", name, node_gpus, "", USD_PER_GPU_H[name])
        for name, count in zip(TYPES, gpus, strict=True)
        for number in range(count // node_gpus)
    ]
