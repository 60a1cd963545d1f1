"""Checkpoints and progress that agents send: of their own workers of rank 0, at a bounded rate."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic_ns

from services.executor.agents.sessions import Session
from services.executor.core.agents.restate import job_of
from services.executor.core.agents.state import AgentPool
from shared.contracts.agents import Checkpoint, Progress
from shared.contracts.reports import WorkerCheckpointed, WorkerProgressed
from shared.http.rate import Rate, TokenBuckets

CHECKPOINTS = Rate(0.2, 1)
PROGRESS = Rate(0.1, 1)
"""Of one worker; more are dropped. An agent sends half as many."""


class CheckpointLimiter:
    """Bounds the checkpoints of each worker."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets(CHECKPOINTS)

    def take(
        self, state: AgentPool, session: Session, checkpoints: Iterable[Checkpoint]
    ) -> tuple[WorkerCheckpointed, ...]:
        """Return those for placement. Raises ForeignWorker for another node's worker.

        Those of workers that the ledger does not know, or not yet, are dropped.
        """
        taken = []
        for checkpoint in checkpoints:
            name = checkpoint.allocation_id
            if job_id := job_of_rank_0(state, session, name, self._buckets):
                taken.append(
                    WorkerCheckpointed(
                        allocation_id=name,
                        job_id=job_id,
                        ran_ms=checkpoint.ran_ms,
                        step=checkpoint.step,
                    )
                )
        return tuple(taken)


class ProgressLimiter:
    """Bounds the progress of each worker."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets(PROGRESS)

    def take(
        self, state: AgentPool, session: Session, progress: Iterable[Progress]
    ) -> tuple[WorkerProgressed, ...]:
        """Return that for placement. Raises ForeignWorker for another node's worker.

        That of workers that the ledger does not know, or not yet, is dropped.
        """
        return tuple(
            WorkerProgressed(job_id=job_id, **one.model_dump())
            for one in progress
            if (job_id := job_of_rank_0(state, session, one.allocation_id, self._buckets))
        )


def job_of_rank_0(state: AgentPool, session: Session, name: str, buckets: TokenBuckets) -> str:
    """Return the job of a worker that may report for its gang now, or nothing.

    Raises ForeignWorker.
    """
    worker = state.workers.get(name)
    if worker is None:
        return ""
    job_id = job_of(worker, session.node_id, session.incarnation)
    if not job_id or worker.launch.rank or buckets.take(name, monotonic_ns()):
        return ""
    return job_id
