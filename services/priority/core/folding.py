"""Applies a `QueueChanged` of the own ledger to the state."""

from __future__ import annotations

import math

from services.priority.core.history.intervals import RunTimeInterval
from services.priority.core.history.rest import rest_of
from services.priority.core.policies.base_policies import order_survives_departures
from services.priority.core.queue.reported import left_after_stop_s, note_report
from services.priority.core.queue.table import PARKED, RUNNING, WAITING
from services.priority.core.state import DecayedUsage, JobPhase, PoolJob, PriorityState
from shared.contracts.job_spec import PRIORITY_CLASSES
from shared.contracts.ranking import (
    RANKED_MOST,
    Finished,
    NodeGpus,
    QueueChanged,
    QueueEntry,
    Running,
    Stopped,
)
from shared.ledger.decider import Fact

TIERS = {name: float(place) for place, name in enumerate(PRIORITY_CLASSES)}
SPOT_TIER = 4.0
"""Spot jobs come after all others, as in placement."""
INTERVAL = ("low_s", "middle_s", "high_s")
PHASES: dict[JobPhase, int] = {"waiting": WAITING, "running": RUNNING, "parked": PARKED}


def apply_changes(state: PriorityState, event: QueueChanged, fact: Fact) -> None:
    """Learn from jobs that ended before estimating those that entered: both may come at once."""
    dirty = state.dirty or changes_order(state, event)
    for end in event.finished:
        learn(state, event, end)
    for node in event.nodes:
        set_node_gpus(state, node)
    for entry in event.entered:
        enter(state, entry)
    apply_runs(state, event)
    apply_phases(state, event)
    for delta in event.usage:
        usage = state.usage.setdefault(delta.tenant, DecayedUsage())
        usage.add(delta.gpu_s, fact.at, state.half_life_wall_s)
    state.dirty = dirty


def apply_runs(state: PriorityState, event: QueueChanged) -> None:
    """Apply stops, then starts: a batch may stop a job and start it again."""
    for stop in event.stopped:
        stop_job(state, stop)
    for run in event.running:
        hold_gpus(state, run)
    for start in event.started:
        if (job := state.jobs.get(start.job_id)) and job.phase == "running":
            state.running_order.mark(start.job_id)
            state.table.put(job.row, go_ms=start.at)
    for report in event.progressed:
        if (job := state.jobs.get(report.job_id)) and job.phase == "running":
            state.running_order.mark(report.job_id)
            note_report(state.table, job.row, report.ends_at, state.time_scale)


def apply_phases(state: PriorityState, event: QueueChanged) -> None:
    for job_id in event.requeued:
        requeue(state, job_id)
    for job_id in event.parked:
        park(state, job_id)
    for job_id in event.left:
        leave(state, job_id)


def set_node_gpus(state: PriorityState, node: NodeGpus) -> None:
    """Set the GPUs of a node; the context of networks is stale then."""
    state.context = ()
    if node.gpus:
        state.nodes[node.node_id] = node.gpus
    else:
        state.nodes.pop(node.node_id, None)


def changes_order(state: PriorityState, event: QueueChanged) -> bool:
    """Return whether the ranking may differ.

    A start or a stop alone changes no score, and without a job that leaves the last ranking may
    still hold.
    """
    if event.entered or event.requeued or event.nodes:
        return True
    return bool(event.running or event.parked or event.left) and not only_shrinks(state)


def only_shrinks(state: PriorityState) -> bool:
    """Return whether the last ranking, without the jobs that leave, is the ranking of the rest.

    It is if it names all waiting jobs and no score depends on other jobs.
    """
    pool = state.pool
    return (
        pool is not None and order_survives_departures(pool) and len(state.waiting) <= RANKED_MOST
    )


def learn(state: PriorityState, event: QueueChanged, end: Finished) -> None:
    """Learn a run time whatever ended the job, unless its end says nothing of it: policies
    estimate how long GPUs will be held.
    """
    if not end.teaches:
        return
    job = state.jobs.get(end.job_id)
    entry = job.entry if job else None
    if job is not None and entry is not None:
        p10_s, p50_s, p90_s = (state.table.get(job.row, q) for q in ("p10_s", "p50_s", "p90_s"))
        state.accuracy.add(p10_s, p50_s, p90_s, end.ran_s)
        interval = RunTimeInterval(*(state.table.get(job.row, q) for q in INTERVAL))
        state.calibration.learn(entry.tenant, interval, end.ran_s)
        state.coverage.add(interval.p10_s <= end.ran_s <= interval.p90_s)
    else:
        entry = next((e for e in event.entered if e.job_id == end.job_id), None)
    if entry is not None:
        state.history.learn(
            entry.tenant, entry.user, entry.name, entry.gpus, end.ran_s, entry.command_digest
        )


