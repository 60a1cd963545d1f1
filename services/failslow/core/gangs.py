"""Which gangs are watched: placement says who runs where."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.failslow.core.state import FailSlowState, GangState
from shared.contracts.faults import GangsNoted, GangWorker, WatchedGang
from shared.contracts.placement import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPlaced,
    JobPreempted,
    JobRequeued,
    JobResized,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.ledger.decider import Input

ENDS = (
    JobPreempted,
    JobMigrated,
    JobResized,
    JobStopRequested,
    JobStartFailed,
    JobRequeued,
    JobAttemptFailed,
    JobSucceeded,
    JobFailed,
    JobCancelled,
)
"""A worker that was told to stop proves nothing any more."""


@dataclass(slots=True)
class GangChanges:
    """What one batch of inputs does to the watched gangs; one that came and went is not noted."""

    started: dict[str, WatchedGang] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.started or self.ended)

    def note(self, state: FailSlowState, item: Input) -> None:
        match item.message:
            case JobPlaced(job_id=job_id, allocations=allocations) as placed:
                self.end(state, job_id)
                if len(allocations) > 1:
                    self.started[job_id] = watched(placed, item)
            case message if isinstance(message, ENDS):
                self.end(state, message.job_id)

    def end(self, state: FailSlowState, job_id: str) -> None:
        self.started.pop(job_id, None)
        if job_id in state.gangs:
            self.ended[job_id] = None


def watched(placed: JobPlaced, item: Input) -> WatchedGang:
    return WatchedGang(
        job_id=placed.job_id,
        tenant=placed.tenant,
        attempt=placed.attempt,
        workers=tuple(
            GangWorker.model_construct(
                rank=lease.rank, node_id=lease.node_id, allocation_id=f"{item.place}/{lease.rank}"
            )
            for lease in placed.allocations
        ),
        traceparent=item.traceparent,
    )


def noted(state: FailSlowState, changes: GangChanges) -> GangsNoted:
    return GangsNoted(
        pool=state.name, started=tuple(changes.started.values()), ended=tuple(changes.ended)
    )


def apply(state: FailSlowState, event: GangsNoted) -> None:
    """Ends first: a job that was placed anew in the same batch stays watched."""
    for job_id in event.ended:
        state.gangs.pop(job_id, None)
    for gang in event.started:
        workers = {worker.rank: worker for worker in gang.workers}
        state.gangs[gang.job_id] = GangState(gang.tenant, gang.attempt, workers, gang.traceparent)
