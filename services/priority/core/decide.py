"""Priority's decider: it notes who waits and says, at most once a second, who should go first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from services.priority.core.policies import POLICIES
from services.priority.core.state import Job, Queue, Usage
from shared.bus.decider import Decision, Fact, Input, Undecodable
from shared.contracts.access import PoolConfigured, TenantRegistered
from shared.contracts.base import Event
from shared.contracts.jobs import JobAdmitted, TenantNoted
from shared.contracts.placement import (
    JobAttemptFailed,
    JobCancelled,
    JobEnqueued,
    JobFailed,
    JobPlaced,
    JobRequeued,
    JobSucceeded,
)
from shared.contracts.ranking import (
    QueueChanged,
    QueueEntry,
    QueueRanked,
    Ranked,
    Running,
    UsageDelta,
)
from shared.contracts.topics import HEARS

RANK_MS = 1000
"""A changed queue is ranked at most once per this, in wall ms."""
HEAD_MS = 250
"""Sooner when the job that led the line is gone."""
REFRESH_MS = 5000
"""An unchanged queue is ranked again: placement ignores ranks older than 10 s."""
TOP = 512


@dataclass(slots=True)
class Changes:
    """What one batch of inputs does to the queue, in input order."""

    entered: dict[str, QueueEntry] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    requeued: dict[str, None] = field(default_factory=dict)
    parked: dict[str, None] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entered or self.running or self.requeued or self.parked or self.left)


class Priority:
    """One pool's order; see `Decider`."""

    ledger = "priority"
    hears = HEARS["priority"]

    def initial(self, partition: int) -> Queue:
        return Queue(partition)

    def decide(self, state: Queue, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        changes = Changes()
        for item in inputs:
            message = item.message
            if item.source == "access":
                yield from restate(state, item)
            elif isinstance(message, Undecodable):
                yield item.leads_to(message.rejected())
            elif isinstance(message, Event):
                note(state, changes, item, message)
        if changes:
            yield Decision(changed(state, changes))
        if rank_due(state, now):
            yield Decision(ranking(state, now))

    def evolve(self, state: Queue, fact: Fact) -> None:
        match fact.event:
            case QueueChanged() as event:
                apply_changes(state, event, fact.at)
            case QueueRanked(ranked=ranked):
                state.ranked_at = fact.at
                state.head = ranked[0].job_id if ranked else ""
                state.dirty = False
            case PoolConfigured() as pool:
                state.pool = pool
                state.dirty = True
            case TenantNoted(tenant=tenant, weight=weight):
                state.weights[tenant] = weight
                state.dirty = True

    def next_wake(self, state: Queue) -> int | None:
        if not state.waiting or state.pool is None:
            return None
        return state.ranked_at + pause_ms(state)


def pause_ms(state: Queue) -> int:
    if not state.dirty:
        return REFRESH_MS
    return RANK_MS if state.head in state.waiting else HEAD_MS


def rank_due(state: Queue, now: int) -> bool:
    return (
        bool(state.waiting) and state.pool is not None and now - state.ranked_at >= pause_ms(state)
    )


def ranking(state: Queue, now: int) -> QueueRanked:
    assert state.pool is not None
    policy = state.pool.base_policy
    order = POLICIES[policy](state, now)
    top = order.jobs[:TOP]
    return QueueRanked(
        pool=state.name,
        base_policy=policy,
        ranked=tuple(
            Ranked.model_construct(job_id=job.job_id, score=float(len(top) - place))
            for place, job in enumerate(top)
        ),
        waiting=len(order.jobs),
        terms=order.terms,
    )


def restate(state: Queue, item: Input) -> Iterator[Decision]:
    match item.message:
        case PoolConfigured(partition=partition) as pool:
            if partition == state.partition and pool != state.pool:
                yield item.leads_to(pool)
        case TenantRegistered(tenant=tenant, weight=weight):
            if state.weights.get(tenant) != weight:
                yield item.leads_to(TenantNoted(tenant=tenant, weight=weight))


def note(state: Queue, changes: Changes, item: Input, message: Event) -> None:
    match message:
        case JobAdmitted():
            changes.entered[message.job_id] = entry_of(message, item.traceparent)
        case JobEnqueued(job_id=job_id, attempt=attempt) if attempt > 1:
            changes.parked.pop(job_id, None)
            changes.requeued[job_id] = None
        case JobPlaced():
            changes.running[message.job_id] = running_of(message, item.at)
            changes.requeued.pop(message.job_id, None)
            changes.parked.pop(message.job_id, None)
        case JobRequeued(job_id=job_id):
            stop_counting(state, changes, job_id, item.at)
            changes.requeued[job_id] = None
        case JobAttemptFailed(job_id=job_id):
            stop_counting(state, changes, job_id, item.at)
            changes.requeued.pop(job_id, None)
            changes.parked[job_id] = None
        case JobSucceeded(job_id=job_id) | JobFailed(job_id=job_id) | JobCancelled(job_id=job_id):
            if item.source == "placement":
                stop_counting(state, changes, job_id, item.at)
                changes.requeued.pop(job_id, None)
                changes.left[job_id] = None


def entry_of(message: JobAdmitted, traceparent: str) -> QueueEntry:
    spec = message.spec
    return QueueEntry(
        job_id=message.job_id,
        tenant=message.tenant,
        user=spec.user,
        name=spec.name,
        priority_class=spec.priority_class,
        submitted_at=message.submitted_at,
        gpus=spec.gang.gpus,
        workers=spec.gang.workers,
        walltime_s=spec.walltime_s,
        spot=spec.spot,
        traceparent=traceparent,
    )


def running_of(message: JobPlaced, at: int) -> Running:
    gpus = sum(len(lease.gpus) * lease.gpu_milli for lease in message.allocations) / 1000
    return Running(job_id=message.job_id, tenant=message.tenant, gpus=gpus, since=at)


def stop_counting(state: Queue, changes: Changes, job_id: str, at: int) -> None:
    """The job holds no GPUs any more: what it used is charged to its tenant."""
    run = changes.running.pop(job_id, None)
    job = state.jobs.get(job_id)
    if run is not None:
        tenant, gpus, since = run.tenant, run.gpus, run.since
    elif job is not None and job.phase == "running":
        tenant, gpus, since = job.tenant, job.gpus, job.since
    else:
        return
    used = gpus * max(0, at - since) / 1000
    changes.usage[tenant] = changes.usage.get(tenant, 0.0) + used


def changed(state: Queue, changes: Changes) -> QueueChanged:
    return QueueChanged(
        pool=state.name,
        entered=tuple(changes.entered.values()),
        running=tuple(changes.running.values()),
        requeued=tuple(changes.requeued),
        parked=tuple(changes.parked),
        left=tuple(changes.left),
        usage=tuple(UsageDelta(tenant=t, gpu_s=v) for t, v in changes.usage.items()),
    )


def apply_changes(state: Queue, event: QueueChanged, at: int) -> None:
    for entry in event.entered:
        enter(state, entry)
    for run in event.running:
        start(state, run)
    for job_id in event.requeued:
        requeue(state, job_id)
    for job_id in event.parked:
        park(state, job_id)
    for job_id in event.left:
        leave(state, job_id)
    for delta in event.usage:
        usage = state.usage.setdefault(delta.tenant, Usage())
        usage.add(delta.gpu_s, at, state.half_life_wall_s)
    state.dirty = True


def enter(state: Queue, entry: QueueEntry) -> None:
    """Two ledgers have no order between them: placement may have spoken of the job first."""
    if entry.job_id in state.gone_early:
        state.gone_early.discard(entry.job_id)
        return
    job = state.jobs.get(entry.job_id)
    if job is not None:
        job.entry = entry
        if job.phase == "waiting":
            state.waiting[entry.job_id] = entry
        return
    state.jobs[entry.job_id] = Job(entry, "waiting", entry.tenant, entry.gpus)
    state.waiting[entry.job_id] = entry


def start(state: Queue, run: Running) -> None:
    job = state.jobs.setdefault(run.job_id, Job(None, "running"))
    job.phase, job.tenant, job.gpus, job.since = "running", run.tenant, run.gpus, run.since
    state.waiting.pop(run.job_id, None)


def requeue(state: Queue, job_id: str) -> None:
    job = state.jobs.get(job_id)
    if job is None:
        return
    job.phase = "waiting"
    if job.entry is not None:
        state.waiting[job_id] = job.entry


def park(state: Queue, job_id: str) -> None:
    state.waiting.pop(job_id, None)
    if job := state.jobs.get(job_id):
        job.phase = "parked"


def leave(state: Queue, job_id: str) -> None:
    job = state.jobs.pop(job_id, None)
    state.waiting.pop(job_id, None)
    if job is None or job.entry is None:
        state.gone_early.add(job_id)
