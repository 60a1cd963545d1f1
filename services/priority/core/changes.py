"""Combines one batch of inputs into one event: its effect on the queue, in input order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from services.priority.core.queue.entry import entry_of
from services.priority.core.state import PriorityState
from services.priority.core.teaching import End, teaches
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobProgressed,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.checkpoint import kept_ms, wall_ms
from shared.contracts.construct import construct
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import JobEnqueued, JobPlaced
from shared.contracts.ranking import (
    Finished,
    NodeGpus,
    Progressed,
    QueueChanged,
    QueueEntry,
    Running,
    Started,
    Stopped,
    UsageDelta,
)
from shared.ledger.decider import Input


@dataclass(slots=True)
class QueueChanges:
    """The event under construction, laid over the state: a batch may restart a job many times."""

    entered: dict[str, QueueEntry] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    idle: dict[str, None] = field(default_factory=dict)
    """Jobs that held GPUs and no longer do."""
    started: dict[str, int] = field(default_factory=dict)
    stopped: dict[str, Stopped] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    requeued: dict[str, None] = field(default_factory=dict)
    parked: dict[str, None] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    progressed: dict[str, int] = field(default_factory=dict)
    """When running jobs should end by their own reports, ms."""

    def __bool__(self) -> bool:
        return bool(
            self.entered
            or self.running
            or self.started
            or self.stopped
            or self.requeued
            or self.parked
            or self.left
            or self.nodes
            or self.progressed
        )

    def to_event(self, pool_name: str) -> QueueChanged:
        return construct(
            QueueChanged,
            pool=pool_name,
            entered=tuple(self.entered.values()),
            running=tuple(self.running.values()),
            requeued=tuple(self.requeued),
            parked=tuple(self.parked),
            left=tuple(self.left),
            usage=tuple(
                [
                    construct(UsageDelta, tenant=tenant, gpu_s=gpu_s)
                    for tenant, gpu_s in self.usage.items()
                ]
            ),
            started=tuple(
                [construct(Started, job_id=job, at=at) for job, at in self.started.items()]
            ),
            stopped=tuple(self.stopped.values()),
            finished=tuple(self.finished.values()),
            nodes=tuple(
                [NodeGpus(node_id=node_id, gpus=gpus) for node_id, gpus in self.nodes.items()]
            ),
            progressed=tuple(
                [
                    construct(Progressed, job_id=job, ends_at=at)
                    for job, at in self.progressed.items()
                ]
            ),
        )


def add_input(state: PriorityState, changes: QueueChanges, item: Input, message: Event) -> None:
    """Add one event of admission or placement."""
    match message:
        case JobAdmitted():
            changes.entered[message.job_id] = entry_of(state.pool, message, item.traceparent)
        case JobPlaced() | JobStarted():
            add_run_event(state, changes, item.at, message)
        case JobEnqueued(job_id=job_id, attempt=attempt) if attempt > 1:
            requeue(changes, job_id)
        case JobSucceeded() | JobFailed() | JobCancelled():
            if item.source == "placement":
                end_job(state, changes, item.at, message)
        case NodeJoined(node_id=node_id, gpus=gpus):
            changes.nodes[node_id] = gpus
        case NodeLost(node_id=node_id):
            changes.nodes[node_id] = 0
        case _:
            add_run_event(state, changes, item.at, message)


def add_run_event(state: PriorityState, changes: QueueChanges, at: int, message: Event) -> None:
    """Add an event of a job's run."""
    match message:
        case JobPlaced():
            changes.running[message.job_id] = running_of(message, at)
            changes.requeued.pop(message.job_id, None)
            changes.parked.pop(message.job_id, None)
            changes.started.pop(message.job_id, None)
            changes.progressed.pop(message.job_id, None)
        case JobStarted(job_id=job_id):
            changes.started[job_id] = at
        case JobProgressed(job_id=job_id, ends_at=ends_at):
            changes.progressed[job_id] = ends_at
        case JobPreempted(job_id=job_id) | JobMigrated(job_id=job_id) | JobResized(job_id=job_id):
            stop_run(state, changes, job_id, at)
        case JobRequeued(job_id=job_id):
            stop_run(state, changes, job_id, at, saves=False)
            release_gpus(state, changes, job_id, at)
            requeue(changes, job_id)
        case JobAttemptFailed(job_id=job_id):
            stop_run(state, changes, job_id, at, saves=False)
            release_gpus(state, changes, job_id, at)
            changes.requeued.pop(job_id, None)
            changes.parked[job_id] = None


def running_of(message: JobPlaced, at: int) -> Running:
    milli = sum(len(allocation.gpus) * allocation.gpu_milli for allocation in message.allocations)
    return construct(
        Running, job_id=message.job_id, tenant=message.tenant, gpus=milli / 1000, since=at
    )


