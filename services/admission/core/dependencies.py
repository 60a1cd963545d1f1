"""Dependencies: a job may only name jobs and arrays that were submitted before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from services.admission.core.ended_jobs import Outcome
from services.admission.core.state import AdmissionState


class JobStatus(NamedTuple):
    """The phase of a job or array, its tenant, and the digest of its submitted body."""

    phase: Literal["deferred", "admitted", "open"] | Outcome
    tenant: str
    digest: str

    @property
    def has_ended(self) -> bool:
        return self.phase not in ("deferred", "admitted", "open")


def find_status(state: AdmissionState, job_id: str) -> JobStatus | None:
    """Return the status of a job or array; None if this pool never had it."""
    if job := state.deferred.get(job_id):
        return JobStatus("deferred", job.tenant, job.digest)
    if admitted := state.admitted.get(job_id):
        return JobStatus("admitted", admitted.tenant, admitted.digest)
    if array := state.arrays.get(job_id):
        return JobStatus("open", array.tenant, array.digest)
    ended = state.ended.get(job_id)
    return JobStatus(*ended) if ended else None


def unfinished_dependencies(state: AdmissionState, depends_on: tuple[str, ...]) -> Iterator[str]:
    """Yield the dependencies that have not ended."""
    for job_id in depends_on:
        status = find_status(state, job_id)
        if status is not None and not status.has_ended:
            yield job_id


def is_own(dependency: str, job_id: str) -> bool:
    """Return whether the dependency is the job itself, or a job of the same array."""
    return dependency == job_id or dependency.startswith(f"{job_id}.")
