"""Predictors of others: the last two run times (Tsafrir 2007) and QSSF's rolling part (Hu 2021)."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np

from benchmarks.parts.prediction.jobs import Floats, RecordedJobs

UNKNOWN_S = 3600.0
"""Run time before any job has ended."""


def predict_last_two(jobs: RecordedJobs) -> Floats:
    """Return the mean of the user's last two run times; of the tenant's where no user is named."""
    owners = np.where(jobs.user >= 0, jobs.user, -2 - jobs.tenant).tolist()
    last: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=2))
    of_all: deque[float] = deque(maxlen=2)
    predicted = np.zeros(len(jobs))
    for ended, job in jobs.steps():
        for one in ended:
            last[owners[one]].append(jobs.ran_s[one])
            of_all.append(jobs.ran_s[one])
        seen = last[owners[job]] or of_all
        predicted[job] = sum(seen) / len(seen) if seen else UNKNOWN_S
    return predicted


@dataclass(slots=True)
class Mean:
    """Mean of run times, in s."""

    count: int = 0
    total_s: float = 0.0

    def add(self, ran_s: float) -> None:
        self.count += 1
        self.total_s += ran_s

    @property
    def value_s(self) -> float:
        return self.total_s / self.count


@dataclass(slots=True)
class RollingMeans:
    """Means per group of jobs; the first group that has one predicts."""

    means: defaultdict[tuple[object, ...], Mean] = field(default_factory=lambda: defaultdict(Mean))

    def learn(self, groups: list[tuple[object, ...]], ran_s: float) -> None:
        for group in groups:
            self.means[group].add(ran_s)

    def predict_s(self, groups: list[tuple[object, ...]]) -> float:
        known = (self.means[group] for group in groups if group in self.means)
        return next((mean.value_s for mean in known), UNKNOWN_S)


def predict_rolling(jobs: RecordedJobs) -> Floats:
    """Return QSSF's rolling estimate of the run time, by exact names.

    Its order: the user's jobs of that name and size, of that name; that name over all users; the
    user's jobs; all jobs. No trace here has names of which some are merely similar.
    """
    groups = [job_groups(jobs, job) for job in range(len(jobs))]
    means = RollingMeans()
    predicted = np.zeros(len(jobs))
    for ended, job in jobs.steps():
        for one in ended:
            means.learn(groups[one], jobs.ran_s[one])
        predicted[job] = means.predict_s(groups[job])
    return predicted


def job_groups(jobs: RecordedJobs, job: int) -> list[tuple[object, ...]]:
    user = int(jobs.user[job]) if jobs.user[job] >= 0 else -2 - int(jobs.tenant[job])
    name, gpus = int(jobs.name[job]), float(jobs.gpus[job])
    named: list[tuple[object, ...]] = []
    if name >= 0:
        named = [("size", user, name, gpus), ("name", user, name), ("name-of-all", name)]
    return [*named, ("user", user), ("all",)]
