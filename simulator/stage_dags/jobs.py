"""Jobs of stages that depend on each other, and sequences of such jobs drawn by a seed.

The publication measures TPC-H queries and a trace of Alibaba; here stages are synthetic, with the
same three effects: the first task of an executor at a stage takes longer, one that has just moved
has to warm up, and many executors on one job slow all of its tasks down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Stage(NamedTuple):
    """Equal tasks that may run side by side once all parents have ended; times in s."""

    tasks: int
    task_s: float
    first_task_s: float
    """The first task that an executor runs of this stage."""
    parents: tuple[int, ...] = ()
    """Earlier stages of the job."""


class StageJob(NamedTuple):
    """A job; parents come before their children."""

    submit_s: float
    stages: tuple[Stage, ...]
    efficient_executors: int
    """As many executors do not slow each other down."""

    def slowdown(self, executors: int) -> float:
        """Return the factor of the times of tasks that start on so many executors."""
        beyond = executors - self.efficient_executors
        return 1.0 + max(0, beyond) / (2.0 * self.efficient_executors)

    def work_s(self) -> float:
        """Return the executor time of all tasks without any of the three effects, s."""
        return sum(stage.tasks * stage.task_s for stage in self.stages)


class Draws(NamedTuple):
    """A sequence of jobs: work of `load` times what `executors` do until the last arrival."""

    seed: int
    jobs: int
    executors: int = 20
    load: float = 0.85


LEAST_STAGES, MOST_STAGES, MOST_TASKS = 2, 8, 60
MEDIAN_TASKS, MEDIAN_TASK_S = 5.0, 3.0
SECOND_PARENT, SOURCE = 0.3, 0.25
"""Chances that a stage has two parents, and that it has none."""


def drawn_jobs(draws: Draws) -> list[StageJob]:
    """Return the jobs in the order of their Poisson arrivals."""
    random = np.random.default_rng(draws.seed)
    jobs = [_job(random) for _ in range(draws.jobs)]
    gap_s = sum(job.work_s() for job in jobs) / (draws.jobs * draws.executors * draws.load)
    arrivals_s = np.cumsum(random.exponential(gap_s, size=draws.jobs))
    return [
        job._replace(submit_s=float(submit_s))
        for job, submit_s in zip(jobs, arrivals_s, strict=True)
    ]


def _job(random: np.random.Generator) -> StageJob:
    """Draw a job of a size that its numbers of tasks and of efficient executors follow."""
    size = float(random.lognormal(0.0, 0.9))
    count = int(random.integers(LEAST_STAGES, MOST_STAGES + 1))
    stages: list[Stage] = []
    for number in range(count):
        parents = _parents(random, stages, is_last=number == count - 1)
        tasks = int(np.clip(random.lognormal(np.log(MEDIAN_TASKS * size), 0.7), 1, MOST_TASKS))
        task_s = float(random.lognormal(np.log(MEDIAN_TASK_S), 0.6))
        stages.append(Stage(tasks, task_s, task_s * float(random.uniform(1.1, 1.5)), parents))
    return StageJob(0.0, tuple(stages), int(np.clip(round(4.0 * size**0.5), 1, 16)))


def _parents(random: np.random.Generator, stages: list[Stage], is_last: bool) -> tuple[int, ...]:
    """Draw the parents of the next stage; those of the last are all without a child."""
    if is_last:
        with_child = {parent for stage in stages for parent in stage.parents}
        return tuple(number for number in range(len(stages)) if number not in with_child)
    if not stages or random.random() < SOURCE:
        return ()
    count = min(len(stages), 2 if random.random() < SECOND_PARENT else 1)
    return tuple(sorted(int(number) for number in random.choice(len(stages), count, replace=False)))
