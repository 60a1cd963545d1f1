"""The first and the last decision about each job, so that spans of later ones can link to them."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.bookkeeping import JobsReleased
from shared.contracts.topics import JOB_ENDS
from shared.ledger.decider import Fact
from shared.telemetry.names import BOOKKEEPING, continues_trace, span_of

MAX_JOBS = 100_000
FINAL_EVENTS = JOB_ENDS | {"job.rejected.v1"}
"""No decision about the job follows them in the same ledger."""
LLM_EVENTS = "llm."


class JobTrace(NamedTuple):
    """Traceparents: in the trace of the job's start, and of the last decision about it."""

    first: str
    last: str


class JobTraces:
    """Bounded memory of traceparents; after a restart the shell refills it from the state."""

    def __init__(self, max_jobs: int = MAX_JOBS) -> None:
        self._jobs: dict[str, JobTrace] = {}
        self._nodes: dict[str, str] = {}
        self._max_jobs = max_jobs

    def remember(self, job_id: str, first: str) -> None:
        """Record the first trace of a job that started before this process."""
        if first:
            self._jobs.setdefault(job_id, JobTrace(first, first))

    def links(self, fact: Fact, parent: str) -> list[str]:
        """Return the causes of the fact beside `parent`, and record the fact itself."""
        event = fact.event
        if event.TYPE.startswith(LLM_EVENTS):
            # They are many, and concern no job.
            return []
        job_id = str(getattr(event, "job_id", ""))
        causes = self._causes(fact, job_id)
        if isinstance(event, JobsReleased):
            for end in event.ends:
                self._jobs.pop(end.job_id, None)
        if event.TYPE == "node.health-noted.v1" and parent:
            self._nodes[str(getattr(event, "node_id", ""))] = parent
        if job_id and fact.traceparent:
            self._note(fact, job_id)
        return causes

    def _causes(self, fact: Fact, job_id: str) -> list[str]:
        """Return the causes; the job's last decision precedes its first."""
        if continues_trace(fact.event.TYPE):
            return []
        event, causes = fact.event, list[str]()
        if getattr(event, "reason", "") == "slow_node":
            causes += [self._nodes[n] for n in getattr(event, "from_nodes", ()) if n in self._nodes]
        trace = self._jobs.get(job_id)
        if trace is not None:
            causes += [trace.last, trace.first]
        preemptor = self._jobs.get(str(getattr(event, "by_job_id", "")))
        return [*causes, preemptor.first] if preemptor is not None else causes

    def _note(self, fact: Fact, job_id: str) -> None:
        if fact.event.TYPE in FINAL_EVENTS:
            self._jobs.pop(job_id, None)
            return
        if span_of(fact.event.TYPE) in BOOKKEEPING:
            return
        trace = self._jobs.get(job_id)
        if trace is not None:
            self._jobs[job_id] = JobTrace(trace.first, fact.traceparent)
        elif continues_trace(fact.event.TYPE):
            self._jobs[job_id] = JobTrace(fact.traceparent, fact.traceparent)
            if len(self._jobs) > self._max_jobs:
                del self._jobs[next(iter(self._jobs))]
