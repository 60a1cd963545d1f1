"""Every admitted job is waiting, running or ended once; its attempts are numbered without a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Bounds, Violation

ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1")
_STARTABLE = frozenset({"held", "placed", "cancelled", "failed"})
_STOPPABLE = frozenset(
    {"stop-requested", "preempted", "requeued", "cancelled", "failed", "attempt-failed"}
)
_ENDING = _STOPPABLE | {"succeeded"}
NOTES = frozenset({"checkpointed", "progressed", "stop-deferred"})
"""Types that leave a running job in its phase."""
NEXT: dict[str, frozenset[str]] = {
    "": frozenset({"enqueued"}),
    "enqueued": _STARTABLE,
    "held": _STARTABLE,
    "placed": _ENDING | {"started", "start-failed"},
    "started": _ENDING | {"migrated", "resized", *NOTES},
    "start-failed": _STOPPABLE,
    "preempted": _ENDING,
    "migrated": _ENDING,
    "resized": _ENDING,
    "stop-requested": _ENDING | {"start-failed"},
    "attempt-failed": frozenset({"enqueued", "cancelled", "failed"}),
    "requeued": _STARTABLE,
}
"""Type of a job's last event in the ledger of placement to the types that may follow it."""


@dataclass(slots=True)
class JobLifecycle:
    """The state of a job in the ledger of placement."""

    must_be_admitted: bool
    """Its first event was appended before the second pass began."""
    phase: str = ""
    attempt: int = 0
    ended: str = ""


@dataclass(slots=True)
class JobLifecycleRule:
    """Checks ends, order of phases and attempts in the ledgers of admission and placement."""

    admission_seqs: dict[int, int]
    """Lane to the last admission seq that placement has read: it may not know later jobs."""
    bounds: Bounds
    name: str = "every admitted job is waiting, running or ended once"
    jobs: dict[str, JobLifecycle] = field(default_factory=dict)
    admitted: dict[str, LedgerEvent] = field(default_factory=dict)
    closed: dict[str, LedgerEvent] = field(default_factory=dict)
    """Jobs that admission ended."""
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger == "admission":
            self._observe_admission(event)
        elif event.ledger == "placement" and event.type.startswith("job."):
            self._observe_placement(event)

    def _observe_admission(self, event: LedgerEvent) -> None:
        job_id = event.data.get("job_id", "")
        if event.type == "job.admitted.v1":
            if job_id in self.admitted or job_id in self.closed:
                self._add(event, f"{job_id} was admitted after it was admitted or ended")
            self.admitted[job_id] = event
        elif event.type in ("job.rejected.v1", "job.cancelled.v1"):
            if job_id in self.closed or job_id in self.admitted:
                self._add(event, f"{job_id} was ended by admission after it was admitted or ended")
            self.closed[job_id] = event

    def _observe_placement(self, event: LedgerEvent) -> None:
        job_id, verb = event.data["job_id"], event.type.split(".")[1]
        job = self.jobs.setdefault(job_id, JobLifecycle(self.bounds.has(event)))
        if job.ended:
            self._add(event, f"{job_id}: {verb} after {job.ended}")
            return
        if verb not in NEXT[job.phase]:
            self._add(event, f"{job_id}: {verb} cannot follow {job.phase or 'nothing'}")
        if verb in ("enqueued", "requeued"):
            self._check_attempt(event, job)
        if event.type in ENDS:
            job.ended = verb
        elif verb not in NOTES:
            job.phase = verb

    def _check_attempt(self, event: LedgerEvent, job: JobLifecycle) -> None:
        attempt = event.data.get("attempt", 1)
        if attempt != job.attempt + 1:
            self._add(event, f"{event.data['job_id']}: attempt {attempt} follows {job.attempt}")
        job.attempt = attempt

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations
        for job_id, event in self.admitted.items():
            if job_id not in self.jobs and event.seq <= self.admission_seqs.get(event.partition, 0):
                yield Violation(self.name, event.id, f"{job_id} was admitted and never enqueued")
        for job_id in sorted(self.jobs.keys() - self.admitted.keys()):
            if self.jobs[job_id].must_be_admitted:
                yield Violation(self.name, job_id, "was enqueued and never admitted")
