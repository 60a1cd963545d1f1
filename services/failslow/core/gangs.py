"""Follows the placement ledger: which gangs run, on which nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from services.failslow.core.state import FailSlowState, GangState
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobRequeued,
    JobResized,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.construct import construct
from shared.contracts.faults import GangsNoted, GangWorker, WatchedGang
from shared.contracts.placement import JobPlaced
from shared.contracts.reports import IterationTimes, TelemetryReported
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
"""After any of these the iteration times of the attempt prove nothing any more."""


@dataclass(slots=True)
class GangChanges:
    """Effect of one batch of inputs on the watched gangs; one that came and went is left out."""

    started: dict[str, WatchedGang] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.started or self.ended)

    def add(self, state: FailSlowState, item: Input) -> None:
        """Add one input of the placement ledger."""
        match item.message:
            case JobPlaced(job_id=job_id) as placed:
                self.end(state, job_id)
                self.started[job_id] = watched_gang(placed, item)
            case message if isinstance(message, ENDS):
                self.end(state, message.job_id)

    def end(self, state: FailSlowState, job_id: str) -> None:
        self.started.pop(job_id, None)
        if job_id in state.gangs:
            self.ended[job_id] = None

    def to_event(self, state: FailSlowState) -> GangsNoted:
        return GangsNoted(
            pool=state.name, started=tuple(self.started.values()), ended=tuple(self.ended)
        )


def watched_gang(placed: JobPlaced, item: Input) -> WatchedGang:
    return construct(
        WatchedGang,
        job_id=placed.job_id,
        tenant=placed.tenant,
        attempt=placed.attempt,
        workers=tuple(
            construct(
                GangWorker,
                rank=allocation.rank,
                node_id=allocation.node_id,
                allocation_id=f"{item.place}/{allocation.rank}",
                gpus=allocation.gpus,
            )
            for allocation in placed.allocations
        ),
        traceparent=item.traceparent,
        gpus=sum((len(own.gpus) * own.gpu_milli / 1000 for own in placed.allocations), 0.0),
        validates=placed.validates,
        preemptible=placed.preemptible,
    )


def times_of_workers(
    report: TelemetryReported, gangs: Mapping[str, GangState]
) -> Iterator[tuple[GangState, IterationTimes]]:
    """Yield the times of workers that are placed as they report, each with its gang."""
    for times in report.times:
        gang = gangs.get(times.job_id)
        worker = gang.workers.get(times.rank) if gang else None
        if gang and worker and worker.allocation_id == times.allocation_id:
            yield gang, times
