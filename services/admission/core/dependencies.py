"""Jobs that must have succeeded first: a job can only name what was there before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from services.admission.core.ended import Outcome
from services.admission.core.state import Pool


class Standing(NamedTuple):
    """Where a job or array stands, whose it is, and what was submitted."""

    phase: Literal["deferred", "admitted", "open"] | Outcome
    tenant: str
    digest: str

    @property
    def has_ended(self) -> bool:
        return self.phase not in ("deferred", "admitted", "open")


def standing(state: Pool, job_id: str) -> Standing | None:
    """None: never heard of it."""
    if job := state.deferred.get(job_id):
        return Standing("deferred", job.tenant, job.digest)
    if admitted := state.admitted.get(job_id):
        return Standing("admitted", admitted.tenant, admitted.digest)
    if array := state.arrays.get(job_id):
        return Standing("open", array.tenant, array.digest)
    ended = state.ended.get(job_id)
    return Standing(*ended) if ended else None


def missing(state: Pool, depends_on: tuple[str, ...]) -> Iterator[str]:
    """Those that have not ended."""
    for job_id in depends_on:
        found = standing(state, job_id)
        if found is not None and not found.has_ended:
            yield job_id


def is_own(dependency: str, job_id: str) -> bool:
    """The job itself, or one of its own array."""
    return dependency == job_id or dependency.startswith(f"{job_id}.")
