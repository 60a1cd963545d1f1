"""Every admitted job is waiting, running or ended once; its attempts are numbered without a gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.projections.ledger_events import LedgerEvent
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds, Violation

ADMISSION, ENDED = "admitted or closed job", "ended job"
ADMITTED, CLOSED = ("admitted",), ("closed",)
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
    """The state of a job in the ledger of placement, until it ends."""

    phase: str = ""
    attempt: int = 0


@dataclass(slots=True)
class JobLifecycleRule:
    """Checks ends, order of phases and attempts in the ledgers of admission and placement."""

    CARRIED: ClassVar[tuple[str, ...]] = ("jobs", "unqueued", "unadmitted")
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    admission_seqs: dict[int, int]
    """Lane to the last admission seq that placement has read: it may not know later jobs."""
    bounds: Bounds
    kept: RowStore = field(default_factory=RowStore)
    """All jobs that admission admitted or ended, and all that placement ended."""
    name: str = "every admitted job is waiting, running or ended once"
    jobs: dict[str, JobLifecycle] = field(default_factory=dict)
    unqueued: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Jobs that were admitted and not enqueued, with id, partition and seq of that event."""
    unadmitted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Jobs that were enqueued and not admitted, with partition and seq of their first event."""
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger == "admission":
            self._observe_admission(event)
        elif event.ledger == "placement" and event.type.startswith("job."):
            self._observe_placement(event)

    def _observe_admission(self, event: LedgerEvent) -> None:
        job_id = event.data.get("job_id", "")
        if event.type == "job.admitted.v1":
            if self.kept.get(ADMISSION, job_id) is not None:
                self._add(event, f"{job_id} was admitted after it was admitted or ended")
                return
            self.kept.put(ADMISSION, job_id, ADMITTED)
            if self.unadmitted.pop(job_id, None) is None:
                self.unqueued[job_id] = event.id, event.partition, event.seq
        elif event.type in ("job.rejected.v1", "job.cancelled.v1"):
            if self.kept.get(ADMISSION, job_id) is not None:
                self._add(event, f"{job_id} was ended by admission after it was admitted or ended")
                return
            self.kept.put(ADMISSION, job_id, CLOSED)

    def _observe_placement(self, event: LedgerEvent) -> None:
        job_id, verb = event.data["job_id"], event.type.split(".")[1]
        job = self.jobs.get(job_id)
        if job is None:
            if ended := self.kept.get(ENDED, job_id):
                self._add(event, f"{job_id}: {verb} after {ended[0]}")
                return
            job = self._begin(event, job_id)
        if verb not in NEXT[job.phase]:
            self._add(event, f"{job_id}: {verb} cannot follow {job.phase or 'nothing'}")
        if verb in ("enqueued", "requeued"):
            self._check_attempt(event, job)
        if event.type in ENDS:
            self.kept.put(ENDED, job_id, (verb,))
            del self.jobs[job_id]
        elif verb not in NOTES:
            job.phase = verb

    def _begin(self, event: LedgerEvent, job_id: str) -> JobLifecycle:
        is_admitted = self.kept.get(ADMISSION, job_id) == ADMITTED
        if self.unqueued.pop(job_id, None) is None and not is_admitted:
            self.unadmitted[job_id] = event.partition, event.seq
        return self.jobs.setdefault(job_id, JobLifecycle())

    def _check_attempt(self, event: LedgerEvent, job: JobLifecycle) -> None:
        attempt = event.data.get("attempt", 1)
        if attempt != job.attempt + 1:
            self._add(event, f"{event.data['job_id']}: attempt {attempt} follows {job.attempt}")
        job.attempt = attempt

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations
        for job_id, (event_id, partition, seq) in self.unqueued.items():
            if seq <= self.admission_seqs.get(partition, 0):
                yield Violation(self.name, event_id, f"{job_id} was admitted and never enqueued")
        for job_id, place in sorted(self.unadmitted.items()):
            if self.bounds.reach("placement", *place):
                yield Violation(self.name, job_id, "was enqueued and never admitted")
