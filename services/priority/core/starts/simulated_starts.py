"""Simulates the starts of waiting jobs: the queue is run forward with run times drawn from history.

Each scenario gives every job one run time, from a level of its distribution (of what is left of it,
for a job that has run), and starts the waiting jobs in their present order as GPUs
fall free. GPUs are counted for the whole pool; nodes, jobs still to come and preemption are left
to the calibration (`start_calibration`).

Jobs of the same size with similar estimates form one class, and only the first of a class is looked
at: a start costs as much as there are classes, however long the queue is.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

import numpy as np

from services.priority.core.history.distributions import BINS, PER_OCTAVE, Floats
from services.priority.core.starts.start_reservation import NEVER_S, Reservation, reserve
from shared.contracts.pools import QueueMode

SCENARIOS = 12
QUEUE_MOST = 4096
"""Waiting jobs that are simulated; those behind them start at the pace of the last of them."""
CLASSES_MOST = 256
"""Classes of the simulated jobs: who submits jobs of ever other sizes gets coarse estimates, and
holds up no ranking."""
GOLDEN = 0.6180339887498949
SPREAD = 0.5
"""Width of the levels that jobs have in one scenario: 0 is one level for all, 1 is any. Jobs that
run at a time are alike, so independent levels would average out what makes a queue slow."""
REPORTED_SPREAD = 0.1
"""Share by which a reported rest may be wrong: placement records a new one where it differs by so
much."""
LEAST_S = 1.0
JobClass: TypeAlias = tuple[float, int]
"""GPUs, and a bucket of the estimate under EASY."""


class Load(NamedTuple):
    """Jobs that hold GPUs or wait: GPUs [n], distributions [n, BINS], time run in s [n]."""

    gpus: Floats
    distributions: Floats
    attained_s: Floats
    estimate_s: Floats | None = None
    """[n] run times by which EASY backfills, inf: none; None: those of the scenario."""
    reported_s: Floats | None = None
    """[n] rests of running jobs by their own reports, nan: none; None: of no job."""


def draw_rests_s(load: Load, first: int) -> Floats:
    """Return run times left per job and scenario, [n, SCENARIOS]; `first` numbers the jobs.

    A job that has outlived all that history knows is taken to run as long again. What a running
    job reports of its rest stands for what history knows.
    """
    count = len(load.gpus)
    strata = (np.arange(SCENARIOS) + 0.5) / SCENARIOS
    offsets = SPREAD * ((first + np.arange(count)) * GOLDEN % 1.0)
    ended = np.zeros((count, BINS + 1))
    np.cumsum(load.distributions, axis=1, out=ended[:, 1:])
    ended /= ended[:, -1:]
    has_run = load.attained_s > 1.0
    position = np.log2(np.maximum(1.0, load.attained_s)) * PER_OCTAVE
    begun = np.where(has_run, value_at(ended, position), 0.0)
    levels = (strata + offsets[:, None]) % 1.0
    spread = 1.0 + REPORTED_SPREAD * (2.0 * levels - 1.0)
    levels = begun[:, None] + (1.0 - begun)[:, None] * levels
    runs_s = np.stack(
        [2.0 ** (place_of(ended, levels[:, s]) / PER_OCTAVE) for s in range(SCENARIOS)], axis=1
    )
    rests_s = np.maximum(LEAST_S, runs_s - load.attained_s[:, None])
    rests_s = np.where((begun >= 1.0)[:, None], load.attained_s[:, None], rests_s)
    if load.reported_s is None:
        return rests_s
    reported_s = np.maximum(LEAST_S, load.reported_s[:, None] * spread)
    return np.where(np.isnan(reported_s), rests_s, reported_s)


def value_at(ended: Floats, position: Floats) -> Floats:
    """Return the running sums `ended` [n, BINS + 1] at a place [n] on the scale of bins."""
    place = np.minimum(position, float(BINS))
    low = np.minimum(place.astype(np.intp), BINS - 1)
    rows = np.arange(len(ended))
    return np.asarray(ended[rows, low] + (place - low) * (ended[rows, low + 1] - ended[rows, low]))


def place_of(ended: Floats, levels: Floats) -> Floats:
    """Return the place [n] on the scale of bins at which `ended` [n, BINS + 1] reaches a level."""
    low = np.maximum(0, (ended < levels[:, None]).sum(axis=1) - 1)
    rows = np.arange(len(ended))
    before = ended[rows, low]
    chance = np.maximum(1e-300, ended[rows, low + 1] - before)
    return np.asarray(low + np.minimum(1.0, np.maximum(0.0, (levels - before) / chance)))


def simulate_starts(
    free_gpus: float, holding: Load, waiting: Load, mode: QueueMode, target: int | None = None
) -> Floats:
    """Return the delay of each waiting job's start per scenario, [n, SCENARIOS], in s.

    Of more than `QUEUE_MOST` jobs, or `CLASSES_MOST` classes, the first are simulated; the others
    start at their pace.
    With a `target` the simulation of a scenario ends when that job starts. A job that never
    starts has an infinite delay.
    """
    count = len(waiting.gpus)
    most = simulated_most(waiting, mode)
    if count <= most:
        return simulate_all(free_gpus, holding, waiting, mode, target)
    near = Load(*(None if column is None else column[:most] for column in waiting))  # type: ignore[arg-type]
    inside = target if target is not None and target < most else None
    return extend_pace(simulate_all(free_gpus, holding, near, mode, inside), count)


def simulate_all(
    free_gpus: float, holding: Load, waiting: Load, mode: QueueMode, target: int | None
) -> Floats:
    """Return the delays of `simulate_starts` for all of these jobs, each simulated."""
    count = len(waiting.gpus)
    rests_s = draw_rests_s(holding, 0)
    runs_s = draw_rests_s(waiting, len(holding.gpus))
    delays = [
        QueueSimulation(
            free_gpus,
            running_jobs(holding, rests_s[:, scenario]),
            waiting.gpus.tolist(),
            runs_s[:, scenario].tolist(),
            estimates_s(waiting, runs_s[:, scenario]),
            mode,
        ).run(target)
        for scenario in range(SCENARIOS)
    ]
    return np.array(delays, np.float64).reshape(SCENARIOS, count).T


def simulated_most(waiting: Load, mode: QueueMode) -> int:
    """Return how many of the first jobs are simulated."""
    gpus = waiting.gpus[:QUEUE_MOST].tolist()
    estimates = gpus if waiting.estimate_s is None else waiting.estimate_s[:QUEUE_MOST].tolist()
    classes: set[JobClass] = set()
    for place, (own_gpus, estimate_s) in enumerate(zip(gpus, estimates, strict=True)):
        classes.add(class_of(own_gpus, estimate_s, mode))
        if len(classes) > CLASSES_MOST:
            return place
    return QUEUE_MOST


def class_of(gpus: float, estimate_s: float, mode: QueueMode) -> JobClass:
    """Return the class of a job; under EASY, estimates within a factor of four are similar."""
    return gpus, math.frexp(min(1e12, estimate_s))[1] // 2 if mode == "easy" else 0


def extend_pace(delays_s: Floats, count: int) -> Floats:
    """Return delays of `count` jobs, of which the first have these [near, SCENARIOS]."""
    near = len(delays_s)
    last = delays_s[-(near // 8) :]
    starts = np.isfinite(last)
    mean_s = np.where(starts, last, 0.0).sum(axis=0) / np.maximum(1, starts.sum(axis=0))
    pace_s = mean_s / (near - near / 16.0)
    behind = np.arange(near, count, dtype=np.float64)[:, None] * pace_s
    return np.concatenate((delays_s, behind))


class RunningJob(NamedTuple):
    """A job on GPUs: its end, and when EASY expects it, in s from now."""

    end_s: float
    gpus: float
    expected_s: float


def running_jobs(holding: Load, rests_s: Floats) -> list[RunningJob]:
    """Return the jobs on GPUs; an estimate that a job has outlived is doubled until it has not."""
    expected_s = rests_s
    if holding.estimate_s is not None:
        estimate_s = np.maximum(1e-3, holding.estimate_s)
        doubled = np.ceil(np.log2(np.maximum(1.0, holding.attained_s / estimate_s)))
        expected_s = np.maximum(0.0, estimate_s * 2.0**doubled - holding.attained_s)
        if holding.reported_s is not None:
            # As in placement: a report lengthens a rest to no more than what the job has run.
            latest_s = np.maximum(expected_s, holding.attained_s)
            bounded_s = np.minimum(holding.reported_s, latest_s)
            expected_s = np.where(np.isnan(bounded_s), expected_s, bounded_s)
    columns = (rests_s, holding.gpus, expected_s)
    return [RunningJob(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def estimates_s(waiting: Load, runs_s: Floats) -> list[float]:
    estimates: list[float] = (runs_s if waiting.estimate_s is None else waiting.estimate_s).tolist()
    return estimates


class QueueSimulation:
    """One scenario: jobs end, and the first waiting ones that may start do.

    Behind a job that does not fit nothing starts (`strict`), whatever fits (`skip`), or what fits
    without delaying it (`easy`).
    """

    def __init__(
        self,
        free_gpus: float,
        running: Sequence[RunningJob],
        gpus: Sequence[float],
        run_s: Sequence[float],
        estimate_s: Sequence[float],
        mode: QueueMode,
    ) -> None:
        self.free_gpus = free_gpus
        self.gpus, self.run_s, self.estimate_s = gpus, run_s, estimate_s
        self.mode = mode
        self.now_s = 0.0
        self.delays = [NEVER_S] * len(gpus)
        self.ends = [(job.end_s, job.gpus, job.expected_s) for job in running]
        heapify(self.ends)
        self.expected = sorted((job.expected_s, job.gpus) for job in running)
        """Running jobs by the time at which EASY expects their end."""
        self.classes: dict[JobClass, list[int]] = {}
        """Waiting jobs, the first one last."""
        for job in reversed(range(len(gpus))):
            self.classes.setdefault(self.class_of(job), []).append(job)

    def class_of(self, job: int) -> JobClass:
        return class_of(self.gpus[job], self.estimate_s[job], self.mode)

    def run(self, target: int | None = None) -> list[float]:
        """Return the delays; those after the start of the `target` are infinite."""
        while True:
            self.start_jobs()
            if not self.ends or not self.classes:
                return self.delays
            if target is not None and self.delays[target] < NEVER_S:
                return self.delays
            self.now_s = self.ends[0][0]
            while self.ends and self.ends[0][0] <= self.now_s:
                _, gpus, expected_s = heappop(self.ends)
                self.free_gpus += gpus
                if self.mode == "easy":
                    del self.expected[bisect_left(self.expected, (expected_s, gpus))]

    def start_jobs(self) -> None:
        """Start all jobs that may start now."""
        reserved: Reservation | None = None
        while self.free_gpus > 0.0 and self.classes:
            first = min(jobs[-1] for jobs in self.classes.values())
            if reserved is None and self.gpus[first] > self.free_gpus:
                if self.mode == "strict":
                    return
                if self.mode == "easy":
                    released = ((max(self.now_s, end_s), gpus) for end_s, gpus in self.expected)
                    reserved = reserve(self.gpus[first], self.free_gpus, released)
            job = self.next_job(reserved)
            if job < 0:
                return
            self.start(job)
            if reserved is not None:
                reserved.take(self.now_s + self.estimate_s[job], self.gpus[job])

    def next_job(self, reserved: Reservation | None) -> int:
        """Return the first job of all classes that may start, -1 if none may."""
        chosen = len(self.gpus)
        for (gpus, _), jobs in self.classes.items():
            job = jobs[-1]
            if gpus > self.free_gpus or job >= chosen:
                continue
            if reserved is None or reserved.admits(self.now_s + self.estimate_s[job], gpus):
                chosen = job
        return chosen if chosen < len(self.gpus) else -1

    def start(self, job: int) -> None:
        own = self.class_of(job)
        self.classes[own].pop()
        if not self.classes[own]:
            del self.classes[own]
        self.delays[job] = self.now_s
        self.free_gpus -= self.gpus[job]
        expected_s = self.now_s + self.estimate_s[job]
        heappush(self.ends, (self.now_s + self.run_s[job], self.gpus[job], expected_s))
        if self.mode == "easy":
            insort(self.expected, (expected_s, self.gpus[job]))
