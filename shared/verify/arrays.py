"""A cancelled array creates no more jobs, and its cancel is answered once all of them ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Violation

ANSWERS = ("command.accepted.v1", "command.refused.v1")
CREATED = ("job.admitted.v1", "job.deferred.v1", "job.rejected.v1")
ENDED = ("job.rejected.v1", "job.cancelled.v1")


def array_of(event: LedgerEvent) -> str:
    """Return the id of the array that the event's job is part of, empty if none."""
    index = event.data.get("array_index")
    return "" if index is None else str(event.data["job_id"]).removesuffix(f".{index}")


@dataclass(slots=True)
class ArrayCancelRule:
    """Checks the ledger of admission alone, which is in order."""

    CARRIED: ClassVar[tuple[str, ...]] = ("live_jobs", "arrays", "cancels", "cancelled")
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    name: str = "a cancelled array ends as a whole"
    live_jobs: dict[str, set[str]] = field(default_factory=dict)
    """Array to its jobs that have not ended; arrays without one are left out."""
    arrays: dict[str, str] = field(default_factory=dict)
    """Job that has not ended to its array."""
    cancels: dict[str, str] = field(default_factory=dict)
    """Unanswered cancel command to its array."""
    cancelled: set[str] = field(default_factory=set)
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger != "admission":
            return
        if event.type in CREATED and (array := array_of(event)):
            self._create_job(event, array)
        if event.type in ENDED:
            self._end_job(event.data["job_id"])
        elif event.type == "jobs.released.v1":
            for end in event.data["ends"]:
                self._end_job(end["job_id"])
        elif event.type == "array.cancel-requested.v1":
            self.cancelled.add(event.data["job_id"])
            self.cancels[event.data["command_id"]] = event.data["job_id"]
        elif event.type in ANSWERS:
            self._check_answer(event)

    def _create_job(self, event: LedgerEvent, array: str) -> None:
        job_id = event.data["job_id"]
        if job_id in self.arrays:
            return
        if array in self.cancelled:
            self._add(event, f"{job_id} was created after {array} was cancelled")
        self.live_jobs.setdefault(array, set()).add(job_id)
        self.arrays[job_id] = array

    def _end_job(self, job_id: str) -> None:
        array = self.arrays.pop(job_id, "")
        live = self.live_jobs.get(array, set())
        live.discard(job_id)
        if not live:
            self.live_jobs.pop(array, None)

    def _check_answer(self, event: LedgerEvent) -> None:
        array = self.cancels.pop(event.data["command_id"], None)
        if array and (live := self.live_jobs.get(array)):
            self._add(event, f"cancel of {array} was answered before {len(live)} of its jobs ended")

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations
