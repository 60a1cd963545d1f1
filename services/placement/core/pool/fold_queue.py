"""Folds of waiting jobs, ranks and rounds."""

from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.overdue import note_overdue
from services.placement.core.pool.ranks import Ranks
from services.placement.core.pool.shape import shape_of, tier_of
from services.placement.core.pool.state import OpenRound, Pool
from shared.contracts.attempts import JobRequeued
from shared.contracts.job_names import program_of
from shared.contracts.placement import JobEnqueued, JobHeld, RanksNoted, RoundEnded, RoundOpened
from shared.ledger.decider import Fact

BACKOFF_MS = 500
BACKOFF_MOST_MS = 30_000


def enqueue(pool: Pool, event: JobEnqueued, fact: Fact) -> None:
    """Add a new job to the queue, or an old one that admission let in again."""
    job = pool.jobs.get(event.job_id)
    if job is None:
        job = pool.jobs[event.job_id] = Job(
            job_id=event.job_id,
            tenant=event.tenant,
            submitted_at=event.submitted_at,
            array_index=event.array_index,
            spec=event.spec,
            shape=shape_of(event.spec),
            tier=tier_of(event.spec),
            attempt=event.attempt,
            since=fact.at,
            program=program_of(event.tenant, event.spec.user, event.spec.name),
            trace=fact.traceparent,
        )
        pool.note_arrival(job.shape)
    job.cause = fact.id
    job.predicted_s = pool.ranks.run_s.get(event.job_id)
    job.resumes, job.debt_ms, job.starts = False, 0, 0
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at)


def requeue(pool: Pool, event: JobRequeued, fact: Fact) -> None:
    """Put a job whose GPUs are all back into the queue; failed starts back off exponentially."""
    job = pool.jobs[event.job_id]
    not_before = 0
    if event.reason == "start_failed":
        not_before = fact.at + min(BACKOFF_MS << (job.start_failures - 1), BACKOFF_MOST_MS)
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at, not_before)


def wait_again(
    pool: Pool, job: Job, attempt: int, avoid: tuple[str, ...], at: int, not_before: int = 0
) -> None:
    """Reset what belongs to the attempt before and enter the queue at `at` ms."""
    job.note_run(at)
    job.attempt, job.avoid, job.since = attempt, avoid, at
    job.stop, job.stop_reason, job.makes_room_for, job.hold_reason = "", "", "", ""
    job.exit_code, job.failed_node, job.clean = None, "", True
    job.placed_at = job.started_at = 0
    job.not_before = not_before
    job.gpus = 0.0
    job.ready.clear()
    pool.enter(job, at)


def note_hold(pool: Pool, event: JobHeld, fact: Fact) -> None:
    pool.jobs[event.job_id].hold_reason = event.reason


def note_ranks(pool: Pool, event: RanksNoted, fact: Fact) -> None:
    """Take over the new order; where rank may stop jobs, it may also let one start."""
    scores: dict[str, float] = {}
    gittins_s: dict[str, float] = {}
    run_s: dict[str, float] = {}
    for entry in event.running:
        job_id = entry.job_id
        scores[job_id] = entry.score
        if (rank_s := entry.gittins_s) is not None:
            gittins_s[job_id] = rank_s
    for entry in event.ranked:
        job_id = entry.job_id
        scores[job_id] = entry.score
        if (predicted_s := entry.run_s) is not None:
            run_s[job_id] = predicted_s
    ranks = Ranks(event.ranked_at, event.base_policy, event.model_sha256, scores, gittins_s, run_s)
    pool.rank(ranks)
    if pool.is_ranked and pool.waiting:
        pool.touch(fact.at)


def open_round(pool: Pool, event: RoundOpened, fact: Fact) -> None:
    pool.open_round = OpenRound(fact.seq, fact.at, event.until)


def end_round(pool: Pool, event: RoundEnded, fact: Fact) -> None:
    """Count the jobs still in the queue as passed over.

    A reservation whose victims are all gone has had its turn and is dropped.
    """
    pool.open_round = None
    pool.round_no += 1
    pool.round_at = fact.at
    pool.again_at = event.again_at
    pool.changed = event.unfinished
    pool.first_change = pool.last_change = fact.at
    pool.unscanned = 0
    if not event.unfinished:
        waiting = pool.waiting
        pool.unreported = {
            job_id: None for job_id in pool.unreported if waiting[job_id].not_before > fact.at
        }
    note_overdue(pool, fact.at)
    for job_id, victims in list(pool.reservations.items()):
        jobs = (pool.jobs.get(victim) for victim in victims)
        if not any(job and job.makes_room_for == job_id for job in jobs):
            del pool.reservations[job_id]
