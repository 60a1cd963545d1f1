"""Where each job's first trace is and what was decided of it last, so that spans can link there."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.bookkeeping import JobsReleased
from shared.contracts.topics import JOB_ENDS
from shared.ledger.decider import Fact
from shared.telemetry.names import BOOKKEEPING, continues_trace, span_of

MOST_JOBS = 100_000
OVER = JOB_ENDS | {"job.rejected.v1"}
"""No decision about the job follows in the ledger that says so."""


class Known(NamedTuple):
    """Traceparents: in the trace of the job's start, and of the last decision about it."""

    first: str
    last: str


class JobTraces:
    """Bounded. What a process forgets when it ends, its shell tells it anew from the state."""

    def __init__(self, most_jobs: int = MOST_JOBS) -> None:
        self._jobs: dict[str, Known] = {}
        self._nodes: dict[str, str] = {}
        self._most = most_jobs

    def tell(self, job_id: str, first: str) -> None:
        """A job that is known from before."""
        if first:
            self._jobs.setdefault(job_id, Known(first, first))

    def links(self, fact: Fact, parent: str) -> list[str]:
        """What the fact follows from beside `parent`; afterwards the fact itself is known."""
        event = fact.event
        job_id = str(getattr(event, "job_id", ""))
        found = self._causes(fact, job_id)
        if isinstance(event, JobsReleased):
            for end in event.ends:
                self._jobs.pop(end.job_id, None)
        if event.TYPE == "node.health-noted.v1" and parent:
            self._nodes[str(getattr(event, "node_id", ""))] = parent
        if job_id and fact.traceparent:
            self._note(fact, job_id)
        return found

    def _causes(self, fact: Fact, job_id: str) -> list[str]:
        """The last decision about the job first: where that is of its start, it says both."""
        if continues_trace(fact.event.TYPE):
            return []
        event, found = fact.event, []
        if getattr(event, "reason", "") == "slow_node":
            found += [self._nodes[n] for n in getattr(event, "from_nodes", ()) if n in self._nodes]
        known = self._jobs.get(job_id)
        if known is not None:
            found += [known.last, known.first]
        by = self._jobs.get(str(getattr(event, "by_job_id", "")))
        return [*found, by.first] if by is not None else found

    def _note(self, fact: Fact, job_id: str) -> None:
        if fact.event.TYPE in OVER:
            self._jobs.pop(job_id, None)
            return
        if span_of(fact.event.TYPE) in BOOKKEEPING:
            return
        known = self._jobs.get(job_id)
        if known is not None:
            self._jobs[job_id] = Known(known.first, fact.traceparent)
        elif continues_trace(fact.event.TYPE):
            self._jobs[job_id] = Known(fact.traceparent, fact.traceparent)
            if len(self._jobs) > self._most:
                del self._jobs[next(iter(self._jobs))]
