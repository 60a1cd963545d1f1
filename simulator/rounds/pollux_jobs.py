"""Workloads of Pollux' evaluation (OSDI'21): 160 trainings each, on 16 nodes with 4 GPUs."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from shared.performance.restarts import POLLUX
from shared.schedulers.view import TypedNode
from simulator.rounds.applications import Application, application
from simulator.rounds.job import RoundsJob
from simulator.rounds.training_work import GPU_TYPE, MOST_GPUS, NODE_GPUS, Knowledge, TrainingWork
from simulator.rounds.world import RoundsOptions

NODES = 16
ROUND_S = 60.0
NCF, NCF_BATCH = "ncf", 32_768
"""The released simulator gives NCF one GPU and its largest batch where batch sizes adapt."""
KNOWLEDGE: Mapping[str, Knowledge] = MappingProxyType(
    {"pollux": Knowledge.FITTED, "optimus": Knowledge.ORACLE, "afs": Knowledge.ORACLE}
)
"""By scheduler; all others know nothing."""


def pollux_nodes() -> list[TypedNode]:
    return [TypedNode(f"n{number:02d}", GPU_TYPE, NODE_GPUS) for number in range(NODES)]


def pollux_options(seed: int = 0) -> RoundsOptions:
    return RoundsOptions(round_s=ROUND_S, seed=seed, restarts=POLLUX)


def workload(folder: Path, number: int, scheduler: str) -> list[RoundsJob]:
    """Return the jobs of one workload as the scheduler's evaluation has them.

    Pollux adapts batch sizes and numbers of GPUs, Optimus and AFS numbers of GPUs at the tuned
    batch size, all others have both as tuned.
    """
    knowledge = KNOWLEDGE.get(scheduler, Knowledge.NONE)
    path = folder / "workloads" / f"workload-{number}.csv"
    jobs = []
    with path.open(newline="") as lines:
        for order, row in enumerate(csv.DictReader(lines)):
            measured = application(folder / "traces" / row["application"])
            jobs.append(_job(f"{order:03d}-{row['name']}", row, measured, knowledge))
    return jobs


def _job(
    job_id: str, row: Mapping[str, str], measured: Application, knowledge: Knowledge
) -> RoundsJob:
    submit_s, gpus, batch = float(row["time"]), int(row["num_replicas"]), int(row["batch_size"])
    is_ncf = measured.name == NCF
    if knowledge is Knowledge.NONE:
        return RoundsJob(job_id, submit_s, gpus, TrainingWork(measured, batch, knowledge, gpus))
    if knowledge is Knowledge.ORACLE:
        most = 1 if is_ncf else min(batch // measured.limits.least_of_gpu, MOST_GPUS)
        work = TrainingWork(measured, batch, knowledge, most)
    else:
        most = 1 if is_ncf else MOST_GPUS
        work = TrainingWork(measured, NCF_BATCH if is_ncf else None, knowledge, most)
    return RoundsJob(job_id, submit_s, gpus, work, min_gpus=1, max_gpus=most)
