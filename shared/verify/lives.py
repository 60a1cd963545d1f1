"""Every admitted job is waiting, running, or has exactly one end; its attempts have no gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Bounds, Violation, where

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")
NEXT: dict[str, frozenset[str]] = {
    "": frozenset({"enqueued"}),
    "enqueued": frozenset({"held", "placed", "cancelled", "failed"}),
    "held": frozenset({"held", "placed", "cancelled", "failed"}),
    "placed": frozenset(
        {
            "started",
            "start-failed",
            "stop-requested",
            "preempted",
            "requeued",
            "cancelled",
            "succeeded",
            "failed",
            "attempt-failed",
        }
    ),
    "started": frozenset(
        {
            "stop-requested",
            "preempted",
            "migrated",
            "resized",
            "succeeded",
            "failed",
            "cancelled",
            "attempt-failed",
            "requeued",
        }
    ),
    "start-failed": frozenset(
        {"stop-requested", "preempted", "requeued", "cancelled", "failed", "attempt-failed"}
    ),
    **dict.fromkeys(
        ("preempted", "migrated", "resized"),
        frozenset(
            {
                "stop-requested",
                "preempted",
                "requeued",
                "cancelled",
                "succeeded",
                "failed",
                "attempt-failed",
            }
        ),
    ),
    "stop-requested": frozenset(
        {
            "stop-requested",
            "preempted",
            "requeued",
            "cancelled",
            "succeeded",
            "failed",
            "attempt-failed",
            "start-failed",
        }
    ),
    "attempt-failed": frozenset({"enqueued", "cancelled", "failed"}),
    "requeued": frozenset({"held", "placed", "cancelled", "failed"}),
}
"""After the first word about a job, which may come next in the ledger of placement."""


@dataclass(slots=True)
class Life:
    """Where a job is in its life, in the words of the placement ledger."""

    judged: bool
    """It began before the judging did."""
    phase: str = ""
    attempt: int = 0
    ended: str = ""


@dataclass(slots=True)
class JobsLive:
    """Terminal events, order of phases and attempts, from the two ledgers that know a job."""

    read: dict[int, int]
    """Lane to the last admission seq that placement has read: later jobs may be unknown to it."""
    bounds: Bounds
    name: str = "every admitted job is waiting, running or ended once"
    lives: dict[str, Life] = field(default_factory=dict)
    admitted: dict[str, LedgerEvent] = field(default_factory=dict)
    closed: dict[str, LedgerEvent] = field(default_factory=dict)
    broken: list[Violation] = field(default_factory=list)

    def see(self, line: LedgerEvent) -> None:
        if line.ledger == "admission":
            self._admission(line)
        elif line.ledger == "placement" and line.type.startswith("job."):
            self._placement(line)

    def _admission(self, line: LedgerEvent) -> None:
        job = line.data.get("job_id", "")
        if line.type == "job.admitted.v1":
            if job in self.admitted or job in self.closed:
                self._break(line, f"{job} was admitted after it was admitted or closed")
            self.admitted[job] = line
        elif line.type in ("job.rejected.v1", "job.cancelled.v1"):
            if job in self.closed or job in self.admitted:
                self._break(line, f"{job} is not admission's to end")
            self.closed[job] = line

    def _placement(self, line: LedgerEvent) -> None:
        job, verb = line.data["job_id"], line.type.split(".")[1]
        life = self.lives.setdefault(job, Life(self.bounds.has(line)))
        if life.ended:
            self._break(line, f"{job} {life.ended} and then {verb}")
            return
        if verb not in NEXT[life.phase]:
            self._break(line, f"{job}: {verb} cannot follow {life.phase or 'nothing'}")
        if verb in ("enqueued", "requeued"):
            self._attempt(line, life, job)
        if line.type in ENDS:
            life.ended = verb
        else:
            life.phase = verb

    def _attempt(self, line: LedgerEvent, life: Life, job: str) -> None:
        attempt = line.data.get("attempt", 1)
        if attempt != life.attempt + 1:
            self._break(line, f"{job}: attempt {attempt} follows {life.attempt}")
        life.attempt = attempt

    def _break(self, line: LedgerEvent, what: str) -> None:
        self.broken.append(Violation(self.name, where(line), what))

    def finish(self) -> Iterator[Violation]:
        yield from self.broken
        for job, line in self.admitted.items():
            if job not in self.lives and line.seq <= self.read.get(line.partition, 0):
                yield Violation(self.name, where(line), f"{job} was admitted and then lost")
        for job in sorted(self.lives.keys() - self.admitted.keys()):
            if self.lives[job].judged:
                yield Violation(self.name, job, "placement knows a job that was never admitted")
