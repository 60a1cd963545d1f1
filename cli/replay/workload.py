"""A workload from its name, and its jobs at their times."""

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
    """Raises BadInput with file, column and row of what cannot be read."""
    try:
        return load(trace, jobs, seed=seed).jobs
    except TraceError as error:
        raise BadInput(str(error)) from None


def timed(
    jobs: Sequence[WorkloadJob], speed: float, wish: Callable[[WorkloadJob], Submission]
) -> list[Timed]:
    """Each job as its tenant's submission, at its second of the replay."""
    offsets_s = submit_offsets_s(jobs, speed)
    return [Timed(at_s, wish(job)) for at_s, job in zip(offsets_s, jobs, strict=True)]
