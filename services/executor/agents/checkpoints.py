"""The checkpoints that agents send: of their own workers of rank 0, at a bounded rate."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic_ns

from services.executor.agents.sessions import Session
from services.executor.core.agents.restate import job_of
from services.executor.core.agents.state import AgentPool
from shared.contracts.agents import Checkpoint
from shared.contracts.reports import WorkerCheckpointed
from shared.rate import Rate, TokenBuckets

CHECKPOINTS = Rate(0.2, 1)
"""Of one worker; more are dropped. An agent sends half as many."""


class CheckpointPace:
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
            worker = state.workers.get(name)
            if worker is None:
                continue
            job_id = job_of(worker, session.node_id, session.incarnation)
            if not job_id or worker.launch.rank or self._buckets.take(name, monotonic_ns()):
                continue
            taken.append(
                WorkerCheckpointed(
                    allocation_id=name,
                    job_id=job_id,
                    ran_ms=checkpoint.ran_ms,
                    step=checkpoint.step,
                )
            )
        return tuple(taken)
