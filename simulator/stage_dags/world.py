"""Runs jobs of stages on equal executors, of which a policy gives free ones to a stage at a time.

An executor stays at its stage while tasks are left there, and is free afterwards: for its job at
once, for another one after a move. Nothing that runs is stopped. A policy names a stage and a limit
of executors for its job, until no executor is free, nothing is runnable, or it leaves the rest
idle until the next event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import NamedTuple, TypeAlias

from simulator.stage_dags.jobs import StageJob


class Executors(NamedTuple):
    """Equal executors; the seconds of a move, and those that a task at its end takes longer."""

    total: int = 20
    move_s: float = 2.0
    warm_up_s: float = 1.0


@dataclass(slots=True, eq=False)
class OpenJob:
    """A job that has arrived and not ended; the lists have an entry per stage."""

    number: int
    job: StageJob
    waiting: list[int] = field(init=False)
    """Tasks that have not started."""
    unfinished: list[int] = field(init=False)
    coming: list[int] = field(init=False)
    """Executors that move to the stage."""
    working: int = 0
    moving: int = 0
    idle: int = 0
    """Free executors that were here last."""
    work_s: float = field(init=False)
    critical_s: list[float] = field(init=False)
    """Work of the path with the most work from the begin of the stage to the end of the job."""

    def __post_init__(self) -> None:
        self.waiting = [stage.tasks for stage in self.job.stages]
        self.unfinished = list(self.waiting)
        self.coming = [0] * len(self.waiting)
        self.work_s = self.job.work_s()
        self.critical_s = critical_paths(self.job)

    @property
    def busy(self) -> int:
        """The executors that work for the job or move to it."""
        return self.working + self.moving

    def unclaimed(self, stage: int) -> int:
        """Return the tasks that neither run nor have an executor on its way."""
        return self.waiting[stage] - self.coming[stage]

    def runnable(self) -> list[int]:
        """Return the stages with unclaimed tasks whose parents have all ended."""
        left = self.unfinished
        return [
            number
            for number, stage in enumerate(self.job.stages)
            if self.waiting[number] > self.coming[number]
            and not any(left[parent] for parent in stage.parents)
        ]


class Situation(NamedTuple):
    """The view of a policy: open jobs by submission, all executors and the free ones."""

    jobs: Sequence[OpenJob]
    executors: int
    free: int


class Choice(NamedTuple):
    """Free executors go to a stage until its job has `limit`, or its tasks have all one."""

    job: OpenJob
    stage: int
    limit: int


Pick: TypeAlias = Callable[[Situation], Choice | None]
"""Chooses a stage, or leaves the free executors idle until the next event (None)."""


class Outcome(NamedTuple):
    """Completion times of the jobs, s, in the order of their submission, and executors moved."""

    jct_s: list[float]
    moves: int

    def mean_jct_s(self) -> float:
        return fmean(self.jct_s)


def critical_paths(job: StageJob) -> list[float]:
    """Return for each stage the most work of a path from it to the end of the job, s."""
    below = [0.0] * len(job.stages)
    paths = list(below)
    for number in reversed(range(len(job.stages))):
        stage = job.stages[number]
        paths[number] = stage.tasks * stage.task_s + below[number]
        for parent in stage.parents:
            below[parent] = max(below[parent], paths[number])
    return paths


class StageWorld:
    """One run of a sequence of jobs, by submission."""

    def __init__(self, jobs: Sequence[StageJob], pick: Pick, executors: Executors) -> None:
        self._pick = pick
        self._executors = executors
        self._now_s = 0.0
        self._open: dict[int, OpenJob] = {}
        self._unbound = executors.total
        """Executors that are at no open job."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._jct_s = [0.0] * len(jobs)
        self._moves = 0
        for number, job in enumerate(jobs):
            self._at(job.submit_s, partial(self._submit, OpenJob(number, job)))

    def run(self) -> Outcome:
        """Return the outcome. Raises ValueError if the policy leaves a job without executors for
        ever, or names a stage or limit by which no executor moves."""
        while self._events:
            self._now_s = self._events[0][0]
            while self._events and self._events[0][0] <= self._now_s:
                heapq.heappop(self._events)[2]()
            self._decide()
        if self._open:
            raise ValueError(f"policy: leaves {len(self._open)} jobs without executors")
        return Outcome(self._jct_s, self._moves)

    def _at(self, time_s: float, event: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time_s, self._sequence, event))

    def _submit(self, job: OpenJob) -> None:
        self._open[job.number] = job

    def _decide(self) -> None:
        while True:
            jobs = list(self._open.values())
            free = self._unbound + sum(job.idle for job in jobs)
            if not free or not any(job.runnable() for job in jobs):
                return
            choice = self._pick(Situation(jobs, self._executors.total, free))
            if choice is None:
                return
            self._assign(choice, free)

    def _assign(self, choice: Choice, free: int) -> None:
        job, stage = choice.job, choice.stage
        count = min(choice.limit - job.busy, job.unclaimed(stage), free)
        if job.number not in self._open or stage not in job.runnable() or count < 1:
            raise ValueError(f"policy: no executor can go to stage {stage} of job {job.number}")
        local = min(count, job.idle)
        job.idle -= local
        self._start(job, stage, local, extra_s=0.0)
        self._move(job, stage, count - local)

    def _move(self, job: OpenJob, stage: int, count: int) -> None:
        """Send executors of no job, and then those of the jobs with the most idle ones."""
        if not count:
            return
        left = count - min(count, self._unbound)
        self._unbound -= count - left
        while left:
            other = max(self._open.values(), key=lambda own: own.idle if own is not job else -1)
            taken = min(left, other.idle)
            other.idle -= taken
            left -= taken
        job.coming[stage] += count
        job.moving += count
        self._moves += count
        self._at(self._now_s + self._executors.move_s, partial(self._arrive, job, stage, count))

    def _arrive(self, job: OpenJob, stage: int, count: int) -> None:
        job.coming[stage] -= count
        job.moving -= count
        if job.number not in self._open:
            self._unbound += count
            return
        starting = min(count, job.waiting[stage])
        job.idle += count - starting
        self._start(job, stage, starting, extra_s=self._executors.warm_up_s)

    def _start(self, job: OpenJob, stage: int, count: int, extra_s: float) -> None:
        """Start the first tasks of executors at a stage, as many executors as tasks."""
        job.working += count
        self._run_tasks(job, stage, count, job.job.stages[stage].first_task_s, extra_s)

    def _run_tasks(
        self, job: OpenJob, stage: int, count: int, task_s: float, extra_s: float = 0.0
    ) -> None:
        if count:
            job.waiting[stage] -= count
            ends_s = self._now_s + task_s * job.job.slowdown(job.working) + extra_s
            self._at(ends_s, partial(self._finish, job, stage, count))

    def _finish(self, job: OpenJob, stage: int, count: int) -> None:
        """End tasks; their executors go on at the stage, as far as tasks wait there."""
        job.unfinished[stage] -= count
        going_on = min(count, job.waiting[stage])
        job.working -= count - going_on
        job.idle += count - going_on
        self._run_tasks(job, stage, going_on, job.job.stages[stage].task_s)
        if not any(job.unfinished):
            self._jct_s[job.number] = self._now_s - job.job.submit_s
            self._unbound += job.idle
            job.idle = 0
            del self._open[job.number]
