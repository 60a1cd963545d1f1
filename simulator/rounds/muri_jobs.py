"""Jobs of Muri's simulations (SIGCOMM'22): iterations of eight models with their stage times.

The artifact's times are in ms. Of the four resources it has three columns, of which the first one
takes two slots. A job alone has an iteration 1.015 times as long as was measured, groups of two,
three and four jobs 1.33, 1.5 and 1.37 times as long as their stages say. No job is
slower for where its GPUs are.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shared.performance.interleaving import GpuSharing, Stage, StageProfile
from shared.performance.rates import RateTable
from shared.schedulers.view import TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.work import StepWork
from simulator.rounds.world import RoundsOptions

GPU_TYPE = "v100"
NODES, NODE_GPUS = 8, 8
ALONE = 1.015
SHARING = GpuSharing(4, (1.0, 1.33 / ALONE, 1.5 / ALONE, 1.37 / ALONE))
RESTART_S = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "bert": (10,) * 6,
    "gpt2": (10,) * 6,
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}
"""Seconds of a start by model, on 1, 2, 4, 8, 16 and 32 GPUs."""
COLUMNS = (("resource_time_0", 2), ("resource_time_1", 1), ("resource_time_2", 1))


def muri_nodes() -> list[TypedNode]:
    return [TypedNode(f"n{number}", GPU_TYPE, NODE_GPUS) for number in range(NODES)]


def muri_options(at_decisions: bool = True) -> RoundsOptions:
    """Return the options of the world; `at_decisions` charges restarts as the artifact does."""
    return RoundsOptions(
        round_s=1e9, on_events=True, restarts_at_decisions=at_decisions, sharing=SHARING
    )


def muri_jobs(folder: Path, trace: str) -> list[RoundsJob]:
    """Return the jobs of a trace of the artifact's folder `simulator`."""
    with (folder / "trace-data" / f"{trace}.csv").open(newline="") as lines:
        return [_job(row) for row in csv.DictReader(lines)]


def _job(row: Mapping[str, str]) -> RoundsJob:
    gpus, iterations = int(row["num_gpu"]), float(row["iterations"])
    stages = tuple(Stage(float(row[name]) / 1e3, slots) for name, slots in COLUMNS)
    profile, rates = _kind(gpus, float(row["iteration_time"]) * ALONE / 1e3, stages)
    return RoundsJob(
        f"{int(row['job_id']):06d}",
        float(row["submit_time"]) / 1e3,
        gpus,
        StepWork(iterations, rates),
        stages=profile,
        restart_s=float(RESTART_S[row["model_name"]][gpus.bit_length() - 1]),
    )


@lru_cache(maxsize=1024)
def _kind(
    gpus: int, iteration_s: float, stages: tuple[Stage, ...]
) -> tuple[StageProfile, RateTable]:
    rates = {(GPU_TYPE, gpus): 1.0 / iteration_s}
    return StageProfile(iteration_s, stages), RateTable(rates, rates)
