"""Results of a run of the world of rounds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class RoundsJobOutcome:
    """Times of a job, s; `end_s` is None if it had not ended."""

    job_id: str
    submit_s: float
    first_start_s: float | None
    end_s: float | None
    restarts: int
    held_gpu_s: float

    @property
    def jct_s(self) -> float:
        assert self.end_s is not None
        return self.end_s - self.submit_s


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that was not carried out."""

    at_s: float
    scheduler: str
    violation: str


@dataclass(slots=True)
class RoundsOutcome:
    """Jobs in the order of submission, and proposals that were refused whole."""

    jobs: list[RoundsJobOutcome]
    refusals: list[Refusal] = field(default_factory=list)
    rounds: int = 0
    end_s: float = 0.0

    def mean_jct_s(self, only: Collection[str] | None = None) -> float:
        """Return the mean completion time of the jobs that ended, of all or some."""
        ended = [
            job.jct_s
            for job in self.jobs
            if job.end_s is not None and (only is None or job.job_id in only)
        ]
        return float(np.mean(ended))

    @property
    def unfinished(self) -> int:
        return sum(job.end_s is None for job in self.jobs)

    @property
    def makespan_s(self) -> float:
        ends = [job.end_s for job in self.jobs if job.end_s is not None]
        return max(ends) - min(job.submit_s for job in self.jobs) if ends else 0.0
