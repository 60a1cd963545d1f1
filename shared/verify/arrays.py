"""A cancelled array makes no more jobs, and its cancel is answered when all of them have ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Violation, where

ANSWERS = ("command.accepted.v1", "command.refused.v1")
MADE = ("job.admitted.v1", "job.deferred.v1", "job.rejected.v1")
OVER = ("job.rejected.v1", "job.cancelled.v1")


def array_of(line: LedgerEvent) -> str:
    """The array that the job of this line is part of; empty: none."""
    index = line.data.get("array_index")
    return "" if index is None else str(line.data["job_id"]).removesuffix(f".{index}")


@dataclass(slots=True)
class ArraysCancelled:
    """From the ledger of admission alone, which is in order."""

    name: str = "a cancelled array ends as a whole"
    living: dict[str, set[str]] = field(default_factory=dict)
    """Array to those of its jobs that have not ended."""
    array: dict[str, str] = field(default_factory=dict)
    """Job to its array."""
    cancelled: dict[str, str] = field(default_factory=dict)
    """Command to the array that it cancels, while it has no answer."""
    stopped: set[str] = field(default_factory=set)
    broken: list[Violation] = field(default_factory=list)

    def see(self, line: LedgerEvent) -> None:
        if line.ledger != "admission":
            return
        if line.type in MADE and (stem := array_of(line)):
            self._made(line, stem)
        if line.type in OVER:
            self._ended(line.data["job_id"])
        elif line.type == "jobs.released.v1":
            for end in line.data["ends"]:
                self._ended(end["job_id"])
        elif line.type == "array.cancel-requested.v1":
            self.stopped.add(line.data["job_id"])
            self.cancelled[line.data["command_id"]] = line.data["job_id"]
        elif line.type in ANSWERS:
            self._answered(line)

    def _made(self, line: LedgerEvent, stem: str) -> None:
        job = line.data["job_id"]
        if job not in self.array and stem in self.stopped:
            self._break(line, f"{job} was made after {stem} was cancelled")
        if job not in self.array:
            self.living.setdefault(stem, set()).add(job)
        self.array[job] = stem

    def _ended(self, job: str) -> None:
        self.living.get(self.array.get(job, ""), set()).discard(job)

    def _answered(self, line: LedgerEvent) -> None:
        stem = self.cancelled.pop(line.data["command_id"], None)
        if stem and (left := self.living.get(stem)):
            self._break(line, f"{stem} is answered while {len(left)} of its jobs live")

    def _break(self, line: LedgerEvent, what: str) -> None:
        self.broken.append(Violation(self.name, where(line), what))

    def finish(self) -> Iterator[Violation]:
        yield from self.broken
