"""A note of the ledger, folded into the state."""

from __future__ import annotations

import math

from services.priority.core.history import gittins_of, mean_left_of
from services.priority.core.policies import order_survives_departures
from services.priority.core.state import DecayedUsage, JobPhase, PoolJob, Queue
from services.priority.core.table import PARKED, RUNNING, WAITING
from shared.contracts.jobs import PRIORITY_CLASSES
from shared.contracts.ranking import (
    RANKED_MOST,
    Finished,
    NodeGpus,
    QueueChanged,
    QueueEntry,
    Running,
    Stopped,
)

TIERS = {name: float(place) for place, name in enumerate(PRIORITY_CLASSES)}
SPOT_TIER = 4.0
"""Spot jobs come after all others, as in placement."""
PHASES: dict[JobPhase, int] = {"waiting": WAITING, "running": RUNNING, "parked": PARKED}


def apply_changes(state: Queue, event: QueueChanged, at: int) -> None:
    """What ended is learnt before what entered is estimated: at one instant both may happen."""
    news = state.dirty or changes_order(state, event)
    for end in event.finished:
        learn(state, event, end)
    for node in event.nodes:
        note_node(state, node)
    for entry in event.entered:
        enter(state, entry)
    fold_runs(state, event)
    fold_places(state, event)
    for delta in event.usage:
        usage = state.usage.setdefault(delta.tenant, DecayedUsage())
        usage.add(delta.gpu_s, at, state.half_life_wall_s)
    state.dirty = news


def fold_runs(state: Queue, event: QueueChanged) -> None:
    """A stop belongs to the run before: a batch may stop a job and start it again."""
    for stop in event.stopped:
        cut(state, stop)
    for run in event.running:
        hold(state, run)
    for go in event.started:
        if (job := state.jobs.get(go.job_id)) and job.phase == "running":
            state.table.put(job.row, go_ms=go.at)


def fold_places(state: Queue, event: QueueChanged) -> None:
    for job_id in event.requeued:
        requeue(state, job_id)
    for job_id in event.parked:
        park(state, job_id)
    for job_id in event.left:
        leave(state, job_id)


def note_node(state: Queue, node: NodeGpus) -> None:
    """What a network was told of the pool is no longer so."""
    state.context = ()
    if node.gpus:
        state.nodes[node.node_id] = node.gpus
    else:
        state.nodes.pop(node.node_id, None)


def changes_order(state: Queue, event: QueueChanged) -> bool:
    """A go or a stop on the way moves no score by itself, and who leaves may leave a line behind
    that is in order as it was said."""
    if event.entered or event.requeued or event.nodes:
        return True
    return bool(event.running or event.parked or event.left) and not only_shrinks(state)


def only_shrinks(state: Queue) -> bool:
    """The last ranking names the whole line, and nobody's score depends on anybody else: without
    those who leave it is the ranking of those who stay."""
    pool = state.pool
    return (
        pool is not None and order_survives_departures(pool) and len(state.waiting) <= RANKED_MOST
    )


def learn(state: Queue, event: QueueChanged, end: Finished) -> None:
    """Whatever ended it: policies ask how long GPUs will be held."""
    job = state.jobs.get(end.job_id)
    entry = job.entry if job else None
    if job is not None and entry is not None:
        p10_s, p50_s, p90_s = (state.table.get(job.row, q) for q in ("p10_s", "p50_s", "p90_s"))
        state.accuracy.note(p10_s, p50_s, p90_s, end.ran_s)
    else:
        entry = next((e for e in event.entered if e.job_id == end.job_id), None)
    if entry is not None:
        state.history.learn(entry.tenant, entry.user, entry.name, entry.gpus, end.ran_s)


def enter(state: Queue, entry: QueueEntry) -> None:
    """Two ledgers have no order between them: placement may have spoken of the job first."""
    if entry.job_id in state.gone_early:
        state.gone_early.discard(entry.job_id)
        return
    if state.origin is None:
        state.origin = entry.submitted_at
    job = state.jobs.get(entry.job_id)
    if job is None:
        job = PoolJob(entry, "waiting", entry.tenant, state.table.add(entry.job_id))
        state.jobs[entry.job_id] = job
    job.entry = entry
    fill(state, job.row, entry)
    move(state, entry.job_id, job, job.phase)


def fill(state: Queue, row: int, entry: QueueEntry) -> None:
    expected = state.history.estimate(entry.tenant, entry.user, entry.name, entry.gpus)
    table = state.table
    table.distribution[row] = expected.p
    table.put(
        row,
        submit_ms=entry.submitted_at,
        tenant=state.number_of(entry.tenant),
        tier=TIERS[entry.priority_class] + (SPOT_TIER if entry.spot else 0.0),
        gpus=entry.gpus,
        workers=entry.workers,
        preemptible=entry.preemptible or entry.spot,
        restart_s=entry.restart_s,
        checkpoint_interval_s=entry.checkpoint_interval_s or math.inf,
        walltime_s=math.nan if entry.walltime_s is None else entry.walltime_s,
        duration_s=math.nan if entry.duration_s is None else entry.duration_s,
        p10_s=expected.p10_s,
        p50_s=expected.p50_s,
        p90_s=expected.p90_s,
        mean_s=expected.mean_s,
        samples=expected.samples,
        left_s=expected.mean_s,
        gittins_s=expected.gittins_s,
    )
    if table.get(row, "kept_ms"):
        expect(state, row)


def expect(state: Queue, row: int) -> None:
    """What history says of a job that goes on from what it kept."""
    p = state.table.distribution[row].tolist()
    kept_s = state.table.get(row, "kept_ms") / 1000.0 * state.time_scale
    state.table.put(row, left_s=mean_left_of(p, kept_s), gittins_s=gittins_of(p, kept_s))


def cut(state: Queue, stop: Stopped) -> None:
    job = state.jobs.get(stop.job_id)
    if job is None:
        return
    state.order_cache.mark(stop.job_id)
    state.table.put(
        job.row, kept_ms=stop.kept_ms, ran_ms=stop.ran_ms, restarts=stop.restarts, go_ms=0
    )
    if job.entry is not None:
        expect(state, job.row)


def hold(state: Queue, run: Running) -> None:
    job = state.jobs.get(run.job_id)
    if job is None:
        job = state.jobs[run.job_id] = PoolJob(
            None, "running", run.tenant, state.table.add(run.job_id)
        )
        state.table.put(job.row, tenant=state.number_of(run.tenant))
    job.tenant = run.tenant
    state.table.put(job.row, held_gpus=run.gpus, since_ms=run.since, go_ms=0)
    move(state, run.job_id, job, "running")


def requeue(state: Queue, job_id: str) -> None:
    if job := state.jobs.get(job_id):
        move(state, job_id, job, "waiting")


def park(state: Queue, job_id: str) -> None:
    if job := state.jobs.get(job_id):
        move(state, job_id, job, "parked")


def move(state: Queue, job_id: str, job: PoolJob, phase: JobPhase) -> None:
    """Policies see a job once its entry is known."""
    job.phase = phase
    state.order_cache.mark(job_id)
    if phase != "running":
        state.table.put(job.row, held_gpus=0.0, since_ms=0, go_ms=0)
    state.waiting.pop(job_id, None)
    if job.entry is None:
        return
    state.table.phase[job.row] = PHASES[phase]
    if phase == "waiting":
        state.waiting[job_id] = job.entry


def leave(state: Queue, job_id: str) -> None:
    job = state.jobs.pop(job_id, None)
    state.waiting.pop(job_id, None)
    state.order_cache.mark(job_id)
    if job is not None:
        state.table.drop(job.row)
    if job is None or job.entry is None:
        state.gone_early.add(job_id)
