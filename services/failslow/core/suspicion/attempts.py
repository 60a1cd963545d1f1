"""Values of the present attempt of each watched job: pure, disposable, not in the ledger.

A new attempt may have other ranks, nodes and stages, as after an elastic resize, and counts its
iterations again from a checkpoint. So nothing of an earlier one is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from services.failslow.core.state import GangState

Kept = TypeVar("Kept")


class OfAttempts(Generic[Kept]):
    """A value by job, each of one attempt."""

    def __init__(self, new: Callable[[], Kept]) -> None:
        self._new = new
        self._jobs: dict[str, tuple[int, Kept]] = {}

    def begin(self, job_id: str, attempt: int) -> Kept:
        """Return the value of the attempt, a new one in place of that of another attempt."""
        kept = self.of(job_id, attempt)
        if kept is None:
            kept = self._new()
            self._jobs[job_id] = attempt, kept
        return kept

    def of(self, job_id: str, attempt: int) -> Kept | None:
        known = self._jobs.get(job_id)
        return known[1] if known is not None and known[0] == attempt else None

    def forget_ended(self, gangs: Mapping[str, GangState]) -> None:
        self._jobs = {
            job_id: known
            for job_id, known in self._jobs.items()
            if job_id in gangs and gangs[job_id].attempt == known[0]
        }