def enter(state: PriorityState, entry: QueueEntry) -> None:
    """Add a job, unless its end came first: two ledgers have no order between them."""
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
    fill_row(state, job.row, entry)
    set_phase(state, entry.job_id, job, job.phase)


def fill_row(state: PriorityState, row: int, entry: QueueEntry) -> None:
    estimate = state.history.estimate(
        entry.tenant, entry.user, entry.name, entry.gpus, entry.command_digest
    )
    table = state.table
    table.move(row, PARKED)
    table.put_distribution(row, estimate.p)
    low_s, middle_s, high_s = state.calibration.read_interval(entry.tenant, estimate.ended)
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
        p10_s=estimate.p10_s,
        p50_s=estimate.p50_s,
        p90_s=estimate.p90_s,
        mean_s=estimate.mean_s,
        samples=estimate.samples,
        low_s=low_s,
        middle_s=middle_s,
        high_s=high_s,
        left_s=estimate.mean_s,
        gittins_s=estimate.gittins_s,
    )
    if table.get(row, "kept_ms"):
        estimate_rest(state, row)


def estimate_rest(state: PriorityState, row: int) -> None:
    """Estimate the rest of a job that goes on from its last checkpoint."""
    chances = state.table.distribution[row].tolist()
    kept_s = state.table.get(row, "kept_ms") / 1000.0 * state.time_scale
    left_s, gittins_s = rest_of(chances, kept_s)
    state.table.put(row, left_s=left_s, gittins_s=gittins_s)


def stop_job(state: PriorityState, stop: Stopped) -> None:
    job = state.jobs.get(stop.job_id)
    if job is None:
        return
    state.mark(stop.job_id)
    table, row = state.table, job.row
    left_s = math.nan
    if stop.restarts > table.get(row, "restarts"):
        left_s = left_after_stop_s(table, row, stop.ran_ms, stop.kept_ms, state.time_scale)
    table.put(
        row, kept_ms=stop.kept_ms, ran_ms=stop.ran_ms, restarts=stop.restarts, go_ms=0, ends_ms=0
    )
    if not math.isnan(left_s):
        table.put(row, left_s=left_s, gittins_s=left_s)
    elif job.entry is not None:
        estimate_rest(state, row)


def hold_gpus(state: PriorityState, run: Running) -> None:
    job = state.jobs.get(run.job_id)
    if job is None:
        job = state.jobs[run.job_id] = PoolJob(
            None, "running", run.tenant, state.table.add(run.job_id)
        )
        state.table.put(job.row, tenant=state.number_of(run.tenant))
    job.tenant = run.tenant
    state.starts.start(run.job_id, run.since, state.time_scale)
    state.table.put(job.row, held_gpus=run.gpus, since_ms=run.since, go_ms=0, ends_ms=0)
    set_phase(state, run.job_id, job, "running")


def requeue(state: PriorityState, job_id: str) -> None:
    if job := state.jobs.get(job_id):
        set_phase(state, job_id, job, "waiting")


def park(state: PriorityState, job_id: str) -> None:
    if job := state.jobs.get(job_id):
        set_phase(state, job_id, job, "parked")


def set_phase(state: PriorityState, job_id: str, job: PoolJob, phase: JobPhase) -> None:
    """Change a job's phase; policies see it only once its entry is known."""
    job.phase = phase
    state.mark(job_id)
    if phase != "running":
        state.table.put(job.row, held_gpus=0.0, since_ms=0, go_ms=0, ends_ms=0)
    state.waiting.pop(job_id, None)
    if job.entry is None:
        return
    state.table.move(job.row, PHASES[phase])
    if phase == "waiting":
        state.waiting[job_id] = job.entry


def leave(state: PriorityState, job_id: str) -> None:
    job = state.jobs.pop(job_id, None)
    state.starts.drop(job_id)
    state.waiting.pop(job_id, None)
    state.mark(job_id)
    if job is not None:
        state.table.drop(job.row)
    if job is None or job.entry is None:
        state.gone_early.add(job_id)
