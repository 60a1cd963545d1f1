"""Workloads by name, and the submission times of their jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cli.errors import BadInput
from cli.replay.feeder import Timed
from cli.replay.submission import Submission
from simulator.workload.errors import TraceError
from simulator.workload.rows import WorkloadJob
from simulator.workload.scale import submit_offsets_s
from simulator.workload.source import load


def workload(trace: str, jobs: int | None, seed: int) -> list[WorkloadJob]:
    """Load a workload. Raises BadInput with file, column and row on an unreadable value."""
    try:
        return load(trace, jobs, seed=seed).jobs
    except TraceError as error:
        raise BadInput(str(error)) from None


def timed(
    jobs: Sequence[WorkloadJob], speed: float, submission_of: Callable[[WorkloadJob], Submission]
) -> list[Timed]:
    """Return each job as a submission, with its second of the replay."""
    offsets_s = submit_offsets_s(jobs, speed)
    return [Timed(at_s, submission_of(job)) for at_s, job in zip(offsets_s, jobs, strict=True)]
