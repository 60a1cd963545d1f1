"""The stages of open jobs as one graph, in the order in which messages pass them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.stage_dags.jobs import StageJob
from simulator.stage_dags.world import OpenJob

Floats: TypeAlias = NDArray[np.float64]


class Level(NamedTuple):
    """The rows `first` to `end` - 1, equally far from the last stage of their jobs."""

    first: int
    end: int
    children: Floats
    """1 where an earlier row is a child, [rows of the level, earlier rows]."""


class Graph(NamedTuple):
    """Rows of stages, those without children first; stages in lists go job by job."""

    levels: list[Level]
    order: NDArray[np.intp]
    """The stage of each row."""
    row_of: NDArray[np.intp]
    """The row of each stage."""
    job_of: NDArray[np.intp]
    """The job of each row."""
    members: Floats
    """1 for the rows of each job, [jobs, rows]."""
    first_of: list[int]
    """The first stage of each job."""
    task_s: Floats
    critical: Floats
    """The critical path of each row over the longest of its job."""

    def by_row(self, values: Sequence[Sequence[float]]) -> Floats:
        """Return a value of each stage, by job, as that of each row."""
        return np.array(list(chain.from_iterable(values)), np.float64)[self.order]


def graph_of(jobs: Sequence[OpenJob]) -> Graph:
    heights = [height for own in jobs for height in heights_of(own.job)]
    sizes = [len(own.waiting) for own in jobs]
    first_of = [sum(sizes[:number]) for number in range(len(sizes))]
    order = np.argsort(heights, kind="stable")
    row_of = np.empty_like(order)
    row_of[order] = np.arange(len(order))
    children = np.zeros((len(order), len(order)))
    for first, own in zip(first_of, jobs, strict=True):
        for number, stage in enumerate(own.job.stages):
            for parent in stage.parents:
                children[row_of[first + parent], row_of[first + number]] = 1.0
    ends = np.cumsum(np.bincount(heights)).tolist()
    levels = [
        Level(first, end, children[first:end, :first])
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    job_of = np.repeat(np.arange(len(jobs)), sizes)[order]
    task_s = [stage.task_s for own in jobs for stage in own.job.stages]
    critical = [path / max(own.critical_s) for own in jobs for path in own.critical_s]
    members = (np.arange(len(jobs))[:, None] == job_of).astype(np.float64)
    return Graph(
        levels,
        order,
        row_of,
        job_of,
        members,
        first_of,
        np.array(task_s)[order],
        np.array(critical)[order],
    )


def heights_of(job: StageJob) -> list[int]:
    """Return the most stages that follow each one of a job."""
    heights = [0] * len(job.stages)
    for number in reversed(range(len(heights))):
        for parent in job.stages[number].parents:
            heights[parent] = max(heights[parent], heights[number] + 1)
    return heights