def requeue(changes: QueueChanges, job_id: str) -> None:
    changes.parked.pop(job_id, None)
    changes.requeued[job_id] = None


def end_job(state: PriorityState, changes: QueueChanges, at: int, message: End) -> None:
    job_id = message.job_id
    worked_ms = work_ms(state, changes, job_id, at)
    kept_before_ms = stops_of(state, changes, job_id).kept_ms if worked_ms else 0
    ran_s = (kept_before_ms + worked_ms) / 1000 * state.time_scale
    if worked_ms:
        changes.finished[job_id] = construct(
            Finished,
            job_id=job_id,
            ran_s=ran_s,
            succeeded=isinstance(message, JobSucceeded),
            teaches=teaches(state, find_entry(state, changes, job_id), message, ran_s),
        )
    release_gpus(state, changes, job_id, at)
    changes.started.pop(job_id, None)
    changes.requeued.pop(job_id, None)
    changes.left[job_id] = None


def release_gpus(state: PriorityState, changes: QueueChanges, job_id: str, at: int) -> None:
    """Charge the GPU-seconds of a job that no longer holds GPUs to its tenant."""
    run = changes.running.pop(job_id, None) or current_run(state, changes, job_id)
    changes.idle[job_id] = None
    changes.progressed.pop(job_id, None)
    if run is not None:
        used = run.gpus * max(0, at - run.since) / 1000
        changes.usage[run.tenant] = changes.usage.get(run.tenant, 0.0) + used


class CurrentRun(NamedTuple):
    """A job that holds GPUs: its tenant, the GPUs, and since when, ms."""

    tenant: str
    gpus: float
    since: int


def current_run(state: PriorityState, changes: QueueChanges, job_id: str) -> CurrentRun | None:
    """Return the run in the state, unless this batch has ended it."""
    job = state.jobs.get(job_id)
    if job is None or job.phase != "running" or job_id in changes.idle:
        return None
    table, row = state.table, job.row
    return CurrentRun(job.tenant, table.get(row, "held_gpus"), int(table.get(row, "since_ms")))


def stop_run(
    state: PriorityState, changes: QueueChanges, job_id: str, at: int, saves: bool = True
) -> None:
    """End the running attempt.

    A stopped job keeps its work up to its last checkpoint, a program that failed keeps nothing.
    """
    if not (started_at := started_at_of(state, changes, job_id)):
        return
    before = stops_of(state, changes, job_id)
    entry = find_entry(state, changes, job_id)
    worked = work_ms(state, changes, job_id, at)
    saved = kept_ms(entry, worked, state.time_scale) if entry and saves else 0
    changes.stopped[job_id] = construct(
        Stopped,
        job_id=job_id,
        ran_ms=before.ran_ms + max(0, at - started_at),
        kept_ms=before.kept_ms + saved,
        restarts=before.restarts + saves,
    )
    changes.started.pop(job_id, None)
    changes.progressed.pop(job_id, None)


def work_ms(state: PriorityState, changes: QueueChanges, job_id: str, at: int) -> int:
    """Return wall ms of useful work since the start: one after a stop first pays its cost."""
    if not (started_at := started_at_of(state, changes, job_id)):
        return 0
    entry = find_entry(state, changes, job_id)
    pays = entry is not None and stops_of(state, changes, job_id).restarts > 0
    cost = wall_ms(entry.restart_s, state.time_scale) if entry and pays else 0
    return max(0, at - started_at - cost)


def started_at_of(state: PriorityState, changes: QueueChanges, job_id: str) -> int:
    """Return when the attempt that works now was started, ms; 0: none does."""
    if job_id in changes.started:
        return changes.started[job_id]
    if job_id in changes.stopped or job_id in changes.running or job_id in changes.idle:
        return 0
    job = state.jobs.get(job_id)
    return int(state.table.get(job.row, "go_ms")) if job else 0


class AttemptTotals(NamedTuple):
    """Totals of a job's earlier attempts: wall ms, and how often it was stopped."""

    ran_ms: int
    kept_ms: int
    restarts: int


def stops_of(state: PriorityState, changes: QueueChanges, job_id: str) -> AttemptTotals | Stopped:
    """Return the totals of the job's earlier attempts."""
    if job_id in changes.stopped:
        return changes.stopped[job_id]
    job = state.jobs.get(job_id)
    return AttemptTotals(*state.table.totals(job.row)) if job else AttemptTotals(0, 0, 0)


def find_entry(state: PriorityState, changes: QueueChanges, job_id: str) -> QueueEntry | None:
    if job_id in changes.entered:
        return changes.entered[job_id]
    job = state.jobs.get(job_id)
    return job.entry if job else None
